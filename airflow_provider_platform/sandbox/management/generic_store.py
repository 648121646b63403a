"""The generic store: list, get, create, update and delete, for every resource without behaviour.
What is no such resource gets the smallest answer that fits its schema.

The path of an operation says which resource it means, and whose: ``.../folders/{folderId}`` is one
item of ``folders`` whose ``deploymentId`` is the one in the path, ``.../workbooks/by-slug/{slug}``
is the workbook with this slug. The schemas of the answers say which fields an item has.
"""

from __future__ import annotations

import base64
import copy
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from airflow_provider_platform.client.operations_table import Schema, operations, resolved
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import samples
from airflow_provider_platform.sandbox.management.call import Call
from airflow_provider_platform.sandbox.management.samples import Item

View = Callable[[Call, Item], Item]

_VIEWS: dict[str, View] = {}
_PAGING = {"first", "after", "offset", "limit", "page", "sortBy", "sortDirection", "search"}
_SEARCHED = ("name", "displayName", "externalId", "email")
_NOW, _CALLER = ("createdAt", "updatedAt", "lastViewedAt"), ("userId", "createdBy", "refreshedBy")
_SCOPES = ("deploymentId", "embedTenantName")
_REFERENCES = {"folderId": "folders", "parentId": "folders", "workbookId": "workbooks"}


def view(name: str) -> Callable[[View], View]:
    """Register what answers add to an item of this resource."""

    def register(added: View) -> View:
        _VIEWS[name] = added
        return added

    return register


def shown(call: Call, name: str, item: Item) -> Item:
    """Return an item as answers have it: with the fields of its schema, of which those that are
    required and missing have their smallest values."""
    if name in _VIEWS:
        item = {**item, **_VIEWS[name](call, item)}
    schema = _schema(name)
    known = schema.get("properties", item)
    return {**fitting(schema), **{key: value for key, value in item.items() if key in known}}


def perform(call: Call) -> Any:
    """Carry out an operation that has no handler."""
    name, key = _place(call.operation.path)
    if not _is_stored(call.operation.path):
        _check_parents(call)
        if call.operation.method != "GET":
            call.record("requested", name, "")
        return fitting(call.operation.answer or {})
    if call.operation.method == "GET":
        return page(call, listed(call)) if key is None else shown(call, name, item(call))
    if call.operation.method == "POST":
        return shown(call, name, create(call, call.body))
    if call.operation.method == "DELETE":
        return delete(call, name, item(call))
    if call.operation.method == "PUT" and key in ("publicId", "slug"):
        named = {key: call.path[key]}
        if call.items.find(name, **named) is None:
            return shown(call, name, create(call, {**call.body, **named}))
    return shown(call, name, update(call, item(call), call.document))


def _check_parents(call: Call) -> None:
    """Raise ``ApiError`` (404) if an item in the path, before its last part, does not exist."""
    for name, key in re.findall(r"/([\w-]+)/{(\w+)}(?=/.)", call.operation.path):
        if name in samples.ITEMS and key not in _SCOPES:
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
    key: str | None = "id"
    if name is None:
        name, key = _place(call.operation.path)
        item_id = call.path[key or ""]
    for found in of(call, name):
        if found.get(key if key in found else "id") == item_id:
            return found
    one = re.sub(r"(ie)?s$", lambda end: "y" if end[1] else "", name.replace("-", " "))
    place = f" in deployment {call.deployment}" if "deploymentId" in call.path else ""
    raise ApiError(404, f"{one.capitalize()} {item_id} not found{place}")


def of(call: Call, name: str) -> list[Item]:
    """Return the items of the deployment or the embed tenant in the path."""
    scope = [key for key in _SCOPES if key in call.path]
    return [
        one
        for one in call.items.all(name)
        if all(one.get(key, call.path[key]) == call.path[key] for key in scope)
    ]


def listed(call: Call) -> list[Item]:
    """Return the items of the path that the query wants, in its order, as answers have them. A
    filter by a field that items do not have keeps them all."""
    name, _ = _place(call.operation.path)
    query, kept = call.query, []
    text = str(query.get("search") or "").lower()
    wanted = {key: value for key, value in query.items() if key not in _PAGING}
    for one in of(call, name):
        seen = shown(call, name, one)
        known = {**one, **seen}
        searched = " ".join(str(known.get(key) or "") for key in _SEARCHED)
        if text in searched.lower() and all(
            known.get(key, value) in (value if isinstance(value, list) else [value])
            for key, value in wanted.items()
        ):
            kept.append((str(known.get(query.get("sortBy") or "")), seen))
    kept.sort(key=lambda pair: pair[0])
    found = [seen for _, seen in kept]
    return found[::-1] if query.get("sortDirection") == "DESC" else found


def create(call: Call, fields: dict[str, Any], name: str | None = None, **more: Any) -> Item:
    """Add an item with ``fields``, defaults for the others, and ``more``. Raises ``ApiError`` (404)
    if the fields name a folder or a workbook that does not exist."""
    name = name or _place(call.operation.path)[0]
    _check_references(call, fields)
    rules = _schema(name).get("properties", {})
    blank = {
        key: _blank(call, key, rule)
        for key, rule in rules.items()
        if key != "id" and "object" not in rule.get("type", "")
    }
    known = {key: value for key, value in fields.items() if key in rules or not rules}
    scope = {key: value for key, value in call.path.items() if key in _SCOPES}
    defaults = copy.deepcopy(samples.DEFAULTS.get(name, {}))
    added = call.items.add(name, {**blank, **defaults, **known, **scope, **more})
    if added.get("publicId") == "":
        added["publicId"] = samples.public_id(name[:4], added["id"])
    call.record("created", name, added["id"])
    return added


def update(call: Call, found: Item, fields: dict[str, Any], name: str | None = None) -> Item:
    """Change what ``fields`` has. Null takes a value away if it may be absent, else it changes
    nothing. Raises ``ApiError``: 404 as for ``create``, and 409 if ``fields`` expect another
    version of the item."""
    name = name or _place(call.operation.path)[0]
    _check_references(call, fields)
    expected = fields.get("expectedVersion")
    if expected is not None and expected != found["version"]:
        raise ApiError(409, f"{name} {found['id']} has version {found['version']}")
    rules = _schema(name).get("properties", {})
    for key, value in fields.items():
        known = key in rules or not rules
        if known and (value is not None or "null" in str(rules.get(key, "null"))):
            found[key] = value
    changed = {"updatedAt": call.now, "updatedBy": call.user}
    if "version" in found:
        changed["version"] = found["version"] + 1
    found |= {key: value for key, value in changed.items() if key in found}
    call.record("updated", name, found["id"])
    return found


def delete(call: Call, name: str, found: Item) -> None:
    call.items.remove(name, found)
    call.record("deleted", name, found["id"])


def _check_references(call: Call, fields: dict[str, Any]) -> None:
    for key, name in _REFERENCES.items():
        if fields.get(key) is not None:
            item(call, name, fields[key])


@cache
def _place(path: str) -> tuple[str, str | None]:
    """Return the resource of a path, and the parameter that names an item of it."""
    parts = path.rstrip("/").split("/")
    key = parts.pop()[1:-1] if parts[-1].startswith("{") else None
    name = parts[-2] if parts[-1].startswith("by-") else parts[-1]
    return (f"{name}s" if f"{name}s" in samples.ITEMS else name), key


@cache
def _is_stored(path: str) -> bool:
    """Return whether the store has the items of a path. It has none that belong to an item."""
    owner = re.search(r"{(\w+)}/[\w-]+(/{\w+})?/?$", path)
    return _place(path)[0] in samples.ITEMS and (owner is None or owner[1] in _SCOPES)


@cache
def _schema(name: str) -> Schema:
    """Return the schema of the items of a resource: of all answers that have one, the longest."""
    found: list[Schema] = [{}]
    for operation in operations().values():
        if operation.answer and _place(operation.path)[0] == name and _is_stored(operation.path):
            answer = resolved(operation.answer)
            answer = answer.get("properties", {}).get("items", answer)
            found.append(resolved(answer.get("items", answer)))
    having_ids = [one for one in found if "id" in one.get("properties", {})]
    return max(having_ids, key=lambda one: len(one["properties"]), default={})


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
