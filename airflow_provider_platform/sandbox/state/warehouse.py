"""The sample warehouse: a shop's customers, products, orders and payments of 2025, in SQLite.

`events` is a view that generates its million rows while they are read, so they take no memory.
"""

from __future__ import annotations

import re
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

COUNTRIES = {
    "Germany": "Hamburg",
    "France": "Lyon",
    "Austria": "Graz",
    "Spain": "Málaga",
    "Poland": "Łódź",
    "Sweden": "Malmö",
    "Italy": "Turin",
    "Portugal": "Porto",
}
_SEGMENTS = ("Retail", "Wholesale", "Online")
_NAMES = ("Müller", "Dubois", "Huber", "García", "Nowak", "Åkesson", "Ricci", "Araújo")
CUSTOMERS = tuple(f"{_NAMES[number % len(_NAMES)]} {number:02d}" for number in range(1, 41))
"""The names of the customers 1 to 40."""
_PRODUCTS = (
    ("Espresso machine", "Kitchen", 249.0),
    ("Coffee grinder", "Kitchen", 89.5),
    ("Kettle", "Kitchen", 39.9),
    ("Desk lamp", "Office", 54.0),
    ("Office chair", "Office", 189.0),
    ("Standing desk", "Office", 429.0),
    ("Backpack", "Travel", 74.9),
    ("Suitcase", "Travel", 119.0),
    ("Water bottle", "Travel", 18.5),
    ("Headphones", "Electronics", 159.0),
    ("Speaker", "Electronics", 99.0),
    ("Webcam", "Electronics", 69.0),
)
_ORDERS_OF_MONTHS = (30, 32, 40, 38, 40, 42, 34, 30, 44, 46, 50, 54)
"""How many orders each month of the year has: fewer in summer, most before Christmas."""

MEMBERS = (
    ("orders.count", "Number of orders", "number", "count"),
    ("orders.revenue", "Revenue in euros", "number", "sum"),
    ("orders.average", "Average order value in euros", "number", "avg"),
    ("orders.quantity", "Items sold", "number", "sum"),
    ("orders.month", "Month of the order", "time", None),
    ("orders.status", "State of the order", "string", None),
    ("customers.country", "Country of the customer", "string", None),
    ("customers.segment", "Segment of the customer", "string", None),
    ("customers.name", "Name of the customer", "string", None),
    ("products.name", "Name of the product", "string", None),
    ("products.category", "Category of the product", "string", None),
)

_SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, country TEXT, city TEXT, segment TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT, category TEXT, price REAL);
CREATE TABLE orders (
  id INTEGER PRIMARY KEY, ordered_at TEXT, month TEXT, customer_id INTEGER, product_id INTEGER,
  quantity INTEGER, amount REAL, status TEXT);
CREATE TABLE payments (
  id INTEGER PRIMARY KEY, order_id INTEGER, paid_on TEXT, paid_at TEXT, fee REAL, settled INTEGER,
  note TEXT);
CREATE VIEW events AS
  WITH RECURSIVE numbers(id) AS (SELECT 1 UNION ALL SELECT id + 1 FROM numbers LIMIT 1000000)
  SELECT
    id,
    1 + id % 40 AS customer_id,
    CASE id % 4
      WHEN 0 THEN 'view' WHEN 1 THEN 'click' WHEN 2 THEN 'search' ELSE 'order' END AS kind,
    (id * 37 % 10000) / 100.0 AS value,
    strftime('%Y-%m-%dT%H:%M:%S.000', 1735689600 + id * 30, 'unixepoch') AS happened_at
  FROM numbers;
"""

KINDS = {
    "paid_on": "Date",
    "paid_at": "Timestamp",
    "happened_at": "Timestamp",
    "fee": "Decimal",
    "settled": "Boolean",
}
"""The types of columns for which SQLite has no type, by the column's name in the data model."""

_INFORMATION_SCHEMA = """
ATTACH ':memory:' AS information_schema;
CREATE TABLE information_schema.tables AS
  SELECT 'db' AS table_catalog, 'public' AS table_schema, name AS table_name,
    'BASE TABLE' AS table_type
  FROM main.sqlite_master WHERE type IN ('table', 'view');
CREATE TABLE information_schema.columns (
  table_catalog TEXT, table_schema TEXT, table_name TEXT, column_name TEXT,
  ordinal_position INTEGER, data_type TEXT);
"""
_DATA_TYPES = {
    "INTEGER": "bigint",
    "REAL": "double precision",
    "TEXT": "text",
    "": "text",
    "Date": "date",
    "Timestamp": "timestamp",
    "Decimal": "numeric",
    "Boolean": "boolean",
}
"""PostgreSQL's names of the column types."""

_MEASURES = {
    "count": "COUNT(*)",
    "revenue": "SUM(amount)",
    "average": "AVG(amount)",
    "quantity": "SUM(quantity)",
}
"""The measures of the cube orders, for ``MEASURE(revenue)``."""
_MEASURE = re.compile(rf'MEASURE\((?:"?orders"?\.)?"?({"|".join(_MEASURES)})"?\)', re.IGNORECASE)

_READ_ONLY = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, 33}
"""33 is SQLITE_RECURSIVE, which the module names only from Python 3.12 on."""
_MAX_STEPS = 200_000_000
"""The most steps of SQLite's machine for a query, or for one piece of a result that is read in
pieces."""
_SAMPLE_ROWS = 100
"""The number of rows that decide the column types of a result that is read in pieces."""


class QueryError(Exception):
    """The warehouse refused a query; the message is the database's own."""


@dataclass(frozen=True)
class Result:
    """The rows of a query up to the requested number, and the total number of rows."""

    schema: list[dict[str, str]]
    rows: list[list[Any]]
    total_rows: int


class Warehouse:
    """Answers read-only SQL. Used from the server's thread only.

    The tables named in ``without`` lack the rows of these months, or all rows where one of the
    months is "".
    """

    def __init__(self, without: Mapping[str, Collection[str]] | None = None) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.executescript(_SCHEMA)
        self._db.executemany("INSERT INTO customers VALUES (?, ?, ?, ?, ?)", _customers())
        self._db.executemany(
            "INSERT INTO products VALUES (?, ?, ?, ?)",
            [(number, *product) for number, product in enumerate(_PRODUCTS, start=1)],
        )
        self._db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?, ?)", _orders())
        self._db.executemany("INSERT INTO payments VALUES (?, ?, ?, ?, ?, ?, ?)", _payments())
        for table, months in (without or {}).items():
            where = "TRUE" if "" in months else f"month IN ({', '.join('?' * len(months))})"
            values = [] if "" in months else [*months]
            self._db.execute(f"DELETE FROM {table} WHERE {where}", values)  # noqa: S608 - our names
        self._db.executescript(_INFORMATION_SCHEMA)
        self._db.executemany(
            "INSERT INTO information_schema.columns VALUES ('db', 'public', ?, ?, ?, ?)",
            [
                (table, name, at, _DATA_TYPES[KINDS.get(name, kind)])
                for (table,) in self._db.execute("SELECT table_name FROM information_schema.tables")
                for at, name, kind, *_ in self._db.execute(f"PRAGMA main.table_info({table})")
            ],
        )
        self._db.commit()
        self._db.set_authorizer(_authorize)

    def query(self, sql: str, *, limit: int) -> Result:
        """Run one SELECT; raises ``QueryError``. Rows beyond ``limit`` are counted, not kept."""
        with self._guarded():
            cursor = self._run(sql)
            rows = [list(row) for row in cursor.fetchmany(limit)]
            total = len(rows) + sum(1 for _ in cursor)
        return Result(_schema(cursor, rows), rows, total)

    def read(self, sql: str, *, limit: int | None) -> Reading:
        """Begin to run one SELECT, and read at most ``limit`` rows. Raises ``QueryError``."""
        with self._guarded():
            cursor = self._run(sql)
            first = cursor.fetchmany(_SAMPLE_ROWS if limit is None else min(limit, _SAMPLE_ROWS))
        return Reading(self, cursor, [list(row) for row in first], limit)

    def fetch(self, cursor: sqlite3.Cursor, rows: int) -> list[list[Any]]:
        """Return the next rows of a result. Raises ``QueryError``."""
        with self._guarded():
            return [list(row) for row in cursor.fetchmany(rows)]

    def columns_of(self, sql: str) -> set[tuple[str, str]]:
        """Return the (table, column) pairs that one SELECT reads; none if it is refused."""
        read: set[tuple[str, str]] = set()

        def note(action: int, table: str | None, column: str | None, *names: str | None) -> int:
            if action == sqlite3.SQLITE_READ and table:
                read.add((table, column or ""))
            return _authorize(action, table, column, *names)

        self._db.set_authorizer(note)
        try:
            self._db.execute(f"EXPLAIN {plain_sql(sql)}")
        except (sqlite3.Error, sqlite3.Warning):
            return set()
        finally:
            self._db.set_authorizer(_authorize)
        return read

    def _run(self, sql: str) -> sqlite3.Cursor:
        cursor = self._db.execute(plain_sql(sql))
        if cursor.description is None:
            raise QueryError("only queries are allowed")
        return cursor

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        steps = 0

        def guard() -> int:
            nonlocal steps
            steps += 1
            return int(steps > _MAX_STEPS / 1000)

        self._db.set_progress_handler(guard, 1000)
        try:
            yield
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise QueryError(str(error)) from None
        finally:
            self._db.set_progress_handler(None, 0)


class Reading:
    """A result that is read in pieces. Rows are generated when they are requested."""

    def __init__(
        self,
        warehouse: Warehouse,
        cursor: sqlite3.Cursor,
        first: list[list[Any]],
        limit: int | None,
    ) -> None:
        self.schema = _schema(cursor, first)
        self._warehouse = warehouse
        self._cursor = cursor
        self._first = first
        self._left = limit

    def pieces(self, rows: int) -> Iterator[list[list[Any]]]:
        """Yield all rows, ``rows`` at a time. Raises ``QueryError`` if the query fails later."""
        while wanted := rows if self._left is None else min(rows, self._left):
            piece, self._first = self._first[:wanted], self._first[wanted:]
            if len(piece) < wanted:
                piece += self._warehouse.fetch(self._cursor, wanted - len(piece))
            if piece:
                yield piece
            if len(piece) < wanted:
                return
            if self._left is not None:
                self._left -= len(piece)


def _schema(cursor: sqlite3.Cursor, rows: list[list[Any]]) -> list[dict[str, str]]:
    return [
        {"name": name, "column_type": KINDS.get(name) or _column_type([row[at] for row in rows])}
        for at, (name, *_) in enumerate(cursor.description)
    ]


def plain_sql(sql: str) -> str:
    """Return the SQL with each measure as what it adds up."""
    return _MEASURE.sub(lambda found: _MEASURES[found[1].lower()], sql)


def _authorize(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in _READ_ONLY else sqlite3.SQLITE_DENY


def _column_type(values: list[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int}:
        return "Int64"
    return "Double" if kinds and kinds <= {int, float} else "String"


def _customers() -> list[tuple[int, str, str, str, str]]:
    rows = []
    for number, name in enumerate(CUSTOMERS, 1):
        country = list(COUNTRIES)[number % len(COUNTRIES)]
        rows.append((number, name, country, COUNTRIES[country], _SEGMENTS[number % 3]))
    return rows


def _orders() -> list[tuple[int, str, str, int, int, int, float, str]]:
    rows = []
    seed = 12345
    months = [month for month, count in enumerate(_ORDERS_OF_MONTHS, 1) for _ in range(count)]
    for number, month_number in enumerate(months, 1):
        seed = (
            seed * 1103515245 + 12345
        ) % 2**31  # A generator with a fixed seed: the same rows everywhere.
        customer, product = 1 + (seed >> 8) % 40, 1 + (seed >> 16) % len(_PRODUCTS)
        quantity = 1 + (seed >> 4) % 5
        month = f"2025-{month_number:02d}"
        day = f"{month}-{1 + (seed >> 20) % 28:02d}"
        amount = round(quantity * _PRODUCTS[product - 1][2], 2)
        status = "returned" if seed % 11 == 0 else "delivered"
        rows.append((number, day, month, customer, product, quantity, amount, status))
    return rows


def _payments() -> list[tuple[int, int, str, str, float | None, int, str]]:
    rows = []
    for number, day, _, _, _, quantity, amount, status in _orders():
        hour = number % 24
        fee = None if number % 50 == 0 else round(amount * 0.015, 2)
        note = f'{quantity} pieces, "as ordered"' if number % 7 else ""
        settled = int(status == "delivered")
        rows.append((number, number, day, f"{day}T{hour:02d}:30:00.000", fee, settled, note))
    return rows
