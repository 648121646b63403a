"""Pre-aggregations: what the sample model defines, and the jobs that build their tables.

A job is a list of moments that is fixed when it starts, so its status is a function of the
sandbox's clock: nothing runs in the background, and a test moves the clock instead of waiting.

    begun --------- queued ------------ built --------------- there
          scheduled        processing         missing_partition      done

A table that ends without rows is ``done`` and stays empty until it is built again: queries that use
it find no rows. As in the service, a query
uses a pre-aggregation only if that has all of its measures and dimensions; every other query reads
the source tables.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.settings import JobOutcome, Settings
from airflow_provider_platform.sandbox.state.warehouse import QueryError, Warehouse, plain_sql

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.server_state import ServerState

_YEAR = 2025
_SCHEMA = "prod_pre_aggregations"
LIFETIME = 86400
"""Seconds for which a token is known, from the start and again from its first ``done`` or
``failure`` that is reported."""
_AGGREGATE = re.compile(r"(?:sum|count|avg|min|max)\([^)]*\)")
_QUALIFIER = re.compile(r"\b\w+\.")
_COLUMN = re.compile(r"\((\w+)\)")
_FAILURE = "Error: the warehouse cancelled the query: statement timeout"


@dataclass(frozen=True)
class PreAggregation:
    """One pre-aggregation of the model. With ``monthly``, it has a partition for each month."""

    cube: str
    name: str
    measure: str | None = None
    """The measure, in SQL. None: only other pre-aggregations use the table."""
    dimension: str | None = None
    data_source: str = "default"
    monthly: bool = False
    depends_on: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.cube}.{self.name}"

    def answers(self, sql: str, columns: Collection[tuple[str, str]]) -> bool:
        """Return whether a query that reads these columns uses the table. Keys of joins do not
        count: a semantic query names none."""
        plain = re.sub(r"\s+", "", plain_sql(sql).lower())
        aggregates = set(_AGGREGATE.findall(_QUALIFIER.sub("", plain)))
        inside = _COLUMN.findall(self.measure or "")
        counts_only_its_rows = {table for table, _ in columns} == {self.cube}
        read = {one for one in columns if one[1] and not one[1].endswith("id")}
        members = {(self.cube, name) for name in (*inside, self.dimension)}
        return (
            aggregates == {self.measure}
            and read <= members
            and (bool(inside) or counts_only_its_rows)
        )

    @property
    def months(self) -> list[str]:
        """The partitions, such as ``2025-01``; one empty string if there are no partitions."""
        return [f"{_YEAR}-{month:02d}" for month in range(1, 13)] if self.monthly else [""]


PRE_AGGREGATIONS = (
    PreAggregation(
        "orders",
        "revenue_by_month",
        "sum(amount)",
        "month",
        monthly=True,
        depends_on="orders.order_lines",
    ),
    PreAggregation("orders", "order_lines"),
    PreAggregation("customers", "by_country", "count(*)", "country"),
    PreAggregation("products", "by_category", "count(*)", "category", data_source="inventory"),
)


@dataclass
class Job:
    """One table that is built. Times are Unix times by the sandbox's clock."""

    token: str
    table: str
    pre_aggregation: PreAggregation
    month: str
    selector: dict[str, Any]
    queued_at: float
    built_at: float
    there_at: float
    expires_at: float
    outcome: JobOutcome
    hidden: bool
    """Whether only missing_partition is reported until the table exists."""
    shown: bool = False

    def status(self, now: float) -> str:
        """Return the status that is reported now."""
        if self.outcome == "not_found":
            return self.outcome
        if now < self.built_at:
            if self.hidden:
                return "missing_partition"
            return "scheduled" if now < self.queued_at else "processing"
        if self.outcome == "failure":
            return "missing_partition" if self.shown else f"failure: {_FAILURE}"
        if self.outcome in ("missing_partition", "pre_agg_not_found"):
            return self.outcome
        return "missing_partition" if now < self.there_at else "done"

    def is_there(self, now: float) -> bool:
        return self.outcome in ("done", "no_rows") and now >= self.there_at

    def lacks_rows(self, now: float) -> bool:
        """Return whether the table exists without rows."""
        return self.is_there(now) and self.outcome == "no_rows"


@dataclass
class PreAggregationJobs:
    """The jobs of all deployments and branches, and the newest job of each table."""

    by_token: dict[tuple[int, str, str], Job] = field(default_factory=dict)
    _newest: dict[tuple[int, str, str], Job] = field(default_factory=dict)
    _posts: int = 0
    _emptied: dict[str, Warehouse] = field(default_factory=dict)

    def selected(self, selector: Mapping[str, Any]) -> list[tuple[PreAggregation, str]]:
        """Return the pre-aggregations and partitions that a selector names, without the tables on
        which they depend."""
        return [
            (one, month)
            for one in PRE_AGGREGATIONS
            if _keeps(selector.get("dataSources"), one.data_source)
            and _keeps(selector.get("cubes"), one.cube)
            and _keeps(selector.get("preAggregations"), one.full_name)
            for month in one.months
            if not month or _touches(month, selector.get("dateRange"))
        ]

    def post(
        self, server: ServerState, deployment: int, branch: str, selector: dict[str, Any]
    ) -> list[str]:
        """Start builds. Return the tokens: one for each partition, time zone and context."""
        self._posts += 1
        selected = self.selected(selector)
        needed = {one.depends_on for one, _ in selected} - {None}
        also = [(one, "") for one in PRE_AGGREGATIONS if one.full_name in needed]
        again = [pair for pair in also if pair not in selected]
        tokens = []
        for number, context in enumerate(selector["contexts"]):
            for timezone in selector["timezones"]:
                for one, month in (*selected, *again):
                    about = {"context": context, "timezone": timezone, "post": self._posts}
                    table = _table(one, month, context, timezone)
                    token = _digest([about, number, table])[:32]
                    key = (deployment, branch, table)
                    fresh = (one, month) in again and self._is_good(server, key)
                    job = _job(server, one, month, token=token, table=table, fresh=fresh)
                    named = {"preAggregation": one.full_name, "timezone": timezone}
                    job.selector = {**context, **named}
                    self.by_token[deployment, branch, token] = job
                    self._newest[key] = job
                    tokens.append(token)
        return tokens

    def report(
        self, server: ServerState, deployment: int, branch: str, token: str
    ) -> dict[str, Any]:
        """Return what is known about one token."""
        job, now = self.by_token.get((deployment, branch, token)), server.clock.now()
        status = "not_found" if job is None or now >= job.expires_at else job.status(now)
        if job is None or status == "not_found":
            return {"token": token, "status": "not_found"}
        if status.startswith(("done", "failure")) and not job.shown:
            job.shown, job.expires_at = True, now + LIFETIME
        return {"token": token, "table": job.table, "status": status, "selector": job.selector}

    def warehouse(self, server: ServerState, deployment: int, branch: str, sql: str) -> Warehouse:
        """Return the warehouse as this query sees it on this branch: if it uses a table without
        rows, the rows of the table's cube are hidden. Other branches than production may lack
        orders or columns. Raises ``QueryError``."""
        now, columns = server.clock.now(), server.warehouse.columns_of(sql)
        empty: dict[str, set[str]] = {}
        for (place, name, _), job in self._newest.items():
            is_empty = (place, name) == (deployment, branch) and job.lacks_rows(now)
            if is_empty and job.pre_aggregation.answers(sql, columns):
                empty.setdefault(job.pre_aggregation.cube, set()).add(job.month)
        if branch != branches_of(server, deployment).deploy:
            for table, column in sorted(columns):
                if f"{table}.{column}" in server.settings.branch_lacks_columns:
                    raise QueryError(f"no such column: {column}")
            if lacks := server.settings.branch_lacks_months:
                empty.setdefault("orders", set()).update(lacks)
        if not empty:
            return server.warehouse
        key = json.dumps({cube: sorted(months) for cube, months in sorted(empty.items())})
        if key not in self._emptied:
            self._emptied[key] = Warehouse(without=empty)
        return self._emptied[key]

    def used(
        self, server: ServerState, deployment: int, branch: str, sql: str
    ) -> dict[str, dict[str, str]]:
        """Return the tables that serve this query on this branch: those that jobs have built, and
        those that the settings name as built."""
        now, columns = server.clock.now(), server.warehouse.columns_of(sql)
        built = {*server.settings.built_pre_aggregations}
        for (*place, _), job in self._newest.items():
            if (*place,) == (deployment, branch) and job.is_there(now):
                built.add(job.pre_aggregation.full_name)
        tables = {
            f"{_SCHEMA}.{one.cube}_{one.name}": one.full_name
            for one in PRE_AGGREGATIONS
            if one.full_name in built and one.answers(sql, columns)
        }
        return {
            table: {"targetTableName": table, "preAggregationId": name}
            for table, name in tables.items()
        }

    def _is_good(self, server: ServerState, key: tuple[int, str, str]) -> bool:
        job, now = self._newest.get(key), server.clock.now()
        return job is not None and job.is_there(now) and not job.lacks_rows(now)


def _job(
    server: ServerState, one: PreAggregation, month: str, *, token: str, table: str, fresh: bool
) -> Job:
    """Return a job that starts now and takes as long as the settings say now. A fresh table needs
    no build."""
    settings, now = server.settings, server.clock.now()
    outcome = settings.jobs_outcome if _ends_so(settings, one, month) and not fresh else "done"
    seconds, gap = (0, 0) if fresh else (settings.jobs_build_seconds, settings.jobs_gap_seconds)
    return Job(
        token,
        table,
        one,
        month,
        selector={},
        queued_at=now + seconds / 2,
        built_at=now + seconds,
        there_at=now + seconds + gap,
        expires_at=now + LIFETIME,
        outcome=outcome,
        hidden=settings.tenant == "described" and one.data_source != "default",
    )


def _ends_so(settings: Settings, one: PreAggregation, month: str) -> bool:
    """Return whether ``jobs_outcome`` applies to this table (a name, or a name and a month)."""
    names = settings.jobs_outcome_of
    return not names or one.full_name in names or f"{one.full_name} {month}" in names


def _keeps(names: list[str] | None, name: str) -> bool:
    """Return whether a filter keeps this name. A missing or empty filter keeps everything."""
    return not names or name in names


def _touches(month: str, date_range: list[str] | None) -> bool:
    if date_range is None:
        return True
    year, number = int(month[:4]), int(month[5:])
    last = date(year, number, calendar.monthrange(year, number)[1]).isoformat()
    start, end = (text[:10] for text in date_range)
    return start <= last and end >= f"{month}-01"


def _table(one: PreAggregation, month: str, context: Any, timezone: str) -> str:
    suffix = month.replace("-", "") + "01" if month else ""
    mark = _digest([context, timezone])[:8]
    return f"{_SCHEMA}.{one.cube}_{one.name}{suffix}_{mark}"


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
