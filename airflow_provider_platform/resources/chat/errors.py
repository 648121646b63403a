"""The errors with which a chat run ends: what failed, what the service said, what to do next.

Two of them are made where the result is made, because this module needs the records: a run without
a final answer (`ChatRun.result` in `run_state`), and failed queries and tool calls
(`check_tools` in `result`). Errors that are not about a run are elsewhere, too: a thread that
cannot be read (`thread`), a web page in place of a stream (`record_reader`), and the errors that
the service sends (`client.failed_calls`).
"""

from __future__ import annotations

import re

from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatBusyError,
    ChatEndUnknownError,
    ChatNoAnswerError,
    ChatQuotaError,
    ChatStreamError,
    ChatSuspendedError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInterruptedError,
    PlatformOutcomeUnknownError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import (
    branch_advice,
    rpc_error,
    says_user_limit,
    user_limit_error,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import what_came_instead
from airflow_provider_platform.resources.chat.run_state import ChatRun, Verdict

_QUOTA = re.compile(
    r"(?!.*(\brate\b|\bper\b|context|prompt))(?=.*\btokens?\b)(?=.*\b(limit|quota))",
    re.IGNORECASE | re.DOTALL,
)
"""How the service may word that all tokens are used up: its documents give no text. The limits of a
language model, which are per minute or on the length of a question, are another matter."""


def run_ended(run: ChatRun, verdict: Verdict | None) -> PlatformError:
    """The service ended the run without an answer."""
    if verdict is Verdict.ABORTED:
        return ChatAbortedError(
            "The run was stopped before it had an answer, for example by a user or by another "
            "task.",
            where=run,
            usage=run.usage,
        )
    if verdict is Verdict.REFUSED:
        return rpc_error(run.connection.error, run)
    if verdict is Verdict.SUSPENDED:
        return ChatSuspendedError(
            "The run is suspended and did not resume on its own. To resume it, send the same "
            "message again within 24 hours (PlatformHook.chat with this chat_id and message_id). "
            "To send a new message instead, clear the task.",
            where=run,
            usage=run.usage,
        )
    if verdict in (Verdict.ABSENT, Verdict.UNCLEAR):
        return ChatNoAnswerError(
            "The thread does not contain the message of this task, so it has no answer to read. "
            "Look at the thread in the platform. To ask again, clear the task.",
            where=run,
            usage=run.usage,
        )
    if says_user_limit(run.connection.error):
        return user_limit_error("The service refused the message", run.connection.error, run)
    error = run.connection.error
    message = error.get("message") if isinstance(error, dict) else None
    said = quote_service(message or error or "no text").removesuffix(".")
    if _QUOTA.match(said):
        return ChatQuotaError(
            f"The run failed, because no tokens are left: {said}. The tokens of the user's seat "
            "and of the account's packages are used up. Ask the account's administrator for a "
            "larger seat, a token package or the on-demand plan. Then clear the task.",
            where=run,
            usage=run.usage,
        )
    advice = branch_advice(said)
    return ChatStreamError(
        f"The run failed on the service: {said}.{' ' + advice if advice else ''}",
        where=run,
        usage=run.usage,
    )


def still_suspended(where: object) -> ChatSuspendedError:
    """The run did not resume although its message was sent again."""
    return ChatSuspendedError(
        "The run is still suspended although the same message was sent again. Clear the task to "
        "ask again.",
        where=where,
    )


def prompt_changed(run: ChatRun) -> ChatSuspendedError:
    """The prompt of a run that must be asked again is not the one that was asked."""
    return ChatSuspendedError(
        "Nothing was sent: the question must be sent again under its message id, but its template "
        "now renders to another text. Make the prompt the same for all tries of a task. A retry "
        "asks the new question under a new id.",
        where=run,
        usage=run.usage,
    )


def thread_busy(run: ChatRun) -> ChatBusyError:
    """The thread is answering another message, and the caller does not wait for it."""
    return ChatBusyError(
        "The thread is answering another message, so this message was not processed. Ask later, "
        "or let the task wait with if_thread_busy='wait'.",
        where=run,
    )


CHECK_THREAD = (
    "Look at the thread in the platform. If the message of this task is not there, clear the task "
    "to ask again. If the message is there, its answer appears in the thread too. In this case, "
    "mark the task as successful if no later task needs the answer. Otherwise clear the task: the "
    "task then asks the question a second time."
)


def message_absent(run: ChatRun, cause: PlatformError | None) -> PlatformOutcomeUnknownError:
    """The message was sent twice, and its thread does not contain it."""
    return PlatformOutcomeUnknownError(
        "The message was sent twice under the same id by this task, but the thread does not "
        f"contain the message.{_last_error(cause)} The service may still process the message. "
        f"{CHECK_THREAD}",
        where=run,
    )


def end_unknown(run: ChatRun, times: int) -> ChatEndUnknownError:
    """The run does not continue, and no record says how it ended."""
    return ChatEndUnknownError(
        "The thread stopped streaming, and the service does not say how the run ended (checked "
        f"{times} times). The run was stopped or lost. A retry asks the question again.",
        where=run,
        usage=run.usage,
    )


def message_unclear(run: ChatRun) -> PlatformOutcomeUnknownError:
    """The thread does not show whether it contains the message."""
    return PlatformOutcomeUnknownError(
        "The service did not confirm the message, and the thread does not show whether it contains "
        "the message: a message with the same words may be an earlier one, or the service sent no "
        "messages that can be read. "
        f"{CHECK_THREAD}",
        where=run,
    )


def thread_unknown(run: ChatRun, cause: PlatformError | None) -> PlatformError:
    """The prompt got no stream or one that broke, and without a thread it cannot be found."""
    retry = _retry(run, "sends it again under the same message id")
    reason = (
        "The service returned no chat id, so the question may still be running."
        f"{_last_error(cause)} {retry}"
    )
    if isinstance(cause, PlatformApiError):
        return PlatformServerError(reason, where=run, **cause.details)
    return PlatformTransportError(reason, where=run)


def thread_unread(run: ChatRun, cause: PlatformError | None) -> PlatformTransportError:
    """The answer to the prompt was lost, and the message could not be found. The cause itself is
    not raised: it may say that a request was refused or not processed, which is true only of the
    search."""
    return PlatformTransportError(
        "The service did not confirm the message, and the thread could not be read."
        f"{_last_error(cause)} {_retry(run, 'looks for the message in the thread')}",
        where=run,
    )


def nothing_new(run: ChatRun) -> PlatformTransportError:
    """A new connection brings nothing new."""
    return PlatformTransportError(
        "The last connections to the stream returned no new records. The run may continue on the "
        f"service. {_retry(run, 'follows the run again')}",
        where=run,
        usage=run.usage,
    )


def answer_unconfirmed(run: ChatRun, cause: PlatformError | None) -> PlatformTransportError:
    """The final record says that it is not complete, and the thread could not be read."""
    return PlatformTransportError(
        "The run ended, but its answer may be incomplete: the service did not mark the answer as "
        f"complete. The task could not read the thread to check the answer.{_last_error(cause)} "
        f"{_retry(run, 'reads the thread again')}",
        where=run,
        usage=run.usage,
    )


def deadline_passed(run: ChatRun, failure: PlatformError | None = None) -> PlatformDeadlineError:
    """The deadline has passed. `failure` is the error of the last request, if it failed."""
    state = (
        "did not end before its deadline."
        if run.accepted
        else "was not accepted before its deadline: the service did not confirm the message."
    )
    return PlatformDeadlineError(
        f"The run {state}{_last_error(failure)} If the agent needs more time, raise timeout, or "
        "the task's execution_timeout if that is shorter.",
        where=run,
        usage=run.usage,
    )


def interrupted(run: ChatRun) -> PlatformInterruptedError:
    """The caller wants no more requests."""
    return PlatformInterruptedError(
        "The task was stopped and no longer waits for the run.", where=run, usage=run.usage
    )


def not_stopped(run: ChatRun) -> PlatformTransportError:
    """The thread could not be read before the abort, and the caller named it."""
    return PlatformTransportError(
        "Nothing was stopped: the thread could not be read, so the task does not know which run "
        "is active in the thread. The run may continue.",
        where=run,
    )


def _retry(run: ChatRun, what: str) -> str:
    """Say what a retry of the task does. Without a record of the run it can only ask again."""
    return f"A retry {what if run.is_recorded else 'of the task asks the question again'}."


def _last_error(cause: PlatformError | None) -> str:
    return f" The last error: {what_came_instead(cause).removesuffix('.')}." if cause else ""
