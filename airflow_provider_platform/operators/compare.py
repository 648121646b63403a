"""`PlatformCompareOperator`: which numbers does a branch change?"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform.client.choices import QUERY_TIMEOUT, CacheMode
from airflow_provider_platform.client.errors import (
    NumbersMovedError,
    PlatformError,
    PlatformInputError,
    ResultEmptyError,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import BranchLink, Links
from airflow_provider_platform.operators import _arguments as arguments
from airflow_provider_platform.operators._base import DeploymentOperator, ShortTraceback
from airflow_provider_platform.operators.query import one_query, sql_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.results import Result
    from airflow_provider_platform.client.rules import Rule
    from airflow_provider_platform.client.wire import Api
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks

__all__ = ["PlatformCompareOperator"]

OnDifference = Literal["fail", "warn"]

_MEMBER = re.compile(r"[A-Za-z_]\w*\.[A-Za-z_]\w*", re.ASCII)


def named_queries(name: str, value: Any) -> dict[str, str] | None:
    """Return the SQL of each named query, from a dict or a list. Raises PlatformInputError."""
    given = sql_parameters(name, value)
    if isinstance(given, list):
        given = {f"query {number}": sql for number, sql in enumerate(given, start=1)}
    return {str(key): arguments.text(name, sql) for key, sql in (given or {}).items()} or None


def members(name: str, value: Any) -> list[str] | None:
    """Return names of members. Raises PlatformInputError."""
    given = arguments.names(name, value)
    for member in given or ():
        if not _MEMBER.fullmatch(member):
            raise arguments.refuse(name, "must be names as orders.revenue", member)
    return given


def tolerances(name: str, value: Any) -> float | dict[str, float]:
    """Return a relative difference, or one for each name. Raises PlatformInputError."""
    limit = partial(arguments.number, name, minimum=0)
    if isinstance(value, dict) or str(value).lstrip().startswith("{"):
        given = arguments.mapping(name, value) or {}
        return {str(key): limit(item) for key, item in given.items()}
    return limit(value)


def _one_source(*, queries: Any, measures: Any, workbook_id: Any) -> None:
    """A rule: exactly one of them says what is compared."""
    if sum(source is not None for source in (queries, measures, workbook_id)) != 1:
        raise ValueError("give exactly one of queries, measures and workbook_id")


def _one_cube(*, measures: list[str] | None, by: list[str] | None) -> None:
    """A rule: dimensions group the measures of their own cube or view."""
    if by and not measures:
        raise ValueError("by needs measures")
    if by and len({member.partition(".")[0] for member in (*by, *(measures or ()))}) > 1:
        raise ValueError("with by, all measures and dimensions must be of one cube or view")


def _other_branch(branch_name: str, base_branch_name: str | None) -> None:
    """A rule: a branch is not compared with itself. Raises ValueError."""
    if branch_name == base_branch_name:
        raise ValueError("branch_name and base_branch_name are the same branch")


def _has_rows(compared: dict[str, Any]) -> bool:
    return any(compared[name] for name in ("compared", "rows_missing", "rows_more"))


class PlatformCompareOperator(DeploymentOperator):
    """Run queries on a branch and in production, and report which numbers the branch changes.

    Use it before a merge, for example inside `branch_gate`: if a number moves by more than the
    tolerance, the task fails, and the branch is not merged.

    Each query runs in production and then on the branch. Their rows are joined by the columns that
    are not numbers, or by `keys`. A row or column that only one side has exceeds every tolerance.
    Null is equal only to null. The results must be complete (at most 50,000 rows), so aggregate in
    the query.

    Returns `{"branch_name", "compared": int, "moved": int, "verdict", "queries": [{"name", "sql",
    "verdict", "compared": int, "moved_count": int, "moved": [{"key": {...}, "column", "production",
    "branch", "change", "percent"}], "rows_missing": int, "rows_more": int, "columns_missing",
    "columns_more", "max_percent"}]}`. `verdict` is `same`, `within_tolerance` or `moved`. `moved`
    of a query has its 20 largest moves. `percent` is None if production has 0 or no number.

    If a query fails on one side, or has no rows on either side, the task fails.

    :param branch_name: the branch, which must be open and built
    :param queries: the queries: a dict of names and SQL, or a list of SQL
    :param measures: instead of `queries`: measures, such as `["orders.revenue", "orders.count"]`
    :param by: with `measures`: dimensions of the same cube or view, such as `["orders.status"]`
    :param workbook_id: instead of `queries`: the queries of this workbook's reports. The task fails
        if the query of a report is JSON, not SQL
    :param keys: the columns that together identify a row (default: all columns that are not
        numbers), for example if a year is a number
    :param tolerance: how far a number may move, relative to production: 0.01 is 1 %. Or a dict
        whose keys are names of columns or queries, or `"query.column"`. The most specific key
        applies. Without a key, no number may move
    :param on_difference: `fail` the task if a number moves beyond the tolerance, or `warn` in the
        log
    :param base_branch_name: compare with this branch instead of production. The result still calls
        its numbers `production`
    :param cache: stale-if-slow, stale-while-revalidate, must-revalidate or no-cache
    :param timeout: seconds (or a timedelta) until the first row of each query (default 600)
    """

    operator_extra_links = Links(BranchLink)
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"queries": "json"}
    asked: ClassVar[dict[str, str]] = {"base_branch_name": "production"}
    checks: ClassVar[Checks] = {
        "branch_name": arguments.branch,
        "queries": named_queries,
        "measures": members,
        "by": members,
        "workbook_id": arguments.optional_id,
        "keys": arguments.names,
        "tolerance": tolerances,
        "on_difference": partial(arguments.choice, choices=get_args(OnDifference)),
        "base_branch_name": arguments.optional_branch,
        "cache": partial(arguments.optional_choice, choices=get_args(CacheMode)),
        "timeout": arguments.seconds,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("queries", "measures", "workbook_id"), _one_source),
        (("measures", "by"), _one_cube),
        (("branch_name", "base_branch_name"), _other_branch),
    )

    def __init__(
        self,
        *,
        branch_name: str,
        queries: dict[str, str] | list[str] | str | None = None,
        measures: list[str] | str | None = None,
        by: list[str] | str | None = None,
        workbook_id: int | str | None = None,
        keys: list[str] | str | None = None,
        tolerance: float | str | dict[str, Any] = 0.0,
        on_difference: str = "fail",
        base_branch_name: str | None = None,
        cache: str | None = None,
        timeout: float | timedelta = QUERY_TIMEOUT,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.queries: Any = queries
        self.measures: Any = measures
        self.by: Any = by
        self.workbook_id: Any = workbook_id
        self.keys: Any = keys
        self.tolerance: Any = tolerance
        self.on_difference = on_difference
        self.base_branch_name = base_branch_name
        self.cache: Any = cache
        self.timeout: Any = timeout
        self._hook: PlatformHook | None = None
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Compare the results of all queries."""
        from airflow_provider_platform.client.moved_numbers import VERDICTS, sentence

        with ShortTraceback(), self.opened(context) as hook:
            self._hook = hook
            with self.named_errors():
                queries = self.queries or self._measures_sql() or self._reports_sql(hook)
                queries = {name: one_query("queries", sql) for name, sql in queries.items()}
            compared = [self._compared(hook, name, sql) for name, sql in queries.items()]
            found = hook.open_client().secrets.redact_data(
                {
                    "branch_name": self.branch_name,
                    "compared": sum(query["compared"] for query in compared),
                    "moved": sum(query["moved_count"] for query in compared),
                    "verdict": max((query["verdict"] for query in compared), key=VERDICTS.index),
                    "queries": compared,
                }
            )
            if empty := [one["name"] for one in compared if not _has_rows(one)]:
                raise ResultEmptyError(
                    "Nothing was compared: no row on either side in the queries "
                    f"{quote_service(', '.join(empty))}. Check their conditions."
                )
            beyond = [sentence(one) for one in found["queries"] if one["verdict"] == "moved"]
            if beyond and self.on_difference == "fail":
                raise NumbersMovedError(
                    f"Branch {quote_service(self.branch_name)} changes numbers by more than the "
                    f"tolerance. {' '.join(beyond)} If this is intended, raise tolerance, or set "
                    'on_difference="warn".'
                )
        for query in found["queries"]:
            (self.log.warning if query["verdict"] == "moved" else self.log.info)(
                "%s", sentence(query)
            )
        return dict(found)

    def on_kill(self) -> None:
        """Stop reading."""
        if self._hook is not None:
            self._hook.open_client().interrupt()

    def _measures_sql(self) -> dict[str, str]:
        """Return a query for each cube or view of `measures`."""
        cubes: dict[str, list[str]] = {}
        for member in self.measures or ():
            cube, _, measure = member.partition(".")
            cubes.setdefault(cube, []).append(f'MEASURE("{measure}") AS "{measure}"')
        dimensions = [f'"{member.partition(".")[2]}"' for member in self.by or ()]
        places = ", ".join(str(place) for place in range(1, len(dimensions) + 1))
        groups = f" GROUP BY {places} LIMIT 50000" if dimensions else ""
        return {
            cube: f'SELECT {", ".join(dimensions + columns)} FROM "{cube}"{groups}'  # noqa: S608
            for cube, columns in cubes.items()
        }

    def _reports_sql(self, hook: PlatformHook) -> dict[str, str]:
        """Return the queries of the workbook's reports."""
        reports = list(
            hook.list_reports(deployment_id=self.deployment_id, workbook_id=self.workbook_id)
        )
        without = [str(report["id"]) for report in reports if not report.get("sqlQuery")]
        if without or not reports:
            problem = f"reports without SQL: {', '.join(without)}" if without else "no reports"
            raise PlatformInputError(
                f"Nothing was compared: workbook {self.workbook_id} has {problem}. Only SQL can be "
                "compared. Give the queries as SQL in queries.",
                field="workbook_id",
            )
        return {f"{report['name']} ({report['id']})": report["sqlQuery"] for report in reports}

    def _compared(self, hook: PlatformHook, name: str, sql: str) -> dict[str, Any]:
        from airflow_provider_platform.client.data_api.query import FailedSqlLog, SqlQuery
        from airflow_provider_platform.client.moved_numbers import compare_numbers
        from airflow_provider_platform.client.results import read_result

        client = hook.open_client()
        failed = FailedSqlLog(sql)
        failed.redact = client.secrets.redact_text

        async def read_both(api: Api) -> list[Result]:
            results = []
            for branch_name in (self.base_branch_name, self.branch_name):
                query = SqlQuery.build(
                    sql,
                    deployment_id=hook.resolve_deployment_id(self.deployment_id),
                    deadline=client.clock() + float(self.timeout),
                    branch_name=branch_name,
                    cache=self.cache,
                )
                results.append(await read_result(api, query, client.config, client.clock))
            return results

        try:
            production, branch = client.run(read_both)
            compared = compare_numbers(production, branch, self.keys, partial(self._limit, name))
        except PlatformError as error:
            self.log.warning("Query %s could not be compared.", quote_service(name))
            failed(error)
            raise
        return {"name": name, "sql": sql, **compared}

    def _limit(self, query: str, column: str) -> Decimal:
        """Return how far numbers of a column may move."""
        limit = self.tolerance
        if isinstance(limit, dict):
            names = (f"{query}.{column}", column, query)
            limit = next((limit[name] for name in names if name in limit), 0.0)
        return Decimal(str(limit))
