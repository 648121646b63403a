"""The rows of a query, as an iterator that reads the response while the caller iterates."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform.client.data_api.response import SqlChunk, SqlColumns, SqlOpenEnd
from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformError,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.events import Events

WhyCut = Callable[[int], str | None]
"""Returns why a result with this number of rows may have been cut, as sentences; None if nothing
suggests that."""
OnFailure = Callable[[PlatformError], None]
"""Called once with the error that ends a result."""


class _Received:
    """The rows that have arrived and are not yet with the caller, and how the result ended."""

    def __init__(self, why_cut: WhyCut, on_failure: OnFailure | None) -> None:
        self._why_cut = why_cut
        self._on_failure = on_failure
        self.row_count = 0
        self.columns: list[dict[str, str]] | None = None
        self.rows: deque[list[Any]] = deque()
        self.ended = False
        self.open_ended = False
        self._failure: PlatformError | None = None

    def take(self, event: SqlColumns | SqlChunk | SqlOpenEnd) -> None:
        if isinstance(event, SqlColumns):
            self.columns = event.columns
        elif isinstance(event, SqlOpenEnd):
            self.open_ended = True
        else:
            self.rows.extend(event.rows)
            self.row_count += len(event.rows)

    @property
    def handed_out(self) -> int:
        """How many rows the caller has received."""
        return self.row_count - len(self.rows)

    @property
    def truncated(self) -> bool | None:
        """Whether rows may be missing; None before the end."""
        return self.why_truncated is not None if self.ended else None

    @property
    def why_truncated(self) -> str | None:
        """Why rows may be missing, and what to do; None if no rows are missing, and before the
        end."""
        if not self.ended:
            return None
        if self.open_ended:
            return (
                f"Rows may be missing: the connection was closed after {self.row_count} rows, and "
                "the response does not say how long it is. Run the query again. If that does not "
                "help, check the proxies between Airflow and the service."
            )
        return self._why_cut(self.row_count)

    def take_rows(self) -> list[list[Any]]:
        """Return the rows that have arrived since the last call."""
        rows, self.rows = list(self.rows), deque()
        return rows

    def fail(self, error: PlatformError) -> None:
        """End the result with an error, which each later read raises again: missing rows must never
        look like the end."""
        self._failure = error
        if self._on_failure is not None:
            self._on_failure(error)

    def close(self) -> None:
        """Drop the rows that are left. Reading after that raises PlatformClosedError."""
        if self.rows or not self.ended:
            self.rows.clear()
            self._failure = self._failure or PlatformClosedError(
                "The result of this query was closed before its last row was read."
            )

    def check(self) -> None:
        """Raise the error with which the result ended, if any."""
        if self._failure is not None:
            raise self._failure

    def known_columns(self) -> list[dict[str, str]]:
        if self.columns is None:
            raise PlatformClosedError("The query's response ended without columns.")
        return self.columns


class SqlRows:
    """The rows of a query. Each row is a list of values in the order of `columns`. Use it in a
    `with`, or call `close` if you do not read all rows.

    The query is sent when you first read a row or the columns. Raises PlatformError. If the result
    breaks off, it raises after the rows that arrived, and again at each later read. `why_cut`
    judges the number of rows (`RowLimits.why_cut`).
    """

    def __init__(
        self, begin: Callable[[], Events[Any]], why_cut: WhyCut, on_failure: OnFailure | None = None
    ) -> None:
        self._begin = begin
        self._events: Events[Any] | None = None
        self._received = _Received(why_cut, on_failure)

    @property
    def columns(self) -> list[dict[str, str]]:
        """The columns: `{"name", "type"}` each."""
        while self._received.columns is None and self._receive():
            continue
        return self._received.known_columns()

    @property
    def truncated(self) -> bool | None:
        """Whether there may be more rows: the number of rows suggests that the service cut the
        result, or the response did not mark its end. None until the last row has arrived."""
        return self._received.truncated

    @property
    def why_truncated(self) -> str | None:
        """Why there may be more rows, and what to do, as sentences. None if nothing suggests that,
        and until the last row has arrived."""
        return self._received.why_truncated

    @property
    def rows_read(self) -> int:
        """How many rows the caller has received."""
        return self._received.handed_out

    def pieces(self) -> Iterator[list[list[Any]]]:
        """The rows in pieces as they come, which is quicker for many than one at a time."""
        while self._received.rows or self._receive():
            if rows := self._received.take_rows():
                yield rows

    def close(self) -> None:
        """Stop reading and close the connection."""
        self._received.close()
        if self._events is not None:
            self._events.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Any]:
        while not self._received.rows:
            if not self._receive():
                raise StopIteration
        return self._received.rows.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _receive(self) -> bool:
        """Wait for more rows. Return False at the end."""
        received = self._received
        received.check()
        if received.ended:
            return False
        if self._events is None:
            self._events = self._begin()
        try:
            received.take(next(self._events))
        except StopIteration:
            received.ended = True
        except PlatformError as error:
            received.fail(error)
            raise
        return not received.ended
