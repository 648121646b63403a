"""Deliveries and scheduled tasks that are run now: started once, followed and read.

The ids of such a run have `run_id`, whether this task `started` it or follows a run that was
already active, whether the task waits for the end (`waits`), and what was known before the start:
`ids_before` and the last success (`success_before`). Nothing stops a run. It continues after a
deadline and after the end of its task, and the next try continues to follow it.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.management.deliveries.run import DeliveryRuns
from airflow_provider_platform.client.management.scheduled_tasks.run import ScheduledTaskRuns
from airflow_provider_platform.client.management.shared.runs_now import (
    FoundRun,
    RunNowOutcome,
    RunsNow,
    already_running,
    can_be_followed,
    find_new,
    list_runs_before,
    poll_run,
    start_once,
    wait_for_run,
)
from airflow_provider_platform.client.operations.program import Clock, Notify, Program
from airflow_provider_platform.runs.run_kind import (
    SINGLE_POLL_SECONDS,
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    say,
    warn,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.choices import IfRunning


@dataclass(frozen=True)
class RunNowKind(RunKind[RunNowOutcome]):
    """A run that is started now, with the arguments of its operator. A trigger follows the run
    without these arguments: the ids are enough.
    """

    id_field = "run_id"
    outcome_class = RunNowOutcome
    can_stop = False
    service: ClassVar[type[RunsNow]]
    """The operations of what is run."""

    subject_id: int | str = ""
    if_running: IfRunning = "follow"
    wait_for_completion: bool | str = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        noun = self.service.noun
        return fingerprint(noun, config.management_url, deployment_id, self.subject_id)

    def submit(
        self, env: RunEnvironment, earlier: Ids | None, *, until_end: bool
    ) -> Program[RunNowOutcome | None]:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        service = self.service(deployment_id, self.subject_id)
        before, success_before = yield from list_runs_before(service, deadline=env.deadline)
        run: Ids = {
            "deployment_id": deployment_id,
            "subject_id": self.subject_id,
            "submitted_at": env.now,
            "success_before": success_before,
        }
        if before.running is not None:
            run_to_follow = already_running(service, before.running, self.if_running)
        else:
            yield Notify(Intended({**run, "ids_before": before.ids}))
            run_to_follow = yield from start_once(
                service, before, self.if_running, deadline=env.deadline
            )
        run |= self._about(run_to_follow)
        yield Notify(RunAccepted({**run}))
        yield say(_line(service, run_to_follow))
        if run["waits"] and not (yield from can_be_followed(service, run_to_follow)):
            run["waits"] = False
            yield Notify(RunAccepted({**run}))
        if run["waits"]:
            return None
        if self.wait_for_completion is True:
            raise PlatformError(
                f"The run of the {service.noun} was started, but this tenant does not report its "
                "status. Check the outcome in the platform. To let the task succeed without "
                "waiting, set wait_for_completion to 'if_supported' or False.",
                where=f"run {run_to_follow.run_id or 'without an id'}, {service}",
            )
        if self.wait_for_completion is not False:
            yield warn(
                f"This tenant does not report the status of a run of a {service.noun}. The task "
                "starts the run and does not wait for it, so its result has no status."
            )
        return RunNowOutcome(run_to_follow.run_id)

    def find(self, env: RunEnvironment, ids: Ids) -> Program[tuple[bool, Ids]]:
        """Return whether the list of runs shows the run of a lost start. Raises
        PlatformOutcomeUnknownError if the list does not show it."""
        service = self._of(ids)
        run_to_follow = yield from find_new(
            service, ids.get("ids_before"), deadline=env.now + SINGLE_POLL_SECONDS
        )
        if run_to_follow is None:
            return False, ids
        yield say(_line(service, run_to_follow))
        others = {name: value for name, value in ids.items() if name != "ids_before"}
        return True, {**others, **self._about(run_to_follow)}

    def follow(self, env: RunEnvironment, ids: Ids) -> Program[RunNowOutcome]:
        if not ids["waits"]:
            return RunNowOutcome(ids["run_id"])
        return (
            yield from wait_for_run(
                self._of(ids),
                ids["run_id"],
                ids["success_before"],
                env.poll_limits,
                env.clock,
            )
        )

    def poll_once(self, env: RunEnvironment, ids: Ids) -> Program[RunNowOutcome | None]:
        if not ids["waits"]:
            return RunNowOutcome(ids["run_id"])
        return (yield from poll_run(self._of(ids), ids["run_id"], ids["success_before"], env.clock))

    def stop(
        self, config: PlatformConfig, clock: Clock, ids: Ids, *, seconds: float | None = None
    ) -> Program[bool]:
        """Return False: the service has no operation for it."""
        yield from ()
        return False

    def read(
        self, env: RunEnvironment, ids: Ids, outcome: RunNowOutcome
    ) -> Program[dict[str, Any]]:
        """Return the result of the task. The ids keep what a later try needs of it."""
        service = self._of(ids)
        if outcome.status is not None:
            yield say(f"The run of the {service.noun} succeeded (run {outcome.run_id})")
        result = {
            service.id_field: ids["subject_id"],
            "run_id": outcome.run_id,
            "started": ids["started"],
            "status": outcome.status,
            "run": outcome.run,
        }
        if service.reports_success:
            result["last_success_at"] = outcome.last_success_at
        return env.secrets.redact(result)

    def _about(self, run_to_follow: FoundRun) -> Ids:
        waits = self.wait_for_completion is not False
        return {"run_id": run_to_follow.run_id, "started": run_to_follow.own, "waits": waits}

    def _of(self, ids: Ids) -> RunsNow:
        return self.service(ids["deployment_id"], ids["subject_id"])


@dataclass(frozen=True)
class DeliveryRunKind(RunNowKind):
    """A run of a report delivery, with the arguments of `PlatformRunDeliveryOperator`."""

    service = DeliveryRuns


@dataclass(frozen=True)
class ScheduledTaskRunKind(RunNowKind):
    """A run of a scheduled task, with the arguments of `PlatformRunScheduledTaskOperator`."""

    service = ScheduledTaskRuns


def _line(service: RunsNow, run_to_follow: FoundRun) -> str:
    run = f"run {run_to_follow.run_id}" if run_to_follow.run_id else "run without an id"
    if run_to_follow.own:
        return f"Started {service}: {run}"
    return f"{service} is running already. Following this run instead of starting one: {run}"
