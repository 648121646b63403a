"""Builds of pre-aggregations: how they are started once, followed and read.

The service answers the start with tokens, and the record holds these tokens. A retry polls them and
starts nothing while the service knows them. Nothing stops a build, so builds continue after a
deadline and after their task was stopped, and the next try follows them.

The ids of such a run hold `tokens`, whether the task waits for the end (`waits`), and after the end
the values to return (`built`). This package makes `build_id`: it distinguishes one start from
another.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.data_api.pre_aggregation_builds import (
    START_AGAIN,
    BuildOutcome,
    BuildProgress,
    BuildSelector,
    JobsAccess,
    count_tables,
    open_access,
    start_builds,
    wait_for_builds,
    wait_for_rows,
)
from airflow_provider_platform.client.defaults import MISSING_GRACE
from airflow_provider_platform.client.errors import PlatformOutcomeUnknownError
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
    from airflow_provider_platform.client.choices import IfStartLost
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

RECORDED_TOKENS = 1500
"""The most tokens that fit into the record of a task, which has 64 KB."""


@dataclass(frozen=True)
class PreAggregationsRunKind(RunKind[BuildOutcome]):
    """Builds, with the arguments of `PlatformBuildPreAggregationsOperator`.

    A trigger follows them without their input: `selector` is then None.
    """

    id_field = "build_id"
    outcome_class = BuildOutcome
    can_stop = False

    selector: BuildSelector | None = None
    wait_for_completion: bool = True
    verify_sql: str | None = None
    missing_grace: float = MISSING_GRACE
    if_start_lost: IfStartLost = "fail"
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        addresses = (config.management_url, config.data_api_url)
        selector = self._selector().to_json()
        return fingerprint("pre-aggregations", *addresses, deployment_id, selector)

    async def submit(
        self,
        api: Api,
        env: RunEnvironment,
        earlier: Ids | None,
        *,
        until_end: bool,
    ) -> BuildOutcome | None:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        access = await _open_access(api, env, deployment_id)
        run: Ids = {"deployment_id": deployment_id, "submitted_at": env.now}
        await api.notify(Intended(run))
        tokens = await start_builds(
            api,
            access,
            self._selector(),
            env.config,
            env.clock,
            deadline=env.deadline,
            repeat_lost=self.if_start_lost == "repeat",
        )
        run |= {
            "build_id": fingerprint(tokens, run["submitted_at"])[:16],
            "tokens": tokens,
            "waits": self.wait_for_completion,
        }
        await api.notify(RunAccepted(run))
        await say(api, f"Started the builds of pre-aggregations: {count_tables(len(tokens))}")
        if len(tokens) > RECORDED_TOKENS:
            await warn(
                api,
                f"This task started more than {RECORDED_TOKENS} builds. Airflow's task state "
                "store has room for 64 KB, so it may not hold all identifiers of the builds "
                "(tokens). A retry is then unable to find the builds. It fails, or with "
                "if_start_lost='repeat' it starts all builds again. Select fewer tables for a "
                "task, with date_range or pre_aggregations.",
            )
        return None if self.wait_for_completion else BuildOutcome(len(tokens))

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        """Return False with `if_start_lost="repeat"`: the tokens are lost, and a second build
        changes no data. Raises PlatformOutcomeUnknownError with `if_start_lost="fail"`."""
        if self.if_start_lost == "fail":
            raise PlatformOutcomeUnknownError(
                "The previous try ended unexpectedly while it started the builds, so they may be "
                f"running. {START_AGAIN}",
                where=f"deployment {ids['deployment_id']}",
            )
        await warn(
            api,
            "The previous try may have started the builds already. This try starts them again "
            "(if_start_lost='repeat').",
        )
        return False, ids

    async def follow(self, api: Api, env: RunEnvironment, ids: Ids) -> BuildOutcome:
        if "built" in ids:
            return BuildOutcome(**ids["built"])
        if not ids["waits"]:
            return BuildOutcome(len(ids["tokens"]))
        access = await _open_access(api, env, ids["deployment_id"])
        outcome = await wait_for_builds(
            api, access, self._progress(ids), env.config, env.poll_limits, env.clock
        )
        if self.verify_sql is None:
            return outcome
        # Rows can arrive after "done". The documents do not say how long this takes, as for missing
        # tables.
        until = min(env.deadline, env.now + self.missing_grace)
        await wait_for_rows(
            api,
            self.verify_sql,
            access,
            env.config,
            env.clock,
            until=until,
            poll_interval=env.poll_interval,
        )
        return BuildOutcome(outcome.table_count, outcome.tables, verified=True)

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
        self, api: Api, env: RunEnvironment, ids: Ids, outcome: BuildOutcome
    ) -> dict[str, Any]:
        """Return the result of the task. The ids keep what a later try needs of it."""
        if ids["waits"]:
            ids["built"] = asdict(outcome)
            verified = ", verify_sql found rows" if outcome.verified else ""
            await say(api, f"The builds are done: {count_tables(outcome.table_count)}{verified}")
        result = {
            "status": "done" if ids["waits"] else None,
            "table_count": outcome.table_count,
            "tables": outcome.tables,
            "tokens": ids["tokens"],
            "verified": outcome.verified,
        }
        return env.secrets.redact_data(result)

    def _selector(self) -> BuildSelector:
        if self.selector is None:
            raise RuntimeError("builds cannot be started without their selector")
        return self.selector

    def _progress(self, ids: Ids) -> BuildProgress:
        return BuildProgress(tuple(ids["tokens"]), float(ids["submitted_at"]), self.missing_grace)


async def _open_access(api: Api, env: RunEnvironment, deployment_id: int) -> JobsAccess:
    """Return the address of the jobs and a token for them, even if the try begins after the
    deadline."""
    deadline = max(env.deadline, env.now + SINGLE_POLL_SECONDS)
    return await open_access(api, deployment_id, env.config, env.clock, deadline=deadline)
