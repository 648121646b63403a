"""`PlatformChatTrigger`: follows an accepted chat run until it is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.chat import ChatRequest
from airflow_provider_platform.client.chat_call import STOP_SECONDS
from airflow_provider_platform.client.chat_log import describe
from airflow_provider_platform.client.chat_program import Patience, follow
from airflow_provider_platform.client.chat_run import ChatRun
from airflow_provider_platform.client.chat_stop import stop_run
from airflow_provider_platform.client.errors import ChatSuspendedError
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.platform_client import AsyncPlatformClient

MAX_EVENT_BYTES = 256 * 1024
"""A larger result stays at the service: events are kept in the metadata database."""


class PlatformChatTrigger(RemoteRunTrigger):
    """Waits for a chat run; the prompt itself is not among its arguments.

    `run` names it (`chat_id`, `message_id` ...); `input_sha256` is the prompt's digest;
    `deadline` in Unix time; `session_settings` the operator's own, None for the connection's.
    The event carries the result (`{"status": "success", "result": {...}}`), or, where that exceeds
    256 KB, only `usage`; "suspended" asks the worker to repeat the input.
    """

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        run, request = self._known(client)
        limits = self.limits
        patience = Patience(
            deadline=float(limits["deadline"]),
            poll_interval=float(limits["poll_interval"]),
            idle_timeout=client.config.stream_idle_timeout,
            max_attempts=client.config.max_attempts,
        )
        try:
            await client.run(follow(run, request, patience, client.clock), self._tell)
        except ChatSuspendedError:
            return {"status": "suspended"}
        result = run.result(fail_on_tool_error="never")
        event = {"status": "success", "result": result.to_event()}
        if len(json.dumps(event).encode()) > MAX_EVENT_BYTES:
            return {"status": "success", "result": None, "usage": result.usage}
        return event

    async def stop(self, client: AsyncPlatformClient) -> bool:
        run, request = self._known(client)
        return await client.run(stop_run(run, request, client.clock, seconds=STOP_SECONDS))

    def _known(self, client: AsyncPlatformClient) -> tuple[ChatRun, ChatRequest]:
        settings = client.config.resolve_session_settings(self.limits.get("session_settings"))
        run = ChatRun(
            message_id=self.ids["message_id"],
            digest=self.limits["input_sha256"],
            chat_id=self.ids["chat_id"],
            thread_given=bool(self.ids.get("thread_given")),
            accepted=True,
            max_rows=int(self.limits["max_rows"]),
        )
        request = ChatRequest.build(message_id=run.message_id, session_settings=settings)
        return run, request

    def _tell(self, event: Any) -> None:
        self.log.info("%s", describe(event))
