"""`PlatformChatTrigger`: follow an accepted chat run until it is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.defaults import MAX_ROWS, POLL_INTERVAL
from airflow_provider_platform.client.errors import ChatSuspendedError
from airflow_provider_platform.runs.chat import ChatRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient
    from airflow_provider_platform.runs.run_kind import Ids


class PlatformChatTrigger(RemoteRunTrigger):
    """Wait for a chat run. The prompt itself is not among the arguments.

    `run` names the run (`chat_id`, `message_id` ...) and holds the prompt's digest;
    `session_settings` are the operator's own, None for the connection's; `max_rows` and `details`
    say which parts of each query are read. The event contains the result (`{"status": "success",
    "result": {...}}`). If the result exceeds 256 KB, the event contains `usage` and the number of
    queries that have a result (`queries`), and the worker reads the thread. The status "suspended"
    asks the worker to repeat the input.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        run: Ids,
        session_settings: dict[str, Any] | None = None,
        max_rows: int = MAX_ROWS,
        details: bool = False,
        deadline: float,
        poll_interval: float = POLL_INTERVAL,
        cancel_on_kill: bool = True,
    ) -> None:
        super().__init__(
            platform_conn_id=platform_conn_id,
            run=run,
            deadline=deadline,
            poll_interval=poll_interval,
            cancel_on_kill=cancel_on_kill,
        )
        self.session_settings = session_settings
        self.max_rows = max_rows
        self.details = details

    def run_kind(self) -> ChatRunKind:
        return ChatRunKind(
            session_settings=self.session_settings, max_rows=self.max_rows, details=self.details
        )

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        try:
            return await super().follow(client)
        except ChatSuspendedError:
            return {"status": "suspended"}
