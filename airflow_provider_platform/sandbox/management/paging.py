"""Cursor paging, once for all lists: ``first`` and ``after``, ``items`` and ``pageInfo``."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox import shapes
from airflow_provider_platform.sandbox.answers import ApiError

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.management.resource import Call

PARAMETERS: shapes.Shape = {"first": shapes.integer(minimum=1), "after": shapes.string()}

Item = dict[str, Any]


def page(call: Call, items: list[Item], *, deprecated: bool = False) -> dict[str, Any]:
    """One page of ``items``; ``deprecated`` adds the older fields ``data`` and ``count``.

    A tenant with legacy lists answers these two only, with everything in them.
    """
    settings = call.world.settings
    if settings.lists == "legacy":
        return {"data": items, "count": len(items)}
    start = _position(call.query.get("after"))
    end = start + call.query.get("first", settings.page_size)
    shown = items[start:end]
    answer: dict[str, Any] = {
        "items": shown,
        "pageInfo": {
            "hasNextPage": end < len(items),
            "hasPreviousPage": start > 0 and bool(items),
            "startCursor": _cursor(start) if shown else None,
            "endCursor": _cursor(start + len(shown) - 1) if shown else None,
        },
    }
    if deprecated:
        answer |= {"data": shown, "count": len(items)}
    return answer


def _cursor(index: int) -> str:
    return base64.urlsafe_b64encode(f"item:{index}".encode()).decode()


def _position(after: str | None) -> int:
    """The index of the first item behind the cursor."""
    if after is None:
        return 0
    try:
        kind, _, index = base64.urlsafe_b64decode(after).decode().partition(":")
        if kind != "item":
            raise ValueError
        return int(index) + 1
    except ValueError:
        raise ApiError(400, ["after is not a cursor of this list"]) from None
