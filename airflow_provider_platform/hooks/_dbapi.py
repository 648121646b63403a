"""A DB-API 2.0 connection (PEP 249) over `run_sql`, for programs that expect a database.

`execute` reads the whole result, because all values of a column decide its type. So a column has
the same type here, in XCom and in files. The rows stay in memory as texts, and become Python values
when they are fetched.

The service has no transactions and no sessions. So `commit` and `rollback` do nothing, and all
connections and cursors read the same data. Statements that are not queries are refused before
anything is sent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn, Self

from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformInputError,
    ResultTruncatedError,
)
from airflow_provider_platform.files.types import TypedRows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_platform.client.data_api.parameters import Parameters
    from airflow_provider_platform.client.data_api.rows import SqlRows
    from airflow_provider_platform.files.types import Column, Types

    RunSql = Callable[[str, Parameters | None], SqlRows]
    Row = tuple[Any, ...]

apilevel = "2.0"
threadsafety = 1
paramstyle = "pyformat"


def check_query(sql: Any, advice: str = "") -> None:
    """Raise PlatformInputError for SQL that is not exactly one query that reads."""
    from airflow_provider_platform.client.data_api.statements import why_not_a_query

    if not isinstance(sql, str):
        problem: str | None = f"got a value of type {type(sql).__name__}"
    else:
        problem = why_not_a_query(sql)
        advice = advice if problem == "it contains several statements" else ""
    if problem is not None:
        raise PlatformInputError(
            f"Nothing was sent: sql must be one query; {problem}{advice}.", field="sql"
        )


class SqlConnection:
    """A connection of the DB-API; each cursor runs its queries with `run`.

    `messages` are sentences about results with missing rows. With `on_truncated="fail"` such a
    result raises ResultTruncatedError instead. A connection is a context manager that closes
    itself.
    """

    def __init__(self, run: RunSql, *, types: Types, on_truncated: str) -> None:
        self.messages: list[str] = []
        self._run = run
        self._types = types
        self._fails = on_truncated == "fail"
        self._cursors: list[SqlCursor] = []
        self._closed = False

    def cursor(self) -> SqlCursor:
        """Return a cursor. Raises PlatformClosedError on a closed connection."""
        if self._closed:
            raise PlatformClosedError("This connection to the data API is closed.")
        cursor = SqlCursor(self)
        self._cursors.append(cursor)
        return cursor

    def commit(self) -> None:
        """Do nothing: the service has no transactions."""

    def rollback(self) -> None:
        """Do nothing: the service has no transactions."""

    def close(self) -> None:
        """Close the connection and its cursors."""
        self._closed = True
        for cursor in self._cursors:
            cursor.close()
        self._cursors.clear()

    def read(self, sql: str, parameters: Parameters | None) -> tuple[TypedRows, list[Column]]:
        """Return all rows of a query, and its columns."""
        with self._run(sql, parameters) as rows:
            typed = TypedRows(rows.columns, self._types)
            for piece in rows.pieces():
                typed.add(piece)
            columns = typed.finish()
            if (why := rows.why_truncated) is not None:
                if self._fails:
                    raise ResultTruncatedError(why)
                self.messages.append(why)
        self.messages += [
            f"Column {column.name!r} is returned as strings: {column.note}."
            for column in columns
            if column.note
        ]
        return typed, columns

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class SqlCursor:
    """A cursor of the DB-API; rows are tuples of Python values.

    `description` has a tuple of seven for each column: name, type (`Int64`, `Double`, `Decimal`,
    `Boolean`, `Date`, `Timestamp` or `String`), None, None, precision and scale (of a Decimal),
    None. `rowcount` is the number of rows of the result, -1 before the first query.
    """

    arraysize = 1

    def __init__(self, connection: SqlConnection) -> None:
        self.connection = connection
        self.description: list[tuple[Any, ...]] | None = None
        self.rowcount = -1
        self._rows: Iterator[Row] | None = None
        self._closed = False

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run a query and read its rows; returns the cursor.

        `parameters` are a list for `%s` or a mapping for `%(name)s`. Before anything is sent, it
        raises PlatformInputError for SQL that is not one query and for parameters that do not
        match. Later it raises PlatformError.
        """
        self._check_open()
        check_query(operation)
        self._forget()
        rows, columns = self.connection.read(operation, parameters)
        self.rowcount = rows.row_count
        self.description = [_described(column) for column in columns]
        self._rows = rows.values(columns)
        return self

    def executemany(self, *_: Any) -> NoReturn:
        """Raise PlatformInputError: the service's SQL is read-only."""
        raise PlatformInputError(
            "Nothing was sent: executemany is not supported, because the service's SQL is "
            "read-only.",
            field="sql",
        )

    def fetchone(self) -> Row | None:
        """Return the next row; None after the last row."""
        return next(self._results(), None)

    def fetchmany(self, size: int | None = None) -> list[Row]:
        """Return the next `size` rows (default: `arraysize`); fewer at the end."""
        rows = self._results()
        wanted = self.arraysize if size is None else size
        return [row for _, row in zip(range(wanted), rows, strict=False)]

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        return list(self._results())

    def setinputsizes(self, sizes: Sequence[Any]) -> None:
        """Do nothing."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Delete the rows and close the cursor."""
        self._closed = True
        self._forget()

    def __iter__(self) -> Iterator[Row]:
        return self._results()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _results(self) -> Iterator[Row]:
        self._check_open()
        if self._rows is None:
            raise PlatformClosedError("This cursor has no result. Call execute first.")
        return self._rows

    def _check_open(self) -> None:
        if self._closed:
            raise PlatformClosedError("This cursor is closed.")

    def _forget(self) -> None:
        self._rows, self.description, self.rowcount = None, None, -1


def _described(column: Column) -> tuple[Any, ...]:
    size = (column.precision, column.scale) if column.kind == "Decimal" else (None, None)
    return (column.name, column.kind, None, None, *size, None)
