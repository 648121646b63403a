"""Every error that the client raises, in one tree that is ordered by what the caller can do.

`retryable` answers the question of an orchestrator: can a later try of the same work succeed
without a change? A retry does not help with a bad configuration, a refused request or a wrong
address. A retry can help after a broken connection, a run that ended without an answer or a missed
deadline. Errors can be converted to JSON and back (`to_payload`, `from_payload`), so that a trigger
can hand its error to the worker unchanged.

A message begins with the reason: what failed, what the service said, the next step. It ends with
`where` in brackets: ids, the method and path of a request, the connection, the task. Log viewers
show one line of a message, and a reader needs the reason there. Messages never contain a secret:
callers pass only addresses, ids and text of the service. `redaction` makes this text printable, and
removes a credential that the service quotes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from airflow_provider_platform.client.redaction import log_line

MAX_ERROR_TEXT = 10_000
"""Characters of an error's message: it may name many fields, rules or queries."""


@dataclass(frozen=True)
class RequestName:
    """How errors call a request: `action` in words, at the beginning of the message, and `where`
    (ids, method and path) at its end."""

    action: str
    where: str


class PlatformError(Exception):
    """Base of all errors of this package; `retryable` says whether a later try can succeed.

    `reason` says what failed, what the service said and what to do next. `where` names ids, the
    request, the connection or the task, or is "" if there is nothing to name. `message`, which is
    also `str(error)`, is the reason followed by `where` in brackets.
    """

    retryable: ClassVar[bool] = False
    ends_run: ClassVar[bool] = False
    """Whether the service reports with this error that the run is over."""
    is_dead_run: ClassVar[bool] = False
    """Whether a run that a try re-attached to and that fails so has no result, so that the try
    submits it again: it was stopped, ended without an answer, or has no reported end. Polling a run
    that was stopped can show each of these."""
    abandons_run: ClassVar[bool] = False
    """Whether the run may continue although no try will follow it further: it is stopped."""

    def __init__(self, reason: str, *, where: object = None, **details: Any) -> None:
        # Ids and branch names of the service are in both: they must not forge log lines.
        self.reason = log_line(reason, MAX_ERROR_TEXT)
        self.where = "" if where is None else log_line(str(where))
        self.message = f"{self.reason} ({self.where})" if self.where else self.reason
        super().__init__(self.message)
        self.details: dict[str, Any] = {k: v for k, v in details.items() if v is not None}

    def where_also(self, place: str) -> str:
        """Return `where` with one more place at its end."""
        return ", ".join(filter(None, [self.where, place]))

    def to_payload(self) -> dict[str, Any]:
        """Return this error as plain JSON: `{"type", "message", "where", "details"}`; `message` is
        the reason alone."""
        return {
            "type": type(self).__name__,
            "message": self.reason,
            "where": self.where,
            "details": self.details,
        }


class PlatformConfigError(PlatformError):
    """A setting of the connection is missing or bad. `field` names it."""

    def __init__(self, reason: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(reason, field=field, **details)
        self.field = field


class PlatformInputError(PlatformError):
    """An argument is missing or bad. `field` names it, if it is one. The message says whether
    something was sent: in most cases nothing."""

    def __init__(self, reason: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(reason, field=field, **details)
        self.field = field


class PlatformTransportError(PlatformError):
    """The request got no usable response: no connection, a time-out, or a response that was cut
    off.

    `processed` says whether the service can have processed the request: False if it cannot (no
    connection was made), None if this is unknown.
    """

    retryable = True

    def __init__(self, reason: str, *, processed: bool | None = None, **details: Any) -> None:
        super().__init__(reason, processed=processed, **details)
        self.processed = processed


class PlatformAddressError(PlatformError):
    """The address does not lead to the service's API: it returned HTML, other non-JSON, or a
    redirect.

    `is_html` says which: a service answers a path that it does not know with HTML.
    """

    def __init__(self, reason: str, *, is_html: bool = False, **details: Any) -> None:
        super().__init__(reason, **details)
        self.is_html = is_html


class PlatformProtocolError(PlatformError):
    """The service's response breaks its contract, for example by broken JSON, another shape, too
    much data, or a list that never ends."""

    retryable = True
    abandons_run = True


class PlatformApiError(PlatformError):
    """The service answered with an error status.

    `status` is the HTTP status, `operation` the operation that was called, `service_message` the
    service's own message (one line), `retry_after` the number of seconds that the service asks the
    client to wait, or None, and `code` the machine-readable reason in the response, or None.
    """

    def __init__(
        self,
        reason: str,
        *,
        status: int | None = None,
        operation: str | None = None,
        service_message: str | None = None,
        retry_after: float | None = None,
        code: str | None = None,
        **details: Any,
    ) -> None:
        super().__init__(
            reason,
            status=status,
            operation=operation,
            service_message=service_message,
            retry_after=retry_after,
            code=code,
            **details,
        )
        self.status = status
        self.operation = operation
        self.service_message = service_message
        self.retry_after = retry_after
        self.code = code


class PlatformBadRequestError(PlatformApiError):
    """400, or a 4xx that no other class has: the service refuses the request."""


class DashboardReviewRequiredError(PlatformBadRequestError):
    """400: the dashboard requires review, so it is published from its approved review only.

    People request, approve and publish a review in the platform; no API can.
    """


class PlatformAuthenticationError(PlatformApiError):
    """401: the credential is missing, malformed, revoked or expired: the management token, the
    chat credential or the data token."""


class PlatformPermissionError(PlatformApiError):
    """403: the operation is not allowed for the credential, or the data API refuses its token."""


class PlatformNotFoundError(PlatformApiError):
    """404: the resource, or the deployment that holds it, does not exist for this credential."""


class PlatformConflictError(PlatformApiError):
    """The current state of the resource does not allow the operation: the service says so (409), or
    the task saw it before the call."""


class PlatformTransientConflictError(PlatformConflictError):
    """409: another request changed the same data at the same time. The request was not carried out,
    and the same request may succeed a little later."""

    retryable = True


class PlatformUnprocessableError(PlatformApiError):
    """422: the request is well formed but cannot be carried out."""


class PlatformRateLimitError(PlatformApiError):
    """429: too many requests, after all tries; the request was not processed."""

    retryable = True


class PlatformServerError(PlatformApiError):
    """5xx or 408, after the tries that the request allows."""

    retryable = True


class PlatformOutcomeUnknownError(PlatformError):
    """The response to a call was lost, or the service lost the outcome of a run. The call must not
    be repeated: it may or may not have been carried out."""


class PlatformCredentialAnswerError(PlatformError):
    """The response contains a credential, and the task does not say which part of it may be
    stored."""


class PlatformDeadlineError(PlatformError):
    """The deadline passed before the remote run ended, or before a query had its first row."""

    retryable = True
    abandons_run = True


class PlatformInterruptedError(PlatformError):
    """The task was stopped before the call had a result."""

    retryable = True


class PlatformClosedError(PlatformError):
    """A client or a result was used after it was closed, or closed while it was used. A run that
    was sent before may continue."""


class PlatformTriggerError(PlatformError):
    """The trigger failed with an unexpected error. The remote run may continue."""

    retryable = True


class ChatError(PlatformError):
    """Base of the errors that end a chat run. `usage` has the tokens of the run, None if the
    service did not report them."""

    retryable = True
    ends_run = True

    def __init__(self, reason: str, *, usage: dict[str, Any] | None = None, **details: Any) -> None:
        super().__init__(reason, usage=usage, **details)
        self.usage = usage


class ChatBudgetError(ChatError):
    """The earlier runs of the task used as many tokens as `max_tokens`. Nothing was sent."""

    retryable = False


class ChatRpcError(ChatError):
    """A JSON-RPC error object under HTTP 200: the credential or its permissions were refused."""

    retryable = False
    ends_run = False  # a refused credential says nothing about the run


class ChatUserLimitError(ChatError):
    """The account has reached the limit of users of its chat. The agent received no message."""

    retryable = False


class ChatQuotaError(ChatError):
    """The tokens of the user's seat and of the account are used up."""

    retryable = False


class ChatStreamError(ChatError):
    """The run failed on the service: the stream contained an `{"error": ...}` line."""


class ChatBusyError(ChatError):
    """The thread is answering another message; this message was not processed."""


class ChatAbortedError(ChatError):
    """The run was stopped, for example by a user or by another task."""

    is_dead_run = True


class ChatSuspendedError(ChatError):
    """The run is suspended and did not resume."""


class ChatNoAnswerError(ChatError):
    """The run ended without a final answer."""

    is_dead_run = True


class ChatEndUnknownError(ChatError):
    """The run does not continue, and the service does not report how it ended."""

    is_dead_run = True


class ChatToolError(ChatError):
    """Queries or other tool calls of the run failed (see `fail_on_tool_error`)."""


class DbtSyncFailedError(PlatformError):
    """The dbt sync failed."""

    retryable = True
    ends_run = True


class DbtSyncCancelledError(PlatformError):
    """The dbt sync was cancelled, for example by a user or by another task."""

    retryable = True
    ends_run = True
    is_dead_run = True


class AlreadyRunningError(PlatformError):
    """Another run is active, and the task must not follow it. A later try may find that it has
    ended."""

    retryable = True


class OperationMissingError(PlatformError):
    """The tenant lacks an operation: its platform is older, or the feature is not activated for
    the account."""


class ReportDeliveryFailedError(PlatformError):
    """A run of a report delivery ended without a success."""

    retryable = True
    ends_run = True


class BranchNotFoundError(PlatformError):
    """The data model has no branch of this name."""


class BranchNotWrittenError(BranchNotFoundError):
    """The branch to open does not exist. The dbt sync that writes it may still be running."""

    retryable = True


class BranchNotActiveError(PlatformError):
    """The branch is not open: its staging environment is off."""


class BranchClosedError(BranchNotActiveError):
    """The task opened the branch, but the branch is not active: somebody closed it, or it never
    became active."""

    retryable = True


class BranchNotServedError(PlatformError):
    """The branch is open, but the service neither builds it nor answers queries on it."""

    retryable = True


class BuildFailedError(PlatformError):
    """The build of a branch failed or was cancelled."""

    retryable = True
    ends_run = True


class MergedBuildFailedError(PlatformError):
    """A merge was made, but the build of production after it failed or was cancelled. A retry
    does not merge again: it waits for production's build if somebody has started one."""

    retryable = True


class BranchNotMergedError(PlatformError):
    """The service merged nothing, or the task did not send the merge, for example because the
    branch has a commit that was not checked."""


class DataQueryError(PlatformError):
    """The data API refused the query, or the query failed."""


class DataQueryTimeoutError(DataQueryError):
    """The query hit a time limit of the database, of the connection to it or of the queue."""

    retryable = True


class NoPreAggregationError(PlatformError):
    """No pre-aggregation matches the arguments; nothing is built."""


class PreAggregationBuildFailedError(PlatformError):
    """A build of pre-aggregations failed, or left tables missing."""

    retryable = True
    ends_run = True


class PreAggregationJobsLostError(PlatformError):
    """The service no longer knows builds of pre-aggregations, so their outcome is unknown."""

    retryable = True
    ends_run = True
    is_dead_run = True


class ResultValueError(PlatformError):
    """A value does not fit the type of its column, or the columns of a result do not fit the
    task's arguments. `column` and `row` (from 1) name the place, if there is one."""

    def __init__(
        self, reason: str, *, column: str | None = None, row: int | None = None, **details: Any
    ) -> None:
        super().__init__(reason, column=column, row=row, **details)
        self.column = column
        self.row = row


class ResultTruncatedError(PlatformError):
    """A result may lack rows, and the task accepts only complete results."""


class ResultNotComparableError(PlatformError):
    """Two results could not be compared: rows may be missing, or a result is too large."""


class NumbersMovedError(PlatformError):
    """A branch changes numbers by more than the task allows."""


class PageKeyError(PlatformError):
    """The key columns (`page_by`) do not identify each row of the result in order."""


class PagesChangedError(PlatformError):
    """The pages of a result do not fit together: the rows or the columns changed, or the service
    rounds the keys."""

    retryable = True


class ResultEmptyError(PlatformError):
    """A result has no rows, or only empty values, and the task needs some. A later try may find
    them."""

    retryable = True


class ResultWriteError(PlatformError):
    """A file could not be written, or its storage could not be reached."""

    retryable = True


class EvaluationBudgetError(PlatformError):
    """Asking the questions would cost more tokens than the task allows. Nothing was sent."""


class EvaluationFailedError(PlatformError):
    """An evaluation is red: answers became worse, or too few are right."""

    ends_run = True


class EvaluationNotMeasuredError(PlatformError):
    """Too few questions of an evaluation were measured. A retry asks those again that were not
    measured, or reads the results of the service's own evaluation again."""

    retryable = True


class EvaluationRunFailedError(PlatformError):
    """The service's own evaluation failed or measured too little. A retry starts a new one."""

    retryable = True
    ends_run = True


class DashboardExportFailedError(PlatformError):
    """The dashboard export ended as failed, or its file is gone."""

    retryable = True
    ends_run = True


def _tree(root: type[PlatformError]) -> dict[str, type[PlatformError]]:
    classes = {root.__name__: root}
    for child in root.__subclasses__():
        classes.update(_tree(child))
    return classes


def from_payload(payload: dict[str, Any]) -> PlatformError:
    """Return the error that `to_payload` described. An unknown type becomes a plain
    `PlatformError`."""
    error_type = _tree(PlatformError).get(str(payload.get("type")), PlatformError)
    reason = str(payload.get("message") or "The platform reported an error without a message.")
    details = payload.get("details")
    known = details.items() if isinstance(details, dict) else ()
    named = {str(k): v for k, v in known if k not in ("self", "reason", "message", "where")}
    return error_type(reason, where=payload.get("where"), **named)
