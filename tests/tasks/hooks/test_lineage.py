"""Each query that a task runs is reported to Airflow's lineage collector once, without secrets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.compat.lineage import hook as compat

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.hooks.sql import PlatformSqlHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SQL = "SELECT id FROM orders"


class Collector:
    """Keeps what Airflow's collector is given."""

    def __init__(self) -> None:
        self.extras: list[tuple[Any, str, dict[str, Any]]] = []

    def add_extra(self, context: Any, key: str, value: dict[str, Any]) -> None:
        self.extras.append((context, key, value))

    @property
    def sql(self) -> list[str]:
        return [value["sql"] for _, _, value in self.extras]


@pytest.fixture(autouse=True)
def collector(monkeypatch: pytest.MonkeyPatch) -> Collector:
    collector = Collector()
    monkeypatch.setattr(compat, "get_hook_lineage_collector", lambda: collector)
    return collector


def test_query_of_the_hook_is_reported_when_it_is_sent(
    platform_sandbox: Sandbox, collector: Collector
) -> None:
    with PlatformHook() as hook:
        rows = hook.run_sql("SELECT id FROM orders WHERE id = %s", parameters=[3])
        assert collector.sql == []
        list(rows)
    assert collector.sql == ["SELECT id FROM orders WHERE id = 3"]
    [(context, key, _)] = collector.extras
    assert key == "sql_job"
    assert context.platform_conn_id == "platform_default"
    assert context is not hook  # the collector would keep its client


def test_result_in_pages_is_one_query(platform_sandbox: Sandbox, collector: Collector) -> None:
    with PlatformHook() as hook:
        list(hook.run_sql(SQL, page_by=["id"], page_rows=50))
    assert collector.sql == [SQL]


def test_secret_in_a_query_is_hidden(platform_sandbox: Sandbox, collector: Collector) -> None:
    secret = platform_sandbox.management_token
    with PlatformHook() as hook, PlatformSqlHook() as sql_hook:
        for run in (lambda sql: list(hook.run_sql(sql)), sql_hook.get_records):
            run(f"SELECT id FROM orders WHERE status = '{secret}'")
    assert collector.sql == ["SELECT id FROM orders WHERE status = '***'"] * 2


@pytest.mark.parametrize(
    "read",
    [
        lambda hook: hook.get_records(SQL),
        lambda hook: hook.get_df(SQL),
        lambda hook: list(hook.get_df_by_chunks(SQL, chunksize=200)),
        lambda hook: hook.get_df(SQL, df_type="polars"),
    ],
)
def test_sql_hook_reports_a_query_once(
    platform_sandbox: Sandbox,
    collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
    read: Any,
) -> None:
    airflows = pytest.importorskip("airflow.providers.common.sql.hooks.lineage")
    monkeypatch.setattr(airflows, "get_hook_lineage_collector", lambda: collector)
    with PlatformSqlHook() as hook:
        read(hook)
    assert collector.sql == [SQL]


def test_chat_of_the_hook_reports_its_queries(
    platform_sandbox: Sandbox, collector: Collector
) -> None:
    with PlatformHook() as hook:
        result = hook.chat("revenue by country", poll_interval=0.05)
    assert collector.sql == [query.sql for query in result.queries]


def test_failed_query_of_an_answer_is_left_out(
    platform_sandbox: Sandbox, collector: Collector
) -> None:
    with PlatformHook() as hook:
        hook.chat(
            "sql: SELECT nonsense FROM orders", fail_on_tool_error="never", poll_interval=0.05
        )
    assert collector.sql == []


def test_lineage_never_fails_a_query(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> None:
        raise RuntimeError("no plugins")

    monkeypatch.setattr(compat, "get_hook_lineage_collector", fail)
    with PlatformHook() as hook:
        assert list(hook.run_sql(SQL))


def test_reader_gets_the_names_of_the_database(platform_sandbox: Sandbox) -> None:
    parser = pytest.importorskip("airflow.providers.openlineage.sqlparser")
    hook = PlatformHook()
    found = parser.get_openlineage_facets_with_sql(
        hook, SQL, hook.platform_conn_id, None, use_connection=False
    )
    [table] = found.inputs
    assert (table.namespace, table.name) == (
        f"platform://{platform_sandbox.url.removeprefix('http://')}",
        "public.orders",
    )
