"""A chat run: how the agent is asked, and how the run is found, followed, stopped and read."""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.choices import MAX_ROWS, IfThreadBusy
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.redaction import shortened
from airflow_provider_platform.resources.chat import errors
from airflow_provider_platform.resources.chat.call import (
    STOP_SECONDS,
    ChatCall,
    ChatIds,
    ChatLimits,
)
from airflow_provider_platform.resources.chat.result import (
    as_plain,
    count_received,
    of_this_release,
    with_changed_texts,
)
from airflow_provider_platform.resources.chat.run_state import Accepted, ThreadNamed, Waiting
from airflow_provider_platform.resources.names import find_agent_id
from airflow_provider_platform.resources.run_kind import (
    MAX_EVENT_BYTES,
    SINGLE_POLL_SECONDS,
    Identified,
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
)
from airflow_provider_platform.resources.run_log import say, warn

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.redaction import KnownSecrets

PROMPT_IN_LOG = 200
"""Characters of a prompt that the log shows."""
LATE_POLL_SECONDS = 60.0
"""How long a run past its deadline is polled while the service cannot be reached."""


class ChatRunKind(RunKind[dict[str, Any], ChatIds]):
    """A question to the agent, with the arguments of `PlatformChatOperator`.

    The outcome is the result as plain JSON with all of its fields, without secrets. A result is
    converted and redacted once, where it is read. A trigger follows the run without the question:
    `prompt` is then None.
    """

    followed_with = ("session_settings", "max_rows", "details")
    id_field = "message_id"

    prompt: str | None = None
    chat_id: str | None = None
    agent: str | None = None
    agent_id: int | str | None = None
    message_id: str | None = None
    session_settings: dict[str, Any] | None = None
    active_branch_name: str | None = None
    is_default_branch: bool | None = None
    if_thread_busy: IfThreadBusy = "wait"
    max_rows: int = MAX_ROWS
    details: bool = False

    def idempotency_key(self, config: PlatformConfig) -> str:
        address = config.require_chat_url(self.agent_id)
        name = config.agent_name(self.agent, self.agent_id)
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
            *([] if self.message_id is None else [self.message_id]),
            *([] if name is None else [f"agent {name}"]),
        )

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: ChatIds | None, *, until_end: bool
    ) -> dict[str, Any] | None:
        submitted_at, config = api.clock(), api.config
        if earlier:
            call = self._call(config, env, earlier)
        else:
            agent_id = self.agent_id
            if config.agent_name(self.agent, self.agent_id) is not None:
                agent_id = await find_agent_id(api, self.agent)
            call = self._call(config, env, {"agent_id": agent_id})
        state = _Question(call, submitted_at, repeats=bool(earlier and earlier.get("repeats")))
        if earlier:
            why = (
                "the thread does not contain it"
                if state.repeats
                else "the task cannot check this, because it does not know the thread"
            )
            warn(
                api,
                f"Sending the prompt again under the same message id {call.run.message_id}. An "
                f"earlier try ended unexpectedly and may have sent the prompt already, but {why}.",
            )
        await api.notify(Intended(state.ids(), named=call.run.chat_id is not None))
        prompt = shortened(str(self.prompt), PROMPT_IN_LOG)
        say(api, f'Asking the agent "{prompt}", message {call.run.message_id}')

        async def hear(event: object) -> None:
            if (before := state.event_before(event)) is not None:
                await api.notify(before)
            api.report(event)

        over = await call.ask(api.hearing(hear), until_end=until_end, repeats=state.repeats)
        return _outcome(api, call) if over else None

    async def find(self, api: Api, env: RunEnvironment, ids: ChatIds) -> tuple[bool, ChatIds]:
        submitted_at = float(ids["submitted_at"])
        call = self._call(api.config, env, ids)
        if call.run.chat_id is None:
            return False, ids
        await api.notify(Identified(ids))
        is_stored = await call.find_message(api)
        if not is_stored and call.run.chat_id is not None:
            if ids.get("repeats"):
                raise errors.message_absent(call.run, None)
            return False, {**call.ids(submitted_at), "repeats": True}
        return is_stored, call.ids(submitted_at)

    async def follow(self, api: Api, env: RunEnvironment, ids: ChatIds) -> dict[str, Any]:
        """Wait for the run. A trigger cannot repeat the input of a run that stays suspended: it
        raises ChatSuspendedError."""
        if env.in_triggerer:
            call = self._known_call(api.config, env, ids)
            await call.follow(api)
        else:
            call = self._call(api.config, env, ids)
            await call.follow_or_resume(api)
        return _outcome(api, call)

    async def poll_past_deadline(
        self, api: Api, env: RunEnvironment, ids: ChatIds
    ) -> dict[str, Any] | None:
        call = self._known_call(
            api.config, replace(env, deadline=api.clock() + LATE_POLL_SECONDS), ids
        )
        over = await call.poll_final_state(api)
        return _outcome(api, call) if over else None

    async def stop(self, api: Api, ids: ChatIds, *, seconds: float | None = None) -> bool:
        """Stop the run as the user who started it: the settings may have changed since."""
        deadline = api.clock() + SINGLE_POLL_SECONDS
        env = RunEnvironment(deadline)
        call = self._known_call(api.config, env, ids, identity=ids.get("identity"))
        return await call.stop(api, seconds=seconds or STOP_SECONDS)

    def to_event(self, secrets: KnownSecrets, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the result. If it exceeds 256 KB, return only `usage` and the number of queries
        that have a result (`queries`); the worker then reads the thread."""
        event = {"result": outcome}
        if len(json.dumps(event).encode()) > MAX_EVENT_BYTES:
            return {"result": None, "usage": outcome["usage"], "queries": _received(outcome)}
        return event

    async def read_event(
        self, api: Api, env: RunEnvironment, ids: ChatIds, event: dict[str, Any]
    ) -> tuple[dict[str, Any] | None, ChatIds]:
        if event["status"] == "suspended":
            if ids.get("resumed"):
                where = f"chat {ids['chat_id']}, message {ids['message_id']}"
                if event["run"].get("resumed"):
                    raise errors.still_suspended(where)
                # Airflow can deliver the event of an earlier trigger again.
                warn(api, f"Ignoring an event from before the message was sent again ({where}).")
                return None, ids
            say(api, "The run stays suspended. Sending its message once more.")
            call = self._call(api.config, env, ids)
            over = await call.ask(api, until_end=False)
            return (_outcome(api, call) if over else None), {**ids, "resumed": True}
        if event.get("result") is not None:
            return of_this_release(event["result"]), ids
        call = self._known_call(api.config, replace(env, deadline=api.clock() + env.timeout), ids)
        await call.follow(api)
        result = _outcome(api, call)
        result["usage"] = result["usage"] or event.get("usage")
        queries = event.get("queries", 0)
        missing = queries - _received(result)
        if missing > 0:
            warn(
                api,
                f"{call.run}: queries missing from the result: {missing} of {queries}. The result "
                "was too large for the trigger's event (256 KB). So the task read the thread "
                "again, and the service sent the thread without these queries. To get every query, "
                "run the task with deferrable=False, or lower max_rows so that the result fits "
                "the event.",
            )
        return result, ids

    def _known_call(
        self,
        config: PlatformConfig,
        env: RunEnvironment,
        ids: ChatIds,
        *,
        identity: dict[str, str] | None = None,
    ) -> ChatCall:
        """Return the accepted call that the ids name, without its prompt."""
        return ChatCall.known(
            config,
            self._limits(config, env),
            ids,
            session_settings=self.session_settings,
            identity=identity,
            max_rows=self.max_rows,
            details=self.details,
        )

    def _limits(self, config: PlatformConfig, env: RunEnvironment) -> ChatLimits:
        return ChatLimits(
            env.deadline,
            poll_interval=env.poll_interval,
            idle_timeout=config.stream_idle_timeout,
            max_attempts=config.max_attempts,
            if_thread_busy=self.if_thread_busy,
            interrupted=env.interrupted,
        )

    def _call(self, config: PlatformConfig, env: RunEnvironment, ids: Ids) -> ChatCall:
        """Return the call that the ids name, or a new one if they hold no message id. The agent is
        that of the ids: a retry asks no other agent if the name has another one meanwhile."""
        if self.prompt is None:
            raise RuntimeError("a chat run cannot be asked without its prompt")
        call = ChatCall.prepare(
            config,
            self.prompt,
            self._limits(config, env),
            message_id=ids.get("message_id") or self.message_id,
            agent_id=ids.get("agent_id"),
            chat_id=ids.get("chat_id") or self.chat_id,
            session_settings=self.session_settings,
            active_branch_name=self.active_branch_name,
            is_default_branch=self.is_default_branch,
            max_rows=self.max_rows,
            details=self.details,
        )
        call.run.in_existing_thread = bool(ids.get("in_existing_thread", self.chat_id is not None))
        call.run.accepted = bool(ids.get("accepted"))
        call.run.digest = ids.get("input_sha256") or call.run.digest
        return call


@dataclass
class _Question:
    """A question on its way: what is known of it, and what its record must contain."""

    call: ChatCall
    submitted_at: float
    repeats: bool

    def ids(self) -> ChatIds:
        """Return the ids that name the question now."""
        ids = self.call.ids(self.submitted_at)
        return {**ids, "repeats": True} if self.repeats else ids

    def event_before(self, event: object) -> object | None:
        """Return the event that the operator must receive before an event of the chat is logged,
        None if there is none."""
        if isinstance(event, ThreadNamed):
            return Identified(self.ids())
        if isinstance(event, Accepted):
            return RunAccepted(self.call.ids(self.submitted_at))
        if isinstance(event, Waiting) and self.repeats:
            self.repeats = False  # the service reported that it was not processed
            return Identified(self.ids())
        return None


def _outcome(api: Api, call: ChatCall) -> dict[str, Any]:
    """Return the result of a run that is over, as plain JSON without secrets."""
    if not call.run.is_whole:
        warn(
            api,
            f"{call.run}: queries may be missing from the result (truncated). The connection "
            "broke, and the service did not repeat the run from its beginning.",
        )
    return as_plain(with_changed_texts(call.run.result(), api.secrets.redact_data))


def _received(outcome: dict[str, Any]) -> int:
    """Return how many queries have the result or the error that the service sent for them."""
    return count_received(query["error"] for query in outcome["queries"])
