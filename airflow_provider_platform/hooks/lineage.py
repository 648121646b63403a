"""The queries of a task, for Airflow's hook lineage collector.

Whoever reads the collector, as the OpenLineage provider does at the end of each task, asks the hook
of a query for the names of its database. Without a reader, Airflow's collector stores nothing.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from itertools import count
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.resources.chat.tool_calls import UNFINISHED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Protocol

    from airflow_provider_platform.client.config import PlatformConfig

    class HookOfConnection(Protocol):
        platform_conn_id: str


log = logging.getLogger(__name__)

DEFAULT_SCHEMA = "public"
"""The schema of tables that a query names without one."""

_numbers = count(1)
_contexts: dict[str, HookOfConnection] = {}


def report_queries(hook: HookOfConnection, queries: Iterable[str]) -> None:
    """Report SQL that was sent, without secrets. This never fails a task.

    The collector keeps the hook until the process ends, so give a new `PlatformHook`, which has no
    client. The first hook of a connection stands for all, so that a reader looks the connection up
    once."""
    try:
        from airflow.providers.common.compat.lineage.hook import get_hook_lineage_collector

        context = _contexts.setdefault(hook.platform_conn_id, hook)
        collector: Any = get_hook_lineage_collector()
        for sql in filter(None, queries):
            # Two equal values would count as one query: the number tells them apart.
            value = {"sql": sql, "extra": {"query": next(_numbers)}}
            collector.add_extra(context=context, key="sql_job", value=value)
    except Exception:
        log.debug("A query could not be reported to Airflow's lineage collector.", exc_info=True)


@contextmanager
def reported_chat(hook: HookOfConnection, queries: Sequence[dict[str, Any]]) -> Iterator[None]:
    """Report the queries of a chat, given as plain JSON without secrets, after the block. The
    reader says of all queries what became of the task, so a failed query is left out unless the
    block raises PlatformError."""
    finished = [query["sql"] for query in queries if query["error"] in (None, UNFINISHED)]
    try:
        yield
    except PlatformError:
        report_queries(hook, [query["sql"] for query in queries])
        raise
    report_queries(hook, finished)


def database_info(config: PlatformConfig) -> Any:
    """Return the names of the connection's database as OpenLineage's `DatabaseInfo`: tables are
    `public.orders` in `platform://acme.example.com`."""
    from airflow.providers.openlineage.sqlparser import DatabaseInfo

    address = config.management_url or config.data_api_url or config.chat_url or ""
    return DatabaseInfo(scheme="platform", authority=urlsplit(address).netloc)
