"""The errors that a chat run ends in, each with what happened and what to do next."""

from __future__ import annotations

from airflow_provider_platform.client.chat.records import ChatRun, Verdict
from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatBusyError,
    ChatEndUnknownError,
    ChatNoAnswerError,
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
from airflow_provider_platform.client.formats.branch_words import branch_advice
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.http.api_errors import (
    rpc_error,
    says_user_limit,
    user_limit_error,
)


def run_ended(run: ChatRun, verdict: Verdict | None) -> PlatformError:
    """The run is over, by the service's word, and has no answer."""
    if verdict is Verdict.ABORTED:
        return ChatAbortedError(f"{run}: the run was stopped from outside before it had an answer.")
    if verdict is Verdict.REFUSED:
        return rpc_error(str(run), run.connection.error)
    if verdict is Verdict.SUSPENDED:
        return ChatSuspendedError(
            f"{run}: the run is suspended and does not resume. It can be resumed within 24 hours."
        )
    if verdict in (Verdict.ABSENT, Verdict.UNCLEAR):
        return ChatNoAnswerError(f"{run}: the thread does not hold this message.")
    if says_user_limit(run.connection.error):
        return user_limit_error(f"{run}: the service refused the message", run.connection.error)
    said = quote_service(run.connection.error or "no text").removesuffix(".")
    advice = branch_advice(said)
    return ChatStreamError(
        f"{run}: the run failed at the service: {said}.{' ' + advice if advice else ''}"
    )


def thread_busy(run: ChatRun) -> ChatBusyError:
    """The thread is answering another message, and the caller does not wait for it."""
    return ChatBusyError(
        f"{run}: another message of this thread is being answered, so this one was not processed. "
        "Ask later, or let the task wait with if_thread_busy='wait'."
    )


def message_absent(run: ChatRun, cause: PlatformError | None) -> PlatformOutcomeUnknownError:
    """The message was sent twice, and its thread does not hold it."""
    return PlatformOutcomeUnknownError(
        f"{run}: the message was sent twice under one id, and its thread does not hold it"
        f"{_because(cause)}. It may still be processed. Look at the thread; clear the task to ask "
        "anew."
    )


def end_unknown(run: ChatRun, times: int) -> ChatEndUnknownError:
    """The run does not go on, and nobody tells how it ended."""
    return ChatEndUnknownError(
        f"{run}: the thread is not streaming, and {times} looks at it brought no end of the run. "
        "It was stopped or lost; a retry asks anew."
    )


def message_unclear(run: ChatRun) -> PlatformOutcomeUnknownError:
    """The thread cannot tell whether it holds the message."""
    return PlatformOutcomeUnknownError(
        f"{run}: the answer to the prompt was lost, and the thread does not tell whether it holds "
        "this message or only an earlier one with the same words. Look at the thread; clear the "
        "task to ask anew."
    )


def thread_unknown(run: ChatRun, cause: PlatformError | None) -> PlatformError:
    """The prompt got no stream, or one that broke, and nothing is known to look it up by."""
    if isinstance(cause, PlatformApiError):
        return PlatformServerError(
            f"{run}: the service failed before it named the thread, so the message may be running "
            f"unseen{_because(cause)}. A retry sends it again under the same message id.",
            **cause.details,
        )
    return PlatformTransportError(
        f"{run}: the connection was lost before the service named the thread, so the message may "
        f"be running unseen{_because(cause)}. A retry sends it again under the same message id."
    )


def thread_unread(run: ChatRun, cause: PlatformError | None) -> PlatformTransportError:
    """The answer to the prompt was lost, and so was the look-up. Not the cause itself: that may
    say that a request was refused or not processed, which is true of the look only."""
    return PlatformTransportError(
        f"{run}: the answer to the prompt was lost, and the thread could not be read"
        f"{_because(cause)}. A retry looks the message up."
    )


def nothing_new(run: ChatRun, times: int) -> PlatformTransportError:
    """Reconnects reach nothing."""
    return PlatformTransportError(
        f"{run}: {times} connections in a row ended without anything new. The run may go on at the "
        "service; a retry takes it up again."
    )


def answer_unconfirmed(run: ChatRun, cause: PlatformError | None) -> PlatformTransportError:
    """The final record says that it is not complete, and the thread could not be read."""
    return PlatformTransportError(
        f"{run}: the run ended while its final answer was still marked as in process, and the "
        f"thread could not be read to confirm it{_because(cause)}. A retry reads the thread again."
    )


def deadline_passed(run: ChatRun) -> PlatformDeadlineError:
    """The deadline has passed."""
    state = "did not end" if run.accepted else "was not accepted"
    return PlatformDeadlineError(f"{run}: the run {state} before its deadline.")


def interrupted(run: ChatRun) -> PlatformInterruptedError:
    """The caller wants no more requests."""
    return PlatformInterruptedError(f"{run}: the task was ended from outside.")


def not_stopped(run: ChatRun) -> PlatformTransportError:
    """The thread could not be read before the abort, and the caller named it."""
    return PlatformTransportError(
        f"{run}: the thread could not be read, so it is not known whose run it streams. Nothing "
        "was stopped."
    )


def _because(cause: PlatformError | None) -> str:
    return f" ({cause.message})" if cause else ""
