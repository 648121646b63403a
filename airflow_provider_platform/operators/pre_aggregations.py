"""`PlatformBuildPreAggregationsOperator`: builds the tables of pre-aggregations, and waits."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import DeploymentOperator
from airflow_provider_platform.operators._submission.remote_run import RemoteRunOperator
from airflow_provider_platform.operators.query import one_query

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import BaseTrigger
    from airflow_provider_platform.client.operations.rules import Rule
    from airflow_provider_platform.operators._base.operator import Checks
    from airflow_provider_platform.runs.pre_aggregations import PreAggregationsRunKind
    from airflow_provider_platform.runs.run_kind import Ids

BUILD_TIMEOUT = 7200.0
MISSING_GRACE = 300.0


def _names(name: str, value: Any) -> list[str] | None:
    """A list of names, also one name or JSON text; None and an empty list keep everything. Raises
    PlatformInputError."""
    found = arguments.optional(value)
    if isinstance(found, str) and not found.lstrip().startswith("["):
        found = [found]
    names = arguments.sequence(name, found)
    if names is not None and not all(isinstance(one, str) and one.strip() for one in names):
        raise PlatformInputError(f"Nothing was sent: {name} must be a list of names.", field=name)
    return names or None


def _contexts(name: str, value: Any) -> list[Any]:
    """The security contexts, each as the service writes it or alone. Raises PlatformInputError."""
    found = arguments.sequence(name, value)
    if not found:
        raise PlatformInputError(
            f"Nothing was sent: {name} must have at least one security context; the empty one is "
            "{}.",
            field=name,
        )
    if not all(isinstance(one, dict) for one in found):
        raise PlatformInputError(
            f"Nothing was sent: {name} must be a list of objects (dicts).", field=name
        )
    return found


def _timezones(name: str, value: Any) -> list[str]:
    from airflow_provider_platform.client.formats.input_values import check_timezone

    found = _names(name, value)
    if found is None:
        raise PlatformInputError(
            f"Nothing was sent: {name} must have at least one time zone.", field=name
        )
    for zone in found:
        arguments.by_rule(check_timezone, name, zone)
    return found


def _full_names(name: str, value: Any) -> list[str] | None:
    from airflow_provider_platform.client.formats.build_selector import check_full_name

    found = _names(name, value)
    for one in found or ():
        arguments.by_rule(check_full_name, name, one)
    return found


def _date_range(name: str, value: Any) -> list[str] | None:
    """Two moments as the service reads them, or None. Raises PlatformInputError."""
    from airflow_provider_platform.client.formats.build_selector import zoneless_range

    found = arguments.sequence(name, value)
    if not found or all(arguments.optional(one) is None for one in found):
        return None
    texts = [one.isoformat() if hasattr(one, "isoformat") else str(one) for one in found]
    try:
        return [*zoneless_range(texts)]
    except ValueError as error:
        raise PlatformInputError(f"Nothing was sent: {name} {error}.", field=name) from None


def _is_waited_for(verify_sql: str | None, wait_for_completion: bool) -> None:
    """A rule: only tables that are waited for can be verified."""
    if verify_sql is not None and not wait_for_completion:
        raise ValueError(
            "verify_sql verifies tables that are done, so wait_for_completion=False "
            "cannot be combined with it"
        )


class PlatformBuildPreAggregationsOperator(DeploymentOperator, RemoteRunOperator):
    """Build the tables of pre-aggregations, and wait until they are done.

    Use it after the data of the tables was loaded, or after a new data model went live, so that the
    first reader does not wait for the build. It builds for production of the deployment (or for the
    connection's `data_api_url`), not for branches.

    Returns `{"status", "table_count", "tables", "tokens", "verified"}`: `status` is `done`, None if
    the builds were not waited for; `tables` are the names of the first 100 tables; `tokens` are the
    service's, one for each table; `verified` is True if `verify_sql` found rows, else None. Also
    pushed key by key (with `multiple_outputs`, the default).

    The builds start once. A retry polls the tokens of the previous try, for another `timeout`, and
    starts nothing as long as the service knows them (24 hours); a failed build is started again by
    the retry, and so is everything by a clear. The service has no operation that stops a build: a
    task that is ended or too late leaves its builds running.

    The data token needs the API scope `jobs`, which is off by default: an administrator adds it to
    `CUBEJS_DEFAULT_API_SCOPES` or `contextToApiScopes` of the deployment.

    :param contexts: the security contexts to build for, as `[{"securityContext": {...}}]` or the
        objects alone; the default is one empty context. Give those of the deployment's scheduled
        refresh: no query finds tables that were built for others
    :param timezones: the time zones to build for, of the scheduled refresh too (default: UTC)
    :param data_sources: build pre-aggregations of these data sources only
    :param cubes: only those that these cubes define
    :param pre_aggregations: only these, by full name: `cube.pre_aggregation`
    :param date_range: `[from, to]`: only the partitions that touch it; a date, a time, or text of
        one, of which an offset is converted to UTC. What has no partitions is always built
    :param wait_for_completion: False returns after the start, with `status` None: nobody learns
        whether the builds fail
    :param verify_sql: a query that must bring a value other than null and 0 once the builds are
        done, as `SELECT MEASURE(count) FROM orders`: a table that is done can be empty. While it
        brings none it is run again, for `missing_grace`; then the task fails, and a retry verifies
        again without building
    :param missing_grace: seconds (or a timedelta) for which tables may be missing
        (`missing_partition`) while no build moves, before they count as failed (default 300). A
        tenant before July 2026 reports every table outside the default data source as missing until
        it is done: give the time of the longest build there
    :param if_start_lost: if the answer to the start was lost, with the tokens in it: `fail` (the
        default) says so, and starts again after a clear; `repeat` lets the retry start again, which
        changes no data and can cost the warehouse a second build
    :param timeout: seconds (or a timedelta) of wall time for each try (default 7200), from the
        start or, in a retry that follows builds, from its begin; an earlier `execution_timeout`
        counts too
    :param cancel_on_kill: has no effect, since nothing stops a build
    :param multiple_outputs: push the result key by key too
    """

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
        "date_range": _date_range,
        "wait_for_completion": arguments.boolean,
        "verify_sql": arguments.or_none(one_query),
        "missing_grace": arguments.seconds,
        "if_start_lost": partial(arguments.choice, choices=("fail", "repeat")),
    }
    rules: ClassVar[Sequence[Rule]] = ((("verify_sql", "wait_for_completion"), _is_waited_for),)

    def __init__(
        self,
        *,
        contexts: Sequence[dict[str, Any]] | str = ({"securityContext": {}},),
        timezones: Sequence[str] | str = ("UTC",),
        data_sources: Sequence[str] | str | None = None,
        cubes: Sequence[str] | str | None = None,
        pre_aggregations: Sequence[str] | str | None = None,
        date_range: Sequence[Any] | str | None = None,
        wait_for_completion: bool = True,
        verify_sql: str | None = None,
        missing_grace: float | timedelta = MISSING_GRACE,
        if_start_lost: Literal["fail", "repeat"] = "fail",
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
        self.date_range: Any = date_range
        self.wait_for_completion: Any = wait_for_completion
        self.verify_sql: Any = verify_sql
        self.missing_grace: Any = missing_grace
        self.if_start_lost: Any = if_start_lost
        self.validate_known_arguments()

    def run_kind(self) -> PreAggregationsRunKind:
        from airflow_provider_platform.client.data_api.pre_aggregations import BuildSelector
        from airflow_provider_platform.runs.pre_aggregations import PreAggregationsRunKind

        with self.named_errors():
            selector = BuildSelector.build(
                contexts=[_one_context(one) for one in self.contexts],
                timezones=self.timezones,
                data_sources=self.data_sources,
                cubes=self.cubes,
                pre_aggregations=self.pre_aggregations,
                date_range=self.date_range,
            )
        return PreAggregationsRunKind(
            selector=selector,
            wait_for_completion=self.wait_for_completion,
            verify_sql=self.verify_sql,
            missing_grace=self.missing_grace,
            if_start_lost=self.if_start_lost,
            deployment_id=self.deployment_id,
        )

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.pre_aggregations import (
            PlatformBuildPreAggregationsTrigger,
        )

        return PlatformBuildPreAggregationsTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            missing_grace=self.missing_grace,
            verify_sql=self.verify_sql,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )


def _one_context(given: dict[str, Any]) -> dict[str, Any]:
    """A context as the service writes it."""
    for name in ("securityContext", "security_context"):
        if set(given) == {name}:
            return {"securityContext": given[name]}
    return {"securityContext": given}
