"""`PlatformCompareOperator`: which numbers does a branch change?"""

from __future__ import annotations

from collections import defaultdict
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import exactly_one
from airflow_provider_platform.client.choices import QUERY_TIMEOUT, CacheMode
from airflow_provider_platform.client.errors import (
    NumbersMovedError,
    PlatformError,
    PlatformInputError,
)
from airflow_provider_platform.client.redaction import log_line, quote_service
from airflow_provider_platform.links import BranchLink, all_links
from airflow_provider_platform.operators._base import DeploymentOperator, ShortTraceback
from airflow_provider_platform.operators.query import one_query, sql_parameters

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.evaluations.equal_results import Result

__all__ = ["PlatformCompareOperator"]

OnDifference = Literal["fail", "warn"]


def named_queries(name: str, value: Any) -> dict[str, str] | None:
    """Return the SQL of each named query, from a dict or a list. Raises PlatformInputError."""
    given = sql_parameters(name, value)
    if isinstance(given, list):
        given = {f"query {number}": sql for number, sql in enumerate(given, start=1)}
    return {str(key): arguments.text(name, sql) for key, sql in (given or {}).items()} or None


def members_of_one_cube(*, by: list[str] | None, measures: list[str] | None) -> None:
    """A rule: dimensions group the measures of their own cube or view. Raises ValueError."""
    members = [member.partition(".") for member in (*(by or ()), *(measures or ()))]
    if not all(cube and name for cube, _, name in members):
        raise ValueError("measures and by must be names as orders.revenue")
    if by and (not measures or len({cube for cube, _, _ in members}) > 1):
        raise ValueError("by needs measures, and all of them must be of one cube or view")


class PlatformCompareOperator(DeploymentOperator):
    """Run queries on a branch and in production, and report which numbers the branch changes.

    Use it before a merge, for example inside `branch_gate`: if a number differs by more than the
    tolerance, the task fails, and the branch is not merged.

    The rows of both sides are joined by the columns that are not numbers, or by `keys`. A row that
    only one side has exceeds every tolerance. Null is equal only to null. Binary noise of a sum is
    no difference: a fraction counts only to the tenth significant digit. The results must be
    complete (usually fewer rows than 50,000, or 10,000 in a query without LIMIT: see the page Run
    SQL), so aggregate in the query. The task fails if a query fails on one side, if several rows
    have the same keys, or if the branch has other columns. It also fails if nothing is compared:
    both sides have no row or nothing but nulls, or they are equal and every column joins the rows
    (without `keys`: no column is numeric).

    Returns `{"branch_name", "compared": int, "moved": int, "verdict", "queries": [{"name", "sql",
    "verdict", "columns": [...], "keys": [...], "compared": int, "moved_count": int, "moved":
    [{"key": {...}, "column", "production", "branch", "percent"}], "rows_missing": int, "rows_more":
    int, "numbers": [...]}]}`. `verdict` is `same`, `within_tolerance` or `moved`. `moved` of a
    query has its 20 largest moves, `numbers` its first 3 numbers, with numbers as strings.
    `percent` is None if production has 0, or one side has no number.

    :param branch_name: the branch, which must be open and built
    :param queries: the queries: a dict of names and SQL, or a list of SQL
    :param measures: instead of `queries`: measures, such as `["orders.revenue", "orders.count"]`
    :param by: with `measures`: dimensions of the same cube or view, such as `["orders.status"]`
    :param workbook_id: instead of `queries`: the SQL of this workbook's reports; the task fails if
        one has no SQL
    :param workbook: instead of `workbook_id`: the workbook's name, looked up when the task runs
    :param keys: the columns that together identify a row (default: all that are not numbers)
    :param tolerance: how much a number may differ, relative to production: 0.01 is 1 %
    :param on_difference: `fail` the task if a number differs by more than the tolerance, or `warn`
    :param cache: `stale-if-slow`, `stale-while-revalidate`, `must-revalidate` or `no-cache`
    :param timeout: seconds (or a timedelta) until the first row of each query
    """

    operator_extra_links = all_links(BranchLink)
    named = ("workbook",)
    template_ext: Sequence[str] = (".sql",)
    template_fields_renderers: ClassVar[dict[str, str]] = {"queries": "json"}
    checks: ClassVar[Checks] = {
        "branch_name": arguments.branch,
        "queries": named_queries,
        "measures": arguments.names,
        "by": arguments.names,
        "workbook_id": arguments.optional_id,
        "workbook": arguments.optional_text,
        "keys": arguments.names,
        "tolerance": partial(arguments.number, minimum=0),
        "on_difference": partial(arguments.choice, choices=get_args(OnDifference)),
        "cache": partial(arguments.optional_choice, choices=get_args(CacheMode)),
        "timeout": arguments.seconds,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("queries", "measures", "workbook_id", "workbook"), exactly_one),
        (("by", "measures"), members_of_one_cube),
    )

    def __init__(
        self,
        *,
        branch_name: str,
        queries: dict[str, str] | list[str] | str | None = None,
        measures: list[str] | str | None = None,
        by: list[str] | str | None = None,
        workbook_id: int | str | None = None,
        workbook: str | None = None,
        keys: list[str] | str | None = None,
        tolerance: float | str = 0.0,
        on_difference: str = "fail",
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
        self.workbook = workbook
        self.keys: Any = keys
        self.tolerance: Any = tolerance
        self.on_difference = on_difference
        self.cache: Any = cache
        self.timeout: Any = timeout
        self._hook: PlatformHook | None = None
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Compare the results of all queries."""
        from airflow_provider_platform.resources.branches import refuse_production
        from airflow_provider_platform.resources.evaluations.moved_numbers import VERDICTS, sentence

        with ShortTraceback(), self.opened(context) as hook:
            self._hook = hook
            deployment_id = hook.resolve_deployment_id(self.deployment_id)
            hook.open_client().run(
                lambda api: refuse_production(api, deployment_id, self.branch_name)
            )
            with self.named_errors():
                queries = self.queries or self._measures_sql() or self._reports_sql(hook)
                queries = {name: one_query("queries", sql) for name, sql in queries.items()}
            compared = [self._compared(hook, name, sql) for name, sql in queries.items()]
            branch = quote_service(self.branch_name)
            for query in compared:
                log = self.log.warning if query["verdict"] == "moved" else self.log.info
                log("Branch %s beside production: %s", branch, sentence(query))
            beyond = [sentence(query) for query in compared if query["verdict"] == "moved"]
            if beyond and self.on_difference == "fail":
                raise NumbersMovedError(
                    f"Branch {branch} changes numbers by more than the tolerance. "
                    f"{' '.join(beyond)} If this is intended, raise tolerance, or set "
                    'on_difference="warn".'
                )
        return {
            "branch_name": self.branch_name,
            "compared": sum(query["compared"] for query in compared),
            "moved": sum(query["moved_count"] for query in compared),
            "verdict": max((query["verdict"] for query in compared), key=VERDICTS.index),
            "queries": compared,
        }

    def on_kill(self) -> None:
        """Stop reading."""
        if self._hook is not None:
            self._hook.open_client().interrupt()

    def _measures_sql(self) -> dict[str, str]:
        """Return a query for each cube or view of `measures`."""
        by = [f'"{member.partition(".")[2]}"' for member in self.by or ()]
        places = ", ".join(str(place) for place in range(1, len(by) + 1))
        groups = f" GROUP BY {places} LIMIT 50000" if by else ""
        columns: dict[str, list[str]] = defaultdict(lambda: [*by])
        for member in self.measures or ():
            cube, _, measure = member.partition(".")
            columns[cube].append(f'MEASURE("{measure}") AS "{measure}"')
        return {
            cube: f'SELECT {", ".join(selected)} FROM "{cube}"{groups}'  # noqa: S608
            for cube, selected in columns.items()
        }

    def _reports_sql(self, hook: PlatformHook) -> dict[str, str]:
        """Return the queries of the workbook's reports."""
        reports = hook.list_reports(deployment_id=self.deployment_id, workbook_id=self.workbook_id)
        queries = {f"{one['name']} ({one['id']})": one.get("sqlQuery") for one in reports}
        without = [name for name, sql in queries.items() if not sql]
        if without or not queries:
            raise PlatformInputError(
                f"Nothing was compared: workbook {self.workbook_id} has {len(queries)} reports, "
                f"without SQL: {', '.join(without) or 'none'}. Give the queries as SQL in queries.",
                field="workbook_id",
            )
        return queries

    def _compared(self, hook: PlatformHook, name: str, sql: str) -> dict[str, Any]:
        """Return what the comparison of one query found, without secrets."""
        from airflow_provider_platform.hooks.lineage import report_queries
        from airflow_provider_platform.resources.evaluations.equal_results import read_result
        from airflow_provider_platform.resources.evaluations.moved_numbers import compare_numbers
        from airflow_provider_platform.resources.sql.query import SqlQuery

        client = hook.open_client()

        async def read(api: Api, branch_name: str | None) -> Result:
            query = SqlQuery(
                sql,
                deployment_id=hook.resolve_deployment_id(self.deployment_id),
                deadline=client.clock() + float(self.timeout),
                branch_name=branch_name,
                cache=self.cache,
            )
            return await read_result(api, query)

        report_queries(self.hook(), [client.secrets.redact_text(sql)])
        try:
            production = client.run(lambda api: read(api, None))
            branch = client.run(lambda api: read(api, self.branch_name))
            limit = Decimal(str(self.tolerance))
            found = compare_numbers(production, branch, self.keys, limit)
        except PlatformError:
            failed = client.secrets.redact_text(f"{name}: {sql}")
            self.log.warning("A query could not be compared: %s", log_line(failed))
            raise
        compared: dict[str, Any] = client.secrets.redact_data({"name": name, "sql": sql, **found})
        return compared
