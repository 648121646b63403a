"""The build of a branch: what its status means, and the wait for it.

A branch serves queries only after it is built. The service uses the same statuses for the
production build and for the worker of a development or staging environment:

    status                        means
    built                         the branch serves queries
    failed, cancelled             the build is over and the branch is not served
    none, stopped                 nothing builds or serves the branch; tolerated for 60 seconds
    building, warmup, any other   the build continues

`errorText` counts in addition to the status. Two texts in it are final whatever the status is,
because both come with `building`: "Bad branch" (the branch does not exist) and "Branch is not
active" (nobody opened it). Right after we opened a branch ourselves, the second is tolerated for
`ACTIVATION_GRACE`. Any other text is shown, and the wait continues: it can belong to an earlier
build.

The environment of a branch is suspended (`stopped`) after ten minutes without a request, and starts
again with the next request to the branch's data API (`sql.query.poll_awake` sends it).

`lastHash` says to which commit a status belongs. A build of another commit than the wanted one
counts neither as built nor as failed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    BranchClosedError,
    BranchNotActiveError,
    BranchNotFoundError,
    BranchNotServedError,
    BuildFailedError,
    PlatformDeadlineError,
    PlatformError,
)
from airflow_provider_platform.client.failed_calls import NO_SUCH_BRANCH, NOT_ACTIVE
from airflow_provider_platform.client.operation import Operation, raw_operation
from airflow_provider_platform.client.polling import NOT_FOUND_GRACE
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.branches import name_branch
from airflow_provider_platform.resources.deployments import (
    BuildStatusResponse,
    get_build_status,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

BUILT = "built"
ENDED_WITHOUT_A_BUILD = frozenset({"failed", "cancelled"})
IDLE = frozenset({"none", "stopped"})

ACTIVATION_GRACE = 60.0
"""Seconds after we opened a branch for which the service may still report it as inactive, or report
the build of an earlier commit."""

LOG_CONTAINER = "cubejs-server"
"""The container whose log shows why a data model does not compile."""
LOG_LINES = 20
"""Lines of a failed build's log that are shown."""
LOG_LINES_IN_ERROR = 3

_LISTS = ("items", "data", "logs", "lines", "entries")
_TEXTS = ("message", "log", "line", "text", "msg")


@dataclass(frozen=True)
class Build:
    """A built branch: the commit from which it was built, and the mode in which it is served
    (`production` or `dev_mode`), each None if the service does not say. `status` is None if nothing
    waited for the build."""

    status: str | None
    hash: str | None = None
    mode: str | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: the fields of this class."""
        return asdict(self)


@dataclass(frozen=True)
class BuildWanted:
    """The build to wait for. `hash` is the commit that must be built, None for any commit.
    `opened_at` (Unix time) says that we opened the branch ourselves: `hash` is then the commit that
    the branch had, and counts only for `ACTIVATION_GRACE`, because somebody may have committed
    since.
    """

    deployment_id: int
    branch_name: str
    hash: str | None = None
    opened_at: float | None = None

    @property
    def where(self) -> str:
        """The branch and the deployment, for the end of an error message about this build."""
        return name_branch(self.deployment_id, self.branch_name)

    @property
    def operation(self) -> Operation[BuildStatusResponse]:
        """The status call. It always names the branch: without a name the service answers for the
        credential's branch in dev mode, else for production."""
        query = {"branchName": self.branch_name}
        return get_build_status(deployment_id=self.deployment_id, query=query)

    def just_opened(self, now: float) -> bool:
        """Whether we opened the branch less than `ACTIVATION_GRACE` ago."""
        return self.opened_at is not None and now - self.opened_at < ACTIVATION_GRACE

    def is_of_another_commit(self, answer: BuildStatusResponse, now: float) -> bool:
        """Return whether the status belongs to a commit that is not wanted."""
        if self.hash is None or answer.last_hash in (None, "", self.hash):
            return False
        return self.opened_at is None or self.just_opened(now)


@dataclass(frozen=True)
class BuildSeen:
    """A build that is not over: its status and what the service said."""

    branch_name: str
    status: str
    error_text: str = ""
    of_another_commit: str | None = None

    def __str__(self) -> str:
        about = f" (of commit {self.of_another_commit})" if self.of_another_commit else ""
        said = f"; the service says: {self.error_text}" if self.error_text else ""
        return quote_service(
            f"Build status: {self.status}{about}{said} (branch {self.branch_name})"
        )


@dataclass(frozen=True)
class BuildLogLine:
    """One of the last lines of a failed build's log."""

    text: str

    def __str__(self) -> str:
        return f"build log: {quote_service(self.text)}"


def judge(answer: BuildStatusResponse, wanted: BuildWanted, now: float) -> Build | BuildSeen:
    """Return what one build status means at this time (Unix time): the build, or a report of its
    progress.

    Raises BranchNotFoundError, BranchNotActiveError, BranchClosedError, BranchNotServedError,
    BuildFailedError.
    """
    said = answer.words("error_text") or ""
    if NO_SUCH_BRANCH in said:
        raise BranchNotFoundError(
            f"The branch does not exist: {quote_service(said).removesuffix('.')}. Check the "
            "spelling, and check whether the branch was deleted.",
            where=wanted.where,
        )
    if NOT_ACTIVE in said and not wanted.just_opened(now):
        raise _not_active(wanted, said)
    other = answer.last_hash if wanted.is_of_another_commit(answer, now) else None
    seen = BuildSeen(wanted.branch_name, answer.status, said, other)
    if NOT_ACTIVE in said or other is not None:
        return seen
    if answer.status == BUILT:
        return Build(BUILT, answer.last_hash, answer.mode)
    if answer.status in ENDED_WITHOUT_A_BUILD:
        reason = quote_service(said or "no reason given").removesuffix(".")
        raise BuildFailedError(
            f"The build of branch {quote_service(wanted.branch_name)} ended as {answer.status}: "
            f"{reason}.",
            where=wanted.where,
            mode=answer.mode,
        )
    if answer.status in IDLE:
        raise BranchNotServedError(
            f"For {NOT_FOUND_GRACE:g} seconds the service has neither built the branch nor "
            f"answered queries on it (status {answer.status}){_quoted(said)}. The service suspends "
            "the environment of a branch that nobody uses, and a request to the branch's data API, "
            "which this task sends, should wake it. Look at the branch in the platform.",
            where=wanted.where,
            mode=answer.mode,
        )
    return seen


def report_unbuilt(api: Api, outcome: Build | BuildSeen) -> Build | None:
    """Return the build, or report what was seen of a build that is not over."""
    if isinstance(outcome, Build):
        return outcome
    api.report(outcome)
    return None


def not_built(wanted: BuildWanted, last: BuildSeen | None) -> PlatformDeadlineError:
    """Return the error of a build that was not over at its deadline."""
    seen = "unknown" if last is None else f"{last.status}{_quoted(last.error_text)}"
    return PlatformDeadlineError(
        f"Branch {quote_service(wanted.branch_name)} was not built before the deadline. The last "
        f"status of the build was {seen}.",
        where=wanted.where,
    )


async def poll_build(api: Api, wanted: BuildWanted) -> Build | BuildSeen:
    """Read the build status once. Raises the errors of `judge`, with the end of the build's log in
    a BuildFailedError, and any failure of the call."""
    answer = await api.call(wanted.operation, once=True)
    return await judge_with_log(api, answer, wanted)


async def judge_with_log(
    api: Api, answer: BuildStatusResponse, wanted: BuildWanted
) -> Build | BuildSeen:
    """`judge`, with the end of the build's log in a BuildFailedError."""
    try:
        return judge(answer, wanted, api.clock())
    except BuildFailedError as error:
        lines = await _log_lines(api, wanted.deployment_id, answer.mode)
        for line in lines:
            api.report(BuildLogLine(line))
        if not lines:
            raise
        ending = quote_service(" | ".join(lines[-LOG_LINES_IN_ERROR:]))
        raise BuildFailedError(
            f"{error.reason} The build log ends with: {ending}", where=error.where
        ) from error


def _not_active(wanted: BuildWanted, said: str) -> PlatformError:
    reason = f"The branch is not active. The service says: {quote_service(said).removesuffix('.')}."
    if wanted.opened_at is not None:
        return BranchClosedError(
            f"{reason} The branch was opened more than {ACTIVATION_GRACE:g} seconds ago. Another "
            "user may have closed it. A retry opens the branch again.",
            where=wanted.where,
        )
    return BranchNotActiveError(
        f"{reason} Open the branch with PlatformOpenBranchOperator, or in the platform.",
        where=wanted.where,
    )


def _quoted(said: str) -> str:
    return f"; the service says: {quote_service(said)}" if said else ""


async def _log_lines(api: Api, deployment_id: int, mode: str | None) -> list[str]:
    """Return the last lines of the log; none if the tenant does not return them. The answer's shape
    is not documented, so it is parsed leniently."""
    source = "production" if mode == "production" else "dev"
    operation = raw_operation(
        "GET",
        f"/v1/deployments/{deployment_id}/logs",
        query={"source": source, "container": LOG_CONTAINER},
    )
    try:
        answer = await api.call(operation, once=True)
    except PlatformError:
        return []
    return list(_texts(answer))[-LOG_LINES:]


def _texts(answer: Any) -> Iterator[str]:
    """Return the lines of a log in any common shape: a string, a list of strings or objects, or an
    object that contains one of these."""
    if isinstance(answer, str):
        yield from filter(str.strip, answer.splitlines())
    elif isinstance(answer, list):
        for item in answer:
            yield from _texts(item)
    elif isinstance(answer, dict):
        inner = next((answer[name] for name in (*_LISTS, *_TEXTS) if answer.get(name)), None)
        yield from _texts(inner)
