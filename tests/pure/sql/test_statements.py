"""What the service's SQL cannot do is one sentence each, before anything is sent."""

from __future__ import annotations

import pytest

from airflow_provider_platform.resources.sql.statements import why_not_a_query
from airflow_provider_platform.sandbox.state.warehouse import QueryError, Warehouse

WAREHOUSE = Warehouse()


@pytest.mark.parametrize("sql", ["", " ;", "-- nothing", "/* SELECT 1 */"])
def test_empty_text_is_not_a_query(sql: str) -> None:
    assert why_not_a_query(sql) == "it contains only white space and comments"


@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        ("DELETE FROM orders", "it begins with DELETE, and the service's SQL is read-only"),
        ("insert into a values (1)", "it begins with INSERT, and the service's SQL is read-only"),
        (
            "/* SELECT */ DROP TABLE a",
            "it begins with DROP, and the service's SQL cannot create tables",
        ),
        ("CREATE TEMP TABLE a AS SELECT 1", "not even temporary ones: the data model defines"),
        ("BEGIN", "the service has no transactions: each query runs on its own"),
        ("SET timezone = 'UTC'", "the service keeps no session between queries"),
        ("CALL refresh()", "the service's SQL has neither procedures nor prepared statements"),
        ("hello", "it begins with HELLO"),
        (
            "WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a",
            "it contains INSERT, and the service's SQL is read-only",
        ),
        ("WITH a AS (DELETE FROM orders RETURNING id) SELECT * FROM a", "it contains DELETE"),
        ("WITH a AS (SELECT 1) UPDATE orders SET amount = 0", "it contains UPDATE"),
        (
            "SELECT id INTO copies FROM orders",
            "it is SELECT INTO, and the service's SQL cannot create",
        ),
    ],
)
def test_a_statement_is_not_a_query(sql: str, reason: str) -> None:
    assert reason in str(why_not_a_query(sql))
    with pytest.raises(QueryError):
        WAREHOUSE.query(sql, limit=1)


@pytest.mark.parametrize("sql", ["SELECT 1; SELECT 2", "SELECT 1; DROP TABLE a;"])
def test_several_statements_are_not_a_query(sql: str) -> None:
    assert why_not_a_query(sql) == "it contains several statements"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ';'",
        "(SELECT 1);",
        "with a as (select 1) select * from a",
        "SHOW TABLES",
        "SELECT 'INSERT INTO a' AS \"into\"",
        "SELECT REPLACE(name, 'a', 'b') FROM customers",
        "SELECT (1) AS into, (2) update FROM orders",
        "SELECT COUNT(*) FROM (SELECT deleted FROM orders) -- INSERT INTO",
    ],
)
def test_select_and_show_statements_are_queries(sql: str) -> None:
    assert why_not_a_query(sql) is None
