"""A dashboard export: how an export is started, followed and read."""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.defaults import EXPORT_LIFETIME
from airflow_provider_platform.client.errors import DashboardExportFailedError
from airflow_provider_platform.client.management.exports.exports import (
    StartDashboardExportInput,
    start_dashboard_export,
)
from airflow_provider_platform.client.management.exports.run import (
    ExportOutcome,
    download,
    poll,
    wait,
)
from airflow_provider_platform.runs.run_kind import (
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    say,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock


@dataclass(frozen=True)
class ExportRunKind(RunKind[ExportOutcome]):
    """An export, with the arguments of `PlatformExportDashboardOperator`.

    The service has no operation that stops an export; it drops the export after five minutes. A
    trigger follows the export without its input: `body` is then None.
    """

    id_field = "job_id"
    outcome_class = ExportOutcome
    lifetime = EXPORT_LIFETIME

    body: StartDashboardExportInput | None = None
    output_path: str = ""
    format: str = "pdf"
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        body = self._body().to_json()
        return fingerprint("export", config.management_url, deployment_id, body, self.output_path)

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> ExportOutcome | None:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        run: Ids = {"deployment_id": deployment_id, "submitted_at": env.now}
        await api.notify(Intended(run))
        started = await api.call(
            start_dashboard_export(deployment_id=deployment_id, body=self._body())
        )
        await api.notify(RunAccepted({**run, "job_id": started.job_id}))
        await say(api, f"Started dashboard export {started.job_id}")
        return None

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        """Return False: the service does not report it, and a second export changes nothing."""
        return False, ids

    async def follow(self, api: Api, env: RunEnvironment, ids: Ids) -> ExportOutcome:
        if "written" in ids:
            return ExportOutcome()
        return await wait(api, ids["deployment_id"], ids["job_id"], env.poll_limits, env.clock)

    async def poll_once(self, api: Api, env: RunEnvironment, ids: Ids) -> ExportOutcome | None:
        try:
            _, outcome = await poll(api, ids["deployment_id"], ids["job_id"])
        except DashboardExportFailedError:
            return None
        return outcome

    async def stop(
        self,
        api: Api,
        config: PlatformConfig,
        clock: Clock,
        ids: Ids,
        *,
        seconds: float | None = None,
    ) -> bool:
        """Return False: the service has no operation for it, and drops the export by itself."""
        return False

    async def read(self, api: Api, env: RunEnvironment, ids: Ids, outcome: ExportOutcome) -> bytes:
        """Return the bytes of the exported file."""
        return await download(api, ids["deployment_id"], ids["job_id"], self.format)

    def _body(self) -> StartDashboardExportInput:
        if self.body is None:
            raise RuntimeError("an export cannot be started without its input")
        return self.body
