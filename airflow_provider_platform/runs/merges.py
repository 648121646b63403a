"""Merging a branch, and waiting until production is built from the merge.

In the ids of such a run, `merge` describes the merge: the fields of `Merge`, as plain JSON. Its
`merged` is None until the service has answered.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import BranchNotFoundError, PlatformError
from airflow_provider_platform.client.http.retry import (
    cannot_have_been_processed,
    may_have_been_processed,
)
from airflow_provider_platform.client.management.data_model.build_status import Build
from airflow_provider_platform.client.management.data_model.merging import (
    MADE,
    UNSURE,
    Merge,
    find_merge,
    plan_merge,
    send_merge,
    wait_for_merged_build,
)
from airflow_provider_platform.runs.run_kind import (
    Ids,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunKind,
    Traced,
    say,
    warn,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock


@dataclass(frozen=True)
class MergeRunKind(RunKind[Build]):
    """A merge, with the arguments of `PlatformMergeBranchOperator`.

    A merge cannot be undone, so nothing is stopped: a try that is too late leaves the merge to the
    next try, which waits for its build. A trigger waits only for the build and has no
    arguments.
    """

    id_field = "branch_name"
    outcome_class = Build
    can_stop = False

    branch_name: str = ""
    into: str = "default"
    message: str = ""
    delete_branch: bool = False
    checked_hash: str | None = None
    wait_for_build: bool = True
    deployment_id: int | None = None

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        inputs = (self.branch_name, self.into)
        return fingerprint("merge branch", config.management_url, deployment_id, *inputs)

    async def submit(
        self,
        api: Api,
        env: RunEnvironment,
        earlier: Ids | None,
        *,
        until_end: bool,
    ) -> Build | None:
        deployment_id = env.config.resolve_deployment_id(self.deployment_id)
        before = _merge_of(earlier)
        # Whatever ends this try, the record keeps a merge that may have been made.
        known: Ids = dict(earlier or {})
        await api.notify(Traced(lambda: known or None))
        merge: Merge | None = None
        sent_before = False
        if before is not None and before.merged is None:
            merge, sent_before = await self._lost(api, env, before)
            before = None
        if merge is None:
            merge = await self._planned(api, env, deployment_id, before)
        known |= {
            "deployment_id": deployment_id,
            "submitted_at": env.now,
            "branch_name": self.branch_name,
            "merge": merge.to_json(),
        }
        if merge.merged is None:
            await api.notify(Intended(dict(known)))
            try:
                merge = await send_merge(
                    api,
                    merge,
                    message=self.message,
                    delete_branch=self.delete_branch,
                    clock=env.clock,
                    deadline=env.deadline,
                    sent_before=sent_before,
                )
            except PlatformError as error:
                earlier_send_counts = sent_before and cannot_have_been_processed(error)
                if not (may_have_been_processed(error) or earlier_send_counts):
                    del known["merge"]  # the service has refused it
                raise
        run: Ids = {**known, "merge": merge.to_json()}
        await api.notify(RunAccepted(run))
        await say(api, _about(merge))
        if self.delete_branch and merge.merged and not merge.branch_deleted:
            await warn(
                api,
                f"The service did not delete branch {merge.branch_name} with the merge. Delete it "
                "with PlatformDeleteBranchOperator, or in the platform.",
            )
        return None if self._waits(merge) else Build(None)

    async def find(self, api: Api, env: RunEnvironment, ids: Ids) -> tuple[bool, Ids]:
        """Return whether the commits show that a merge whose response was lost was made. Raises
        PlatformOutcomeUnknownError if the commits do not show it."""
        merge = _merge_of(ids)
        if merge is None:
            return False, ids
        verdict, gone = await find_merge(api, merge, deadline=env.deadline)
        if verdict != MADE:
            return False, ids
        made = merge.answered(env.now, merged=True, branch_deleted=gone)
        await say(api, _about(made))
        return True, {**ids, "merge": made.to_json()}

    async def follow(self, api: Api, env: RunEnvironment, ids: Ids) -> Build:
        merge = Merge(**ids["merge"])
        if not self._waits(merge):
            return Build(None)
        return await wait_for_merged_build(api, merge, env.poll_limits, env.clock)

    async def stop(
        self,
        api: Api,
        config: PlatformConfig,
        clock: Clock,
        ids: Ids,
        *,
        seconds: float | None = None,
    ) -> bool:
        """Return False: a merge cannot be undone."""
        return False

    async def read(self, api: Api, env: RunEnvironment, ids: Ids, outcome: Build) -> dict[str, Any]:
        merge = Merge(**ids["merge"])
        if outcome.status is not None:
            await say(api, f"{merge.target} is built (commit {outcome.hash})")
        return {
            "branch_name": merge.branch_name,
            "branch_hash": merge.source_hash,
            "into": merge.target,
            "merged": bool(merge.merged),
            "branch_deleted": merge.branch_deleted,
            "hash": outcome.hash,
            "status": outcome.status,
        }

    def carried_over(self, ids: Ids) -> Ids | None:
        """Return the merge: a cleared task does not repeat a merge that it made."""
        return ids if "merge" in ids else None

    async def _lost(self, api: Api, env: RunEnvironment, merge: Merge) -> tuple[Merge | None, bool]:
        """Find a merge whose response was lost. Returns the merge, or None if it must be planned
        again, and whether the task sends it once more to find out."""
        verdict, gone = await find_merge(api, merge, deadline=env.deadline)
        if verdict == MADE:
            return merge.answered(env.now, merged=True, branch_deleted=gone), False
        if verdict != UNSURE:
            return None, False
        await warn(
            api,
            f"The answer to the merge was lost. Since then {merge.target} has a new commit, and "
            f"{merge.branch_name} has none. The task merges once more. If {merge.target} already "
            "contains the merge, this changes nothing.",
        )
        return merge, True

    async def _planned(
        self, api: Api, env: RunEnvironment, deployment_id: int, made: Merge | None
    ) -> Merge:
        """Return the merge to make now; `made` is a merge of an earlier try."""
        if made is not None and made.source_hash and made.source_hash == self.checked_hash:
            return made  # whatever is on the branch now
        try:
            merge = await plan_merge(
                api,
                deployment_id,
                self.branch_name,
                self.into,
                checked_hash=self.checked_hash,
                deadline=env.deadline,
            )
        except BranchNotFoundError:
            if made is None:
                raise
            return made  # merged before, and deleted since
        if made is not None and made.source_hash and made.source_hash == merge.source_hash:
            return made
        if merge.is_held:
            return merge.answered(env.now, merged=False)
        return merge

    def _waits(self, merge: Merge) -> bool:
        """Return whether the task waits for production's build: a merge builds only production."""
        return self.wait_for_build and merge.production


def _merge_of(ids: Ids | None) -> Merge | None:
    return Merge(**ids["merge"]) if ids and "merge" in ids else None


def _about(merge: Merge) -> str:
    """Return the line for the log about a merge."""
    if not merge.merged:
        return (
            f"Nothing to merge: {merge.target} already has {merge.branch_name} "
            f"({merge.source_hash})"
        )
    deleted = " and deleted the branch" if merge.branch_deleted else ""
    built = (
        ""
        if merge.production
        else "; the task does not wait for a build, because only a merge into production starts one"
    )
    return f"Merged {merge.branch_name} into {merge.target}{deleted}{built}"
