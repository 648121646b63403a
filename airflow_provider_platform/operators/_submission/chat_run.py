"""A chat run as `remote_run` wants it: how it is asked, looked up, followed, stopped and read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import ChatSuspendedError
from airflow_provider_platform.client.formats.service_text import shortened
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._submission.left_runs import (
    LOOK_AGAIN_SECONDS,
    find_left_run,
    note_run,
)
from airflow_provider_platform.operators._submission.remote_run import (
    LOOK_SECONDS,
    RemoteRunOperator,
)

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import BaseTrigger
    from airflow_provider_platform.client.chat.program import ChatCall, ChatLimits
    from airflow_provider_platform.client.chat.result import ChatResult
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.operations.program import Clock, Program
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

PROMPT_IN_LOG = 200
"""Characters of a prompt that the log shows."""
LOOKS_SECONDS = 60.0
"""How long a run that is past its deadline is looked at, while the service cannot be reached."""


class ChatRunOperator(RemoteRunOperator["ChatResult"]):
    """Base of `PlatformChatOperator`, whose arguments it reads."""

    event_names = "message_id"
    prompt: Any
    chat_id: str | None
    session_settings: dict[str, Any] | None
    active_branch_name: str | None
    is_default_branch: bool | str | None
    if_thread_busy: Literal["wait", "fail"]
    max_rows: int | str
    details: bool | str

    @property
    def rows_to_read(self) -> int:
        """Rows of a query to keep of what the chat sends."""
        return int(self.max_rows)

    def submit(self, attempt: Attempt, *, ids: Ids | None, until_end: bool) -> ChatResult | None:
        submitted_at = attempt.now
        call = self._call(attempt, {**(ids or {}), "submitted_at": submitted_at})
        repeats = bool((ids or {}).get("repeats"))
        looked_at = -LOOK_AGAIN_SECONDS
        if ids is not None:
            why = "its thread does not hold it" if repeats else "nothing is known to look it up by"
            self.log.warning(
                "Sending the prompt again under the same message id %s: the lost try may have sent "
                "it, and %s.",
                call.run.message_id,
                why,
            )

        def known() -> Ids:
            return {**self._ids(call, submitted_at), **({"repeats": True} if repeats else {})}

        self.announce(attempt, known())
        attempt.naming = lambda: known() if call.run.chat_id else None
        self.log.info(
            'Asking the agent "%s", message %s',
            attempt.client.secrets.redact(shortened(str(self.prompt), PROMPT_IN_LOG)),
            call.run.message_id,
        )

        tell_log = attempt.event_log

        def tell(event: Any) -> None:
            from airflow_provider_platform.client.chat.events import Accepted, ThreadNamed, Waiting

            nonlocal repeats, looked_at
            if isinstance(event, Waiting) and repeats:
                repeats = False  # the service said that it was not processed
                attempt.submission.note("intent", known())
            if isinstance(event, Waiting) and attempt.now - looked_at >= LOOK_AGAIN_SECONDS:
                looked_at = attempt.now
                self._stop_left_run(attempt, call.run.chat_id)
            if isinstance(event, ThreadNamed):
                attempt.submission.note("intent", known())
            if isinstance(event, Accepted):
                self.accepted(attempt, self._ids(call, submitted_at))
            tell_log(event)

        program = call.ask(attempt.client.clock, until_end=until_end, repeats=repeats)
        try:
            over = attempt.client.run(program, tell)
        finally:
            if call.run.can_be_followed and attempt.ids is None:
                self.accepted(attempt, self._ids(call, submitted_at))
        return call.result() if over else None

    def recover(self, attempt: Attempt, ids: Ids) -> tuple[bool, Ids]:
        from airflow_provider_platform.client.chat import errors

        # A look-up is due however late this try comes.
        deadline = max(self.deadline(attempt, ids), attempt.now + LOOK_SECONDS)
        submitted_at = float(ids["submitted_at"])
        call = self._call(attempt, ids, deadline=deadline)
        if call.run.chat_id is None:
            return False, ids
        attempt.naming = lambda: self._ids(call, submitted_at) if call.run.chat_id else None
        found = attempt.client.run(call.find_message(attempt.client.clock), attempt.event_log)
        if not found and call.run.chat_id is not None:
            if ids.get("repeats"):
                raise errors.message_absent(call.run, None)
            return False, {**self._ids(call, submitted_at), "repeats": True}
        return found, self._ids(call, submitted_at)

    def accepted(self, attempt: Attempt, ids: Ids) -> None:
        super().accepted(attempt, ids)
        if ids.get("in_existing_thread") and self.cancel_on_kill:
            note_run(attempt.context.get("ti"), ids)

    def _stop_left_run(self, attempt: Attempt, chat_id: str | None) -> None:
        """Stop what this task's last DAG run has left in the thread, if that is what it answers."""
        left = find_left_run(attempt.context.get("ti"), chat_id) if self.cancel_on_kill else None
        if left is not None:
            self.log.warning(
                "The thread may be answering message %s still, which this task asked in DAG run %s "
                "that has ended; stopping it.",
                left["message_id"],
                left["run_id"],
            )
            self._stop_quietly(attempt.client, left)

    def follow(self, attempt: Attempt, ids: Ids) -> ChatResult:
        call = self._call(attempt, ids)
        attempt.ids = attempt.ids or ids
        attempt.client.run(call.follow_or_resume(attempt.client.clock), attempt.event_log)
        return call.result()

    def take(self, attempt: Attempt, ids: Ids) -> ChatResult:
        return self.follow(attempt, {**ids, "submitted_at": attempt.now})

    def poll_once(self, attempt: Attempt, ids: Ids) -> ChatResult | None:
        call = self._known_call(attempt.client.config, ids, deadline=attempt.now + LOOKS_SECONDS)
        program = call.poll_final_state(attempt.client.clock, seconds=LOOK_SECONDS)
        over = attempt.client.run(program, attempt.event_log)
        return call.result() if over else None

    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None
    ) -> Program[bool]:
        """Stop the run as the user who began it: the settings may have changed since."""
        call = self._known_call(
            config, ids, deadline=clock() + LOOK_SECONDS, identity=ids.get("identity")
        )
        return (yield from (call.stop(clock, seconds=seconds) if seconds else call.stop(clock)))

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.chat import PlatformChatTrigger

        return PlatformChatTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            input_sha256=ids["input_sha256"],
            session_settings=self.session_settings,
            max_rows=self.rows_to_read,
            details=bool(self.details),
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )

    def read_event(self, attempt: Attempt, ids: Ids, event: dict[str, Any]) -> ChatResult | None:
        from airflow_provider_platform.client.chat.result import ChatResult

        if event["status"] == "suspended":
            if ids.get("resumed"):
                raise ChatSuspendedError(
                    "The run stays suspended although the same message was sent again.",
                    where=f"chat {ids['chat_id']}, message {ids['message_id']}",
                )
            self.log.info("The run stays suspended; repeating its input once.")
            call = self._call(attempt, ids)
            program = call.ask(attempt.client.clock, until_end=False)
            over = attempt.client.run(program, attempt.event_log)
            attempt.ids = {**ids, "resumed": True}
            return call.result() if over else None
        if event.get("result") is not None:
            return ChatResult.from_event(event["result"])
        call = self._known_call(
            attempt.client.config, ids, deadline=attempt.now + float(self.timeout)
        )
        attempt.client.run(call.follow_or_resume(attempt.client.clock), attempt.event_log)
        result = call.result()
        result.usage = result.usage or event.get("usage")
        queries = event.get("queries", 0)
        missing = queries - result.received_queries
        if missing > 0:
            self.log.warning(
                "%s: queries missing from the result: %s of %s. The result was too large for the "
                "trigger's event (256 KB), so the task read it again from the thread, and the "
                "service sent it without these queries. To get every query, run the task with "
                "deferrable=False, or lower max_rows so that the result fits the event.",
                call.run,
                missing,
                queries,
            )
        return result

    def _known_call(
        self,
        config: PlatformConfig,
        ids: Ids,
        *,
        deadline: float,
        identity: dict[str, str] | None = None,
    ) -> ChatCall:
        """The accepted call that the ids name, without its prompt."""
        from airflow_provider_platform.client.chat.program import ChatCall

        return ChatCall.known(
            config,
            self._limits(config, deadline),
            ids,
            session_settings=self.session_settings,
            identity=identity,
            max_rows=self.rows_to_read,
            details=bool(self.details),
        )

    def _limits(self, config: PlatformConfig, deadline: float) -> ChatLimits:
        from airflow_provider_platform.client.chat.program import ChatLimits

        return ChatLimits.of(
            config,
            deadline,
            poll_interval=float(self.poll_interval),
            if_thread_busy=self.if_thread_busy,
            interrupted=lambda: self._killed,
        )

    def _call(self, attempt: Attempt, ids: Ids, *, deadline: float | None = None) -> ChatCall:
        """The call that the ids name; with no message id yet, a new one."""
        from airflow_provider_platform.client.chat.program import ChatCall

        config = attempt.client.config
        call = ChatCall.prepare(
            config,
            self.prompt,
            self._limits(config, deadline or self.deadline(attempt, ids)),
            message_id=ids.get("message_id"),
            chat_id=ids.get("chat_id") or self.chat_id,
            session_settings=self.session_settings,
            active_branch_name=self.active_branch_name,
            is_default_branch=arguments.optional_boolean(
                "is_default_branch", self.is_default_branch
            ),
            max_rows=self.rows_to_read,
            details=bool(self.details),
        )
        call.run.in_existing_thread = bool(ids.get("in_existing_thread", self.chat_id is not None))
        call.run.accepted = bool(ids.get("accepted"))
        call.run.digest = ids.get("input_sha256") or call.run.digest
        return call

    def _ids(self, call: ChatCall, submitted_at: float) -> Ids:
        return {**call.ids(), "submitted_at": submitted_at}
