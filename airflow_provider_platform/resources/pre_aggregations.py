"""Builds of pre-aggregations: which tables are selected, how builds are started once, followed and
read, and when they are over.

One route of the data API does both: a start answers with a token for each table (partition, time
zone and context, with the tables that these depend on), and a request with tokens answers with
their statuses. A status is a word or begins with one:

    status                                what it means here
    done                                  done, for good
    failure: ...                          failed, for good: it is reported once, and lost after that
    missing_partition, not_found,         missing: neither in the queue nor there, unknown, or gone
      pre_agg_not_found                   from the model; each of them can pass
    anything else                         the build goes on

A table is missing for a moment between the queue and its end, on older tenants during the whole
build, and for ever when its failure was lost. So missing tables are waited for while any other
table moves, and then for a grace time.

"done" means that the table exists. It can be there before its rows, or without any. Only a query
shows that rows have come: see `rows_are_there`.

The service answers the start with tokens, and the record holds these tokens. A retry polls them and
starts nothing while the service knows them. Nothing stops a build, so builds continue after a
deadline and after their task was stopped, and the next try follows them.

The ids of such a run hold `tokens`, whether the task waits for the end (`waits`), and after the end
the values to return (`built`). This package makes `build_id`: it distinguishes one start from
another.
"""

# ruff: noqa: ARG002 - a kind need not use all that it is given
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NotRequired

from pydantic import SecretStr

from airflow_provider_platform.client.argument_rules import given
from airflow_provider_platform.client.choices import MISSING_GRACE, IfStartLost, OnUnknown
from airflow_provider_platform.client.config import PlatformConfig, fingerprint
from airflow_provider_platform.client.errors import (
    NoPreAggregationError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformBadRequestError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformServerError,
    PlatformTransportError,
    PreAggregationBuildFailedError,
    PreAggregationJobsLostError,
    RequestName,
    ResultEmptyError,
)
from airflow_provider_platform.client.failed_calls import SCOPE_MISSING, says_time_out
from airflow_provider_platform.client.polling import PollInterval, Wait, poll_until
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.repeats import (
    may_have_been_processed,
    may_repeat,
    outcome_unknown,
    pause_after,
    what_came_instead,
)
from airflow_provider_platform.client.responses import DataRefusal
from airflow_provider_platform.resources.model_tables import META_PATH, read_metadata, stand_on
from airflow_provider_platform.resources.run_kind import (
    SINGLE_POLL_SECONDS,
    Intended,
    RunAccepted,
    RunEnvironment,
    RunIds,
    RunKind,
)
from airflow_provider_platform.resources.run_log import say, warn
from airflow_provider_platform.resources.sql.query import (
    SqlQuery,
    address_below,
    find_deployment_address,
    mint_token,
    run_sql,
)
from airflow_provider_platform.resources.sql.response import CONTINUE_WAIT, SqlChunk

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


JOBS_PATH = "pre-aggregations/jobs"
START_SECONDS = 600.0
"""The longest wait for the answer to a start, which asks the warehouse first."""
REPEAT_PAUSE = 0.5
"""Seconds before a start that is still being prepared is sent again; the service waits longer."""
TOKENS_PER_REQUEST = 500
NAMED_TABLES = 5
"""Tables that an error names."""
LISTED_TABLES = 100
"""Tables that the outcome names."""
JOBS_LIFETIME = 24 * 3600.0
"""Seconds from its start for which the service surely knows a job."""

_START = RequestName("The start of the builds", f"POST /v1/{JOBS_PATH}")
_STATUS = RequestName("The status of the builds", f"POST /v1/{JOBS_PATH}")
_NO_MATCH = re.compile(
    r"match.*pre-?aggregation|pre-?aggregation.*match", re.IGNORECASE | re.DOTALL
)


@dataclass
class JobsAccess:
    """Where the jobs of a deployment are, and the token for them; `where` ends the message of
    errors."""

    deployment_id: int
    url: str
    token: SecretStr

    @property
    def where(self) -> str:
        return f"builds of pre-aggregations, deployment {self.deployment_id}"


async def open_access(api: Api, deployment_id: int, *, deadline: float) -> JobsAccess:
    """Find the data API of the deployment's production and get a token. Raises PlatformError."""
    address = api.config.data_api_url or await find_deployment_address(
        api, deployment_id, deadline=deadline, where=f"deployment {deployment_id}"
    )
    token = await mint_token(api, deployment_id, deadline=deadline)
    return JobsAccess(deployment_id, address_below(address, JOBS_PATH), token)


async def start_builds(
    api: Api,
    access: JobsAccess,
    selector: dict[str, Any],
    *,
    deadline: float,
    repeat_lost: bool = False,
) -> list[str]:
    """Start the builds once; the token of each table.

    A start that the service is still preparing is sent again until the deadline (Unix time):
    nothing is queued then. A request that is under way may overrun the deadline by the
    `request_timeout`, since its answer has the tokens. Raises
    NoPreAggregationError; PreAggregationBuildFailedError where the service fails to start;
    PlatformOutcomeUnknownError where the answer was lost, or PlatformTransportError with
    `repeat_lost`; and what requests raise.
    """
    body = {"action": "post", "selector": selector}
    failures = requests = 0
    while True:
        left = deadline - api.clock()
        if left <= 0 and requests:
            raise PreAggregationBuildFailedError(
                "The service was still preparing the builds at the deadline and has not started "
                "any of them. A retry starts again. A larger timeout gives the warehouse more "
                "time.",
                where=access.where,
            )
        pause, seconds = REPEAT_PAUSE, min(START_SECONDS, max(api.config.request_timeout, left))
        requests += 1
        try:
            answer = await api.call_data(_START, access.url, access.token, body, timeout=seconds)
        except PlatformError as error:
            failures += 1
            pause = pause_after(error, failures)
            again = may_repeat(error, repeatable=False) and failures < api.config.max_attempts
            if not again or api.clock() + pause >= deadline:
                if may_have_been_processed(error):
                    raise _lost_start(access, error, repeat=repeat_lost) from error
                raise
        else:
            tokens = _read_start(access, answer, repeat_lost=repeat_lost)
            if tokens is not None:
                return tokens
        await api.sleep(pause)


def _lost_start(access: JobsAccess, cause: PlatformError, *, repeat: bool) -> PlatformError:
    """The error of a start whose answer, with the tokens in it, was lost."""
    lost = "The service did not confirm the start of the builds, so they may be running."
    if repeat:
        return PlatformTransportError(
            f"{what_came_instead(cause)} {lost} A retry starts them again.", where=access.where
        )
    unknown = PlatformOutcomeUnknownError(f"{lost} {START_AGAIN}", where=access.where)
    return outcome_unknown(unknown, cause)


START_AGAIN = (
    "The identifiers of the builds (tokens) are unknown without the service's answer, so no task "
    "can wait for these builds. Clear the task to start the builds again. This changes no data, "
    "but the warehouse may build the tables twice. To let a retry start the builds again, set "
    "if_start_lost='repeat'."
)


def _read_start(access: JobsAccess, answer: Any, *, repeat_lost: bool) -> list[str] | None:
    """The tokens in the answer to a start, None if the service is still preparing it."""
    if isinstance(answer, DataRefusal):
        said = answer.reason
        if answer.status == 200 and CONTINUE_WAIT in said.lower():
            return None
        if answer.status == 400 and _NO_MATCH.search(said):
            raise _no_match(access, f"The service says: {_sentence(said)}")
        if answer.status == 400 and not says_time_out(said):
            raise PlatformBadRequestError(
                f"The service refuses to start the builds: {_sentence(said)} Nothing is built.",
                where=access.where,
                status=400,
                operation=_START.action,
                service_message=said,
            )
        raise PreAggregationBuildFailedError(
            f"The service could not start the builds ({answer.status}): {_sentence(said)}",
            where=access.where,
        )
    if answer == []:
        raise _no_match(access, "The service started nothing.")
    if not isinstance(answer, list) or not all(
        isinstance(token, str) and token for token in answer
    ):
        broken = PlatformProtocolError(
            f"{_START.action}: the answer is not a list of identifiers of builds."
        )
        raise _lost_start(access, broken, repeat=repeat_lost)
    return list(dict.fromkeys(answer))


def _no_match(access: JobsAccess, said: str) -> NoPreAggregationError:
    return NoPreAggregationError(
        f"No pre-aggregation matches the arguments of this task. {said} A pre-aggregation must "
        "match all of these arguments: cubes (the cubes that define it), pre_aggregations (written "
        "as cube.pre_aggregation), data_sources and date_range. Compare the arguments with the "
        "data model.",
        where=access.where,
    )


StatusKind = Literal["done", "failed", "missing", "moving"]
_MISSING = ("missing_partition", "not_found", "pre_agg_not_found")


def status_kind(status: str) -> StatusKind:
    """What a status means: see the table of this module."""
    word = status.strip().lower()
    if word.startswith("done"):
        return "done"
    if word.startswith("fail"):
        return "failed"
    return "missing" if word.startswith(_MISSING) else "moving"


@dataclass(frozen=True)
class JobReport:
    """What the service says of one token; `table` is None where it does not name the table."""

    token: str
    status: str
    table: str | None = None

    @property
    def kind(self) -> StatusKind:
        return status_kind(self.status)

    @property
    def name(self) -> str:
        """The table for people; the token where the service does not name it."""
        return quote_service(self.table or f"token {self.token}")


async def poll_jobs(api: Api, access: JobsAccess, tokens: Sequence[str]) -> list[JobReport]:
    """What the service says of these tokens, in their order; of a token that the answer leaves out,
    that it is not found. A refused token of ours is replaced once. Raises PlatformError."""
    reports: list[JobReport] = []
    for start in range(0, len(tokens), TOKENS_PER_REQUEST):
        some = tokens[start : start + TOKENS_PER_REQUEST]
        body = {"action": "get", "tokens": list(some)}
        try:
            answer = await _poll(api, access, body)
        except (PlatformAuthenticationError, PlatformPermissionError) as error:
            if error.code == SCOPE_MISSING:
                raise
            access.token = await mint_token(
                api,
                access.deployment_id,
                deadline=api.clock() + api.config.request_timeout,
            )
            answer = await _poll(api, access, body)
        reports += _read_reports(access, answer, some)
    return reports


async def _poll(api: Api, access: JobsAccess, body: dict[str, Any]) -> Any:
    return await api.call_data(
        _STATUS, access.url, access.token, body, timeout=api.config.request_timeout, repeatable=True
    )


def _read_reports(access: JobsAccess, answer: Any, tokens: Sequence[str]) -> Iterator[JobReport]:
    """The reports of an answer, which is a list, or an object by token."""
    if isinstance(answer, DataRefusal):
        raise _refused_poll(access, answer)
    if isinstance(answer, dict):
        answer = [{**job, "token": token} for token, job in answer.items() if isinstance(job, dict)]
    if not isinstance(answer, list):
        raise PlatformProtocolError(
            "The service's answer about the status of the builds is neither a list nor an object. "
            "A retry asks for the status again.",
            where=access.where,
        )
    jobs = {job.get("token"): job for job in answer if isinstance(job, dict)}
    for token in tokens:
        job = jobs.get(token, {"status": "not_found"})
        table, status = job.get("table"), job.get("status")
        yield JobReport(
            token,
            status if isinstance(status, str) else "unknown",
            table if isinstance(table, str) and table else None,
        )


def _refused_poll(access: JobsAccess, refusal: DataRefusal) -> PlatformApiError:
    """The error of a poll that the deployment refuses; a later one can succeed unless the request
    itself is wrong."""
    is_ours = refusal.status == 400 and not says_time_out(refusal.reason)
    error_class = PlatformBadRequestError if is_ours else PlatformServerError
    return error_class(
        f"The service does not report on the builds ({refusal.status}): "
        f"{_sentence(refusal.reason)}",
        where=access.where,
        status=refusal.status if is_ours else 500,
        operation=_STATUS.action,
        service_message=refusal.reason,
    )


@dataclass(frozen=True)
class BuildStage:
    """The builds have come further."""

    counts: tuple[tuple[str, int], ...]
    total: int

    def __str__(self) -> str:
        words = ", ".join(f"{count} {word}" for word, count in self.counts)
        return f"Pre-aggregations: {count_tables(self.total)}, {words}"


@dataclass(frozen=True)
class TableFailed:
    """The build of one table failed; the others go on."""

    report: JobReport
    is_warning: ClassVar[bool] = True

    def __str__(self) -> str:
        return f"The build of {self.report.name} failed: {quote_service(self.report.status)}"


@dataclass(frozen=True)
class BuildOutcome:
    """Builds that are done: how many tables there are, and the names of the first of them."""

    table_count: int
    tables: list[str] = field(default_factory=list)
    verified: bool | None = None


@dataclass
class BuildProgress:
    """What is known of the jobs by now. An end is kept: the service forgets that it reported a
    failure. Times are Unix times.

    `submitted_at` is when the builds were started, `missing_grace` how many seconds tables may be
    missing while nothing moves.
    """

    tokens: tuple[str, ...]
    submitted_at: float
    missing_grace: float = MISSING_GRACE
    reports: dict[str, JobReport] = field(default_factory=dict)
    still_since: float | None = None
    """Since which report nothing moves, and tables are missing."""
    _told: object = None

    @property
    def open_tokens(self) -> list[str]:
        """The tokens whose builds have no end yet."""
        return [
            token
            for token in self.tokens
            if token not in self.reports or self.reports[token].kind in ("missing", "moving")
        ]

    def take(self, reports: Iterable[JobReport], now: float) -> Iterator[BuildStage | TableFailed]:
        """Take the statuses of one poll, and give what there is to log."""
        moved = False
        for new in reports:
            before = self.reports.get(new.token)
            if before is not None and before.kind in ("done", "failed"):
                continue
            moved = moved or new.kind == "moving"
            moved = moved or (before is not None and before.kind != new.kind)
            table = new.table or (before.table if before is not None else None)
            self.reports[new.token] = report = JobReport(new.token, new.status, table)
            if report.kind == "failed":
                yield TableFailed(report)
        if moved or not self.open_tokens:
            self.still_since = None
        elif self.still_since is None:
            self.still_since = now
        yield from self._stage()

    def outcome(self, now: float, where: str) -> BuildOutcome | None:
        """How the builds ended, None while they go on. Raises PreAggregationBuildFailedError, and
        PreAggregationJobsLostError where the service does not know jobs any more."""
        still_open = [self.reports[token] for token in self.open_tokens if token in self.reports]
        if len(still_open) < len(self.open_tokens):
            return None
        failed = [report for report in self.reports.values() if report.kind == "failed"]
        if not still_open:
            if failed:
                raise self._failure(failed, [], where)
            names = [self.reports[token].name for token in self.tokens]
            return BuildOutcome(len(names), names[:LISTED_TABLES])
        if any(report.kind == "moving" for report in still_open) or not self._grace_is_over(
            still_open, now
        ):
            return None
        lost = [report for report in still_open if report.status.lower().startswith("not_found")]
        if lost and not failed:
            raise PreAggregationJobsLostError(
                f"The service no longer knows {_count(len(lost), 'build')}. It keeps a build's "
                "status for 24 hours, but may lose the status earlier. A retry starts the builds "
                "again.",
                where=where,
            )
        raise self._failure(failed, still_open, where)

    def open_tables(self) -> list[JobReport]:
        """What is known of the tables that have no end yet."""
        return [self.reports.get(token, JobReport(token, "unknown")) for token in self.open_tokens]

    def _grace_is_over(self, missing: list[JobReport], now: float) -> bool:
        """Whether tables have been missing for so long that nothing will come any more. A token
        that is older than the service keeps it is unknown for good."""
        forgotten = all(report.status.lower().startswith("not_found") for report in missing)
        if forgotten and now - self.submitted_at >= JOBS_LIFETIME:
            return True
        return self.still_since is not None and now - self.still_since >= self.missing_grace

    def _failure(
        self, failed: list[JobReport], missing: list[JobReport], where: str
    ) -> PreAggregationBuildFailedError:
        sentences = []
        if failed:
            sentences.append(
                f"The build of {_count(len(failed), 'table')} failed: {_named(failed)}."
            )
        if missing:
            verb = "is" if len(missing) == 1 else "are"
            sentences.append(
                f"{_count(len(missing), 'table')} {verb} still missing: {_named(missing)}. No "
                f"build has made progress for {self.missing_grace:g} seconds. Either the builds of "
                "the missing tables failed and the service lost their errors, or the data model "
                "changed."
            )
        done = len(self.tokens) - len(failed) - len(missing)
        sentences.append(
            f"{done} of {count_tables(len(self.tokens))} are done. For the errors that the service "
            "kept, see the deployment's pre-aggregations page. A retry builds all tables again."
        )
        return PreAggregationBuildFailedError(" ".join(sentences), where=where)

    def _stage(self) -> Iterator[BuildStage]:
        words = Counter(
            self.reports[token].status.partition(":")[0] if token in self.reports else "unknown"
            for token in self.tokens
        )
        tenths = words["done"] * 10 // len(self.tokens)
        if (summary := (frozenset(words), tenths)) != self._told:
            self._told = summary
            counts = tuple((quote_service(word), count) for word, count in words.most_common())
            yield BuildStage(counts, len(self.tokens))


async def wait_for_builds(
    api: Api,
    access: JobsAccess,
    progress: BuildProgress,
    wait: Wait,
) -> BuildOutcome:
    """Wait until all builds are over.

    Notifies of BuildStage, TableFailed and PollFailed. Raises as `BuildProgress.outcome`,
    PlatformDeadlineError, or the sixth transient failure in a row.
    """

    async def read_once(api: Api) -> BuildOutcome | None:
        reports = await poll_jobs(api, access, progress.open_tokens)
        for event in progress.take(reports, api.clock()):
            api.report(event)
        return progress.outcome(api.clock(), access.where)

    outcome: BuildOutcome | None = await poll_until(
        api, read_once, replace(wait, notify_failures=True)
    )
    if outcome is None:
        left = progress.open_tables()
        raise PlatformDeadlineError(
            f"The builds did not end before the deadline. {len(progress.tokens) - len(left)} of "
            f"{len(progress.tokens)} builds have ended. These have not: {_named(left)}. The "
            "service has no operation that stops builds, so they continue. A retry waits for the "
            "same builds.",
            where=access.where,
        )
    return outcome


async def wait_for_rows(
    api: Api,
    sql: str,
    access: JobsAccess,
    *,
    until: float,
    poll_interval: float,
) -> None:
    """Run the query that verifies the tables, again until it brings a value, at last at `until`
    (Unix time). Raises ResultEmptyError, and what queries raise."""

    async def read_once(api: Api) -> bool | None:
        return await rows_are_there(api, sql, access, until=until) or None

    wait = Wait(until, PollInterval(poll_interval), notify_failures=True)
    rows_exist = await poll_until(api, read_once, wait)
    if rows_exist is None:
        raise ResultEmptyError(
            "The builds are done, but the result of verify_sql is empty or has only null, 0, false "
            "and empty strings. The tables are empty, or their rows are not there yet. A retry "
            "runs verify_sql again and starts no build. To build again, clear the task.",
            where=access.where,
        )


async def rows_are_there(api: Api, sql: str, access: JobsAccess, *, until: float) -> bool:
    """Whether a query brings a value that is neither null nor 0, false or an empty text: an
    aggregate over an empty table has one row, of such values. Raises what queries raise."""
    query = SqlQuery(
        sql,
        deployment_id=access.deployment_id,
        deadline=max(until, api.clock() + api.config.request_timeout),
        token=access.token,
        cache="must-revalidate",
    )
    has_value = False

    async def look(event: object) -> None:
        nonlocal has_value
        if isinstance(event, SqlChunk):
            has_value = has_value or any(
                _says_something(value) for row in event.rows for value in row
            )

    await run_sql(api.hearing(look), query)
    return has_value


def _says_something(value: Any) -> bool:
    if value is None or isinstance(value, bool):
        return bool(value)
    text = str(value).strip().lower()
    if text in ("", "false"):
        return False
    try:
        return not Decimal(text).is_zero()
    except InvalidOperation:
        return True


def count_tables(number: int) -> str:
    """A number of tables in words."""
    return _count(number, "table")


def _named(reports: Sequence[JobReport]) -> str:
    """The first tables with their statuses, and how many more there are."""
    first = [f"{report.name} ({quote_service(report.status)})" for report in reports[:NAMED_TABLES]]
    more = len(reports) - len(first)
    return "; ".join(first) + (f" and {more} more" if more > 0 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _sentence(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."


RECORDED_TOKENS = 1500
"""The most tokens that fit into the record of a task, which has 64 KB."""


class BuildIds(RunIds):
    """The ids of builds."""

    deployment_id: int
    build_id: NotRequired[str]
    tokens: NotRequired[list[str]]
    waits: NotRequired[bool]
    """Whether the task waits for the builds."""
    built: NotRequired[dict[str, Any]]
    """The fields of `BuildOutcome`, once the builds are done."""


class PreAggregationsRunKind(RunKind[BuildOutcome, BuildIds]):
    """Builds, with the arguments of `PlatformBuildPreAggregationsOperator`.

    A trigger follows them without most of these.
    """

    followed_with = ("missing_grace", "verify_sql")
    id_field = "build_id"
    outcome_class = BuildOutcome
    can_stop = False

    contexts: list[dict[str, Any]] | None = None
    timezones: list[str] | None = None
    data_sources: list[str] | None = None
    cubes: list[str] | None = None
    pre_aggregations: list[str] | None = None
    date_range: list[str] | None = None
    wait_for_completion: bool = True
    verify_sql: str | None = None
    missing_grace: float = MISSING_GRACE
    if_start_lost: IfStartLost = "fail"
    built_on: list[str] | None = None
    on_unknown: OnUnknown = "warn"
    deployment_id: int | None = None

    @property
    def selector(self) -> dict[str, Any]:
        """Which tables to build. Filters are combined with AND; an absent one keeps all."""
        return given(
            contexts=self.contexts,
            timezones=self.timezones,
            dataSources=self.data_sources,
            cubes=self.cubes,
            preAggregations=self.pre_aggregations,
            dateRange=self.date_range,
        )

    def idempotency_key(self, config: PlatformConfig) -> str:
        config.require_management_url()
        deployment_id = config.resolve_deployment_id(self.deployment_id)
        addresses = (config.management_url, config.data_api_url)
        selector = self.selector
        if self.built_on is not None:
            selector = {**selector, "built_on": self.built_on}
        return fingerprint("pre-aggregations", *addresses, deployment_id, selector)

    async def submit(
        self,
        api: Api,
        env: RunEnvironment,
        earlier: BuildIds | None,
        *,
        until_end: bool,
    ) -> BuildOutcome | None:
        deployment_id = api.config.resolve_deployment_id(self.deployment_id)
        access = await _open_access(api, env, deployment_id)
        run: BuildIds = {"deployment_id": deployment_id, "submitted_at": api.clock()}
        selector = self.selector
        if self.built_on is not None:
            named = await self._stands_on(api, access, self.built_on)
            if not named:
                nothing = BuildOutcome(0)
                run |= {"build_id": "none", "tokens": [], "waits": True, "built": asdict(nothing)}
                await api.notify(RunAccepted(run))
                return nothing
            selector["preAggregations"] = named
        await api.notify(Intended(run))
        tokens = await start_builds(
            api,
            access,
            selector,
            deadline=env.deadline,
            repeat_lost=self.if_start_lost == "repeat",
        )
        run |= {
            "build_id": fingerprint(tokens, run["submitted_at"])[:16],
            "tokens": tokens,
            "waits": self.wait_for_completion,
        }
        await api.notify(RunAccepted(run))
        say(api, f"Started the builds of pre-aggregations: {count_tables(len(tokens))}")
        if len(tokens) > RECORDED_TOKENS:
            warn(
                api,
                f"This task started more than {RECORDED_TOKENS} builds. Airflow's task state "
                "store has room for 64 KB, so it may not hold all identifiers of the builds "
                "(tokens). A retry is then unable to find the builds. It fails, or with "
                "if_start_lost='repeat' it starts all builds again. Select fewer tables for a "
                "task, with date_range or pre_aggregations.",
            )
        return None if self.wait_for_completion else BuildOutcome(len(tokens))

    async def find(self, api: Api, env: RunEnvironment, ids: BuildIds) -> tuple[bool, BuildIds]:
        """Return False with `if_start_lost="repeat"`: the tokens are lost, and a second build
        changes no data. Raises PlatformOutcomeUnknownError with `if_start_lost="fail"`."""
        if self.if_start_lost == "fail":
            raise PlatformOutcomeUnknownError(
                "The previous try ended unexpectedly while it started the builds, so they may be "
                f"running. {START_AGAIN}",
                where=f"deployment {ids['deployment_id']}",
            )
        warn(
            api,
            "The previous try may have started the builds already. This try starts them again "
            "(if_start_lost='repeat').",
        )
        return False, ids

    async def follow(self, api: Api, env: RunEnvironment, ids: BuildIds) -> BuildOutcome:
        if "built" in ids:
            return BuildOutcome(**ids["built"])
        if not ids["waits"]:
            return BuildOutcome(len(ids["tokens"]))
        # A trigger or a retry may begin during an outage: the wait's budget holds here too.
        access = await poll_until(
            api,
            lambda api: _open_access(api, env, ids["deployment_id"]),
            env.wait,
        )
        wait = replace(env.wait, begins="at once")
        outcome = await wait_for_builds(api, access, self._progress(ids), wait)
        if self.verify_sql is None:
            return outcome
        # Rows can arrive after "done". The documents do not say how long this takes, as for missing
        # tables.
        until = min(env.deadline, api.clock() + self.missing_grace)
        await wait_for_rows(
            api,
            self.verify_sql,
            access,
            until=until,
            poll_interval=env.poll_interval,
        )
        return BuildOutcome(outcome.table_count, outcome.tables, verified=True)

    async def read(self, api: Api, ids: BuildIds, outcome: BuildOutcome) -> dict[str, Any]:
        """Return the result of the task. The ids keep what a later try needs of it."""
        if ids["waits"]:
            ids["built"] = asdict(outcome)
            verified = ", verify_sql found rows" if outcome.verified else ""
            say(api, f"The builds are done: {count_tables(outcome.table_count)}{verified}")
        result = {
            "status": "done" if ids["waits"] else None,
            "table_count": outcome.table_count,
            "tables": outcome.tables,
            "tokens": ids["tokens"],
            "verified": outcome.verified,
        }
        return api.secrets.redact_data(result)

    async def _stands_on(self, api: Api, access: JobsAccess, tables: list[str]) -> list[str]:
        """Return the names of the pre-aggregations to build. Raises NoPreAggregationError for an
        unknown table with `on_unknown="fail"`."""
        url = access.url.removesuffix(JOBS_PATH) + META_PATH
        found = stand_on(await read_metadata(api, url, access.token), tables)
        if found.unknown and self.on_unknown == "fail":
            reason = " ".join(found.warnings())
            raise NoPreAggregationError(f"{reason} Nothing was started.", where=access.where)
        for warning in found.warnings():
            warn(api, warning)
        say(api, f"Pre-aggregations on the tables: {', '.join(found.pre_aggregations) or 'none'}")
        return found.pre_aggregations

    def _progress(self, ids: BuildIds) -> BuildProgress:
        return BuildProgress(tuple(ids["tokens"]), float(ids["submitted_at"]), self.missing_grace)


async def _open_access(api: Api, env: RunEnvironment, deployment_id: int) -> JobsAccess:
    """Return the address of the jobs and a token for them, even if the try begins after the
    deadline."""
    deadline = max(env.deadline, api.clock() + SINGLE_POLL_SECONDS)
    return await open_access(api, deployment_id, deadline=deadline)
