"""Results in pages: which queries have pages, what a page asks for, and what its rows must be."""

from __future__ import annotations

import re
import sqlite3
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    PageKeyError,
    PagesChangedError,
    PlatformInputError,
)
from airflow_provider_platform.resources.sql.page_by import PagedQuery, PageReader
from tests.support.hypothesis_profiles import examples

if TYPE_CHECKING:
    from decimal import Decimal


@pytest.mark.parametrize(
    ("sql", "page_by", "first", "second"),
    [
        (
            "SELECT id, amount FROM orders",
            ["id"],
            "SELECT id, amount FROM orders ORDER BY id LIMIT 9",
            "SELECT id, amount FROM orders WHERE (id >= 1 OR id IS NULL) ORDER BY id LIMIT 9",
        ),
        (
            "select o.id, c.name as customer from orders o join customers c on c.id = "
            "o.customer_id\nwhere c.country = 'DE' or o.paid -- all of them\n;",
            ["customer", "id"],
            "select o.id, c.name as customer from orders o join customers c on c.id = o.customer_id"
            " WHERE (c.country = 'DE' or o.paid) ORDER BY customer, o.id LIMIT 9",
            "select o.id, c.name as customer from orders o join customers c on c.id = o.customer_id"
            " WHERE (c.country = 'DE' or o.paid) AND (c.name > 1 OR (c.name = 1 AND "
            "(o.id >= 2 OR o.id IS NULL)) OR c.name IS NULL) ORDER BY customer, o.id LIMIT 9",
        ),
        (
            "SELECT DATE_TRUNC('day', at) AS day, country, MEASURE(revenue) FROM sales "
            "GROUP BY 1, country HAVING MEASURE(revenue) > 0",
            ["day", "country"],
            "SELECT DATE_TRUNC('day', at) AS day, country, MEASURE(revenue) FROM sales "
            "GROUP BY 1, country HAVING MEASURE(revenue) > 0 ORDER BY day, country LIMIT 9",
            "SELECT DATE_TRUNC('day', at) AS day, country, MEASURE(revenue) FROM sales WHERE "
            "((DATE_TRUNC('day', at)) > 1 OR ((DATE_TRUNC('day', at)) = 1 AND "
            "(country >= 2 OR country IS NULL)) OR (DATE_TRUNC('day', at)) IS NULL) "
            "GROUP BY 1, country HAVING MEASURE(revenue) > 0 ORDER BY day, country LIMIT 9",
        ),
        (
            "SELECT * FROM orders /* WHERE */ WHERE note IS DISTINCT FROM 'ORDER BY \"x\" LIMIT 5'",
            ["Order Id"],
            "SELECT * FROM orders WHERE (note IS DISTINCT FROM 'ORDER BY \"x\" LIMIT 5') "
            'ORDER BY "Order Id" LIMIT 9',
            "SELECT * FROM orders WHERE (note IS DISTINCT FROM 'ORDER BY \"x\" LIMIT 5') AND "
            '("Order Id" >= 1 OR "Order Id" IS NULL) ORDER BY "Order Id" LIMIT 9',
        ),
        (
            "SELECT o.* FROM orders o",
            ["id"],
            "SELECT o.* FROM orders o ORDER BY o.id LIMIT 9",
            "SELECT o.* FROM orders o WHERE (o.id >= 1 OR o.id IS NULL) ORDER BY o.id LIMIT 9",
        ),
        (
            'SELECT DISTINCT a."B" "C c", EXTRACT(year FROM t) y, CASE WHEN d THEN 1 END e FROM a',
            ["C c", "Y", "e"],
            'SELECT DISTINCT a."B" "C c", EXTRACT(year FROM t) y, CASE WHEN d THEN 1 END e FROM a '
            'ORDER BY "C c", y, e LIMIT 9',
            None,
        ),
    ],
)
def test_page_is_the_authors_query_with_condition_order_and_limit(
    sql: str, page_by: list[str], first: str, second: str | None
) -> None:
    query = PagedQuery.build(sql, page_by, rows=9)
    assert query.page() == first
    if second is not None:
        assert query.page([str(number) for number in range(1, len(page_by) + 1)]) == second


REFUSED = {
    "SELECT id FROM orders ORDER BY id": "has ORDER BY. Remove it",
    "SELECT id FROM orders LIMIT 5": "has LIMIT or FETCH. Remove it",
    "SELECT id FROM orders OFFSET 5": "has OFFSET. Remove it",
    "SELECT id FROM orders FETCH FIRST 5 ROWS ONLY": "has LIMIT or FETCH. Remove it",
    "SELECT id FROM (SELECT id FROM orders) o": "has a subquery. The service may apply",
    "SELECT id FROM orders WHERE id IN (SELECT id FROM old)": "has a subquery",
    "WITH o AS (SELECT id FROM orders) SELECT id FROM o": "has a subquery",
    "(SELECT id FROM orders)": "it is SUBQUERY",
    "SELECT id FROM orders UNION SELECT id FROM old": "it is UNION",
    "VALUES (1)": "it is VALUES",
    "SELECT id, SUM(a) OVER (PARTITION BY b) s FROM orders": "has a window function",
    "SELECT id, SUM(a) OVER w s FROM orders WINDOW w AS (PARTITION BY b)": "has a window function",
    "SELECT DISTINCT ON (b) id FROM orders": "has DISTINCT ON",
    "SELECT id FROM orders FOR UPDATE": "has LOCKS, which paging does not support",
    "SELECT id INTO copy FROM orders": "has INTO",
    "SELECT amount FROM orders": "is not a named column of the result (named columns: amount)",
    "SELECT a + id FROM orders": "is not a named column of the result (named columns: none)",
    "SELECT o.id, c.id FROM orders o, customers c": "2 columns with the name id",
    "SELECT COUNT(*) AS id FROM orders": "id is an aggregate",
    "SELECT COALESCE(MEASURE(orders.count), 0) AS id FROM orders": "id is an aggregate",
    "SELECT id, country, SUM(a) FROM orders GROUP BY 1, 2": "also groups by country",
    "SELECT id, SUM(a) FROM orders GROUP BY 1, country": "GROUP BY has country, which is not a",
    "SELECT id, country, SUM(a) FROM orders GROUP BY country": "id is not in GROUP BY",
    "SELECT id, b FROM orders GROUP BY ROLLUP(id, b)": "GROUP BY has ROLLUP",
    "SELECT * FROM orders GROUP BY 1": "GROUP BY has 1, which is not a named column",
    "SELECT id, country FROM orders GROUP BY id, 7": "GROUP BY has 7, which is not a named column",
    "SELECT id": "has no FROM",
    "SELECT id FROM `orders`": "cannot be parsed as PostgreSQL",
    "SHOW TABLES": "it is COMMAND",
    "SELECT id FROM orders, LATERAL (SELECT 1) x": "has a subquery",
    "SELECT id FROM orders WHERE": "as PostgreSQL (Required keyword: 'this' missing for Where",
    "SELECT id WHERE id > 5 FROM orders": "Unexpected token, line 1, column 27)",
    "SELECT id FROM orders WHERE a WHERE b": "as PostgreSQL (Found multiple 'WHERE' clauses",
    "SELECT id FROM orders; SELECT 1": "it has 2 statements",
    "SELECT id FROM orders; DROP TABLE orders": "it has 2 statements",
}


@pytest.mark.parametrize("sql", REFUSED)
def test_query_that_cannot_be_paged_is_refused_with_the_reason(sql: str) -> None:
    with pytest.raises(PlatformInputError, match="page_by cannot be used: ") as caught:
        PagedQuery.build(sql, ["id"])
    assert REFUSED[sql] in str(caught.value)


@pytest.mark.parametrize(
    ("page_by", "rows", "reason"),
    [
        ([], 9, "must be a list"),
        ("id", 9, "must be a list"),
        ([""], 9, "must be a list"),
        ([5], 9, "must be a list"),
        (["id", "ID"], 9, "contains the same column twice"),
        (["id"], 1, "a page needs at least 2 rows"),
    ],
)
def test_keys_that_name_no_columns_are_refused(page_by: Any, rows: int, reason: str) -> None:
    with pytest.raises(PlatformInputError, match=reason):
        PagedQuery.build("SELECT id FROM orders", page_by, rows=rows)


def reader(types: dict[str, str]) -> PageReader:
    """A reader of pages by all of these columns, on its first page."""
    columns = [{"name": name, "type": kind} for name, kind in types.items()]
    found = PageReader(PagedQuery.build(f"SELECT {', '.join(types)} FROM t", [*types], rows=100))
    found.next_page()
    assert found.take_columns(columns)
    return found


@pytest.mark.parametrize(
    ("kind", "values", "literal"),
    [
        ("Int64", ["9", "10"], "10"),
        ("Int64", ["-10", "-9"], "-9"),
        ("Int32", ["9", "9.5", "10"], "10"),
        ("Decimal", ["0.1", "1.10"], "1.10"),
        ("Double", ["2", "1e3"], "1e3"),
        ("Int64", [9, 10], "10"),
        ("String", ["B", "a", "it's"], "'it''s'"),
        ("String", ["a", "ä", "\U0001f600"], "'\U0001f600'"),
        ("Date", ["2025-01-31", "2025-02-01"], "'2025-02-01'"),
        ("Timestamp", ["2025-01-31T00:00:00.000"], "'2025-01-31T00:00:00.000'"),
        ("Boolean", [False, True], "TRUE"),
        ("Boolean", ["false"], "FALSE"),
    ],
)
def test_next_page_begins_with_the_last_key(kind: str, values: list[Any], literal: str) -> None:
    pages = reader({"k": kind})
    rows = [[value] for value in values]
    assert pages.take_rows(rows) == rows
    assert not pages.ended
    assert f"(k >= {literal} OR k IS NULL)" in pages.next_page()
    assert pages.take_rows([[values[-1]]]) == []
    assert pages.ended
    assert pages.row_count == len(values)


@pytest.mark.parametrize(
    ("types", "rows", "reason"),
    [
        ({"k": "Int64"}, [["1"], ["1"]], "Rows 1 and 2 have the same values of page_by k"),
        ({"k": "Int64"}, [["10"], ["9"]], "Row 2 comes after row 1"),
        ({"k": "Decimal"}, [["1.0"], ["1.00"]], "Rows 1 and 2 have the same"),
        ({"k": "String"}, [["a"], ["B"]], "sorts these values in another order"),
        ({"k": "String"}, [["9"], ["10"]], "Row 2 comes after row 1"),
        ({"k": "Int64"}, [["1"], [None]], "page_by k is null in row 2"),
        ({"a": "Int64", "b": "Int64"}, [["1", "2"], ["1", "2"]], "same values of page_by a, b"),
        ({"a": "Int64", "b": "Int64"}, [["1", "2"], ["1", "1"]], "Row 2 comes after row 1"),
        ({"a": "Int64", "b": "Int64"}, [["1", "2"], ["2", None]], "page_by b is null in row 2"),
        ({"k": "Double"}, [["1"], ["NaN"]], "its value in row 2 is not a number"),
        ({"k": "Int64"}, [["1"], ["1 OR 1 = 1"]], "its value in row 2 is not a number"),
        ({"k": "Int64"}, [["1_0"]], "its value in row 1 is not a number"),
        ({"k": "Boolean"}, [["maybe"]], "its value in row 1 is not a boolean"),
    ],
)
@pytest.mark.parametrize("together", [True, False], ids=["one piece", "two pieces"])
def test_keys_that_do_not_rise_are_refused(
    types: dict[str, str], rows: list[list[Any]], reason: str, together: bool
) -> None:
    pages = reader(types)
    pieces = [rows] if together else [[row] for row in rows]
    with pytest.raises(PageKeyError, match=re.escape(reason)):
        [pages.take_rows(piece) for piece in pieces]


@pytest.mark.parametrize("kind", ["Blob", "Interval", "List", "Null", ""])
def test_key_of_a_type_without_an_order_is_refused(kind: str) -> None:
    with pytest.raises(PageKeyError, match="page_by k is of type"):
        reader({"k": kind})


def test_key_that_the_result_lacks_or_has_twice_is_refused() -> None:
    query = PagedQuery.build("SELECT * FROM t", ["id"])
    with pytest.raises(
        PageKeyError, match=r"the result has no column of this name\. Its columns are: a"
    ):
        PageReader(query).take_columns([{"name": "a", "type": "Int64"}])
    with pytest.raises(PageKeyError, match="the result has 2 columns of this name"):
        PageReader(query).take_columns([{"name": "id", "type": "Int64"}] * 2)


@pytest.mark.parametrize("rows", [[], [["3"]], [["1"], ["2"], ["3"]]])
def test_page_without_the_last_row_at_its_beginning_is_refused(rows: list[list[Any]]) -> None:
    """The row was deleted or changed, or one was added before it, or its value is rounded."""
    pages = reader({"k": "Int64"})
    pages.take_rows([["1"], ["2"]])
    pages.finish_page()
    pages.next_page()

    def read_page() -> None:
        pages.take_rows(rows)
        pages.finish_page()

    with pytest.raises(PagesChangedError, match="Page 2 does not begin with row"):
        read_page()


def test_second_row_with_the_last_key_is_found_on_the_next_page() -> None:
    pages = reader({"k": "Int64"})
    pages.take_rows([["1"], ["2"]])
    pages.next_page()
    with pytest.raises(PageKeyError, match="Rows 2 and 3 have the same values"):
        pages.take_rows([["2"], ["2"], ["3"]])


def test_page_with_other_columns_is_refused() -> None:
    pages = reader({"k": "Int64"})
    pages.take_rows([["1"]])
    pages.next_page()
    with pytest.raises(PagesChangedError, match="Page 2 has different columns"):
        pages.take_columns([{"name": "k", "type": "String"}])


class Service:
    """A service that gives at most so many rows of a query, whatever its LIMIT says."""

    def __init__(self, rows: list[tuple[Any, ...]], cap: int, nulls: str) -> None:
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE t (a INTEGER, b TEXT, c DECIMAL(9, 2), n INTEGER)")
        self._db.executemany("INSERT INTO t VALUES (?, ?, ?, ?)", rows)
        self._cap = cap
        self._nulls = nulls
        self.queries = 0

    def rows(self, sql: str) -> list[list[Any]]:
        self.queries += 1
        body, order, limit = re.fullmatch(r"(.*) ORDER BY (.*) (LIMIT \d+)", sql).groups()  # type: ignore[union-attr]
        sorted_by = ", ".join(f"{one} NULLS {self._nulls}" for one in order.split(", "))
        found = self._db.execute(f"{body} ORDER BY {sorted_by} {limit}")
        return [
            [None if value is None else str(value) for value in row]
            for row in islice(found, self._cap)
        ]


TYPES = {"a": "Int64", "b": "String", "c": "Decimal", "n": "Int64"}
COLUMNS = [{"name": name, "type": kind} for name, kind in TYPES.items()]


def read_all(service: Service, page_by: list[str], rows: int, piece: int) -> list[list[Any]]:
    """All rows of the service's table, as a program reads them."""
    pages = PageReader(
        PagedQuery.build("SELECT a, b, c, n FROM t WHERE n >= 0", page_by, rows=rows)
    )
    found: list[list[Any]] = []
    while True:
        page = service.rows(pages.next_page())
        pages.take_columns(COLUMNS)
        for at in range(0, len(page), piece):
            found += pages.take_rows(page[at : at + piece])
        pages.finish_page()
        if pages.ended:
            return found


A = st.one_of(st.none(), st.integers(-3, 3))
B = st.one_of(st.none(), st.sampled_from(["", "a", "B", "it's", "ä", "a b", "10", "9"]))
C = st.sampled_from([None, 0, -1.5, 2, 10.25])
TABLES = st.lists(st.tuples(A, B, C), max_size=30)


@given(
    table=TABLES,
    page_by=st.permutations(["a", "b", "c"]).flatmap(
        lambda names: st.integers(1, 3).map(lambda number: names[:number])
    ),
    rows=st.integers(2, 9),
    cap=st.integers(2, 9),
    piece=st.integers(1, 4),
    nulls=st.sampled_from(["FIRST", "LAST"]),
)
@settings(max_examples=examples(300), deadline=None)
def test_all_rows_come_once_and_in_order_or_the_keys_are_refused(
    table: list[tuple[Any, ...]],
    page_by: list[str],
    rows: int,
    cap: int,
    piece: int,
    nulls: str,
) -> None:
    """However large pages are, wherever the service cuts them, and wherever it sorts nulls."""
    stored = [(*row, number) for number, row in enumerate(table)]
    service = Service(stored, cap, nulls)
    keys = [tuple(row["abc".index(name)] for name in page_by) for row in table]
    right = len({*keys}) == len(keys) and not any(None in key for key in keys)
    if not right:
        with pytest.raises(PageKeyError):
            read_all(service, page_by, rows, piece)
        return
    found = read_all(service, page_by, rows, piece)
    order = sorted(range(len(table)), key=keys.__getitem__)
    assert [int(row[3]) for row in found] == order
    page = min(rows, cap)
    further = -(-max(0, len(table) - page) // (page - 1))
    assert service.queries == (2 + further if table else 1)


@given(st.lists(st.decimals(-1000, 1000, places=3), unique=True, min_size=1))
def test_decimals_are_ordered_by_value(values: list[Decimal]) -> None:
    pages = reader({"k": "Int32"})
    ordered = [[format(value, "f")] for value in sorted(values)]
    assert pages.take_rows(ordered) == ordered
    if len(ordered) > 1:
        pages = reader({"k": "Int32"})
        with pytest.raises(PageKeyError):
            pages.take_rows(ordered[::-1])
