"""The branches of each deployment: which are open, what serves each of them, and their builds.

The sandbox serves production (the deploy branch) and a branch whose staging environment is switched
on, which falls asleep if nobody queries it. It serves no other branch: a branch that a dbt sync has
written must first be opened. It has no development mode.

A build is a list of moments that is fixed when it starts, so its status is a function of the
sandbox's clock: nothing runs in the background, and a test moves the clock instead of waiting.

    begun ----------- shown ----------- built
          not shown          building          its outcome

Until a build is shown, the service knows nothing of it: a branch that was just opened is still
"not active", and production still reports the build before.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from airflow_provider_platform.sandbox.state.settings import BuildOutcome, Settings

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.server_state import ServerState


DOES_NOT_COMPILE = "orders.yml: the cube orders joins customers, which does not exist"
"""The error of the model of a branch with ``broken`` in its name."""
_FAILED = "the worker ended while it installed the project's packages"

Stage = Literal["not_shown", "building"] | BuildOutcome


@dataclass(frozen=True)
class Model:
    """One state of a branch's files: its commit is made of ``revision``, and ``filesHash`` of
    ``content``, which a merge can leave as it was; without it of ``revision`` too."""

    revision: str
    compiles: bool = True
    content: str | None = None

    @property
    def commit(self) -> str:
        """``lastHash``: 40 hex digits."""
        return hashlib.sha1(self.revision.encode(), usedforsecurity=False).hexdigest()

    @property
    def files(self) -> str:
        """``filesHash``: 64 hex digits."""
        return hashlib.sha256((self.content or self.revision).encode()).hexdigest()


@dataclass(frozen=True)
class Build:
    """One build of one model. Times are Unix times by the sandbox's clock.

    ``error`` says why the build fails. ``previous_error`` says why the previous build failed: the
    service can still report that while this build is running.
    """

    job: int
    model: Model
    begun_at: float
    shown_at: float
    built_at: float
    outcome: BuildOutcome
    error: str | None
    previous_error: str | None

    def stage(self, now: float) -> Stage:
        if now < self.shown_at:
            return "not_shown"
        if now < self.built_at:
            return "building"
        return self.outcome

    def changed_at(self, now: float) -> float:
        """Return when the build reached its current stage."""
        moments = {"not_shown": self.begun_at, "building": self.shown_at}
        return moments.get(self.stage(now), self.built_at)

    def error_text(self, now: float) -> str | None:
        running = self.stage(now) in ("not_shown", "building")
        return self.previous_error if running else self.error

    def log(self, now: float) -> list[tuple[float, str]]:
        """Return the log of its pod so far: time and line, oldest first."""
        lines = [
            (self.shown_at, f"Build {self.job} of {self.model.commit[:12]} has started"),
            (self.built_at, self.error or f"Build {self.job}: {self.outcome}"),
        ]
        return [(at, line) for at, line in lines if at <= now]


def begin(model: Model, settings: Settings, now: float, *, job: int, after: Build | None) -> Build:
    """Return a build that starts now and takes as long as the settings say now."""
    shown = now + settings.build_delay
    built = shown + settings.build_seconds
    outcome, error = settings.build_outcome, None
    if outcome == "built" and not model.compiles:
        outcome, error = "failed", DOES_NOT_COMPILE
    elif outcome == "failed":
        error = _FAILED
    return Build(
        job=job,
        model=model,
        begun_at=now,
        shown_at=shown,
        built_at=built,
        outcome=outcome,
        error=error,
        previous_error=None if after is None else after.error_text(now),
    )


DEPLOY_BRANCHES = {1: "main", 2: "master"}
"""The deploy branch by deployment."""
CHAT_DEPLOYMENT = 1
"""The deployment of the chat API's agents."""
BAD_BRANCH = "Bad branch"
NOT_ACTIVE = "Branch is not active"
IDLE_SECONDS = 600
"""Time without a request to its data API after which an open branch falls asleep. The next request
wakes the branch, and gets an error page itself."""

Kind = Literal["serving", "bad", "not_active", "building", "failed", "asleep"]


@dataclass
class Branch:
    """One branch. ``staging``: whether the staging environment is switched on. ``build`` is the
    latest build, ``previous`` the build before it, ``served`` the last successful build. ``base``:
    the files of the parent from which the branch was written.
    """

    id: int
    name: str
    parent: str | None
    model: Model
    base: str | None = None
    staging: bool = False
    build: Build | None = None
    previous: Build | None = None
    served: Build | None = None
    asked_at: float = 0.0
    """When the branch last got a request: an environment without requests falls asleep."""
    merged: frozenset[tuple[str, str]] = frozenset()
    """The commits that were merged, each with its target branch."""
    reported: tuple[str, str | None] | None = None
    """A status and an error text that a test has set in place of its build's."""

    @property
    def environment(self) -> int:
        """The id of the environment that serves the branch."""
        return self.id + 10


@dataclass(frozen=True)
class Answer:
    """How a request to a branch is answered. ``words`` say why the branch is not served."""

    kind: Kind
    words: str = ""

    @property
    def serves(self) -> bool:
        return self.kind == "serving"


class Numbers:
    """Yields the numbers after ``last``."""

    def __init__(self, last: int = 0) -> None:
        self._last = last

    def next(self) -> int:
        self._last += 1
        return self._last


class DeploymentBranches:
    """The branches of one deployment by name."""

    def __init__(self, deployment: int, ids: Numbers, jobs: Numbers) -> None:
        self.deployment = deployment
        self.deploy = DEPLOY_BRANCHES.get(deployment, "main")
        self._by_name: dict[str, Branch] = {}
        self._ids = ids
        self._jobs = jobs
        production = self.add(self.deploy, None)
        production.build = self.built_long_ago(production.model)
        self.add("dev", self.deploy)

    # -- branches ----------------------------------------------------------------------------

    def add(self, name: str, parent: str | None, model: Model | None = None) -> Branch:
        """Create the branch with its parent's files or with ``model``, unless it exists."""
        if name not in self._by_name:
            above = self._by_name.get(parent or "")
            files = model or (above.model if above else Model(f"{self.deployment}/{name}"))
            base = above.model.files if above else None
            self._by_name[name] = Branch(self._ids.next(), name, parent, files, base)
        return self._by_name[name]

    def get(self, name: str) -> Branch | None:
        return self._by_name.get(name)

    def with_id(self, branch_id: int) -> Branch | None:
        return next((one for one in self._by_name.values() if one.id == branch_id), None)

    def all(self) -> list[Branch]:
        return list(self._by_name.values())

    def names(self) -> list[str]:
        return sorted(self._by_name)

    def remove(self, branch: Branch) -> None:
        """Delete the branch: its children get its parent."""
        del self._by_name[branch.name]
        for child in self._by_name.values():
            if child.parent == branch.name:
                child.parent = branch.parent

    def write(self, branch: Branch, model: Model, server: ServerState) -> None:
        """Give the branch other files, and build it again if it is served. In deploy mode ``cli``
        only an upload builds production.
        """
        parent = self._by_name.get(branch.parent or "")
        branch.model, branch.base = model, parent.model.files if parent else None
        production = branch.name == self.deploy
        if self.is_open(branch) and not (production and server.settings.deploy_mode == "cli"):
            self._build(branch, server)

    def merge(self, branch: Branch, into: Branch, server: ServerState) -> bool:
        """Merge the files of one branch into another. Return False if they were merged before. The
        target has the branch's files then, unless it has changed since the branch was written."""
        taken = (branch.model.commit, into.name)
        if taken in branch.merged:
            return False
        branch.merged |= {taken}
        model = branch.model
        if server.settings.merge_commit == "own":
            both = _digest(f"{into.model.revision}+{model.revision}")
            content = (model.content or model.revision) if branch.base == into.model.files else both
            model = replace(model, revision=both, content=content)
        self.write(into, model, server)
        return True

    # -- opening -----------------------------------------------------------------------------

    def is_open(self, branch: Branch) -> bool:
        return branch.name == self.deploy or branch.staging

    def set_staging(self, branch: Branch, enabled: bool, server: ServerState) -> None:
        was_open, branch.staging = self.is_open(branch), enabled
        if not was_open and enabled:
            self._build(branch, server)
        elif was_open and not enabled:
            branch.build = branch.previous = branch.served = None

    def serve(self, branch: Branch, now: float) -> None:
        """Open a shared branch that is already built."""
        branch.staging, branch.asked_at = True, now
        build = self.built_long_ago(branch.model)
        if not branch.model.compiles:
            build = replace(build, outcome="failed", error=DOES_NOT_COMPILE)
        branch.build, branch.previous = build, None

    def _build(self, branch: Branch, server: ServerState) -> None:
        now = server.clock.now()
        branch.served = self._served(branch, now) or branch.served
        branch.previous, branch.build = (
            branch.build,
            begin(
                branch.model,
                server.settings,
                now,
                job=self._jobs.next(),
                after=branch.build,
            ),
        )
        branch.asked_at = branch.build.built_at

    def built_long_ago(self, model: Model) -> Build:
        """Return a successful build from before the sandbox started."""
        return Build(self._jobs.next(), model, 0, 0, 0, "built", None, None)

        # -- what is served ----------------------------------------------------------------------

    def shown(self, branch: Branch, now: float) -> Build | None:
        """Return the build that the service reports: the latest build that it knows."""
        latest = branch.build
        if latest is not None and latest.stage(now) == "not_shown":
            return branch.previous
        return latest

    def _served(self, branch: Branch, now: float) -> Build | None:
        """Return the build that serves queries. Only production keeps its last successful build
        during a new one."""
        shown = self.shown(branch, now)
        if shown is not None and shown.stage(now) == "built":
            return shown
        return branch.served if branch.name == self.deploy else None

    def _asleep(self, branch: Branch, server: ServerState) -> bool:
        """Return whether an opened branch is asleep because it got no requests. Production never
        sleeps here."""
        if branch.name == self.deploy:
            return False
        return server.clock.now() - branch.asked_at > IDLE_SECONDS

    def answer(self, name: str, server: ServerState) -> Answer:
        """Return how a request to the branch is answered, without changing anything."""
        now = server.clock.now()
        branch = self._by_name.get(name)
        if branch is None:
            return Answer("bad", BAD_BRANCH)
        shown, asleep = self.shown(branch, now), self._asleep(branch, server)
        if not self.is_open(branch) or shown is None:
            return Answer("not_active", NOT_ACTIVE)
        if self._served(branch, now) is not None:
            return Answer("asleep" if asleep else "serving")
        if shown.stage(now) == "building":
            return Answer("building", "the branch is being built")
        return Answer("failed", shown.error or f"the build is {shown.stage(now)}")

    def ask(self, name: str, server: ServerState) -> Answer:
        """``answer`` for a request that runs a query, which wakes a branch or keeps it awake."""
        answer = self.answer(name, server)
        branch = self._by_name.get(name)
        if branch is not None and answer.kind in ("serving", "asleep"):
            branch.asked_at = server.clock.now()
        return answer

    def status(self, name: str, server: ServerState) -> tuple[str, str | None]:
        """Return the branch's ``status`` and ``errorText``, as build-status reports them."""
        branch, now = self._by_name.get(name), server.clock.now()
        if branch is not None and branch.reported is not None:
            return branch.reported
        answer = self.answer(name, server)
        if branch is None or answer.kind in ("bad", "not_active"):
            return "building", answer.words
        if answer.kind == "asleep":
            return "stopped", None
        build = self.shown(branch, now)
        return ("none", None) if build is None else (build.stage(now), build.error_text(now))


class Branches:
    """The branches of all deployments. At the start the branch ``dev`` of deployment 1 is open: its
    staging environment is switched on."""

    def __init__(self) -> None:
        ids, jobs = Numbers(), Numbers(7000)
        self._of = {
            deployment: DeploymentBranches(deployment, ids, jobs) for deployment in DEPLOY_BRANCHES
        }
        samples = self._of[1]
        samples.serve(samples.add("dev", samples.deploy), time.time())

    def of(self, deployment: int) -> DeploymentBranches:
        return self._of[deployment]


def branches_of(server: ServerState, deployment: int) -> DeploymentBranches:
    return server.store(Branches).of(deployment)


def written_model(name: str, revision: str) -> Model:
    """Return the files that a dbt sync writes. If the name contains ``broken``, the model does not
    compile."""
    return Model(revision, compiles="broken" not in name)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
