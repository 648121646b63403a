"""The rows of a query as an iterator that reads the answer while it is used."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Generator
from typing import Any, Self

from airflow_provider_platform.client.data_api.query import SqlChunk, SqlColumns


class _Received:
    """What has come of a result and was not used yet."""

    def __init__(self) -> None:
        self.columns: list[dict[str, str]] | None = None
        self.rows: deque[list[Any]] = deque()

    def take(self, event: SqlColumns | SqlChunk) -> None:
        if isinstance(event, SqlColumns):
            self.columns = event.columns
        else:
            self.rows.extend(event.rows)


class SqlRows:
    """The rows of a query, each a list of values in the order of `columns`.

    Nothing is sent before the first row, or the columns, are asked for. Raises PlatformError; a
    result that breaks off raises after the rows that came.
    """

    def __init__(self, events: Generator[Any]) -> None:
        self._events = events
        self._received = _Received()

    @property
    def columns(self) -> list[dict[str, str]]:
        """The columns: `{"name", "type"}` each."""
        while self._received.columns is None:
            self._received.take(next(self._events))
        return self._received.columns

    def close(self) -> None:
        """Stop reading and close the connection."""
        self._events.close()

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> list[Any]:
        while not self._received.rows:
            self._received.take(next(self._events))
        return self._received.rows.popleft()


class AsyncSqlRows:
    """`SqlRows` for an event loop; close it, or read it to its end."""

    def __init__(self, events: AsyncGenerator[Any]) -> None:
        self._events = events
        self._received = _Received()

    async def columns(self) -> list[dict[str, str]]:
        """The columns: `{"name", "type"}` each."""
        while self._received.columns is None:
            self._received.take(await anext(self._events))
        return self._received.columns

    async def aclose(self) -> None:
        """Stop reading and close the connection."""
        await self._events.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> list[Any]:
        while not self._received.rows:
            self._received.take(await anext(self._events))
        return self._received.rows.popleft()
