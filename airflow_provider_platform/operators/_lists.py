"""Lists in XCom: at most as long as the DAG author allows; the log says if items are missing."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.client.operations.models import ResponseModel

MAX_ITEMS = 1000


def capped(resources: Iterator[ResponseModel], max_items: int, log: Any) -> list[dict[str, Any]]:
    """Return the first items as plain JSON. Pages beyond them are not requested."""
    items = [item.to_json() for item in islice(resources, max_items)]
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
