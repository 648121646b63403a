"""Lists in XCom: at most as long as the DAG author allows; the log says if items are missing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.operators._base.arguments import stored

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_ITEMS = 1000


def capped(resources: Iterator[Any], max_items: int, log: Any) -> list[dict[str, Any]]:
    """Return the first items as plain JSON. Pages beyond them are not requested."""
    items = [stored(item) for item in islice(resources, max_items)]
    log_length(
        len(items), more=len(items) == max_items and bool(list(islice(resources, 1))), log=log
    )
    return items


def log_length(length: int, *, more: bool, log: Any) -> None:
    """Log how many items are returned."""
    if more:
        log.warning("The list is longer than max_items. Returning only the first %s items.", length)
    else:
        log.info("Items returned: %s", length)
