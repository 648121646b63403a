"""Every error the client raises: one tree, told apart by what the caller can do about it.

`retryable` answers the one question an orchestrator has: can a later try of the same work succeed
without anybody changing something first? Bad configuration, refused requests and wrong addresses
cannot be mended by trying again; an interrupted connection, a run that ended without an answer or
a missed deadline can. Errors survive a trip through JSON (`to_payload`, `from_payload`), so that a
trigger can hand the worker the very error that it met.

A message begins with the reason: what failed, what the service said, the next step. It ends with
`where` in brackets: ids, the method and path of a request, the connection, the task. Log viewers
show one line of a message, and a reader needs the reason there. Messages never hold a secret:
callers pass only addresses, ids and text of the service; the latter goes through
`formats.service_text`, and the client takes out a credential that the service quotes
(`redaction`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class RequestName:
    """What errors call a request: `action` in words, which begins their message, and `where` (ids,
    method and path), which ends it."""

    action: str
    where: str


class PlatformError(Exception):
    """Base of all errors of this package; `retryable` says whether a later try can succeed.

    `reason` says what failed, what the service said and what to do next. `where` names ids, the
    request, the connection or the task, "" if there is nothing to name. `message`, which is the
    text of the error, is the reason followed by `where` in brackets.
    """

    retryable: ClassVar[bool] = False

    def __init__(self, reason: str, *, where: object = None, **details: Any) -> None:
        self.reason = reason
        self.where = "" if where is None else str(where)
        self.message = f"{reason} ({self.where})" if self.where else reason
        super().__init__(self.message)
        self.details: dict[str, Any] = {k: v for k, v in details.items() if v is not None}

    def where_also(self, place: str) -> str:
        """Return `where` with one more place at its end."""
        return ", ".join(filter(None, [self.where, place]))

    def to_payload(self) -> dict[str, Any]:
        """This error as plain JSON: `{"type", "message", "where", "details"}`; `message` is the
        reason alone."""
        return {
            "type": type(self).__name__,
            "message": self.reason,
            "where": self.where,
            "details": self.details,
        }


class PlatformConfigError(PlatformError):
    """A setting of the connection is missing or bad. `field` names it; no request was made."""

    def __init__(self, reason: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(reason, field=field, **details)
        self.field = field


class PlatformInputError(PlatformError):
    """An argument that the service would have to refuse. `field` names it; nothing was sent."""

    def __init__(self, reason: str, *, field: str | None = None, **details: Any) -> None:
        super().__init__(reason, field=field, **details)
        self.field = field


class PlatformTransportError(PlatformError):
    """The request got no usable answer: no connection, a time-out, a reset, a cut.

    `processed` tells what the service may have done with the request: False when it cannot have
    been processed (no connection was made), None when nobody knows.
    """

    retryable = True

    def __init__(self, reason: str, *, processed: bool | None = None, **details: Any) -> None:
        super().__init__(reason, processed=processed, **details)
        self.processed = processed


class PlatformAddressError(PlatformError):
    """Something else than the service answers there: HTML, other non-JSON, or a redirect."""


class PlatformProtocolError(PlatformError):
    """The service's answer breaks the contract: broken JSON in a stream, a cursor that repeats."""

    retryable = True


class PlatformApiError(PlatformError):
    """The service answered with an error status.

    `status` is the HTTP status, `operation` what was asked, `service_message` the service's own
    words (one line), `retry_after` the seconds it asked us to wait, if it did, `code` the
    machine-readable reason in its answer, if it has one.
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
    """400, or another 4xx without a class of its own: the service refuses the request."""


class DashboardReviewRequiredError(PlatformBadRequestError):
    """400: the dashboard requires review, so it is published from its approved review only.

    People request, approve and publish a review in the platform; no API can.
    """


class PlatformAuthenticationError(PlatformApiError):
    """401: the management token is missing, malformed, revoked or expired."""


class PlatformPermissionError(PlatformApiError):
    """403: the credential is valid but not allowed to do this."""


class PlatformNotFoundError(PlatformApiError):
    """404: the resource, or the deployment that holds it, does not exist for this credential."""


class PlatformConflictError(PlatformApiError):
    """409: the resource is in a state that does not allow this."""


class PlatformTransientConflictError(PlatformConflictError):
    """409: somebody else wrote at the same time; the request was not carried out, and the same
    one may succeed a little later."""

    retryable = True


class PlatformUnprocessableError(PlatformApiError):
    """422: the request is well formed but cannot be carried out."""


class PlatformRateLimitError(PlatformApiError):
    """429: too many requests, after all tries; the request was not processed."""

    retryable = True


class PlatformServerError(PlatformApiError):
    """5xx or 408, after all tries."""

    retryable = True


class PlatformOutcomeUnknownError(PlatformError):
    """A call that must not be repeated was lost: it may or may not have been carried out."""


class PlatformCredentialAnswerError(PlatformError):
    """The answer carries a credential, and nobody chose what of it may be stored."""


class PlatformDeadlineError(PlatformError):
    """The remote run did not end in time."""

    retryable = True


class PlatformInterruptedError(PlatformError):
    """The task was ended from outside, so the work is not gone on with."""

    retryable = True


class PlatformClosedError(PlatformError):
    """A client, or a result of it, was used after it was closed. No request was made for this."""


class PlatformTriggerError(PlatformError):
    """The trigger failed in a way that nobody foresaw; the remote run may go on."""

    retryable = True


class ChatError(PlatformError):
    """Base of the errors that end a chat run."""

    retryable = True


class ChatRpcError(ChatError):
    """A JSON-RPC error object under HTTP 200: the credential or its permissions were refused."""

    retryable = False


class ChatUserLimitError(ChatError):
    """The account holds as many users of its chat as it may; nothing was asked."""

    retryable = False


class ChatStreamError(ChatError):
    """The stream carried an `{"error": ...}` line: the run failed at the service."""


class ChatBusyError(ChatError):
    """Another message of the thread is being answered; ours was not processed."""


class ChatAbortedError(ChatError):
    """The run was stopped, for example by a user or by another task."""


class ChatSuspendedError(ChatError):
    """The run stays suspended although it was asked to resume."""


class ChatNoAnswerError(ChatError):
    """The run ended without a final answer."""


class ChatEndUnknownError(ChatError):
    """The run does not go on, and the service does not tell how it ended."""


class ChatToolError(ChatError):
    """The run's queries failed (see `fail_on_tool_error`)."""


class DbtSyncFailedError(PlatformError):
    """The dbt sync ended as FAILED."""

    retryable = True


class DbtSyncCancelledError(PlatformError):
    """The dbt sync was cancelled, for example by a user or by another task."""

    retryable = True


class DbtSyncInputDroppedError(PlatformError):
    """The tenant's release dropped what was asked for, and another dbt sync was started."""


class BranchNotFoundError(PlatformError):
    """The data model has no branch of this name."""


class BranchNotWrittenError(BranchNotFoundError):
    """The branch to open does not exist, or not yet: the dbt sync that writes it may still run."""

    retryable = True


class BranchNotActiveError(PlatformError):
    """Nothing serves the branch: it is neither open in dev mode nor has a staging environment."""


class BranchClosedError(BranchNotActiveError):
    """The branch was opened by us and is not active: somebody closed it, or it never came up."""

    retryable = True


class BranchNotServedError(PlatformError):
    """Nothing builds or serves the branch, although it was opened or could start by itself."""

    retryable = True


class DevModeBusyError(PlatformError):
    """The credential is in dev mode on another branch, and a credential has one at a time."""

    retryable = True


class BranchUnsupportedError(PlatformError):
    """The tenant's release has no operation that opens a branch in this way."""


class BuildFailedError(PlatformError):
    """The build of a branch failed or was cancelled."""

    retryable = True


class MergedBuildFailedError(PlatformError):
    """A merge was made, and the build of production after it failed or was cancelled. A retry waits
    for the build again and merges nothing again."""

    retryable = True


class BranchNotMergedError(PlatformError):
    """The service merged nothing, or the merge would have been in vain and was not sent."""


class DataQueryError(PlatformError):
    """The data API refuses the query, or ran it and failed."""


class DataQueryTimeoutError(DataQueryError):
    """The query hit a time limit of the database, of the connection to it or of the queue."""

    retryable = True


class NoPreAggregationError(PlatformError):
    """The selector of a build matches no pre-aggregation; nothing is built."""


class PreAggregationBuildFailedError(PlatformError):
    """A build of pre-aggregations failed, or left tables missing."""

    retryable = True


class PreAggregationJobsLostError(PlatformError):
    """The service does not know the jobs of a build any more, so nothing tells how it went."""

    retryable = True


class ResultValueError(PlatformError):
    """A value does not fit the type that the service gives its column. `column` and `row` (from 1)
    name it."""

    def __init__(
        self, reason: str, *, column: str | None = None, row: int | None = None, **details: Any
    ) -> None:
        super().__init__(reason, column=column, row=row, **details)
        self.column = column
        self.row = row


class ResultTruncatedError(PlatformError):
    """A result ends where the service stops, and its author wants all rows or none."""


class PageKeyError(PlatformError):
    """The keys of a result that is read in pages do not name each of its rows in order."""


class PagesChangedError(PlatformError):
    """The rows of a result changed while it was read in pages."""

    retryable = True


class ResultEmptyError(PlatformError):
    """A result has no rows, and its author wants some. A later try may find them."""

    retryable = True


class ResultWriteError(PlatformError):
    """A file could not be written; nothing of it stands under its name."""

    retryable = True


class DashboardExportFailedError(PlatformError):
    """The dashboard export ended as failed, or its file is gone."""

    retryable = True


def _tree(root: type[PlatformError]) -> dict[str, type[PlatformError]]:
    found = {root.__name__: root}
    for child in root.__subclasses__():
        found.update(_tree(child))
    return found


def from_payload(payload: dict[str, Any]) -> PlatformError:
    """The error that `to_payload` described; an unknown type becomes a plain `PlatformError`."""
    error_type = _tree(PlatformError).get(str(payload.get("type")), PlatformError)
    reason = str(payload.get("message") or "The platform reported an error without a message.")
    details = payload.get("details")
    known = details.items() if isinstance(details, dict) else ()
    named = {str(k): v for k, v in known if k not in ("self", "reason", "message", "where")}
    return error_type(reason, where=payload.get("where"), **named)
