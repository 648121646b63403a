"""Operations as declarations: path, permission, query, body. Checks they share are made here."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox import shapes
from airflow_provider_platform.sandbox.answers import ApiError
from airflow_provider_platform.sandbox.credentials import matches
from airflow_provider_platform.sandbox.exchange import exchange_of

if TYPE_CHECKING:
    from starlette.requests import Request

    from airflow_provider_platform.sandbox.world import World

S = TypeVar("S")

DEPLOYMENTS = {1: "Acme production", 2: "Acme staging"}
VERBS = ("GET", "POST", "PUT", "PATCH", "DELETE")


@dataclass
class Call:
    """One checked request: ids from the path, query values and the body."""

    world: World
    path: dict[str, Any]
    query: dict[str, Any] = field(default_factory=dict)
    body: dict[str, Any] = field(default_factory=dict)

    @property
    def deployment(self) -> int:
        deployment_id: int = self.path["deploymentId"]
        return deployment_id

    def store(self, kind: type[S]) -> S:
        return self.world.store(kind)


Handler = Callable[[Call], Any]
"""Gives the JSON of the answer, or a ``Response`` of its own."""


@dataclass(frozen=True)
class Operation:
    """One operation: what it needs and what it takes."""

    handler: Handler
    needs: str
    query: shapes.Shape
    body: shapes.Check | None
    available: Callable[[World], None]


def _always(_world: World) -> None:
    return None


class Resource:
    """The operations of one resource. ``available`` may raise or divert where a tenant lacks it."""

    def __init__(self) -> None:
        self._paths: dict[str, dict[str, Operation]] = {}
        self.collections: dict[str, Callable[[World], list[dict[str, Any]]]] = {}
        """Items that tests can change through the control API, by the resource's name."""

    def operation(
        self,
        verb: str,
        path: str,
        *,
        needs: str = "DeploymentRead",
        query: shapes.Shape | None = None,
        body: shapes.Check | None = None,
        available: Callable[[World], None] = _always,
    ) -> Callable[[Handler], Handler]:
        """Declare an operation. Path parameters ending in ``Id`` are integers, unless written
        ``{name:text}``."""

        def declare(handler: Handler) -> Handler:
            declared = Operation(handler, needs, query or {}, body, available)
            self._paths.setdefault(path, {})[verb] = declared
            return handler

        return declare

    def routes(self) -> list[Route]:
        return [self._route(path, operations) for path, operations in self._paths.items()]

    def _route(self, path: str, operations: dict[str, Operation]) -> Route:
        text_ids = {part[1:-6] for part in path.split("/") if part.endswith(":text}")}

        async def endpoint(request: Request) -> Response:
            exchange = exchange_of(request.scope)
            operation = operations.get(request.method)
            if operation is None:
                raise ApiError(405, f"Cannot {request.method} {request.url.path}")
            return perform(exchange.world, operation, request, exchange.body, text_ids)

        return Route(path.replace(":text}", "}"), endpoint, methods=list(VERBS))


class Diverted(Exception):
    """The operation does not exist on this tenant; carries the answer it gives instead."""

    def __init__(self, response: Response) -> None:
        super().__init__("not available")
        self.response = response


def perform(
    world: World, operation: Operation, request: Request, body: bytes, text_ids: Collection[str]
) -> Response:
    """Check one request in the order a service does, then carry it out."""
    try:
        operation.available(world)
    except Diverted as diverted:
        return diverted.response
    _authenticate(world, request)
    path = _path_values(request.path_params, text_ids)
    deployment = path.get("deploymentId")
    if deployment is not None and deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {deployment} not found")
    if operation.needs in world.settings.token_lacks:
        raise ApiError(403, f"Forbidden: the {operation.needs} permission is missing")
    query, messages = shapes.query_values(operation.query, request.query_params.multi_items())
    call = Call(world, path, query, _body(operation, body, messages))
    if messages:
        raise ApiError(400, messages)
    answer = operation.handler(call)
    return answer if isinstance(answer, Response) else JSONResponse(answer)


def _authenticate(world: World, request: Request) -> None:
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not matches(token, world.credentials.management_token):
        raise ApiError(401, "Unauthorized")


def _path_values(parameters: dict[str, Any], text_ids: Collection[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    messages = []
    for name, text in parameters.items():
        if name in text_ids:
            values[name] = text
        elif text.isascii() and text.isdigit():
            values[name] = int(text)
        else:
            messages.append(f"{name} must be an integer")
    if messages:
        raise ApiError(400, messages)
    return values


def _body(operation: Operation, body: bytes, messages: list[str]) -> dict[str, Any]:
    """The body's fields without those that are null; broken rules are added to ``messages``."""
    if not body:
        document: Any = {}
    else:
        try:
            document = json.loads(body)
        except ValueError:
            raise ApiError(400, ["the body must be JSON"]) from None
    if operation.body is None:
        if document != {}:
            messages.append("the operation takes no body")
        return {}
    messages += operation.body(document, "")
    if not isinstance(document, dict):
        return {}
    return {name: value for name, value in document.items() if value is not None}
