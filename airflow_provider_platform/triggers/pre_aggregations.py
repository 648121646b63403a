"""`PlatformBuildPreAggregationsTrigger`: wait until builds of pre-aggregations are over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.defaults import POLL_INTERVAL
from airflow_provider_platform.runs.pre_aggregations import PreAggregationsRunKind
from airflow_provider_platform.triggers._remote_run import RemoteRunTrigger

if TYPE_CHECKING:
    from airflow_provider_platform.runs.run_kind import Ids


class PlatformBuildPreAggregationsTrigger(RemoteRunTrigger):
    """Poll the tokens of builds, then run `verify_sql` until it returns rows. Starts nothing.

    `run` holds `deployment_id`, `tokens` and `submitted_at` (Unix time). `missing_grace` is in
    seconds. The event is `{"status": "success", "outcome": {"table_count", "tables", "verified"}}`.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        run: Ids,
        deadline: float,
        missing_grace: float,
        verify_sql: str | None = None,
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
        self.missing_grace = missing_grace
        self.verify_sql = verify_sql

    def run_kind(self) -> PreAggregationsRunKind:
        return PreAggregationsRunKind(verify_sql=self.verify_sql, missing_grace=self.missing_grace)
