"""The `platform` connection as a database, for Airflow's SQL operators and for DB-API.

`SQLExecuteQueryOperator` and its relatives ask the connection for its hook and accept only a
`DbApiHook`. So `PlatformSqlHook` is the connection's hook, and it is a `PlatformHook` as well. Code
that imports `PlatformHook`, such as this package's operators, does not load Airflow's SQL provider.

`SqlConnection` is a connection of DB-API 2.0 (PEP 249) over `run_sql`. Its cursor reads the whole
result in `execute`, because all values of a column decide its type. So a column has the same type
here, in XCom and in files. The rows stay in memory as strings, and become Python values when they
are fetched.

The service has no transactions and no sessions. So `commit` and `rollback` do nothing, and all
connections and cursors read the same data. Statements that are not queries are refused before
anything is sent.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cached_property, partial
from types import GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar, get_args, overload

from airflow.providers.common.sql.hooks.sql import DbApiHook

from airflow_provider_platform.client.argument_rules import (
    choice,
    is_absent,
    names,
    present,
    refuse,
    seconds,
    whole_number,
    within,
)
from airflow_provider_platform.client.choices import OnTruncated
from airflow_provider_platform.client.connection_fields import EXTRA_NAMES
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformInputError,
    ResultTruncatedError,
)
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.redaction import log_line, quote_service
from airflow_provider_platform.files.types import ColumnTypes, TypedRows
from airflow_provider_platform.hooks.connection import read_extras
from airflow_provider_platform.hooks.lineage import DEFAULT_SCHEMA
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence

    import pandas as pd
    import polars as pl

    from airflow_provider_platform.client.api import Work
    from airflow_provider_platform.files.types import Column, Types
    from airflow_provider_platform.hooks.query_rows import QueryRows
    from airflow_provider_platform.resources.sql.parameters import Parameters
    from airflow_provider_platform.resources.sql.response import SqlRows

    RunSql = Callable[[str, Parameters | None], SqlRows]
    Row = tuple[Any, ...]


apilevel = "2.0"
threadsafety = 1
paramstyle = "pyformat"


def check_query(sql: Any, advice: str = "") -> None:
    """Raise PlatformInputError for SQL that is not exactly one query that reads."""
    from airflow_provider_platform.resources.sql.statements import why_not_a_query

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


class ModelInspector:
    """The tables and columns of the data model, by the names that SQLAlchemy's inspector has for
    them: `SQLToolset` of Airflow's common-ai provider asks for them."""

    def __init__(self, read: Callable[[str, Parameters], Iterable[Row]]) -> None:
        self._read = read

    def get_table_names(self, schema: str | None = None) -> list[str]:
        """Return the names of the cubes and views."""
        tables = self._read(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s "
            "ORDER BY table_name",
            [schema or DEFAULT_SCHEMA],
        )
        return [name for (name,) in tables]

    def get_columns(self, table_name: str, schema: str | None = None) -> list[dict[str, str]]:
        """Return the name and the type of each column. Raises PlatformInputError for an unknown
        table."""
        columns = self._read(
            "SELECT column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position",
            [schema or DEFAULT_SCHEMA, table_name],
        )
        found = [{"name": name, "type": kind} for name, kind in columns]
        if not found:
            raise PlatformInputError(
                f"The data model has no table {quote_service(table_name)!r}. Its tables are in "
                "information_schema.tables.",
                field="table_name",
            )
        return found


def _described(column: Column) -> tuple[Any, ...]:
    size = (column.precision, column.scale) if column.kind == "Decimal" else (None, None)
    return (column.name, column.kind, None, None, *size, None)


T = TypeVar("T")

_QUERY_OPTIONS = (
    *("deployment_id", "branch_name", "timezone", "cache", "timeout"),
    *("default_row_limit", "max_row_limit", "page_by", "page_rows"),
)
"""Parameters of the hook that are arguments of `run_sql`."""
_OPTIONS = (*_QUERY_OPTIONS, "types", "on_truncated", "log_sql")
_NEEDED = ("deployment_id", "branch_name", "timezone", "page_by")
"""The parameters that must have a value if they are given: a check of a branch whose name vanished
would pass on production."""
_ONLY_OPTIONS = frozenset(_OPTIONS) - EXTRA_NAMES
"""Those that are not settings of the connection."""


def _key_columns(name: str, value: Any) -> list[str]:
    if (columns := names(name, value)) is None:
        raise refuse(name, "names no column")
    return columns


_READ: Mapping[str, Callable[[str, Any], Any]] = {
    "timeout": seconds,
    "default_row_limit": partial(whole_number, minimum=1),
    "max_row_limit": partial(whole_number, minimum=1),
    "page_by": _key_columns,
    "page_rows": partial(whole_number, minimum=1),
}
"""What reads the parameters that a template turns into a string."""


class PlatformSqlHook(PlatformHook, DbApiHook):  # type: ignore[misc]
    """The hook that `Connection.get_hook` returns: Airflow's SQL operators run on it.

    `run`, `get_records`, `get_first` and `get_df` read with SQL; values are int, float, Decimal,
    bool, date, datetime or str. Everything that `PlatformHook` does works too, with two
    differences: `run` accepts SQL as well as operations, and `get_conn` returns a DB-API
    connection.

    The keywords are what an operator's `hook_params` may contain: `deployment_id`, `branch_name`,
    `timezone`, `cache`, `timeout` (seconds until the first row, default 600), `default_row_limit`,
    `max_row_limit`, `page_by` and `page_rows` as in `run_sql`; `types` as in
    `PlatformQueryOperator`; `on_truncated` (`"warn"` logs that rows may be missing, `"fail"` raises
    ResultTruncatedError); and `log_sql` (default True: the log has the SQL and its parameters).
    Airflow's operators add the connection's extras to the keywords. The hook ignores these extras
    here, because it reads them from the connection itself.

    The service's SQL is read-only. Statements that write or define, transactions and SQLAlchemy
    raise PlatformInputError before anything is sent.
    """

    strip_semicolon = True
    supports_autocommit = False
    supports_executemany = False

    # Airflow looks into the hook's own namespace and passes over what is inherited.
    get_connection_form_widgets = PlatformHook.__dict__["get_connection_form_widgets"]
    get_ui_field_behaviour = PlatformHook.__dict__["get_ui_field_behaviour"]

    def __init__(
        self, platform_conn_id: str = PlatformHook.default_conn_name, **hook_params: Any
    ) -> None:
        super().__init__(platform_conn_id)
        self._needed = {name: hook_params[name] for name in _NEEDED if name in hook_params}
        self._hook_params = hook_params
        self._known_params: dict[str, Any] | None = None
        self.log_sql = _is_on(self._hook_params.get("log_sql", True))

    @property
    def schema(self) -> None:
        """Return None: the service has no databases."""
        return None

    @schema.setter
    def schema(self, _: Any) -> None:
        raise PlatformInputError(
            "Nothing was sent: database is not supported, because a deployment has one data "
            'model. Choose a deployment or a branch: hook_params={"deployment_id": ..., '
            '"branch_name": ...}.',
            field="database",
        )

    def get_conn(self) -> SqlConnection:  # type: ignore[override]
        """Return a DB-API connection (PEP 249), which is read-only. Raises PlatformInputError for a
        bad keyword of the hook, and PlatformConfigError."""
        types, on_truncated = self._reading()
        return SqlConnection(self._query, types=types, on_truncated=on_truncated)

    @overload  # type: ignore[override]
    def run(
        self,
        sql: Operation[T] | Work[T],
        on_event: Callable[[Any], None] | None = None,
    ) -> T: ...
    @overload
    def run(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Parameters | None = None,
        handler: Callable[[Any], T] | None = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> T | list[T] | None: ...
    def run(self, sql: Any = None, *arguments: Any, **named: Any) -> Any:
        """Run SQL as `DbApiHook.run` does, or an operation or other work as `PlatformHook.run`
        does.
        `autocommit` has no effect: the service has no transactions."""
        if "work" in named or isinstance(sql, Operation | GeneratorType):
            work = named.pop("work", sql)
            return PlatformHook.run(self, work, *arguments, **named)
        return self._run_statements(sql, *arguments, **named)

    def _run_statements(
        self,
        sql: str | Iterable[str],
        autocommit: bool = False,
        parameters: Parameters | None = None,
        handler: Callable[[Any], Any] | None = None,
        split_statements: bool = False,
        return_last: bool = True,
    ) -> Any:
        statements = sql if isinstance(sql, str) else list(sql)
        if isinstance(statements, list):
            for statement in statements:
                check_query(statement)
        elif split_statements:
            for statement in self.split_sql_string(statements, strip_semicolon=True):
                check_query(statement)
        else:
            check_query(
                statements, ". To run several queries, give split_statements=True or a list"
            )
        return DbApiHook.run(
            self,
            statements,
            autocommit=autocommit,
            parameters=parameters,
            handler=handler,
            split_statements=split_statements,
            return_last=return_last,
        )

    def _run_command(self, cur: SqlCursor, sql_statement: str, parameters: Any) -> None:
        """Run a statement. `run_sql` reports it to Airflow's lineage collector, so that Airflow's
        method, which would report it again and with secrets, is not used."""
        if self.log_sql:
            self.log.info("Running statement: %s, parameters: %s", sql_statement, parameters)
        cur.execute(sql_statement, parameters)
        self.log.info("Rows affected: %s", cur.rowcount)

    def get_df(  # type: ignore[override]
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        df_type: str = "pandas",
        **named: Any,
    ) -> pd.DataFrame | pl.DataFrame:
        """Return the rows as a data frame of `pandas` or `polars`."""
        polars = choice("df_type", df_type, ("pandas", "polars")) == "polars"
        return (self._get_polars_df if polars else self._get_pandas_df)(sql, parameters, **named)

    def get_df_by_chunks(  # type: ignore[override]
        self,
        sql: str,
        parameters: Parameters | None = None,
        *,
        df_type: str = "pandas",
        **named: Any,
    ) -> Generator[pd.DataFrame | pl.DataFrame]:
        """Yield the rows as data frames of at most `chunksize` rows."""
        polars = choice("df_type", df_type, ("pandas", "polars")) == "polars"
        read = self._get_polars_df_by_chunks if polars else self._get_pandas_df_by_chunks
        yield from read(sql, parameters, **named)

    def get_openlineage_database_info(self, connection: Any) -> None:  # noqa: ARG002
        """Return None, so that the datasets of Airflow's SQL operators come from the collector. The
        OpenLineage provider would otherwise ask for an SQLAlchemy engine."""
        return

    def get_db_log_messages(self, conn: SqlConnection) -> None:
        """Log the messages of a connection about its results."""
        for message in conn.messages:
            self.log.warning("%s", log_line(message))

    def insert_rows(self, *_: Any, **__: Any) -> NoReturn:
        """Raise PlatformInputError: this is not supported."""
        raise _refused("insert_rows", "the service's SQL is read-only")

    def bulk_load(self, *_: Any, **__: Any) -> NoReturn:
        """Raise PlatformInputError: this is not supported."""
        raise _refused("bulk_load", "the service's SQL is read-only")

    def bulk_dump(self, *_: Any, **__: Any) -> NoReturn:
        """Raise PlatformInputError: this is not supported."""
        raise _refused("bulk_dump", "use PlatformQueryOperator(output_path=...) to write a file")

    @property
    def sqlalchemy_url(self) -> NoReturn:
        """Raise PlatformInputError: this is not supported."""
        raise _refused("SQLAlchemy", _NO_SQLALCHEMY)

    @cached_property
    def inspector(self) -> ModelInspector:  # type: ignore[override]
        """Return what lists the tables of the data model, and their columns."""
        return ModelInspector(self.get_records)

    def get_sqlalchemy_engine(self, *_: Any, **__: Any) -> NoReturn:
        """Raise PlatformInputError: this is not supported."""
        raise _refused("SQLAlchemy", _NO_SQLALCHEMY)

    def _get_pandas_df(
        self, sql: str, parameters: Parameters | None = None, **named: Any
    ) -> pd.DataFrame:
        types, on_truncated = self._reading()
        backend = _frame_arguments("pandas", named, "dtype_backend")
        check_query(sql)
        return self._query(sql, parameters).to_pandas(
            types=types, on_truncated=on_truncated, **backend
        )

    def _get_polars_df(
        self, sql: str, parameters: Parameters | None = None, **named: Any
    ) -> pl.DataFrame:
        types, on_truncated = self._reading()
        _frame_arguments("polars", named)
        check_query(sql)
        return self._query(sql, parameters).to_polars(types=types, on_truncated=on_truncated)

    def _get_pandas_df_by_chunks(
        self, sql: str, parameters: Parameters | None = None, *, chunksize: int, **named: Any
    ) -> Generator[pd.DataFrame]:
        frame = self._get_pandas_df(sql, parameters, **named)
        for start in range(0, len(frame), chunksize):
            yield frame.iloc[start : start + chunksize].reset_index(drop=True)

    def _get_polars_df_by_chunks(
        self, sql: str, parameters: Parameters | None = None, *, chunksize: int, **named: Any
    ) -> Generator[pl.DataFrame]:
        yield from self._get_polars_df(sql, parameters, **named).iter_slices(chunksize)

    def _query(self, sql: str, parameters: Parameters | None) -> QueryRows:
        """Return the rows of a query with the keywords of the hook. Raises PlatformInputError."""
        params = self._checked_params()
        options = {name: params[name] for name in _QUERY_OPTIONS if name in params}
        return self.run_sql(sql, parameters=parameters or None, **options)

    def _reading(self) -> tuple[Types, OnTruncated]:
        """Return the checked keywords `types` and `on_truncated`. Raises PlatformInputError."""
        params = self._checked_params()
        types: Types = params.get("types", "service")
        on_truncated: OnTruncated = params.get("on_truncated", "warn")
        with within("hook_params"):
            try:
                ColumnTypes.parse(types)
            except ValueError as error:
                raise refuse("types", str(error)) from None
            choice("on_truncated", on_truncated, get_args(OnTruncated))
        return types, on_truncated

    def _checked_params(self) -> dict[str, Any]:
        """Return the keywords that the DAG author set. Keywords that Airflow copied from the
        connection's extras are left out: the hook reads these from the connection itself."""
        if self._known_params is None:
            extras = read_extras(self.get_connection(self.platform_conn_id))
            own = {
                name: value
                for name, value in self._hook_params.items()
                if name not in extras or extras[name] != value or name in _ONLY_OPTIONS
            }
            for name in own:
                if name not in _OPTIONS:
                    raise _unknown_param(name)
            for name, value in self._needed.items():
                if is_absent(value) and (name not in extras or extras[name] != value):
                    raise refuse(
                        f"{name} of hook_params",
                        "has no value, and without it this would be another query. If you want "
                        "the default, leave it out",
                    )
            with within("hook_params"):
                self._known_params = {
                    name: _READ[name](name, value) if name in _READ else value
                    for name, value in present(own).items()
                }
        return self._known_params


_NO_SQLALCHEMY = (
    "the data API has no SQLAlchemy dialect. Use run, get_records or get_df, or PostgresHook on "
    "the deployment's SQL API"
)


def _refused(name: str, reason: str) -> PlatformInputError:
    return refuse(name, f"is not supported: {reason}")


def _frame_arguments(df_type: str, named: dict[str, Any], *known: str) -> dict[str, Any]:
    """Return the arguments of `get_df` that a frame of `df_type` accepts.

    Raises PlatformInputError.
    """
    for name in named:
        if name not in known:
            raise PlatformInputError(
                f"Nothing was sent: get_df does not support {name} with df_type={df_type!r}. Apply "
                "it to the data frame.",
                field=name,
            )
    return named


def _unknown_param(name: str) -> PlatformInputError:
    near = get_close_matches(name, _OPTIONS, n=1)
    meant = f" (did you mean {near[0]}?)" if near else ""
    return PlatformInputError(
        f"Nothing was sent: {quote_service(name)!r} in hook_params is not a keyword of the "
        f"hook{meant}. The keywords are {', '.join(_OPTIONS)}.",
        field=name,
    )


def _is_on(value: Any) -> bool:
    return str(value).strip().lower() not in ("false", "0", "no", "off", "")
