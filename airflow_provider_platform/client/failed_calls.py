"""Which error a failed call becomes, with the service's own message and the next step.

The error has the service's own message. The data API passes on the message of the database without
a code. So phrases decide whether a query hit a time limit: each is several words or the name of an
error, so that a column called `timeout` does not match.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from airflow_provider_platform.client.errors import (
    ChatError,
    ChatRpcError,
    ChatUserLimitError,
    DashboardReviewRequiredError,
    DataQueryError,
    DataQueryTimeoutError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformBadRequestError,
    PlatformConflictError,
    PlatformError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransientConflictError,
    PlatformUnprocessableError,
    RequestName,
)
from airflow_provider_platform.client.json_text import read_json
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.redaction import (
    HIDDEN,
    SHORTEST_SECRET,
    is_credential_name,
    quote_service,
)

TIME_OUT_ADVICE = (
    "A retry may succeed. If it does not, reduce what the query reads, or raise the time limit "
    "of the database or of the deployment (CUBEJS_DB_QUERY_TIMEOUT)."
)
LONGEST = 10_000
"""Characters of a text that are searched."""

_QUOTED_NAME = re.compile(r"""(['"`])[^\s'"`]*\1""")
_TIMED_OUT = re.compile(
    r"""
      timed[- ]?out\b                                   # also ETIMEDOUT
    | \btime-?out(?:error|_exceeded)\b                  # TimeoutError, TIMEOUT_EXCEEDED
    | \b(?:call|connect|connection|execution|gateway|job|lock|lock\ wait|query|read|request
        |server|socket|statement|warehouse)\ time-?out\b
    | \btime-?out\ (?:after|exceeded|expired|reached|of\ \d)
    | \btime\ out\ period\ exceeded
    | (?:^|[:.]\ )time-?out:
    | \bdeadline[ _]exceeded\b
    | \bexecution\ time\ exceeded\b
    | \btime\ (?:limit|cap)\ (?:was\ )?exceeded\b
    | \bexceed(?:s|ed)?\ (?:[a-z]+\ ){0,5}time\ (?:limit|cap)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def says_time_out(message: object) -> bool:
    """Whether an error of the data API says that the query hit a time limit of the database, of
    the connection to it or of the queue."""
    return _TIMED_OUT.search(_QUOTED_NAME.sub(" ", str(message)[:LONGEST])) is not None


_A_YEAR = 366 * 24 * 3600.0


def parse_retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait according to a `Retry-After` header (seconds or an HTTP date);
    None if it is missing or cannot be parsed. `now` is Unix time."""
    if value is None:
        return None
    text = value.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), _A_YEAR)
    try:
        date = parsedate_to_datetime(text)
    except (TypeError, ValueError, OverflowError, IndexError):
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    seconds = (date - datetime.fromtimestamp(now, UTC)).total_seconds()
    return min(max(0.0, seconds), _A_YEAR)


RETRY_MAY_SUCCEED = "A retry may succeed."
TRANSIENT_CONFLICTS = frozenset({"upsert_branch_changed"})
"""Codes of a 409 that mean: try again."""
REVIEW_REQUIRED = "dashboard requires review"
"""Part of the service's message for a dashboard that can be published only from its approved
review."""
CHAT_STREAM = RequestName("chat stream", "POST /stream-chat-state")
CHAT_ABORT = RequestName("chat abort", "POST /abort")
DATA_QUERY = RequestName("data query", "POST /v1/cubesql")
PREMIUM_HINT = "Chat access needs the premium or enterprise plan."
_OTHER_REASON = re.compile(r"thread|expired|scope|externalid|switched off|disabled", re.IGNORECASE)
"""Words in the service's message that show another reason than the account's plan."""
_USER_LIMIT = re.compile(
    r"\b(limit|maximum|max|too many|exceed\w*|reached|more than|at most)\b.*"
    r"\b(external[ _-]?users?|10[,.]?000\b.*\busers)\b"
    r"|\b(external[ _-]?users?|10[,.]?000\b.*\busers)\b.*"
    r"\b(limit|maximum|max|too many|exceed\w*|reached|allowed)\b",
    re.IGNORECASE | re.DOTALL,
)
"""How the service may word that an account has too many users: its documents give no text."""
SCOPE_MISSING = "scope_missing"
"""The code of a 403 because the data token lacks an API scope."""
_SCOPE = re.compile(r"scope is missing: *(\w+)", re.IGNORECASE)
_DEFAULT_SCOPES = ("meta", "data", "graphql", "sql")
_NEXT_STEP = {
    401: "Check Management token (password) in the connection: it may be mistyped, revoked or "
    "expired.",
    404: "Check the ids, and check that this credential has access to the deployment.",
    408: f"The service timed out while it waited for the request. {RETRY_MAY_SUCCEED}",
    409: "The current state of the resource does not allow this operation. Check the resource in "
    "the platform.",
    429: "The service is limiting requests. Run fewer tasks at the same time.",
}

_BY_STATUS: dict[int, type[PlatformApiError]] = {
    400: PlatformBadRequestError,
    401: PlatformAuthenticationError,
    403: PlatformPermissionError,
    404: PlatformNotFoundError,
    408: PlatformServerError,
    409: PlatformConflictError,
    422: PlatformUnprocessableError,
    429: PlatformRateLimitError,
}


def error_for_status(status: int) -> type[PlatformApiError]:
    """Return the error class of an HTTP status of 400 or above."""
    if status in _BY_STATUS:
        return _BY_STATUS[status]
    return PlatformServerError if status >= 500 else PlatformBadRequestError


def management_error(
    operation: Operation[Any], status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> PlatformApiError:
    """Return the error of a management call."""
    code = _code(body)
    said = service_message(body, headers) or ""
    error_class, step = _management_step(operation, status, code, said)
    return _api_error(
        operation.request_name,
        status,
        headers,
        body,
        step,
        now=now,
        error_class=error_class,
        code=code,
        operation=operation.operation_id,
    )


def _management_step(
    operation: Operation[Any], status: int, code: str | None, said: str
) -> tuple[type[PlatformApiError], str]:
    """Return the class of a management call's error, and what to do about it."""
    error_class = error_for_status(status)
    if status == 400 and REVIEW_REQUIRED in said.lower():
        return DashboardReviewRequiredError, (
            "Nothing was published; readers see the dashboard as it was. In the dashboard builder "
            "of the platform, a person must request a review of the draft. After a reviewer "
            "approves it, a person must publish the approved revision there. The API can do none "
            "of this, so a retry does not help."
        )
    if status == 403:
        needs = f" The operation requires: {operation.permission}." if operation.permission else ""
        return error_class, f"The token is valid, but it is not allowed to do this.{needs}"
    if status == 409 and code in TRANSIENT_CONFLICTS:
        return PlatformTransientConflictError, (
            "Another request changed the same data at the same time. A retry may succeed."
        )
    if status >= 500:
        return error_class, f"The service failed. {RETRY_MAY_SUCCEED}"
    return error_class, _NEXT_STEP.get(status, "")


def chat_error(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> PlatformError:
    """Return the error of a chat request."""
    said = service_message(body, headers) or ""
    if says_user_limit(said):
        return user_limit_error(f"{name.action}: the service answered {status}", said, name.where)
    return _api_error(name, status, headers, body, _chat_step(name, status, said), now=now)


def _chat_step(name: RequestName, status: int, said: str) -> str:
    """Return what to do about a chat request that the service refused."""
    about_thread = "thread" in said.lower()
    if status == 400:
        return "The service refused the request, and the agent received no message."
    if status == 401:
        return f"Check the chat credential in the connection.{_plan_hint(said)}"
    if status == 403 and (about_thread or name == CHAT_ABORT):
        return "The thread belongs to another user. Check Session settings (session_settings)."
    if status == 403:
        return f"The chat credential is not allowed to use this agent or thread.{_plan_hint(said)}"
    if status == 404 and about_thread:
        return (
            "Check the task's chat_id and Session settings (session_settings). A thread is "
            "visible to its own user only, and the thread of an ephemeral user is deleted with "
            "that user."
        )
    if status == 404:
        return (
            "The agent, the account or the chat thread does not exist. Check Chat address "
            f"(chat_url) and the task's chat_id.{_plan_hint(said)}"
        )
    return _NEXT_STEP.get(status, "")


def _plan_hint(said: str) -> str:
    """Return the hint about plans; empty if the service names another reason."""
    return "" if _OTHER_REASON.search(said) else f" {PREMIUM_HINT}"


def says_user_limit(said: object) -> bool:
    """Return whether the service says that the account has too many non-ephemeral external
    users."""
    return _USER_LIMIT.search(quote_service(said)) is not None


def user_limit_error(begin: str, said: object, where: object) -> ChatUserLimitError:
    """Return the error of an account that has too many non-ephemeral external users; its message
    begins with `begin` and ends with `where`."""
    return ChatUserLimitError(
        f"{begin}: {quote_service(said).removesuffix('.')}. An account may hold 10,000 external "
        "users that are not ephemeral. To make users ephemeral, leave isEphemeral out of Session "
        "settings (session_settings) or set it to true. Otherwise delete users that are no longer "
        "needed, or ask the platform's support for a higher limit.",
        where=where,
    )


def data_error(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> PlatformError:
    """Return the error of a query. A body with `error` is the deployment's own answer to the query,
    and final, unless it names a time limit. Any other error comes from a server in front of the
    deployment."""
    if status not in (401, 403, 429) and _is_own_error(body):
        said = service_message(body, headers)
        if says_time_out(said):
            return DataQueryTimeoutError(
                _sentence(name, status, said, TIME_OUT_ADVICE), where=name.where, status=status
            )
        step = branch_advice(said) or "Check the query."
        return DataQueryError(_sentence(name, status, said, step), where=name.where, status=status)
    return _api_error(name, status, headers, body, _data_step(status), now=now)


def data_call_error(
    name: RequestName, status: int, headers: Mapping[str, str], body: bytes, *, now: float
) -> PlatformError:
    """Return the error of a request to the data API, if the deployment itself did not answer it, or
    refused its token."""
    scope = _SCOPE.search(service_message(body, headers) or "") if status == 403 else None
    step = _data_step(status)
    if scope is not None:
        wanted = ",".join(dict.fromkeys((*_DEFAULT_SCOPES, scope[1])))
        step = (
            f"The deployment does not give its tokens the API scope {scope[1]}. An administrator "
            "must switch it on in the deployment's settings: environment variable "
            f"CUBEJS_DEFAULT_API_SCOPES={wanted}, or contextToApiScopes in the configuration file."
        )
    return _api_error(
        name, status, headers, body, step, now=now, code=SCOPE_MISSING if scope else None
    )


def _data_step(status: int) -> str:
    """Return what to do about an error of the data API that is not about the query. The service's
    documents name 401 and 403 for a refused token."""
    if status in (401, 403):
        return (
            "The service refused the token for the data API. Check that the management token has "
            "access to the deployment."
        )
    if status == 404:
        return (
            "Check Data API address (data_api_url) in the connection, and check that the data API "
            "is enabled for the deployment."
        )
    return RETRY_MAY_SUCCEED if status >= 500 else ""


NO_SUCH_BRANCH = "Bad branch"
NOT_ACTIVE = "Branch is not active"
"""The service's words for a branch that does not answer. They are the same in build status, SQL and
chat, and part of a longer text ("Error: BadRequestError: Branch is not active")."""


def branch_advice(message: str | None) -> str | None:
    """What to do about a branch that does not answer, None where the text speaks of something
    else."""
    if NOT_ACTIVE in (message or ""):
        return (
            "The branch is not open. Put PlatformOpenBranchOperator before this task, or open the "
            "branch in the platform. Then run the task again."
        )
    if NO_SUCH_BRANCH in (message or ""):
        return (
            "No branch has this name. Check the spelling, and check whether the dbt sync that "
            "writes the branch has completed."
        )
    return None


def own_error(status: int, body: bytes) -> str | None:
    """Return the deployment's own message about a failed request, as one line. Return None if a
    server in front of the deployment answered, or if the token or the number of requests was
    refused."""
    if status in (401, 403, 404, 405, 408, 429, 502, 503, 504) or not _is_own_error(body):
        return None
    return service_message(body) or "no reason given"


def _api_error(
    name: RequestName,
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    step: str,
    *,
    now: float,
    error_class: type[PlatformApiError] | None = None,
    code: str | None = None,
    operation: str | None = None,
) -> PlatformApiError:
    said = service_message(body, headers)
    return (error_class or error_for_status(status))(
        _sentence(name, status, f"{said or ''} (code {code})" if code else said, step),
        where=name.where,
        status=status,
        operation=operation or name.action,
        service_message=said,
        retry_after=parse_retry_after(headers.get("retry-after"), now),
        code=code,
    )


def _is_own_error(body: bytes) -> bool:
    try:
        value = read_json(body)
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def _code(body: bytes) -> str | None:
    """Return the machine-readable reason in an error body; None if it has none."""
    try:
        value = read_json(body)
    except ValueError:
        return None
    code = value.get("code") if isinstance(value, dict) else None
    return quote_service(code) if isinstance(code, str) and code.strip() else None


def _sentence(name: RequestName, status: int, said: str | None, step: str) -> str:
    words = f": {said}" if said else " without a message"
    end = "" if words.endswith((".", "…", "!", "?")) else "."
    return f"{name.action}: the service answered {status}{words}{end} {step}".strip()


def rpc_error(error: Any, where: object) -> ChatError:
    """Return the error for a JSON-RPC error object with status 200; `where` ends its message."""
    text = error.get("message") if isinstance(error, dict) else error
    said = quote_service(text or error or "no text")
    if says_user_limit(said):
        return user_limit_error("The service refused the request", said, where)
    return ChatRpcError(
        f"The service refused the chat credential or its permissions: {said.removesuffix('.')}. "
        "Check Chat API key (chat_api_key) or Chat service token (chat_service_token) in the "
        "connection. A service token needs the scope 'chat' and an externalId or sub, and must not "
        f"have expired.{_plan_hint(said)}",
        where=where,
    )


def service_message(body: bytes, headers: Mapping[str, str] | None = None) -> str | None:
    """Return the service's own message in an error body as one line; None if there is none.

    This is the first of `message` and `error` that is not empty, with the list of validation
    errors, field by field. For an HTML page, it says only that the body is a page.
    """
    text = body.decode("utf-8", "replace").strip()
    if not text:
        return None
    if is_html(headers or {}, body) and "<" in text:
        return "an HTML page"
    try:
        value = read_json(text)
    except ValueError:
        return quote_service(text)
    if isinstance(value, dict):
        words = next(filter(None, (_flatten(value.get(key)) for key in _WORDS)), "")
        lists = (_flatten(value[key]) for key in _LISTS if isinstance(value.get(key), list | dict))
        said = "; ".join(dict.fromkeys(filter(None, (words, *lists))))
        if said:
            return quote_service(said)
    return quote_service(_flatten(value) or text)


_WORDS = ("message", "error", "detail")
_LISTS = ("errors", "details")
_DEPTH = 8


def _flatten(value: Any, depth: int = _DEPTH) -> str:
    """Return JSON as words, down to the depth of an error message for people."""
    if isinstance(value, str):
        return value.strip()
    if depth == 0:
        return "…"
    if isinstance(value, list):
        return "; ".join(filter(None, (_flatten(item, depth - 1) for item in value)))
    if isinstance(value, dict):
        where = value.get("property") or value.get("field") or value.get("path")
        if isinstance(where, list):
            where = ".".join(map(str, where))
        nested = value.get("message") or value.get("error") or value.get("constraints")
        said = _flatten(nested, depth - 1)
        if said:
            return f"{where}: {said}" if where else said
        parts = ((key, _of_field(key, item, depth)) for key, item in value.items())
        return "; ".join(f"{key}: {text}" for key, text in parts if text)
    return "" if value is None else json.dumps(value)


def _of_field(name: str, value: Any, depth: int) -> str:
    """Return a field as words. The value of a credential is left out: it is one word, while a rule
    has several."""
    said = _flatten(value, depth - 1)
    is_word = len(said) >= SHORTEST_SECRET and not any(map(str.isspace, said))
    return HIDDEN if is_word and is_credential_name(name) else said


def is_html_type(headers: Mapping[str, str]) -> bool:
    """Return whether the content type says that the response is a web page."""
    return "html" in headers.get("content-type", "").lower()


def is_html(headers: Mapping[str, str], body: bytes) -> bool:
    start = body[:200].lstrip().lower()
    return start.startswith((b"<!doctype html", b"<html")) or (
        is_html_type(headers) and not start.startswith((b"{", b"["))
    )
