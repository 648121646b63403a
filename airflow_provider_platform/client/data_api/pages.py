"""A query whose result is read in pages: one query after another, the rows as one result."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.data_api.paging import PagedQuery, PageReader
from airflow_provider_platform.client.data_api.query import SqlQuery, run_sql
from airflow_provider_platform.client.data_api.response import SqlChunk, SqlColumns, SqlOpenEnd
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.http.retry import may_repeat, pause_after
from airflow_provider_platform.client.operations.program import (
    Clock,
    Notify,
    Program,
    Sleep,
    with_events,
)


def run_pages(
    query: SqlQuery, pages: PagedQuery, config: PlatformConfig, clock: Clock
) -> Program[None]:
    """Run a query page by page. Notifies as `run_sql` does, as if the result were one: of the
    columns once, of new rows only, and of SqlOpenEnd if the last page had no end of its own.

    Each page may wait for its first row as long as the first one. A page that breaks off after new
    rows is asked for again from the last of them, at most `max_attempts` times in a row. Raises
    what `run_sql` raises, PageKeyError and PagesChangedError.
    """
    patience = query.deadline - clock()
    reader = PageReader(pages)
    broken = 0
    while True:
        page = _Page(reader)
        body = query.body.model_copy(update={"query": reader.next_page()})
        asked = replace(query, body=body, deadline=clock() + patience)
        try:
            yield from with_events(run_sql(asked, config, clock), page.take)
        except PlatformError as error:
            broken += 1
            goes_on = reader.has_new_rows and may_repeat(error, repeatable=True)
            if not goes_on or broken >= config.max_attempts:
                raise
            yield Sleep(pause_after(error, broken))
            continue
        broken = 0
        reader.finish_page()
        if reader.ended:
            if page.open_ended:
                yield Notify(SqlOpenEnd())
            return


class _Page:
    """What one page adds to the result."""

    def __init__(self, reader: PageReader) -> None:
        self._reader = reader
        self.open_ended = False

    def take(self, event: object) -> Iterable[object]:
        if isinstance(event, SqlColumns):
            return [event] if self._reader.take_columns(event.columns) else []
        if isinstance(event, SqlOpenEnd):
            # Rows that a page lost at its end are asked for again by the next one.
            self.open_ended = True
            return []
        if isinstance(event, SqlChunk):
            rows = self._reader.take_rows(event.rows)
            return [SqlChunk(rows)] if rows else []
        return [event]
