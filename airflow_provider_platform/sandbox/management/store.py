"""The generic store: list, get, create, update and delete, for every resource without behaviour.
What is no such resource gets the smallest answer that fits its schema.

The path of an operation says which resource it means, and whose: ``.../folders/{folderId}`` is one
item of ``folders`` whose ``deploymentId`` is the one in the path. The schema of the answer says
which fields an item has.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable, Collection
from typing import Any

from airflow_provider_platform.client.table.table import Schema, resolved
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import samples
from airflow_provider_platform.sandbox.management.call import Call
from airflow_provider_platform.sandbox.management.items import Item

View = Callable[[Call, Item], Item]

_VIEWS: dict[str, View] = {}
_PAGING = {"first", "after", "offset", "limit", "page", "sortBy", "sortDirection", "search"}
_SEARCHED = ("name", "displayName", "externalId", "email")
_NOW, _CALLER = ("createdAt", "updatedAt", "lastViewedAt"), ("userId", "createdBy", "refreshedBy")


def view(name: str) -> Callable[[View], View]:
    """Register what answers show of an item of this resource."""

    def register(shown: View) -> View:
        _VIEWS[name] = shown
        return shown

    return register


def shown(call: Call, name: str, item: Item) -> Item:
    """Return an item as answers have it."""
    return _VIEWS[name](call, item) if name in _VIEWS else item


def perform(call: Call) -> Any:
    """Carry out an operation that has no handler."""
    name, key = _place(call)
    _check_parents(call)
    if name not in call.items.names():
        if call.operation.method != "GET":
            call.record("requested", name, "")
        return fitting(call.operation.answer or {})
    if call.operation.method == "GET":
        return page(call, listed(call)) if key is None else shown(call, name, item(call))
    if call.operation.method == "POST" and key is None:
        return shown(call, name, create(call, call.body))
    if call.operation.method in ("PUT", "PATCH"):
        return shown(call, name, update(call, item(call), call.document))
    return delete(call, name, item(call))


def _check_parents(call: Call) -> None:
    """Raise ``ApiError`` (404) if an item in the path, before its last part, does not exist."""
    for name, key in re.findall(r"/([\w-]+)/{(\w+)}(?=/.)", call.operation.path):
        if name in call.items.names() and key not in _SCOPES:
            item(call, name, call.path[key])


def fitting(schema: Schema) -> Any:
    """Return the smallest value that fits a schema: its required fields only."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return fitting(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    types = schema.get("type", "object")
    if "object" in types:
        rules = schema.get("properties", {})
        return {name: fitting(rules[name]) for name in schema.get("required", ())}
    empty = {"array": [], "string": "", "boolean": False, "null": None}
    return empty.get(types if isinstance(types, str) else types[0], schema.get("minimum", 0))


def item(call: Call, name: str | None = None, item_id: Any = None) -> Item:
    """Return the item that the path names, or the item of ``name`` with this id.

    Raises ``ApiError`` (404) if the deployment or the embed tenant of the path has no such item.
    """
    if name is None:
        name, key = _place(call)
        item_id = call.path[key or ""]
    found = call.items.get(name, item_id)
    if found is None or not _belongs(call, found):
        one = re.sub(r"(ie)?s$", lambda end: "y" if end[1] else "", name.replace("-", " "))
        place = f" in deployment {call.deployment}" if "deploymentId" in call.path else ""
        raise ApiError(404, f"{one.capitalize()} {item_id} not found{place}")
    return found


def of(call: Call, name: str) -> list[Item]:
    """Return the items of the deployment or the embed tenant in the path."""
    return [one for one in call.items.all(name) if _belongs(call, one)]


def listed(call: Call) -> list[Item]:
    """Return the items of the path that the query wants, in its order, as answers have them."""
    name, _ = _place(call)
    query = call.query
    text = str(query.get("search") or "").lower()
    found = [
        one
        for one in of(call, name)
        if text in " ".join(str(one.get(key) or "") for key in _SEARCHED).lower()
        and all(one.get(key) == value for key, value in query.items() if key not in _PAGING)
    ]
    if query.get("sortBy"):
        found.sort(key=lambda one: str(one.get(query["sortBy"])))
    if query.get("sortDirection") == "DESC":
        found.reverse()
    return [shown(call, name, one) for one in found]


def create(call: Call, fields: dict[str, Any], name: str | None = None, **more: Any) -> Item:
    """Add an item with ``fields``, defaults for the others, and ``more``."""
    name = name or _place(call)[0]
    rules = resolved(call.operation.answer or {}).get("properties", {})
    blank = {
        key: _blank(call, key, rule)
        for key, rule in rules.items()
        if key != "id" and "object" not in rule.get("type", "")
    }
    known = {key: value for key, value in fields.items() if key in rules or not rules}
    scope = {key: value for key, value in call.path.items() if key in _SCOPES}
    added = call.items.add(
        name, {**blank, **copy.deepcopy(samples.DEFAULTS.get(name, {})), **known, **scope, **more}
    )
    call.record("created", name, added["id"])
    return added


def update(
    call: Call,
    found: Item,
    fields: dict[str, Any],
    name: str | None = None,
    *,
    removable: Collection[str] | None = None,
) -> Item:
    """Change what ``fields`` has. Null takes a value away if it may be absent or, with
    ``removable``, if the field is one of these; else it changes nothing.
    """
    rules = resolved(call.operation.answer or {}).get("properties", {})
    for key, value in fields.items():
        if rules and key not in rules:
            continue
        absent = "null" in str(rules.get(key, "null")) if removable is None else key in removable
        if value is not None or absent:
            found[key] = value
    if "updatedAt" in found:
        found["updatedAt"] = call.now
    if "updatedBy" in found:
        found["updatedBy"] = call.user
    call.record("updated", name or _place(call)[0], found["id"])
    return found


def delete(call: Call, name: str, found: Item) -> None:
    call.items.remove(name, found)
    call.record("deleted", name, found["id"])


_SCOPES = ("deploymentId", "embedTenantName")


def _place(call: Call) -> tuple[str, str | None]:
    """Return the resource of the path, and the parameter that names an item of it."""
    *_, before, last = call.operation.path.rstrip("/").split("/")
    return (before, last[1:-1]) if last.startswith("{") else (last, None)


def _belongs(call: Call, found: Item) -> bool:
    return all(
        found.get(key, call.path[key]) == call.path[key] for key in _SCOPES if key in call.path
    )


def _blank(call: Call, key: str, rule: Schema) -> Any:
    """Return the value of a field that a creation does not set."""
    if key in _NOW:
        return call.now
    if key in _CALLER:
        return call.user
    types = rule.get("type", "null")
    return {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}.get(str(types))


# -- pages -----------------------------------------------------------------------------------


def page(call: Call, items: list[Item], *, everything: bool = False) -> Any:
    """Return one page of ``items``, with the fields that the answer's schema names.

    Without ``first``, a page has ``page_size`` items or, with ``everything``, all of them. A tenant
    with legacy lists answers only ``data`` and ``count``, with everything in them.
    """
    answer, settings = resolved(call.operation.answer or {}), call.server.settings
    if answer.get("type") == "array":
        return items
    if settings.lists == "legacy":
        return {"data": items, "count": len(items)}
    older = {"offset", "limit", "page"} & call.query.keys()
    if older and {"first", "after"} & call.query.keys():
        messages = [f"{' and '.join(sorted(older))} cannot be mixed with first and after"]
        raise ApiError(400, messages)
    if older:
        size = call.query.get("limit", len(items))
        start = call.query.get("offset", size * (call.query.get("page", 1) - 1))
        part: list[Item] = items[start : start + size]
        made: dict[str, Any] = {"items": part, "pageInfo": None}
    else:
        size = call.query.get("first", len(items) if everything else settings.page_size)
        made = _by_cursor(call, items, size)
    fields = answer.get("properties", {})
    if "data" in fields:
        made |= {"data": made["items"], "count": len(items)}
    if "pagination" in fields:
        start, most = call.query.get("offset", 0), call.query.get("limit", len(items))
        made["pagination"] = {"total": len(items), "offset": start, "limit": most}
    return made


def _by_cursor(call: Call, items: list[Item], size: int) -> dict[str, Any]:
    start = _position(call.query.get("after"))
    part = items[start : start + size]
    return {
        "items": part,
        "pageInfo": {
            "hasNextPage": start + size < len(items),
            "hasPreviousPage": start > 0 and bool(items),
            "startCursor": _cursor(start) if part else None,
            "endCursor": _cursor(start + len(part) - 1) if part else None,
        },
    }


def _cursor(index: int) -> str:
    return base64.urlsafe_b64encode(f"item:{index}".encode()).decode()


def _position(after: str | None) -> int:
    """Return the index of the first item behind the cursor."""
    if after is None:
        return 0
    try:
        kind, _, index = base64.urlsafe_b64decode(after).decode().partition(":")
        if kind != "item":
            raise ValueError
        return int(index) + 1
    except ValueError:
        raise ApiError(400, ["after is not a cursor of this list"]) from None
