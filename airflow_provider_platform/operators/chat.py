"""`PlatformChatOperator`: asks the platform's AI agent and returns its answer and query results."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_platform.client.errors import quote_service, shortened
from airflow_provider_platform.links import AgentLink, BranchLink, Links, ThreadLink
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._output.chat import WritesAnswer
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
    from datetime import timedelta

    from airflow_provider_platform._airflow import BaseTrigger
    from airflow_provider_platform.client.chat.call import ChatCall
    from airflow_provider_platform.client.chat.reading import ChatLimits
    from airflow_provider_platform.client.chat.result import ChatResult, Query
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.operations.program import Clock, Program
    from airflow_provider_platform.operators._base.operator import Checks
    from airflow_provider_platform.operators._submission.attempt import Attempt, Ids

CHAT_TIMEOUT = 1800.0
CHAT_ROWS = 100
"""Rows of a query that the service sends in a chat, as a rule."""
PROMPT_IN_LOG = 200
"""Characters of a prompt that the log shows."""
LOOKS_SECONDS = 60.0
"""How long a run that is past its deadline is looked at, while the service cannot be reached."""


class PlatformChatOperator(WritesAnswer, RemoteRunOperator["ChatResult"]):
    """Ask the agent a question; the answer and the query results go to XCom.

    Returns, and pushes key by key with `multiple_outputs` (the default):
    `{"answer": str, "chat_id": str, "message_id": str, "queries": [...], "usage": dict | None}`.
    Each query is `{"title", "description", "sql", "columns": [{"name", "type"}], "rows",
    "total_rows", "truncated", "uuid", "chart", "error"}`. With `output_path` each has `path`,
    `chart_paths` and `row_count` too, and `manifest` is the path of the manifest file.

    :param prompt: the question (templated)
    :param chat_id: a thread to go on with; without it the agent starts a new one
    :param session_settings: who asks; replaces the connection's settings as a whole
    :param active_branch_name: a development branch to run the queries on
    :param is_default_branch: whether that branch is the default one (default: no)
    :param if_thread_busy: `wait` until the thread is free, or `fail`
    :param fail_on_tool_error: fail the task when `all` queries failed, when `any` tool call
        failed, or `never`
    :param max_rows: rows of each query to keep
    :param output_path: a folder to write to; in it each task of a run has one of its own, with a
        file for each query, `answer.md` and `manifest.json`
    :param output_format: parquet (needs the extra `parquet`), csv or jsonl
    :param all_rows: run each query again over the data API and write all its rows, where the chat
        sends the first hundred; XCom has the first `max_rows` of them
    :param all_rows_as: whose rights read them: `user`, who asks (needs a service token), or
        `connection`, which may be allowed to see more
    :param charts: write the charts too: png, svg, html (needs the extra `charts`)
    :param on_chart_error: `warn` when a chart cannot be drawn, or `fail`
    :param timeout: seconds from submission (default 1800)
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {"session_settings": "json"}
    event_names = "message_id"
    operator_extra_links = Links(ThreadLink, AgentLink, BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"chat_id": "chat_id"}
    checks: ClassVar[Checks] = {
        "prompt": arguments.text,
        "chat_id": arguments.unchecked,
        "session_settings": arguments.session_settings,
        "active_branch_name": arguments.unchecked,
        "is_default_branch": arguments.optional_boolean,
        "if_thread_busy": partial(arguments.choice, choices=("wait", "fail")),
        "fail_on_tool_error": partial(arguments.choice, choices=("all", "any", "never")),
        "max_rows": partial(arguments.whole_number, minimum=0),
    }

    def __init__(
        self,
        *,
        prompt: str,
        chat_id: str | None = None,
        session_settings: dict[str, Any] | None = None,
        active_branch_name: str | None = None,
        is_default_branch: bool | str | None = None,
        if_thread_busy: Literal["wait", "fail"] = "wait",
        fail_on_tool_error: Literal["all", "any", "never"] = "all",
        max_rows: int | str = 100,
        timeout: float | timedelta = CHAT_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.prompt = prompt
        self.chat_id = chat_id
        self.session_settings = session_settings
        self.active_branch_name = active_branch_name
        self.is_default_branch = is_default_branch
        self.if_thread_busy = if_thread_busy
        self.fail_on_tool_error = fail_on_tool_error
        self.max_rows = max_rows
        self.validate_known_arguments()

    def key_of(self, config: PlatformConfig) -> str:
        from airflow_provider_platform.client.config import fingerprint

        address = config.require_chat_url()
        settings = config.resolve_session_settings(self.session_settings)
        return fingerprint(
            "chat",
            address,
            config.chat_identity(settings),
            self.prompt,
            self.chat_id,
            self.active_branch_name,
            self.is_default_branch,
            settings.to_json() if settings else None,
        )

    def submit(self, attempt: Attempt, *, ids: Ids | None, until_end: bool) -> ChatResult | None:
        self.prepare_files(attempt.config)
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

        tell_log = self.log_events(attempt)

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
        found = attempt.client.run(call.look_up(attempt.client.clock), self.log_events(attempt))
        if not found and call.run.chat_id is not None:
            if ids.get("repeats"):
                raise errors.absent(call.run, None)
            return False, {**self._ids(call, submitted_at), "repeats": True}
        return found, self._ids(call, submitted_at)

    def accepted(self, attempt: Attempt, ids: Ids) -> None:
        super().accepted(attempt, ids)
        if ids.get("thread_given") and self.cancel_on_kill:
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
        attempt.client.run(call.follow(attempt.client.clock), self.log_events(attempt))
        return call.result()

    def take(self, attempt: Attempt, ids: Ids) -> ChatResult:
        return self.follow(attempt, {**ids, "submitted_at": attempt.now})

    def poll_once(self, attempt: Attempt, ids: Ids) -> ChatResult | None:
        call = self._known_call(attempt.client.config, ids, deadline=attempt.now + LOOKS_SECONDS)
        over = attempt.client.run(call.look_at_end(attempt.client.clock), self.log_events(attempt))
        return call.result() if over else None

    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None
    ) -> Program[bool]:
        """Stop the run as the user who began it: the settings may have changed since."""
        call = self._known_call(
            config, ids, deadline=clock() + LOOK_SECONDS, settings=ids.get("identity")
        )
        return (yield from (call.stop(clock, seconds=seconds) if seconds else call.stop(clock)))

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.chat import PlatformChatTrigger

        return PlatformChatTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            input_sha256=ids["input_sha256"],
            session_settings=self.session_settings,
            max_rows=self.max_rows,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )

    def read_event(self, attempt: Attempt, ids: Ids, event: dict[str, Any]) -> ChatResult | None:
        from airflow_provider_platform.client.chat.result import ChatResult
        from airflow_provider_platform.client.errors import ChatSuspendedError

        if event["status"] == "suspended":
            if ids.get("resumed"):
                raise ChatSuspendedError(
                    f"chat {ids['chat_id']}, message {ids['message_id']}: the run stays suspended "
                    "although its input was repeated."
                )
            self.log.info("The run stays suspended; repeating its input once.")
            call = self._call(attempt, ids)
            program = call.ask(attempt.client.clock, until_end=False)
            over = attempt.client.run(program, self.log_events(attempt))
            attempt.ids = {**ids, "resumed": True}
            return call.result() if over else None
        if event.get("result") is not None:
            return ChatResult.from_event(event["result"])
        call = self._known_call(
            attempt.client.config, ids, deadline=attempt.now + float(self.timeout)
        )
        attempt.client.run(call.follow(attempt.client.clock), self.log_events(attempt))
        result = call.result()
        result.usage = result.usage or event.get("usage")
        return result

    def finish(self, attempt: Attempt, ids: Ids, outcome: ChatResult) -> dict[str, Any]:
        from airflow_provider_platform.client.chat.result import check_tools
        from airflow_provider_platform.results.text.log import log_lines

        check_tools(outcome, self.fail_on_tool_error)
        secrets = attempt.client.secrets
        self.log.info("Answer: %s", secrets.redact(quote_service(outcome.answer)))
        for query in outcome.queries:
            if query.truncated and not self.all_rows:
                self.log.warning("%s", secrets.redact(self._cut(query)))
            if query.chart is not None:
                self.log.info("%s", secrets.redact(self._drawn(query)))
        if link := self.link_line():
            self.log.info("%s", link)
        result: dict[str, Any] = secrets.redact_data(outcome.to_json())
        if self.output_path is not None:
            result = self.write_files(
                attempt.context,
                attempt.client,
                result,
                question=self._question(ids),
                max_rows=int(self.max_rows),
                branch_name=None if self.is_default_branch else self.active_branch_name,
            )
        for line in log_lines(result):
            self.log.info("%s", line)
        return result

    def _question(self, ids: Ids) -> str | None:
        """The prompt that was asked; None where the template, or the function, gives another one by
        now."""
        from airflow_provider_platform.client.chat.request import input_digest

        prompt = str(self.prompt)
        return prompt if input_digest(prompt) == ids["input_sha256"] else None

    def _drawn(self, query: Query) -> str:
        """What to say of a query that came with a chart."""
        title = quote_service(query.title or "without a title")
        return f"A chart came with query {title!r}: its specification is in the result, under chart"

    def _cut(self, query: Query) -> str:
        """What to say of a query of which rows are missing, and how to get them."""
        title = quote_service(query.title or "without a title")
        kept = f"The result has {len(query.rows)} of {query.total_rows} rows of query {title!r}"
        fewer = len(query.rows) == int(self.max_rows) < CHAT_ROWS
        more = f", or raise max_rows: the chat gives the first {CHAT_ROWS}" if fewer else ""
        return f"{kept}: for all of them use all_rows, or PlatformHook.run_sql{more}."

    def _known_call(
        self,
        config: PlatformConfig,
        ids: Ids,
        *,
        deadline: float,
        settings: dict[str, Any] | None = None,
    ) -> ChatCall:
        """The accepted call that the ids name, without its prompt."""
        from airflow_provider_platform.client.chat.call import ChatCall

        return ChatCall.known(
            config,
            self._limits(config, deadline),
            ids,
            session_settings=settings or self.session_settings,
            max_rows=int(self.max_rows),
        )

    def _limits(self, config: PlatformConfig, deadline: float) -> ChatLimits:
        from airflow_provider_platform.client.chat.reading import ChatLimits

        return ChatLimits.of(
            config,
            deadline,
            poll_interval=float(self.poll_interval),
            if_thread_busy=self.if_thread_busy,
            given_up=lambda: self._killed,
        )

    def _call(self, attempt: Attempt, ids: Ids, *, deadline: float | None = None) -> ChatCall:
        """The call that the ids name; with no message id yet, a new one."""
        from airflow_provider_platform.client.chat.call import ChatCall

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
            max_rows=int(self.max_rows),
        )
        call.run.thread_given = bool(ids.get("thread_given", self.chat_id is not None))
        call.run.accepted = bool(ids.get("accepted"))
        call.run.digest = ids.get("input_sha256") or call.run.digest
        return call

    def _ids(self, call: ChatCall, submitted_at: float) -> Ids:
        return {**call.ids(), "submitted_at": submitted_at}
