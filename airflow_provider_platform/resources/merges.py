"""Merges a branch into production or into its parent, and waits until production is built from it.

A merge is a call whose answer is only `merged`, and no operation lists merges or the history of a
branch. Two things show that the target has the branch's commit: the target is at that commit, or
both branches are built from equal files (`filesHash`). That somebody moved the target shows
nothing. If the answer to a merge is lost:

    the target is              the branch is               the merge
    at the branch's commit     anywhere                    was made
    where it was before        at any commit               was not made
    where it was before        gone                        was not made, and cannot be made
    at another commit          at the commit of the merge  `UNSURE`: our merge, or another's
    at another commit          at another commit, or gone  cannot be told: an unknown outcome

An `UNSURE` merge is sent once more. This is safe: the branch is at the same commit, so the second
call merges what the first one would have merged, or nothing. The answer `merged: false` has two
meanings, "production has the branch" and "it could not be merged", so only the commit or the files
of the target decide it.

In deploy mode `cli` a merge does not build production, so nothing is sent. In deploy mode `git`
production uses the previous data model until the build of the merged commit is over. The build
status names the commit that was built. Each commit at which production was seen after the merge
contains the merge, so a build of any of these counts, also if production has moved on since.

A tenant may name no commit in the build status or in the list of branches. Then a build counts if
the status names another commit than before the merge, or was seen building since. Else the status
may be that of the model before: it counts only after `ACTIVATION_GRACE`, with a warning.

In the ids of such a run, `merge` describes the merge: the fields of `Merge`, as plain JSON. Its
`merged` is None until the service has answered.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, NotRequired

from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    BranchNotFoundError,
    BranchNotMergedError,
    BuildFailedError,
    MergedBuildFailedError,
    PlatformApiError,
    PlatformConflictError,
    PlatformDeadlineError,
    PlatformError,
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    from_payload,
)
from airflow_provider_platform.client.failed_calls import NOT_ACTIVE
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import (
    cannot_have_been_processed,
    may_have_been_processed,
    outcome_unknown,
    what_came_instead,
)
from airflow_provider_platform.resources.branches import (
    BranchResponse,
    MergeResponse,
    all_rows,
    list_branches,
    merge_to_default,
    merge_to_parent,
    name_branch,
)
from airflow_provider_platform.resources.builds import (
    ACTIVATION_GRACE,
    BUILT,
    ENDED_WITHOUT_A_BUILD,
    IDLE,
    Build,
    BuildSeen,
    BuildWanted,
    judge_with_log,
    not_built,
    report_unbuilt,
)
from airflow_provider_platform.resources.deployments import (
    BuildStatusResponse,
    DeploymentSettings,
    get_deployment_settings,
)
from airflow_provider_platform.resources.missing_operations import (
    raise_if_missing,
)
from airflow_provider_platform.resources.run_kind import (
    Identified,
    Intended,
    Poll,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import say, warn

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


DEFAULT = "default"
BUILT_FROM_UPLOADS = "cli"
"""The deploy mode in which only uploads build production."""

FILES_PAUSE = 2.0
"""Seconds between two looks at the files of both branches."""

Lost = Literal["made", "not made", "unsure"]
MADE: Lost = "made"
NOT_MADE: Lost = "not made"
UNSURE: Lost = "unsure"


@dataclass(frozen=True)
class Merge:
    """One merge: which branch into which, and the commits of both before it.

    `production`: whether the target is the production branch. `allowed`: whether the deployment's
    settings allow merges into the target, None if they do not say. `merged`: None until the service
    has answered, then whether this merge changed the target (False: the target already had the
    commit). `merged_at`: when the answer came (Unix time). `built_hash`: the commit from which the
    target was built before the merge, None if the build status did not name it.
    """

    deployment_id: int
    branch_name: str
    into: str
    target: str
    production: bool
    source_hash: str | None = None
    target_hash: str | None = None
    allowed: bool | None = None
    merged: bool | None = None
    branch_deleted: bool = False
    merged_at: float = 0.0
    built_hash: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the fields of this class."""
        return asdict(self)

    @property
    def where(self) -> str:
        """The branch and the deployment, for the end of an error message about this merge."""
        return name_branch(self.deployment_id, self.branch_name)

    @property
    def is_held(self) -> bool:
        """Whether the target already has the branch's commit."""
        return self.source_hash is not None and self.source_hash == self.target_hash

    def answered(self, now: float, *, merged: bool, branch_deleted: bool = False) -> Merge:
        """Return this merge with the service's answer."""
        return replace(self, merged=merged, branch_deleted=branch_deleted, merged_at=now)


async def plan_merge(
    api: Api,
    deployment_id: int,
    branch_name: str,
    into: str,
    *,
    checked_hash: str | None = None,
    deadline: float | None = None,
) -> Merge:
    """Return the merge to send: read the deploy mode, the target and the commits. `into` is
    `default` (production) or `parent`. `checked_hash` is the commit that the branch must be at.
    `deadline` is in Unix time.

    Raises BranchNotFoundError; BranchNotMergedError if a merge would have no effect (deploy mode
    `cli`, a branch that is no longer at `checked_hash`, the production branch, a branch without a
    parent); OperationMissingError if the tenant lacks the operations; and the errors of
    requests.
    """
    where = name_branch(deployment_id, branch_name)
    settings = await _settings(api, deployment_id, deadline)
    production = settings.deploy_branch_name
    if not production:
        raise PlatformProtocolError(
            "Nothing was merged: the deployment's settings do not name its production branch.",
            where=where,
        )
    branches = await _branches(api, deployment_id, deadline)
    branch = branches.get(branch_name)
    if branch is None:
        raise BranchNotFoundError(
            "Nothing was merged: there is no branch of this name. Check its spelling, and whether "
            "somebody merged or deleted it.",
            where=where,
        )
    if branch_name == production:
        raise BranchNotMergedError(
            "Nothing was merged: this is the production branch. Set branch_name to the branch that "
            "you want to merge into production.",
            where=where,
        )
    target = production if into == DEFAULT else branch.parent_branch
    if not target:
        raise BranchNotMergedError(
            "Nothing was merged: the service names no parent of this branch. Use into='default' to "
            "merge it into production.",
            where=where,
        )
    if target == production and settings.deploy_mode == BUILT_FROM_UPLOADS:
        raise BranchNotMergedError(
            "Nothing was merged: the deployment is in deploy mode cli. In this mode a merge does "
            "not build production, and the next upload with the platform's CLI overwrites the "
            "merge. Upload the branch's model with the CLI, or change the deploy mode to git.",
            where=where,
        )
    if checked_hash is not None and branch.last_hash is None:
        raise BranchNotMergedError(
            f"Nothing was merged: commit {quote_service(checked_hash)} was checked, but the "
            "service does not name the branch's commit. Look at the branch in the platform and "
            "merge it there, or leave out hash to merge the branch as it is.",
            where=where,
        )
    if checked_hash is not None and branch.last_hash != checked_hash:
        raise BranchNotMergedError(
            f"Nothing was merged: commit {quote_service(checked_hash)} was checked, but the branch "
            f"is now at {_shown(branch.last_hash)}. Check the branch again; after a gate, clear "
            "the whole gate.",
            where=where,
        )
    into_branch = branches.get(target)
    return Merge(
        deployment_id,
        branch_name,
        into,
        target,
        target == production,
        branch.last_hash,
        None if into_branch is None else into_branch.last_hash,
        settings.deploy_branch_merge_allowed if target == production else None,
    )


async def send_merge(
    api: Api,
    merge: Merge,
    *,
    message: str,
    delete_branch: bool,
    deadline: float | None = None,
    sent_before: bool = False,
) -> Merge:
    """Send the merge and return it with the answer. If the answer is lost, the commits show whether
    the merge was made; an `UNSURE` merge is sent once more. `sent_before` says that the service may
    have processed an earlier request for this merge.

    Raises BranchNotMergedError if the service merged nothing or reports a conflict,
    BranchNotFoundError if the branch was deleted meanwhile, PlatformOutcomeUnknownError, and the
    errors of requests. If the merge may have been made, the error is retryable and its message says
    so.
    """
    operation = _operation(merge, message, delete_branch)
    try:
        answer = await api.call(operation, deadline=deadline)
    except PlatformError as error:
        if not may_have_been_processed(error):
            await _refuse(api, merge, error)
            raise
        try:
            lost, gone = await find_merge(api, merge, deadline=deadline)
        except PlatformOutcomeUnknownError as unknown:
            raise outcome_unknown(unknown, error) from error
        except BranchNotFoundError:
            raise
        except PlatformError:
            raise _in_doubt(merge, error) from error
        if lost == MADE:
            return merge.answered(api.clock(), merged=True, branch_deleted=gone)
        if lost == UNSURE and not sent_before:
            return await send_merge(
                api,
                merge,
                message=message,
                delete_branch=delete_branch,
                deadline=deadline,
                sent_before=True,
            )
        raise _in_doubt(merge, error) from error
    if answer.merged:
        return merge.answered(api.clock(), merged=True, branch_deleted=bool(answer.branch_deleted))
    return await _merged_nothing(api, merge, sent_before, deadline)


async def find_merge(api: Api, merge: Merge, *, deadline: float | None = None) -> tuple[Lost, bool]:
    """Return whether a merge was made whose answer was lost, and whether the branch is gone. Reads
    the commits of the branches.

    Raises PlatformOutcomeUnknownError if the commits do not show it, BranchNotFoundError if the
    branch was deleted before it was merged, and the errors of requests.
    """
    branches = await _branches(api, merge.deployment_id, deadline)
    return judge_lost(merge, branches), merge.branch_name not in branches


def judge_lost(merge: Merge, branches: dict[str, BranchResponse]) -> Lost:
    """Return whether a merge was made whose answer was lost, by the table at the top of this
    module. Raises PlatformOutcomeUnknownError, BranchNotFoundError."""
    branch, now_at = branches.get(merge.branch_name), _commit_of(branches, merge.target)
    stayed = now_at is not None and now_at == merge.target_hash
    if now_at is not None and now_at == merge.source_hash:
        return MADE
    if branch is None:
        if stayed:
            raise BranchNotFoundError(
                f"The branch was deleted before it was merged: {merge.target} is still at the same "
                "commit as before.",
                where=merge.where,
            )
        change = f"was deleted (it was at {_shown(merge.source_hash)})"
        step = "create the branch again, then clear the task to merge it."
    elif stayed:
        return NOT_MADE
    elif branch.last_hash == merge.source_hash:
        return UNSURE
    else:
        change = f"changed from {_shown(merge.source_hash)} to {_shown(branch.last_hash)}"
        step = "clear the task: it merges the branch as it is now."
    raise PlatformOutcomeUnknownError(
        "The service did not confirm the merge, and the commits do not show whether the merge "
        f"was made. {merge.target} changed from {_shown(merge.target_hash)} to "
        f"{_shown(now_at)}. The branch {change}. {_look_at_history(merge)} If it is not there, "
        f"{step}",
        where=merge.where,
    )


async def poll_merged_build(api: Api, merge: Merge, holding: set[str | None]) -> Build | BuildSeen:
    """Ask once for the build of the target. `holding` are the commits whose build contains the
    merge; those that this poll finds are added, None for a build whose commit is not named. Raises
    MergedBuildFailedError, and what `judge` raises."""
    wanted = _wanted(merge)
    answer: BuildStatusResponse = await api.call(wanted.operation, once=True)
    built = answer.last_hash or None
    if built not in holding:
        holding |= await _commits_with_merge(api, merge, answer)
        if built not in holding:
            said = answer.words("error_text") or ""
            return BuildSeen(merge.target, answer.status, said, built)
    try:
        return await judge_with_log(api, answer, wanted)
    except BuildFailedError as error:
        raise MergedBuildFailedError(
            f"The branch is merged into {merge.target}, but production still uses the previous "
            f"data model. {error.reason} Correct the data model and merge again, or start the "
            "build again in the platform. A retry then waits for the build, and does not merge "
            "again.",
            where=merge.where,
        ) from error


async def _commits_with_merge(
    api: Api, merge: Merge, answer: BuildStatusResponse
) -> set[str | None]:
    """Return the commits whose build contains the merge, as this status and the list of branches
    show them."""
    built, is_late = answer.last_hash or None, api.clock() - merge.merged_at > ACTIVATION_GRACE
    if built is not None and merge.target_hash is not None:
        branches = await _branches(api, merge.deployment_id, None)
        now_at = _commit_of(branches, merge.target)
        if now_at is not None:
            # Some merges make no commit: the target stays at its commit. The list may also be late.
            return {now_at} if now_at != merge.target_hash or is_late else set()
    is_new = None not in (built, merge.built_hash) and built != merge.built_hash
    if is_new or answer.status not in {BUILT, *IDLE, *ENDED_WITHOUT_A_BUILD}:
        return {built}  # a build since the merge
    if not is_late:
        return set()
    warn(
        api,
        f"The service does not name the commit of {merge.target}, and no build was seen in the "
        f"{ACTIVATION_GRACE:g} seconds after the merge. The task takes the build status "
        f"{answer.status} for that of the merge. Check in the platform that production uses the "
        "new data model.",
    )
    return {built}


def _wanted(merge: Merge) -> BuildWanted:
    return BuildWanted(merge.deployment_id, merge.target)


def _operation(merge: Merge, message: str, delete_branch: bool) -> Operation[MergeResponse]:
    """Return the operation that sends the merge. It has every flag, because the service's documents
    do not say the defaults."""
    if merge.into == DEFAULT:
        to_default = {
            "branchName": merge.branch_name,
            "message": message,
            "removeBranchAfterMerge": delete_branch,
        }
        return merge_to_default(deployment_id=merge.deployment_id, body=to_default)
    to_parent = {
        "branchName": merge.branch_name,
        "message": message,
        "deleteBranch": delete_branch,
        "squashCommits": False,
        "switchToParentBranch": False,
    }
    return merge_to_parent(deployment_id=merge.deployment_id, body=to_parent)


async def _merged_nothing(
    api: Api, merge: Merge, sent_before: bool, deadline: float | None
) -> Merge:
    """Return the merge that the answer `merged: false` stands for, if the target has the branch.
    Raises BranchNotMergedError, or PlatformOutcomeUnknownError if an earlier request may have been
    processed."""
    branches = await _branches(api, merge.deployment_id, deadline)
    branch, now_at = branches.get(merge.branch_name), _commit_of(branches, merge.target)
    if now_at is not None and (
        now_at == merge.source_hash or await _same_files(api, merge, now_at, deadline)
    ):
        held = merge if sent_before else replace(merge, target_hash=now_at)
        return held.answered(api.clock(), merged=sent_before)
    at = _shown(merge.source_hash if branch is None else branch.last_hash)
    if sent_before and now_at != merge.target_hash:
        raise PlatformOutcomeUnknownError(
            "The service did not confirm the merge. The task sent the merge once more, and "
            "the service answered that it merged nothing. The service does not say whether "
            f"{merge.target} has the merge already or refuses it. The branch is at {at}, and "
            f"{merge.target} is at {_shown(now_at)}.{_not_allowed(merge)} "
            f"{_look_at_history(merge)} If it is not there, clear the task to merge the branch.",
            where=merge.where,
        )
    raise BranchNotMergedError(
        f"The service answered that it merged nothing.{_not_allowed(merge)} The branch is at {at}, "
        f"and {merge.target} is at {_shown(now_at)}. The service does not say whether "
        f"{merge.target} has the branch already or refuses it. {_look_at_history(merge)}",
        where=merge.where,
    )


async def _same_files(api: Api, merge: Merge, target_commit: str, deadline: float | None) -> bool:
    """Return whether the target and the branch, each at this commit, have the same files. The build
    status names a new commit only after a while, so this asks for up to `ACTIVATION_GRACE`."""
    until = min(api.clock() + ACTIVATION_GRACE, deadline or math.inf)
    expected = {merge.branch_name: merge.source_hash, merge.target: target_commit}
    while True:
        files = []
        for name, commit in expected.items():
            wanted = BuildWanted(merge.deployment_id, name)
            answer: BuildStatusResponse = await api.call(wanted.operation, deadline=deadline)
            if NOT_ACTIVE in (answer.words("error_text") or ""):
                return False  # of a closed branch the service names no files
            if answer.last_hash == commit and answer.files_hash:
                files.append(answer.files_hash)
        if len(files) == len(expected):
            return files[0] == files[1]
        if api.clock() >= until:
            return False
        await api.sleep(FILES_PAUSE)


def _look_at_history(merge: Merge) -> str:
    return (
        f"Look at the history of {merge.target} in the platform. If the merge is there, mark this "
        "task as successful."
    )


async def _refuse(api: Api, merge: Merge, error: PlatformError) -> None:
    """Raise a more specific error for a refused merge: a conflict, a deleted branch, a setting.
    Return if no such error fits."""
    if isinstance(error, PlatformConflictError):
        raise BranchNotMergedError(
            f"Nothing was merged: the branch conflicts with {merge.target}. The service says: "
            f"{quote_service(error.service_message or '409').removesuffix('.')}. Resolve the "
            f"conflict on the branch in the platform, then check and merge it again.",
            where=merge.where,
        ) from error
    if isinstance(error, PlatformNotFoundError):
        branches = await _branches(api, merge.deployment_id, None)
        if merge.branch_name not in branches:
            raise BranchNotFoundError(
                "Nothing was merged: somebody deleted the branch a moment ago.", where=merge.where
            ) from error
    if (hint := _not_allowed(merge)) and isinstance(error, PlatformApiError):
        raise from_payload({**error.to_payload(), "message": error.reason + hint}) from error


def _in_doubt(merge: Merge, error: PlatformError) -> PlatformError:
    """Return the error of a merge whose answer was lost, if the target does not have the merge
    (yet)."""
    payload = error.to_payload()
    doubt = (
        f" The service may have merged the branch into {merge.target}, or may still merge it. A "
        "retry compares the commits before it merges."
    )
    return from_payload(
        {**payload, "message": f"{what_came_instead(error)}{doubt}", "where": merge.where}
    )


def _not_allowed(merge: Merge) -> str:
    if merge.allowed is not False:
        return ""
    return (
        f" The deployment's settings do not allow merges into {merge.target} "
        "(deployBranchMergeAllowed). This may be the reason."
    )


async def _settings(api: Api, deployment_id: int, deadline: float | None) -> DeploymentSettings:
    """Return the deployment's settings: the deploy mode says whether a merge builds production.
    Raises OperationMissingError if the tenant lacks the operation."""
    try:
        return await api.call(
            get_deployment_settings(deployment_id=deployment_id), deadline=deadline
        )
    except PlatformError as error:
        await raise_if_missing(
            api,
            deployment_id,
            error,
            reason="Nothing was merged",
            step="Merge the branch in the platform, then mark this task as successful.",
            deadline=deadline,
        )
        raise


async def _branches(
    api: Api, deployment_id: int, deadline: float | None
) -> dict[str, BranchResponse]:
    """Return the branches by name."""
    rows = await all_rows(api, list_branches(deployment_id=deployment_id), deadline)
    return {branch.name: branch for branch in rows if branch.name}


def _commit_of(branches: dict[str, BranchResponse], name: str) -> str | None:
    branch = branches.get(name)
    return None if branch is None else branch.last_hash


def _shown(commit: str | None) -> str:
    return f"commit {quote_service(commit)}" if commit else "an unknown commit"


class MergeIds(RunIds):
    """The ids of a merge."""

    deployment_id: int
    branch_name: str
    merge: NotRequired[dict[str, Any]]
    """The fields of `Merge`; missing if the service has refused it."""


class MergeRunKind(RunKind[Build, MergeIds]):
    """A merge, with the arguments of `PlatformMergeBranchOperator`.

    A merge cannot be undone, so nothing is stopped: a try that is too late leaves the merge to the
    next try, which waits for its build. A trigger waits only for the build and has no
    arguments.
    """

    id_field = "branch_name"
    outcome_class = Build
    may_be_late = False
    can_stop = False

    branch_name: str = ""
    into: str = "default"
    message: str = ""
    delete_branch: bool = False
    hash: str | None = None
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
        earlier: MergeIds | None,
        *,
        until_end: bool,
    ) -> Build | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        before = _merge_of(earlier)
        merge: Merge | None = None
        sent_before = False
        if before is not None and before.merged is None:
            merge, sent_before = await self._lost(api, env, before)
            before = None
        if merge is None:
            merge = await self._planned(api, env, deployment_id, before)
        known: MergeIds = {
            "deployment_id": deployment_id,
            "submitted_at": api.clock(),
            "branch_name": self.branch_name,
            "merge": merge.to_json(),
        }
        if merge.merged is None:
            await api.notify(Intended({**known}, named=True))
            try:
                merge = await send_merge(
                    api,
                    merge,
                    message=self.message,
                    delete_branch=self.delete_branch,
                    deadline=env.deadline,
                    sent_before=sent_before,
                )
            except PlatformError as error:
                earlier_send_counts = sent_before and cannot_have_been_processed(error)
                if not (may_have_been_processed(error) or earlier_send_counts):
                    del known["merge"]  # the service has refused it
                    await api.notify(Identified(known))
                raise
        run: MergeIds = {**known, "merge": merge.to_json()}
        await api.notify(RunAccepted(run))
        say(api, _about(merge))
        if self.delete_branch and merge.merged and not merge.branch_deleted:
            warn(
                api,
                f"The service did not delete branch {merge.branch_name} with the merge. Delete it "
                "with PlatformDeleteBranchOperator, or in the platform.",
            )
        return None if self._waits(merge) else Build(None)

    async def find(self, api: Api, env: RunEnvironment, ids: MergeIds) -> tuple[bool, MergeIds]:
        """Return whether the commits show that a merge whose response was lost was made. Raises
        PlatformOutcomeUnknownError if the commits do not show it."""
        merge = _merge_of(ids)
        if merge is None:
            return False, ids
        verdict, gone = await find_merge(api, merge, deadline=env.deadline)
        if verdict != MADE:
            return False, ids
        made = merge.answered(api.clock(), merged=True, branch_deleted=gone)
        say(api, _about(made))
        return True, {**ids, "merge": made.to_json()}

    async def follow(self, api: Api, env: RunEnvironment, ids: MergeIds) -> Build:
        merge = Merge(**ids["merge"])
        if not self._waits(merge):
            return Build(None)
        try:
            return await super().follow(api, env, ids)
        except PlatformDeadlineError as error:
            raise PlatformDeadlineError(
                "The branch is merged, but production still uses the previous data model. "
                f"{error.reason} A retry continues to wait for the build and does not merge again.",
                where=merge.where,
            ) from error

    def watch(self, env: RunEnvironment, ids: MergeIds) -> Poll[Build]:
        merge = Merge(**ids["merge"])
        known = (merge.source_hash, merge.target_hash if merge.merged is False else None)
        holding: set[str | None] = {commit for commit in known if commit is not None}

        async def poll(api: Api) -> Build | None:
            return report_unbuilt(api, await poll_merged_build(api, merge, holding))

        return poll

    def overdue(self, ids: MergeIds, last: Any) -> PlatformDeadlineError:
        return not_built(_wanted(Merge(**ids["merge"])), last)

    async def read(self, api: Api, ids: MergeIds, outcome: Build) -> dict[str, Any]:
        merge = Merge(**ids["merge"])
        if outcome.status is not None:
            say(api, f"{merge.target} is built (commit {outcome.hash})")
        return {
            "branch_name": merge.branch_name,
            "branch_hash": merge.source_hash,
            "into": merge.target,
            "merged": bool(merge.merged),
            "branch_deleted": merge.branch_deleted,
            "hash": outcome.hash,
            "status": outcome.status,
        }

    def carried_over(self, ids: MergeIds) -> MergeIds | None:
        """Return the merge: a cleared task does not repeat a merge that it made."""
        return ids if "merge" in ids else None

    async def _lost(self, api: Api, env: RunEnvironment, merge: Merge) -> tuple[Merge | None, bool]:
        """Find a merge whose response was lost. Returns the merge, or None if it must be planned
        again, and whether the task sends it once more to find out."""
        verdict, gone = await find_merge(api, merge, deadline=env.deadline)
        if verdict == MADE:
            return merge.answered(api.clock(), merged=True, branch_deleted=gone), False
        if verdict != UNSURE:
            return None, False
        warn(
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
        if made is not None and made.source_hash and made.source_hash == self.hash:
            return made  # whatever is on the branch now
        try:
            merge = await plan_merge(
                api,
                deployment_id,
                self.branch_name,
                self.into,
                checked_hash=self.hash,
                deadline=env.deadline,
            )
        except BranchNotFoundError:
            if made is None:
                raise
            return made  # merged before, and deleted since
        if made is not None and made.source_hash and made.source_hash == merge.source_hash:
            return made
        if self._waits(merge):
            status = await api.call(_wanted(merge).operation, deadline=env.deadline)
            merge = replace(merge, built_hash=status.last_hash or None)
        if merge.is_held:
            return merge.answered(api.clock(), merged=False)
        return merge

    def _waits(self, merge: Merge) -> bool:
        """Return whether the task waits for production's build: a merge builds only production."""
        return self.wait_for_build and merge.production


def _merge_of(ids: MergeIds | None) -> Merge | None:
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
