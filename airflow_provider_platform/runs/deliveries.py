"""A report delivery that is run now: started once, followed and read.

The ids of such a run have `run_id`, whether this task `started` it or follows a run that was
already active, whether the task waits for the end (`waits`), and what was known before the start:
`ids_before` and the last success (`success_before`). Nothing stops a run. It continues after a
deadline and after the end of its task, and the next try continues to follow it.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.management.deliveries.run import (
    Delivery,
    DeliveryOutcome,
    FoundRun,
    already_running,
    find_new,
    list_runs_before,
    start_once,
    wait_for_run,
)
from airflow_provider_platform.runs.run_kind import (
    SINGLE_POLL_SECONDS,
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    say,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.choices import IfRunning
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock


@dataclass(frozen=True)
class DeliveryRunKind(RunKind[DeliveryOutcome]):
    """A run of a report delivery, with the arguments of `PlatformRunDeliveryOperator`. A trigger
    follows the run without these arguments: the ids are enough.
    """

    id_field = "run_id"
    outcome_class = DeliveryOutcome
    can_stop = False

    delivery_id: int | str = ""
    if_running: IfRunning = "follow"
    wait_for_completion: bool = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        return fingerprint(
            "report delivery", config.management_url, deployment_id, self.delivery_id
        )

    async def submit(
        self, api: Api, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> DeliveryOutcome | None:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        delivery = Delivery(deployment_id, self.delivery_id)
        before, success_before = await list_runs_before(api, delivery, deadline=env.deadline)
        run: Ids = {
            "deployment_id": deployment_id,
            "delivery_id": self.delivery_id,
            "submitted_at": env.now,
            "success_before": success_before,
        }
        if before.running is not None:
            run_to_follow = already_running(delivery, before.running, self.if_running)
        else:
            await api.notify(Intended({**run, "ids_before": before.ids}))
            run_to_follow = await start_once(
                api, delivery, before, self.if_running, deadline=env.deadline
            )
        run |= self._about(run_to_follow)
        await api.notify(RunAccepted({**run}))
        await say(api, _line(delivery, run_to_follow))
        if run["waits"]:
            return None
        if self.wait_for_completion:
            raise PlatformError(
                "The run of the report delivery was started, but the service did not return its "
                "id, so the task cannot wait for it. Check the outcome in the platform.",
                where=delivery,
            )
        return DeliveryOutcome(run_to_follow.run_id)

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        """Return whether the list of runs shows the run of a lost start. Raises
        PlatformOutcomeUnknownError if the list does not show it."""
        delivery = _delivery(ids)
        run_to_follow = await find_new(
            api, delivery, ids.get("ids_before"), deadline=env.now + SINGLE_POLL_SECONDS
        )
        if run_to_follow is None:
            return False, ids
        await say(api, _line(delivery, run_to_follow))
        others = {name: value for name, value in ids.items() if name != "ids_before"}
        return True, {**others, **self._about(run_to_follow)}

    async def follow(self, api: Api, env: RunEnvironment, ids: Ids) -> DeliveryOutcome:
        if not ids["waits"]:
            return DeliveryOutcome(ids["run_id"])
        return await wait_for_run(
            api, _delivery(ids), ids["run_id"], ids["success_before"], env.poll_limits, env.clock
        )

    async def stop(
        self,
        api: Api,
        config: PlatformConfig,
        clock: Clock,
        ids: Ids,
        *,
        seconds: float | None = None,
    ) -> bool:
        """Return False: the service has no operation for it."""
        return False

    async def read(
        self, api: Api, env: RunEnvironment, ids: Ids, outcome: DeliveryOutcome
    ) -> dict[str, Any]:
        """Return the result of the task. The ids keep what a later try needs of it."""
        if outcome.status is not None:
            await say(api, f"The run of the report delivery succeeded (run {outcome.run_id})")
        return env.secrets.redact_data(
            {
                "delivery_id": ids["delivery_id"],
                "run_id": outcome.run_id,
                "started": ids["started"],
                "status": outcome.status,
                "run": outcome.run,
                "last_success_at": outcome.last_success_at,
            }
        )

    def _about(self, run_to_follow: FoundRun) -> Ids:
        waits = self.wait_for_completion and run_to_follow.run_id is not None
        return {"run_id": run_to_follow.run_id, "started": run_to_follow.own, "waits": waits}


def _delivery(ids: Ids) -> Delivery:
    return Delivery(ids["deployment_id"], ids["delivery_id"])


def _line(delivery: Delivery, run_to_follow: FoundRun) -> str:
    run = f"run {run_to_follow.run_id}" if run_to_follow.run_id else "run without an id"
    if run_to_follow.own:
        return f"Started {delivery}: {run}"
    return f"{delivery} is running already. Following this run instead of starting one: {run}"
