"""Cursor paging, once for all lists: ``first`` and ``after``, ``items`` and ``pageInfo``."""

from __future__ import annotations

import base64
from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import Call

PARAMETERS: checks.Fields = {"first": checks.integer(minimum=1), "after": checks.string()}

OFFSETS: checks.Fields = {
    **PARAMETERS,
    "offset": checks.integer(minimum=0),
    "limit": checks.integer(minimum=0),
}
"""With the older parameters that some lists still take."""

Item = dict[str, Any]


def page(call: Call, items: list[Item], *, deprecated: bool = False) -> dict[str, Any]:
    """One page of ``items``; ``deprecated`` adds the older fields ``data`` and ``count``.

    A tenant with legacy lists answers these two only, with everything in them.
    """
    settings = call.server.settings
    if settings.lists == "legacy":
        return {"data": items, "count": len(items)}
    start = 0 if settings.lists == "repeating" else _position(call.query.get("after"))
    end = start + call.query.get("first", settings.page_size)
    if settings.lists == "unpaged":
        start, end = 0, len(items)
    shown = items[start:end]
    answer: dict[str, Any] = {
        "items": shown,
        "pageInfo": {
            "hasNextPage": end < len(items) or settings.lists == "repeating",
            "hasPreviousPage": start > 0 and bool(items),
            "startCursor": _cursor(start) if shown else None,
            "endCursor": _cursor(start + len(shown) - 1) if shown else None,
        },
    }
    if settings.lists == "unpaged":
        answer["pageInfo"] = None
    if deprecated:
        answer |= {"data": shown, "count": len(items)}
    return answer


def numbered_page(call: Call, items: list[Item]) -> dict[str, Any]:
    """One page by ``limit`` and ``page``, which count from 1, or everything; there is no cursor."""
    limit = call.query.get("limit", len(items))
    start = limit * (call.query.get("page", 1) - 1)
    shown = items[start : start + limit]
    if call.server.settings.lists == "legacy":
        return {"data": shown, "count": len(items)}
    return {"items": shown, "pageInfo": None, "data": shown, "count": len(items)}


def offset_page(call: Call, items: list[Item]) -> dict[str, Any]:
    """One page by cursor or by ``offset`` and ``limit``, with ``data`` and ``pagination`` too."""
    older = {"offset", "limit"} & set(call.query)
    if older and {"first", "after"} & set(call.query):
        raise ApiError(400, ["offset and limit cannot be mixed with first and after"])
    offset, limit = call.query.get("offset", 0), call.query.get("limit", len(items))
    pagination = {"total": len(items), "offset": offset, "limit": limit}
    if older:
        shown = items[offset : offset + limit]
        answer = {"items": shown, "pageInfo": None, "data": shown, "count": len(items)}
        if call.server.settings.lists == "legacy":
            answer = {"data": shown, "count": len(items)}
    else:
        answer = page(call, items, deprecated=True)
    return {**answer, "pagination": pagination}


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
