"""A tenant's branches with many hands, played for one deployment: merges into production, which
build it.

Every merge request that is processed is kept (`MergeRequest`), also one that changed nothing, so
that a merge that is sent twice shows.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Literal

from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformConflictError,
    PlatformNotFoundError,
)
from tests.support.fakes.played_service import PlayedTime
from tests.support.machine.tenant import ADDRESS, DEPLOYMENT

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation
    from tests.support.machine.platform import Status
    from tests.support.machine.simulation import Actor

BRANCH, PRODUCTION = "candidate", "main"
NOTICED_AFTER = 10.0
"""Seconds after a commit for which the build status is still about the build before."""
BUILD_SECONDS = 90.0


@dataclass(frozen=True)
class BranchHabits:
    """How this tenant merges: with `fast_forward` production gets the branch's commit where it can,
    else a commit of its own. Without `names_commits` a build status names none, without
    `lists_commits` the list of branches names none."""

    fast_forward: bool = False
    names_commits: bool = True
    lists_commits: bool = True


@dataclass
class ProductionBuild:
    """One build of production."""

    commit: str
    started_at: float
    outcome: Literal["built", "failed"] = "built"


@dataclass
class MergeRequest:
    """One processed request to merge `source`, the branch's commit. `made` says whether it changed
    production, which was at `commit` after it."""

    number: int
    tenant: SimulatedBranches
    source: str
    made: bool
    commit: str

    can_stop = repeats_lost_start = False
    in_existing_thread = True
    was_suspended = False

    def __post_init__(self) -> None:
        self.started_at = self.tenant.time.now
        self.epoch = 0
        """Which wish of a user it serves (see `PlayedTask.epoch`)."""
        self.late = False
        """Whether a try sent it that Airflow had given up."""

    def __repr__(self) -> str:
        change = f"which made {self.commit}" if self.made else "which changed nothing"
        return f"merge {self.number} of {self.source}, {change}"

    @property
    def status(self) -> Status:
        """Streaming until production is built from it."""
        if not self.made or self.tenant.serves(self.commit):
            return "finished"
        return "failed" if self.tenant.builds[-1].outcome == "failed" else "streaming"

    def is_named_by(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids are about the merge of this commit."""
        if "merge" not in ids:
            return False
        if not self.tenant.habits.lists_commits:
            return bool(ids["submitted_at"] <= self.started_at)
        return bool(ids["merge"]["source_hash"] == self.source)

    def is_known_to(self, ids: dict[str, Any]) -> bool:
        """Whether a record's ids say that this commit was merged."""
        return self.is_named_by(ids) and ids["merge"]["merged"] is not None


@dataclass(frozen=True)
class Look:
    """What one list of the branches showed, and how many merges had been processed by then."""

    branch: str | None
    production: str
    merges: int


@dataclass
class SimulatedBranches:
    """The service: production and one branch, their commits and builds, its token."""

    habits: BranchHabits
    time: PlayedTime = field(default_factory=PlayedTime)
    key: str = ""
    conflict: bool = False
    """Whether the branch conflicts with production."""
    refuses: bool = False
    """Whether a merge answers that it merged nothing, although production lacks the branch."""

    starts = ("mergeToDefaultBranch",)

    def __post_init__(self) -> None:
        self._numbers = count(1)
        self.merges: list[MergeRequest] = []
        self.ancestors: dict[str, frozenset[str]] = {"m0": frozenset({"m0"})}
        self.files: dict[str, frozenset[str]] = {"m0": frozenset({"m0"})}
        """What each commit contains: the commits that are no merges."""
        self.production, self.branch = "m0", "m0"
        self.has_branch = True
        self.builds = [ProductionBuild("m0", self.time.now - 1000)]
        self.commit_to_branch()

    def connection(self, key: str) -> dict[str, Any]:
        """The fields of a connection with this token."""
        return {"host": ADDRESS, "password": key, "extra": {"deployment_id": DEPLOYMENT}}

    def secret_of(self, config: Any) -> str:
        """What the client sends to prove who it is."""
        secret: str = config.management_token.get_secret_value()
        return secret

    def check_key(self, key: str) -> None:
        """Raises PlatformAuthenticationError for a token that is not the one; it quotes it."""
        if key != self.key:
            raise PlatformAuthenticationError(f"401: token {key} is not valid", status=401)

    def runs(self) -> list[MergeRequest]:
        return self.merges

    def concerned(self, _: Operation[Any]) -> MergeRequest | None:
        """No call names a merge."""
        return None

    def serves(self, commit: str) -> bool:
        """Whether production answers from this commit or a later one."""
        return commit in self.ancestors[self._served().commit]

    def commit_to_branch(self) -> None:
        """Somebody commits to the branch, or writes it again after it was deleted."""
        base = self.branch if self.has_branch else self.production
        self.has_branch = True
        self.branch = self._commit("b", base)

    def commit_to_production(self) -> None:
        """Somebody commits to production, which builds it."""
        self._advance(self._commit("m", self.production))

    def delete(self) -> None:
        """Somebody deletes the branch."""
        self.has_branch = False

    def merge(self, *, delete: bool) -> bool:
        """Merge the branch; whether that changed production."""
        if self.refuses or self.branch in self.ancestors[self.production]:
            return False
        forward = self.production in self.ancestors[self.branch]
        if self.habits.fast_forward and forward:
            self._advance(self.branch)
        else:
            self._advance(self._commit("m", self.production, self.branch))
        self.has_branch = not delete
        return True

    def end_build(self, outcome: Literal["built", "failed"]) -> None:
        """Production's build ends so, or somebody starts it again."""
        build = self.builds[-1]
        if outcome == "failed" and self.time.now < build.started_at + BUILD_SECONDS:
            build.outcome = outcome
        elif outcome == "built" and build.outcome == "failed":
            self.builds.append(ProductionBuild(build.commit, self.time.now))

    def answer(self, operation: Operation[Any], actor: Actor) -> tuple[Any, MergeRequest | None]:
        """The response to a call, and the merge request if it is one."""
        name = operation.operation_id
        if name == "getDeploymentSettings":
            return {"id": 1, "deployBranchName": PRODUCTION, "deployMode": "git"}, None
        if name == "listBranches":
            branch = self.branch if self.has_branch else None
            look = Look(branch, self.production, len(self.merges))
            actor.known.looks = [*getattr(actor.known, "looks", ()), look]
            rows = [{"name": PRODUCTION, "lastHash": self.production}]
            if branch is not None:
                rows.append({"name": BRANCH, "parentBranch": PRODUCTION, "lastHash": branch})
            if not self.habits.lists_commits:
                rows = [{**row, "lastHash": None} for row in rows]
            return {"items": rows}, None
        if name == "buildStatus":
            name = operation.query["branchName"]
            status, commit = self._build_status() if name == PRODUCTION else ("built", self.branch)
            told = {"branchName": name, "mode": "production", "status": status}
            if name == BRANCH and not self.has_branch:
                return told | {"status": "building", "errorText": "Bad branch"}, None
            named = {"lastHash": commit, "filesHash": "+".join(sorted(self.files[commit]))}
            return told | (named if self.habits.names_commits else {}), None
        if name == "mergeToDefaultBranch":
            return self._merge_request(operation.body or {})
        assert name.endswith("/logs"), name
        raise PlatformNotFoundError("404: no such operation", status=404)

    def _merge_request(self, body: dict[str, Any]) -> tuple[Any, MergeRequest]:
        assert body["branchName"] == BRANCH
        if not self.has_branch:
            raise PlatformNotFoundError("404: no such branch", status=404)
        if self.conflict:
            raise PlatformConflictError("409: the branch conflicts", status=409)
        source, delete = self.branch, bool(body["removeBranchAfterMerge"])
        made = self.merge(delete=delete)
        request = MergeRequest(next(self._numbers), self, source, made, self.production)
        self.merges.append(request)
        return {"merged": made, "branchDeleted": made and delete}, request

    def _commit(self, kind: str, *parents: str) -> str:
        name = f"{kind}{len(self.ancestors)}"
        self.ancestors[name] = frozenset({name}).union(*(self.ancestors[one] for one in parents))
        own = frozenset({name} if len(parents) == 1 else ())
        self.files[name] = own.union(*(self.files[one] for one in parents))
        return name

    def _advance(self, commit: str) -> None:
        self.production = commit
        self.builds.append(ProductionBuild(commit, self.time.now))

    def _served(self) -> ProductionBuild:
        """The last build that ended well."""
        over = [
            build
            for build in self.builds
            if build.outcome == "built" and self.time.now >= build.started_at + BUILD_SECONDS
        ]
        return over[-1]

    def _build_status(self) -> tuple[str, str]:
        build = self.builds[-1]
        age = self.time.now - build.started_at
        if age < NOTICED_AFTER and len(self.builds) > 1:
            before = self.builds[-2]
            ended = self.time.now >= before.started_at + BUILD_SECONDS
            return (before.outcome if ended else "building"), before.commit
        return (build.outcome if age >= BUILD_SECONDS else "building"), build.commit
