"""The hook of a `platform` connection is a database to Airflow's SQL operators, over HTTP."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.common.sql.hooks.handlers import fetch_all_handler, fetch_one_handler
from airflow.providers.common.sql.hooks.sql import DbApiHook
from airflow.providers.common.sql.operators.sql import BaseSQLOperator

from airflow_provider_platform._airflow import BaseHook
from airflow_provider_platform.client.connection_fields import EXTRA_NAMES
from airflow_provider_platform.client.errors import (
    DataQueryError,
    PlatformClosedError,
    PlatformInputError,
    ResultTruncatedError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.hooks.sql import PlatformSqlHook
from airflow_provider_platform.resources.deployments import get_deployment

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

PAYMENTS = "SELECT id, paid_on, paid_at, fee, settled, note FROM payments ORDER BY id LIMIT %s"


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformSqlHook:
    assert platform_sandbox
    return PlatformSqlHook()


def queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


def extras(monkeypatch: pytest.MonkeyPatch, **more: Any) -> dict[str, Any]:
    """Give the connection of the test further extras; returns all of them."""
    connection = BaseHook.get_connection("platform_default")
    found = {**json.loads(connection.extra or "{}"), **more}
    document = {
        "conn_type": "platform",
        "host": connection.host,
        "password": connection.password,
        "port": connection.port,
        "schema": connection.schema,
        "extra": found,
    }
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(document))
    return found


def test_connection_creates_both_hooks(platform_sandbox: Sandbox) -> None:
    assert platform_sandbox
    hook = BaseHook.get_connection("platform_default").get_hook()
    assert isinstance(hook, DbApiHook)
    assert isinstance(hook, PlatformHook)
    assert hook.get_first("SELECT 1") == (1,)
    assert hook.call("getAppConfig") == hook.get_app_config()
    assert hook.test_connection()[0] is True


def test_sql_hook_returns_python_types(hook: PlatformSqlHook) -> None:
    assert isinstance(hook.get_first("SELECT paid_at FROM payments")[0], str)
    rows = PlatformSqlHook(types={"paid_at": "timestamp"}).get_records(PAYMENTS, [50])
    assert [*map(type, rows[1])] == [int, date, datetime, Decimal, bool, str]
    first = (rows[0][0], rows[0][1], rows[0][3])
    [texts] = hook.run_sql("SELECT id, paid_on, fee FROM payments WHERE id = 1")
    assert first == (1, date.fromisoformat(texts[1]), Decimal(texts[2]))
    assert rows[49][3] is None
    assert hook.get_first("SELECT COUNT(*) FROM orders WHERE 1 = 0") == (0,)
    assert hook.get_first("SELECT id FROM orders WHERE 1 = 0") is None


def test_sql_hook_runs_several_statements(hook: PlatformSqlHook) -> None:
    sql = ["SELECT 1", "SELECT %(a)s"]
    given = {"parameters": {"a": "x"}, "handler": fetch_all_handler}
    assert hook.run(sql, **given) == [[(1,)], [("x",)]]
    assert hook.run(iter(sql), **given) == [[(1,)], [("x",)]]
    split: dict[str, Any] = {"split_statements": True, "handler": fetch_one_handler}
    assert hook.run("SELECT 1; SELECT ';' ;", **split) == (";",)
    assert hook.run("SELECT 1; SELECT 2", return_last=False, **split) == [(1,), (2,)]
    assert [[name for name, *_ in one] for one in hook.descriptions] == [["1"], ["2"]]
    assert hook.run("SELECT 1") is None


@pytest.mark.parametrize(
    ("sql", "named", "said"),
    [
        (
            "INSERT INTO orders VALUES (1)",
            {},
            "it begins with INSERT, and the service's SQL is read-only",
        ),
        ("SELECT 1; DROP TABLE orders", {"split_statements": True}, "it begins with DROP"),
        (
            "SELECT 1; SELECT 2",
            {},
            "several statements. To run several queries, give split_statements=True",
        ),
        ("BEGIN", {}, "the service has no transactions"),
        (["SELECT 1", 7], {}, "got a value of type int"),
    ],
)
def test_statement_that_writes_is_refused_before_a_request(
    hook: PlatformSqlHook, platform_sandbox: Sandbox, sql: Any, named: dict[str, Any], said: str
) -> None:
    with pytest.raises(PlatformInputError) as error:
        hook.run(sql, handler=fetch_all_handler, **named)
    assert said in error.value.message
    assert error.value.message.startswith("Nothing was sent: ")
    assert queries(platform_sandbox) == 0


def test_unsupported_sql_hook_methods_say_so(hook: PlatformSqlHook) -> None:
    attempts: dict[str, Any] = {
        "insert_rows is not supported": lambda: hook.insert_rows("orders", [(1,)]),
        "bulk_load is not supported": lambda: hook.bulk_load("orders", "rows.tsv"),
        "bulk_dump is not supported": lambda: hook.bulk_dump("orders", "rows.tsv"),
        "SQLAlchemy is not supported": hook.get_sqlalchemy_engine,
        "the data API has no SQLAlchemy dialect": lambda: hook.sqlalchemy_url,
        "database is not supported": lambda: setattr(hook, "schema", "production"),
        "executemany is not supported": lambda: (
            hook.get_conn().cursor().executemany("SELECT 1", [])
        ),
    }
    for said, attempt in attempts.items():
        with pytest.raises(PlatformInputError, match=said):
            attempt()
    assert hook.schema is None


def test_inspector_shows_the_data_model(hook: PlatformSqlHook) -> None:
    assert hook.inspector.get_table_names() == [
        *("customers", "events", "orders", "payments", "products")
    ]
    assert hook.inspector.get_table_names("sales") == []
    if not hasattr(hook, "get_table_schema"):
        return  # the SQL provider of an old Airflow asks for no schema
    assert hook.get_table_schema("payments")[:3] == [
        {"name": "id", "type": "bigint"},
        {"name": "order_id", "type": "bigint"},
        {"name": "paid_on", "type": "date"},
    ]
    with pytest.raises(PlatformInputError, match="no table 'ordres'"):
        hook.get_table_schema("ordres")


def test_cursor_follows_the_db_api(hook: PlatformSqlHook) -> None:
    with hook.get_conn() as connection, closing(connection.cursor()) as cursor:
        assert (cursor.description, cursor.rowcount) == (None, -1)
        with pytest.raises(PlatformClosedError, match="Call execute first"):
            cursor.fetchone()
        assert cursor.execute("SELECT id, fee FROM payments ORDER BY id") is cursor
        assert cursor.rowcount == 480
        [number, fee] = cursor.description or []
        assert number == ("id", "Int64", None, None, None, None, None)
        assert fee[:2] == ("fee", "Decimal")
        assert fee[4] >= fee[5] == 2
        assert [row[0] for row in cursor.fetchmany(3)] == [1, 2, 3]
        assert [row[0] for row in cursor.fetchmany()] == [4]
        assert cursor.fetchone()[0] == 5  # type: ignore[index]
        assert next(iter(cursor))[0] == 6
        assert [row[0] for row in cursor.fetchall()] == [*range(7, 481)]
        assert (cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall()) == (None, [], [])
        cursor.execute("SELECT 10 % 4, 'LIKE %s'")
        assert cursor.fetchall() == [(2, "LIKE %s")]
        connection.commit()
        connection.rollback()
    with pytest.raises(PlatformClosedError, match="cursor is closed"):
        cursor.execute("SELECT 1")
    with pytest.raises(PlatformClosedError, match="connection to the data API is closed"):
        connection.cursor()


def test_extras_of_the_connection_are_not_passed_as_keywords(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert platform_sandbox
    others = {"further": {"a": 1}, "dialect": "x", "extra__platform__x": "y"}
    empty = dict.fromkeys(EXTRA_NAMES - extras(monkeypatch).keys())
    given = extras(monkeypatch, **empty, **others)
    hook = BaseSQLOperator.get_hook("platform_default", {"timezone": "Europe/Paris"})
    assert hook.get_first("SELECT 1") == (1,)
    hook = PlatformSqlHook(**given)
    assert hook.get_first("SELECT 1") == (1,)


def test_sql_hook_takes_branch_and_types(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch("feature/a")
    assert PlatformSqlHook(branch_name="feature/a").get_first("SELECT 1") == (1,)
    with pytest.raises(DataQueryError, match="Bad branch"):
        PlatformSqlHook(branch_name="nowhere").get_first("SELECT 1")
    typed = PlatformSqlHook(types={"id": "decimal"}, log_sql="false")
    assert typed.get_first("SELECT id FROM orders ORDER BY id") == (Decimal(1),)
    assert PlatformSqlHook(types="text").get_first("SELECT 1") == ("1",)
    assert typed.log_sql is False


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ({"brnach_name": "a"}, r"'brnach_name' .* \(did you mean branch_name\?\)"),
        ({"brnach_name": None}, r"'brnach_name' .* \(did you mean branch_name\?\)"),
        ({"branch_name": None}, "branch_name of hook_params has no value"),
        ({"branch_name": "None"}, "branch_name of hook_params has no value"),
        ({"deployment_id": None}, "deployment_id of hook_params has no value"),
        ({"deployment_id": ""}, "deployment_id of hook_params has no value"),
        ({"timezone": "None"}, "timezone of hook_params has no value"),
        ({"page_by": None}, "page_by of hook_params has no value"),
        ({"types": "mine"}, "hook_params: types "),
        ({"on_truncated": "ignore"}, "on_truncated must be one of warn, fail"),
        ({"timeout": "soon"}, "hook_params: timeout must be"),
        ({"page_by": []}, "page_by"),
        ({"page_by": "[]"}, "page_by"),
        ({"max_row_limit": "many"}, "hook_params: max_row_limit must be"),
    ],
)
def test_a_bad_keyword_is_refused_before_anything_is_sent(
    platform_sandbox: Sandbox, named: dict[str, Any], said: str
) -> None:
    hook = BaseSQLOperator.get_hook("platform_default", named)
    with pytest.raises(PlatformInputError, match=said):
        hook.get_first("SELECT 1")
    assert platform_sandbox.control.state().requests == []


def test_keywords_from_a_template_are_strings(platform_sandbox: Sandbox) -> None:
    named = {
        "timeout": "120",
        "page_by": '["id"]',
        "page_rows": "2",
        "max_row_limit": "3",
        "default_row_limit": "3",
        "on_truncated": "None",
    }
    hook = BaseSQLOperator.get_hook("platform_default", named)
    assert hook.get_records("SELECT id FROM payments WHERE id < 4") == [(1,), (2,), (3,)]


@pytest.mark.parametrize("df_type", ["pandas", "polars"])
def test_frames_come_in_chunks_and_take_no_unknown_argument(
    hook: PlatformSqlHook, platform_sandbox: Sandbox, df_type: str
) -> None:
    sql = "SELECT id FROM payments ORDER BY id LIMIT 5"
    with pytest.raises(
        PlatformInputError, match=f"get_df does not support index with df_type='{df_type}"
    ):
        hook.get_df(sql, df_type=df_type, index="id")
    assert queries(platform_sandbox) == 0
    chunks = list(hook.get_df_by_chunks(sql, df_type=df_type, chunksize=2))
    assert [list(chunk["id"]) for chunk in chunks] == [[1, 2], [3, 4], [5]]


def test_sql_hook_runs_operations_too(hook: PlatformSqlHook) -> None:
    reading = get_deployment(deployment_id=1)
    assert hook.run(reading).id == hook.run(work=reading).id == 1


def test_truncated_rows_are_a_message_of_the_connection_or_an_error(
    platform_sandbox: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    platform_sandbox.control.set(data_max_rows=30)
    sql, limit = "SELECT id FROM orders LIMIT 40", {"max_row_limit": 30}
    hook = PlatformSqlHook(**limit)
    with closing(hook.get_conn()) as connection, connection.cursor() as cursor:
        assert len(cursor.execute(sql).fetchall()) == 30
        hook.get_db_log_messages(connection)
    assert "30 rows" in caplog.text + capsys.readouterr().out
    with pytest.raises(PlatformClosedError, match="cursor is closed"):
        cursor.fetchone()
    with pytest.raises(ResultTruncatedError, match="30 rows"):
        PlatformSqlHook(on_truncated="fail", **limit).get_records(sql)
