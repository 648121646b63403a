"""Whether a query has a limit of its own, in two readings of one rule."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.resources.sql.statements import (
    DEFAULT_LIMIT,
    MAXIMUM_LIMIT,
    RowLimits,
    own_limit,
    why_not_a_query,
)
from airflow_provider_platform.sandbox import data_api as of_the_sandbox

LIMITED = [
    "SELECT 1 LIMIT 5",
    "select a from b\nlimit\t10 offset 3",
    "SELECT a FROM b OFFSET 3 LIMIT 10;",
    "SELECT a FROM b LIMIT/* many */5",
    "SELECT a FROM b LIMIT -- many\n 5",
    "(SELECT a FROM b LIMIT 5)",
    "((SELECT a FROM b LIMIT 5)) ;",
    "(SELECT a FROM b) LIMIT 5",
    "(SELECT a FROM b) UNION (SELECT a FROM c) LIMIT 5",
    "WITH x AS (SELECT 1) SELECT * FROM x LIMIT 5",
    "SELECT 'it''s' FROM b LIMIT 5",
    "SELECT $$ ( $$ FROM b LIMIT 5",
    "SELECT $tag$ it's $$ ( $tag$ FROM b LIMIT 5",
    'SELECT "a""(" FROM b LIMIT 5',
    "SELECT /* /* ( */ ( */ a FROM b LIMIT 5",
    "SELECT a FROM b LIMIT (5)",
    "SELECT a FROM b LIMIT $1",
    "SELECT a FROM b LIMIT ?",
    "SELECT a FROM b FETCH FIRST 5 ROWS ONLY",
    "SELECT t.limit FROM t LIMIT 5",
]
UNLIMITED = [
    "SELECT a FROM b",
    "SELECT a FROM (SELECT a FROM b LIMIT 5) c",
    "WITH x AS (SELECT 1 LIMIT 5) SELECT * FROM x",
    "(SELECT a FROM b LIMIT 5) UNION (SELECT a FROM c LIMIT 5)",
    "SELECT a FROM b -- LIMIT 5",
    "SELECT a FROM b /* LIMIT 5 */",
    "SELECT a FROM b /* /* */ LIMIT 5 */",
    "SELECT 'LIMIT 5' FROM b",
    "SELECT 'it''s LIMIT 5' FROM b",
    "SELECT $$ LIMIT 5 $$ FROM b",
    "SELECT $x$ $$ LIMIT 5 $x$ FROM b",
    'SELECT "LIMIT 5" FROM b',
    'SELECT 1 AS "a LIMIT 5"',
    "SELECT t.limit FROM t",
    "SELECT credit_limit FROM t",
    "SELECT limit_of FROM t ORDER BY limits",
    "SELECT a AS limit FROM t",
    "SELECT a FROM b LIMIT ALL",
    "SELECT a FROM b LIMIT NULL",
    "SELECT a FROM b WHERE c IN (SELECT c FROM d ORDER BY e LIMIT 5)",
    "SELECT a FROM b ORDER BY c",
]


@pytest.mark.parametrize("sql", LIMITED)
def test_limit_of_the_query_is_found(sql: str) -> None:
    assert own_limit(sql)[0] is True
    assert "the service's maximum for a query with a LIMIT" in str(
        RowLimits().why_cut(sql, MAXIMUM_LIMIT)
    )


@pytest.mark.parametrize("sql", UNLIMITED)
def test_query_without_a_limit_has_none(sql: str) -> None:
    assert own_limit(sql)[0] is False
    assert "has LIMIT" not in str(RowLimits().why_cut(sql, 2_000))
    assert "the service's maximum for a query without a LIMIT" in str(
        RowLimits().why_cut(sql, DEFAULT_LIMIT)
    )


@pytest.mark.parametrize(
    ("sql", "number"),
    [
        ("SELECT a FROM b LIMIT 5", 5),
        ("(SELECT a FROM b LIMIT 5);", 5),
        ("SELECT a FROM b LIMIT 50000 OFFSET 3", 50_000),
        ("SELECT a FROM b OFFSET 3 LIMIT 7", 7),
        ("SELECT a FROM b FETCH FIRST 5 ROWS ONLY", 5),
        ("SELECT a FROM b FETCH NEXT ROW ONLY", 1),
        ("SELECT a FROM b LIMIT 5 + 5", None),
        ("SELECT a FROM b LIMIT 5.5", None),
        ("SELECT a FROM b LIMIT $1", None),
        ("SELECT a FROM b LIMIT 10, 20", None),
        ("SELECT a FROM (SELECT a FROM b LIMIT 5) c", None),
    ],
)
def test_reason_quotes_a_limit_that_is_a_number(sql: str, number: int | None) -> None:
    said = str(RowLimits().why_cut(sql, 2_000))
    assert "2000 is a round number" in said
    assert ("although" in said) == (number is not None)
    assert number is None or f"although the query has LIMIT {number}." in said


@pytest.mark.parametrize(
    "sql", ["SELECT `a` FROM b", "SELECT `a` FROM b LIMIT 50000", "SHOW TABLES"]
)
def test_either_row_limit_counts_if_the_query_cannot_be_parsed(sql: str) -> None:
    assert own_limit(sql) == (None, None)
    for limits, counts in (
        (RowLimits(), (DEFAULT_LIMIT, MAXIMUM_LIMIT, 3_000)),
        (RowLimits(default=777), (777, MAXIMUM_LIMIT, 3_000)),
        (RowLimits(default=777, maximum=888), (777, 888)),
    ):
        assert all(limits.why_cut(sql, count) for count in counts)
        assert limits.why_cut(sql, 7) is None
    assert RowLimits(default=777, maximum=888).why_cut(sql, 3_000) is None


def test_limit_beside_a_string_with_escapes_is_found_or_unknown() -> None:
    """sqlglot reads a backslash in such a string only since release 30."""
    assert own_limit("SELECT e'\\'' FROM b LIMIT 5")[0] in (True, None)
    assert own_limit("SELECT e'\\' LIMIT 5' FROM b")[0] in (False, None)


PLAIN, OF_50000, OF_20000 = "SELECT a FROM b", "SELECT a FROM b LIMIT 50000", "SELECT 1 LIMIT 20000"


@pytest.mark.parametrize(
    ("sql", "rows", "limits", "reason"),
    [
        (PLAIN, 10_000, RowLimits(), "the service's maximum"),
        (PLAIN, 9_999, RowLimits(), None),
        (PLAIN, 0, RowLimits(), None),
        (PLAIN, 500, RowLimits(), None),
        (PLAIN, 2_000, RowLimits(), "a round number"),
        (PLAIN, 4_096, RowLimits(), "set default_row_limit"),
        (PLAIN, 20_000, RowLimits(default=10_000), None),
        (PLAIN, 10_000, RowLimits(default=20_000), None),
        (PLAIN, 777, RowLimits(default=777), "the service's maximum"),
        (PLAIN, 777, RowLimits(maximum=777), "a row limit of the deployment"),
        (OF_50000, 50_000, RowLimits(), "the service's maximum"),
        (OF_50000, 50_000, RowLimits(maximum=60_000), None),
        (OF_50000, 20_000, RowLimits(), "has LIMIT 50000. 20000 is a round number"),
        (OF_50000, 20_000, RowLimits(default=10_000), "set max_row_limit"),
        (OF_50000, 20_000, RowLimits(maximum=20_000), "the service's maximum"),
        (OF_50000, 20_000, RowLimits(maximum=50_000), None),
        (OF_50000, 20_000, RowLimits(default=20_000, maximum=50_000), "20000 is a row limit"),
        (OF_20000, 20_000, RowLimits(), None),
        (OF_20000, 20_000, RowLimits(default=20_000, maximum=50_000), None),
        (OF_20000, 19_999, RowLimits(), None),
        ("SELECT 1 LIMIT 5 * 1000", 5_000, RowLimits(), "a round number"),
    ],
)
def test_number_of_rows_says_whether_a_result_may_be_cut(
    sql: str, rows: int, limits: RowLimits, reason: str | None
) -> None:
    said = limits.why_cut(sql, rows)
    assert (said is None) == (reason is None)
    assert (reason or "") in (said or "")


@given(st.integers(1, 200_000), st.integers(0, 200_000), st.booleans())
def test_cut_is_reported_unless_the_query_has_a_smaller_limit(
    own: int, maximum: int, known: bool
) -> None:
    """A deployment that cuts where its known limit is, and a query that asks for `own` rows."""
    limits = RowLimits(maximum=maximum or None) if known else RowLimits()
    cap = limits.maximum or MAXIMUM_LIMIT
    said = limits.why_cut(f"SELECT a FROM b LIMIT {own}", min(own, cap))
    assert (said is not None) == (own >= cap)


NOISE = st.sampled_from(
    [" ", "\n", "\t", " -- LIMIT 5 '\n", "/* limit 5 ( */", "/* a */ /* 'b */", " \n-- )\n"]
)
VALUES = st.sampled_from(["a", "'LIMIT 5'", "'it''s (limit 5'", '"LIMIT 5"', '"a ("', "1.5", "b.c"])


@st.composite
def queries(draw: st.DrawFn, depth: int = 0) -> tuple[str, bool]:
    """A query, and whether it has a limit of its own."""

    def inner() -> str:
        return draw(queries(depth + 1))[0]

    between = [draw(NOISE) for _ in range(8)]
    columns = ",".join(draw(st.lists(VALUES, min_size=1, max_size=3)))
    table = f"({inner()}) x" if depth < 2 and draw(st.booleans()) else "t"
    begin = (
        f"WITH{between[0]}y AS ({inner()}){between[1]}" if depth < 2 and draw(st.booleans()) else ""
    )
    where = f"{between[2]}WHERE a IN ({inner()})" if depth < 2 and draw(st.booleans()) else ""
    limited = draw(st.booleans())
    word = draw(st.sampled_from(["LIMIT", "limit", "Limit"]))
    limit = f"{between[3]} {word}{between[4]}{draw(st.integers(0, 10**6))}" if limited else ""
    sql = f"{begin}SELECT{between[5]} {columns} FROM{between[6]} {table}{where}{limit}{between[7]}"
    return sql, limited


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(queries())
def test_client_and_sandbox_find_the_same_limit(query: tuple[str, bool]) -> None:
    sql, limited = query
    assert own_limit(sql)[0] is limited, sql
    assert own_limit(f"({sql}\n);")[0] is limited, sql
    assert of_the_sandbox.has_limit(sql) == limited, sql
    assert why_not_a_query(sql) is None
