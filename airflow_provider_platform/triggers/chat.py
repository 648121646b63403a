"""`PlatformChatTrigger`: follows an accepted chat run until it is over."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.chat.program import ChatCall, ChatLimits
from airflow_provider_platform.client.errors import ChatSuspendedError
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient

MAX_EVENT_BYTES = 256 * 1024
"""A larger result stays at the service: events are kept in the metadata database."""


class PlatformChatTrigger(RemoteRunTrigger):
    """Waits for a chat run; the prompt itself is not among its arguments.

    `run` names it (`chat_id`, `message_id` ...); `input_sha256` is the prompt's digest;
    `deadline` in Unix time; `session_settings` the operator's own, None for the connection's.
    The event carries the result (`{"status": "success", "result": {...}}`). If that exceeds 256 KB,
    the event carries `usage` and the number of queries that have a result (`queries`), and the
    worker reads the thread. "suspended" asks the worker to repeat the input.
    """

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        call = self._call(client)
        program = call.follow(client.clock)
        try:
            await self.carry_out(client, program)
        except ChatSuspendedError:
            return {"status": "suspended"}
        result = call.result()
        event = {"status": "success", "result": client.secrets.redact(result.to_event())}
        if len(json.dumps(event).encode()) > MAX_EVENT_BYTES:
            known = {"usage": result.usage, "queries": result.received_queries}
            return {"status": "success", "result": None, **known}
        return event

    async def stop(self, client: AsyncPlatformClient) -> bool:
        call = self._call(client, identity=self.ids.get("identity"))
        return await client.run(call.stop(client.clock))

    def _call(
        self, client: AsyncPlatformClient, identity: dict[str, str] | None = None
    ) -> ChatCall:
        limits = ChatLimits.of(
            client.config,
            deadline=float(self.limits["deadline"]),
            poll_interval=float(self.limits["poll_interval"]),
        )
        return ChatCall.known(
            client.config,
            limits,
            {**self.ids, "input_sha256": self.limits["input_sha256"]},
            session_settings=self.limits.get("session_settings"),
            identity=identity,
            max_rows=int(self.limits["max_rows"]),
            details=bool(self.limits["details"]),
        )
