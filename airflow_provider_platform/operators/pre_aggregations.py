"""`PlatformBuildPreAggregationsOperator`: build the tables of pre-aggregations, and wait for
them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import MISSING_GRACE, IfStartLost, OnUnknown
from airflow_provider_platform.client.errors import DataQueryError, ResultEmptyError
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.operators._remote_run import RemoteRunOperator
from airflow_provider_platform.operators.query import one_query

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow.sdk import Asset

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.errors import PlatformError
    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.run_kind import Ids, RunKind

BUILD_TIMEOUT = 7200.0
_FULL_NAME = re.compile(r"[^.\s]+\.[^.\s]+")


def _names(name: str, value: Any) -> list[str] | None:
    """Return a list of names, from a list, one name or a JSON string; None selects everything. An
    empty list is refused, because the code that made it did not mean everything. Raises
    PlatformInputError."""
    if isinstance(value, list | tuple) and not value:
        raise arguments.refuse(name, "is empty; to select everything, leave it out")
    return arguments.names(name, value)


def _contexts(name: str, value: Any) -> list[Any]:
    """Return the security contexts in the service's form. Raises PlatformInputError."""
    contexts = arguments.sequence(name, value)
    if not contexts:
        raise arguments.refuse(
            name,
            f"must have at least one security context. To build without one, use {name}=[{{}}]",
        )
    if not all(isinstance(context, dict) for context in contexts):
        raise arguments.refuse(name, "must be a list of objects (dicts)")
    found = [_one_context(context) for context in contexts]
    if not all(isinstance(context["securityContext"], dict) for context in found):
        raise arguments.refuse(name, "must have an object (a dict) in each securityContext")
    return found


def _timezones(name: str, value: Any) -> list[str]:
    from airflow_provider_platform.client.argument_rules import check_timezone

    zones = _names(name, value)
    if zones is None:
        raise arguments.refuse(name, "must have at least one time zone")
    for zone in zones:
        arguments.by_rule(check_timezone, name, zone)
    return zones


def _full_names(name: str, value: Any) -> list[str] | None:
    names = _names(name, value)
    if not all(map(_FULL_NAME.fullmatch, names or ())):
        rule = "must be full names, as in orders.by_month (cube.pre_aggregation)"
        raise arguments.refuse(name, rule)
    return names


def _tables(name: str, value: Any) -> list[str] | None:
    """Return names of tables, from names, URIs and assets. Raises PlatformInputError."""
    tables = [value] if hasattr(value, "uri") else value
    if not isinstance(tables, list | tuple):
        return _names(name, tables)
    return _names(name, [getattr(table, "uri", table) for table in tables])


def _date_range(name: str, value: Any) -> list[str] | None:
    """Return two moments in the service's form, or None. Raises PlatformInputError."""
    dates = arguments.sequence(name, value)
    if not dates or all(arguments.optional(date) is None for date in dates):
        return None
    texts = [date.isoformat() if hasattr(date, "isoformat") else str(date) for date in dates]
    try:
        return _zoneless_range(texts)
    except ValueError as error:
        raise arguments.refuse(name, str(error)) from None


def _zoneless_range(moments: Sequence[str]) -> list[str]:
    """Return two moments as the service reads them, without an offset: a date or a time stays as it
    is, and one with an offset becomes UTC, with the `Z` that the service knows. Raises
    ValueError."""
    if len(moments) != 2:
        raise ValueError("must be two dates or times, from and to")
    start, end = map(_zoneless, moments)
    if datetime.fromisoformat(start).replace(tzinfo=None) > datetime.fromisoformat(end).replace(
        tzinfo=None
    ):
        raise ValueError("must begin before it ends")
    return [start, end]


def _zoneless(moment: str) -> str:
    text = moment.strip()
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.tzinfo is None:
            return text
        plain = parsed.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError("must be two dates or times in ISO 8601, as 2025-01-31") from None
    return plain.isoformat(timespec="milliseconds") + "Z"


def _is_waited_for(verify_sql: str | None, wait_for_completion: bool) -> None:
    """A rule: `verify_sql` needs a task that waits for the tables."""
    if verify_sql is not None and not wait_for_completion:
        raise ValueError(
            "verify_sql verifies tables that are done, so wait_for_completion=False "
            "cannot be combined with it"
        )


class PlatformBuildPreAggregationsOperator(DeploymentOperator, RemoteRunOperator):
    """Build the tables of pre-aggregations, and wait until they are done.

    Use it after the data of the tables was loaded, or after a new data model was published, so that
    the first reader does not wait for the build. It builds for production of the deployment (or for
    the connection's `data_api_url`), not for branches.

    Returns `{"status", "table_count", "tables", "tokens", "verified"}`: `status` is `done`, or None
    if the task did not wait for the builds; `tables` are the names of the first 100 tables, empty
    if the task did not wait; `tokens` are the service's identifiers, one for each table; `verified`
    is True if `verify_sql` passed, else None.

    The builds start once. A retry waits for the builds of the earlier try, for another `timeout`.
    It starts them again if they failed, if the arguments now select other tables, or if the service
    no longer knows them (after 24 hours, or earlier). If you clear the task, it starts all builds
    again. The service cannot stop a build: if the task ends early, its builds continue.

    The data token needs the API scope `jobs`, which is off by default. An administrator sets
    the deployment's variable `CUBEJS_DEFAULT_API_SCOPES` to `meta,data,graphql,sql,jobs` (it
    replaces the list of scopes), or returns the scope from `contextToApiScopes`.

    :param contexts: the security contexts to build for: `[{"securityContext": {...}}]`, or the
        objects alone. Use the contexts of the deployment's
        scheduled refresh, because a query does not find tables that were built for other contexts
    :param timezones: the time zones to build for. Use those of the scheduled refresh
    :param data_sources: build only pre-aggregations of these data sources
    :param cubes: build only pre-aggregations that these cubes define
    :param pre_aggregations: build only these, by full name: `cube.pre_aggregation`
    :param built_on: build only the pre-aggregations that read these tables: names such as
        `public.orders`, assets, or URIs of assets, as a list or a template that gives one. The
        metadata of the data model shows which they are: a pre-aggregation reads the tables
        (`sql_table`) of the cubes whose members it names. Cubes that are defined by a query or are
        not public do not count; a warning names those that the metadata mentions. Not with
        `pre_aggregations`
    :param on_unknown: `warn` or `fail` if nothing reads a table of `built_on`.
        If nothing reads any of them, the task starts nothing, and `table_count` is 0
    :param date_range: `[from, to]`: build only the partitions that overlap it. Each end is a date
        (its 00:00) or a datetime, or an ISO 8601 string of one; a UTC offset in it is converted to
        UTC. Pre-aggregations without partitions are always built
    :param wait_for_completion: False returns after the start, with `status` None: the task does not
        report whether the builds fail
    :param verify_sql: a query that must return a value other than null and 0 after the builds are
        done, such as `SELECT MEASURE(revenue) FROM orders` (with measures of the pre-aggregation
        only): a table that is done can still be empty. Until it returns such a value, the task
        repeats the query, for `missing_grace`. Then the task fails, and a retry only repeats the
        query
    :param missing_grace: seconds (or a timedelta) for which tables may be missing
        (`missing_partition`) while no build moves, before they count as failed. A
        tenant can report every table outside the default data source as missing until
        it is done: for such a tenant give the time of the longest build
    :param if_start_lost: what the task does if the response to the start was lost: `fail` without
        a retry (after a clear it starts the builds again); or `repeat`: a retry starts the builds
        again, which can cost the warehouse a second build
    :param timeout: seconds (or a timedelta) of wall time for each try, from the
        start of the builds or of the retry. An earlier `execution_timeout` counts too
    :param multiple_outputs: push the result key by key too
    """

    kind_path = "pre_aggregations.PreAggregationsRunKind"
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "contexts": "json",
        "verify_sql": "sql",
    }
    template_ext: Sequence[str] = (".sql",)
    checks: ClassVar[Checks] = {
        "contexts": _contexts,
        "timezones": _timezones,
        "data_sources": _names,
        "cubes": _names,
        "pre_aggregations": _full_names,
        "built_on": _tables,
        "on_unknown": partial(arguments.choice, choices=get_args(OnUnknown)),
        "date_range": _date_range,
        "wait_for_completion": arguments.boolean,
        "verify_sql": arguments.optional_text,
        "missing_grace": arguments.seconds,
        "if_start_lost": partial(arguments.choice, choices=get_args(IfStartLost)),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("verify_sql", "wait_for_completion"), _is_waited_for),
        (("built_on", "pre_aggregations"), arguments.at_most_one),
    )

    def __init__(
        self,
        *,
        contexts: Sequence[dict[str, Any]] | str = ({"securityContext": {}},),
        timezones: Sequence[str] | str = ("UTC",),
        data_sources: Sequence[str] | str | None = None,
        cubes: Sequence[str] | str | None = None,
        pre_aggregations: Sequence[str] | str | None = None,
        built_on: Sequence[str | Asset] | str | None = None,
        on_unknown: OnUnknown = "warn",
        date_range: Sequence[Any] | str | None = None,
        wait_for_completion: bool = True,
        verify_sql: str | None = None,
        missing_grace: float | timedelta = MISSING_GRACE,
        if_start_lost: IfStartLost = "fail",
        timeout: float | timedelta = BUILD_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.contexts: Any = contexts
        self.timezones: Any = timezones
        self.data_sources: Any = data_sources
        self.cubes: Any = cubes
        self.pre_aggregations: Any = pre_aggregations
        self.built_on: Any = built_on
        self.on_unknown = on_unknown
        self.date_range: Any = date_range
        self.wait_for_completion: Any = wait_for_completion
        self.verify_sql: Any = verify_sql
        self.missing_grace: Any = missing_grace
        self.if_start_lost: Any = if_start_lost
        self.validate_known_arguments()

    def run_kind(self) -> RunKind[Any, Any]:
        with self.named_errors():
            if self.verify_sql is not None:
                one_query("verify_sql", self.verify_sql)
        return super().run_kind()

    def finish(self, attempt: Attempt, ids: Ids, outcome: Any) -> Any:
        if outcome.verified:
            self._report_query(attempt)
        return super().finish(attempt, ids, outcome)

    def _give_up(self, attempt: Attempt, error: PlatformError, **how: Any) -> None:
        if isinstance(error, DataQueryError | ResultEmptyError):
            self._report_query(attempt)
        super()._give_up(attempt, error, **how)

    def _report_query(self, attempt: Attempt) -> None:
        from airflow_provider_platform.hooks.lineage import report_queries

        report_queries(self.hook(), [attempt.client.secrets.redact_text(str(self.verify_sql))])


def _one_context(context: dict[str, Any]) -> dict[str, Any]:
    """Return a security context in the service's form."""
    for name in ("securityContext", "security_context"):
        if set(context) == {name}:
            return {"securityContext": context[name]}
    return {"securityContext": context}
