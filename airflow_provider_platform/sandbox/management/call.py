"""One request of the management API: checked against the table of operations, then carried out.

A handler is registered for an operation with behaviour of its own. All other operations are carried
out by the generic store (``generic_store.py``).
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.client.operations_table import (
    OperationRow,
    Schema,
    operations,
    problems,
    resolved,
)
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import ApiError, is_json, web_page
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS, OWNER, Items
from airflow_provider_platform.sandbox.state.credentials import matches
from airflow_provider_platform.sandbox.state.server_state import ServerState

S = TypeVar("S")

VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
ANONYMOUS = "postTokenBySessionId"
"""The operation that asks for no token: a session id in its body is the credential."""


@dataclass
class Call:
    """One checked request: ids from the path, query values and the body.

    ``document`` is the body as it came, ``body`` its fields without those that are null.
    ``user`` is the user whose token was sent.
    """

    server: ServerState
    operation: OperationRow
    path: dict[str, Any]
    user: int = 0
    query: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)

    @property
    def body(self) -> dict[str, Any]:
        return given(self.document)

    @property
    def deployment(self) -> int:
        deployment_id: int = self.path["deploymentId"]
        return deployment_id

    @property
    def now(self) -> str:
        """The time as answers write it."""
        return self.server.clock.stamp()

    def store(self, kind: type[S]) -> S:
        return self.server.store(kind)

    @property
    def items(self) -> Items:
        """The items of all resources."""
        return self.server.store(Items)

    def may(self, permission: str) -> bool:
        return permission not in self.server.settings.token_lacks

    def may_change_branch(self, *, production: bool) -> bool:
        """Return whether the token's user may change the data model on a branch."""
        return self.may("SchemaUpdate") or (self.may("SchemaUpdateDevBranches") and not production)

    def require(self, permission: str) -> None:
        """Refuse a caller without ``permission``, for what not every call of an operation needs."""
        if not self.may(permission):
            raise ApiError(403, f"Forbidden: the {permission} permission is missing")

    def record(self, action: str, resource: str, item_id: int | str) -> None:
        """Note a change, so that tests can count it."""
        deployment = self.path.get("deploymentId")
        self.server.journal.change(action, resource, item_id, deployment, sorted(self.document))


def given(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of an object that are not null."""
    return {name: value for name, value in document.items() if value is not None}


Handler = Callable[[Call], Any]
"""Gives the JSON of the answer, or a ``Response`` of its own."""

_HANDLERS: dict[str, Handler] = {}


def handles(*names: str) -> Callable[[Handler], Handler]:
    """Register a handler of these operations."""

    def register(handler: Handler) -> Handler:
        for name in names:
            if name not in operations() or name in _HANDLERS:
                raise ValueError(f"{name} is no operation, or has a handler")
            _HANDLERS[name] = handler
        return handler

    return register


def routes(default: Handler) -> list[Route]:
    """Return one route for each path; ``default`` carries out operations without a handler."""
    paths: dict[str, dict[str, OperationRow]] = {}
    for operation in operations().values():
        paths.setdefault(operation.path, {})[operation.method] = operation
        # The description ends one path with a slash. The newest tenant also takes it without.
        paths.setdefault(operation.path.rstrip("/"), {})[operation.method] = operation
    order = sorted(paths, key=lambda path: [part.startswith("{") for part in path.split("/")])
    return [_route(path, paths[path], default) for path in order]


def _route(path: str, by_method: dict[str, OperationRow], default: Handler) -> Route:
    async def endpoint(request: Request) -> Response:
        handler = handler_of(request.scope)
        operation = by_method.get(request.method)
        if operation is None:
            raise ApiError(405, f"Cannot {request.method} {request.url.path}")
        return _perform(handler.server, operation, request, handler.body, default)

    return Route(path, endpoint, methods=list(VERBS))


def _perform(
    server: ServerState, operation: OperationRow, request: Request, body: bytes, default: Handler
) -> Response:
    """Check one request in the order a service does, then carry it out."""
    lacks_slash = operation.path.endswith("/") and not request.url.path.endswith("/")
    if not server.settings.has(newest=operation.newest or lacks_slash):
        return web_page()
    user = 0 if operation.id == ANONYMOUS else _authenticate(server, request)
    call = Call(server, operation, _path_values(operation, request.path_params), user)
    if "deploymentId" in call.path and call.deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {call.deployment} not found")
    if operation.needs == "SchemaUpdate" and call.may_change_branch(production=False):
        pass  # The handler knows whether the branch is the deploy branch.
    elif operation.needs is not None:
        call.require(operation.needs)
    pairs = request.query_params.multi_items()
    call.query, messages = query_values(operation.query, pairs)
    call.document = _document(server, operation, request, body, messages)
    if messages:
        raise ApiError(400, messages)
    answer = _HANDLERS.get(operation.id, default)(call)
    if isinstance(answer, Response):
        return answer
    if not operation.answer:
        return Response(status_code=operation.status)
    return JSONResponse(_of_tenant(server, operation.answer, answer), operation.status)


def _authenticate(server: ServerState, request: Request) -> int:
    """Return the user of the token; raises ``ApiError`` (401)."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not matches(token, server.credentials.management_token):
        raise ApiError(401, "Unauthorized")
    return OWNER


def _path_values(operation: OperationRow, parameters: dict[str, Any]) -> dict[str, Any]:
    """Path parameters, which arrive encoded: a slash inside one does not end it."""
    values: dict[str, Any] = {}
    messages = []
    for name, encoded in parameters.items():
        text = unquote(encoded)
        if name in operation.texts:
            values[name] = text
        elif text.isascii() and text.isdigit():
            values[name] = int(text)
        else:
            messages.append(f"{name} must be an integer")
    if messages:
        raise ApiError(400, messages)
    return values


def query_values(
    schema: Schema, parameters: list[tuple[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    """Parse query parameters: a string becomes what its schema says. An array may be repeated."""
    known, values, messages = schema.get("properties", {}), {}, []
    for name in dict.fromkeys(name for name, _ in parameters):
        texts = [text for key, text in parameters if key == name]
        rule = known.get(name, {})
        if "array" in _types(rule):
            values[name] = [_parsed(rule["items"], text) for text in texts]
        else:
            values[name] = _parsed(rule, texts[0])
            if len(texts) > 1:
                messages.append(f"{name} must be given once")
    whole = {"type": "object", "properties": {}, **schema}
    return values, messages + problems(whole, values)


def _types(rule: Schema) -> list[str]:
    types = rule.get("type", "string")
    return types if isinstance(types, list) else [types]


def _parsed(rule: Schema, text: str) -> Any:
    if {"integer", "number"} & {*_types(rule)} and re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    if "boolean" in _types(rule) and text in ("true", "false"):
        return text == "true"
    return text


def _document(
    server: ServerState, operation: OperationRow, request: Request, body: bytes, messages: list[str]
) -> dict[str, Any]:
    """The body; broken rules are added to ``messages``."""
    document: Any = {}
    if body:
        try:
            document = json.loads(body)
        except ValueError:
            raise ApiError(400, ["the body must be JSON"]) from None
        if not is_json(request.headers):
            raise ApiError(415, "Content-Type must be application/json")
    if operation.body is not None:
        document = _of_tenant(server, operation.body, document)
    messages += operation.body_problems(document)
    return document if isinstance(document, dict) else {}


def _of_tenant(server: ServerState, schema: Schema, value: Any) -> Any:
    """Return a body or an answer without the fields that the tenant does not know."""
    schema = resolved(schema)
    if isinstance(value, list):
        return [_of_tenant(server, schema.get("items", {}), one) for one in value]
    choices = schema.get("anyOf", [])
    rules: Schema = next(
        (one["properties"] for one in map(resolved, [schema, *choices]) if "properties" in one), {}
    )
    if not isinstance(value, dict) or not rules:
        return value
    return {
        name: _of_tenant(server, rules.get(name, {}), one)
        for name, one in value.items()
        if server.settings.has(newest=rules.get(name, {}).get("newest", False))
    }


@handles("getSpec")
def spec(_: Call) -> Any:
    """OpenAPI 3.1: all methods and paths, because only the newest tenant serves it."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations().values():
        paths.setdefault(operation.path, {})[operation.method.lower()] = {
            "operationId": operation.id,
            "responses": {str(operation.status): {"description": "Successful response"}},
        }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Analytics Platform management API (sandbox)", "version": "1.0.0"},
        "paths": paths,
    }
