"""Operations as declarations: path, permission, query, body. Checks they share are made here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypedDict, TypeVar, Unpack
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.media_types import is_json
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import ApiError, web_page
from airflow_provider_platform.sandbox.state.credentials import matches
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.settings import Permission

S = TypeVar("S")

DEPLOYMENTS = {1: "Acme production", 2: "Acme staging"}
VERBS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@dataclass
class Call:
    """One checked request: ids from the path, query values and the body.

    ``document`` is the body as it came, ``body`` its fields without those that are null.
    ``credential`` names the token that was sent, without giving it away; ``user`` is whose it is.
    """

    server: ServerState
    path: dict[str, Any]
    credential: str = ""
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

    def store(self, kind: type[S]) -> S:
        return self.server.store(kind)

    def require(self, permission: Permission) -> None:
        """Refuse a caller without ``permission``, for what not every call of an operation needs."""
        if permission in self.server.settings.token_lacks:
            raise ApiError(403, f"Forbidden: the {permission} permission is missing")

    def record(self, action: str, resource: str, item_id: int | str) -> None:
        """Note a change, so that tests can count it."""
        deployment = self.path.get("deploymentId")
        self.server.journal.change(action, resource, item_id, deployment, sorted(self.document))

    def deleted(self) -> Response:
        """The answer of a deletion that is declared with 200 and 204."""
        return Response(status_code=204)

    def undeclared(self) -> Response:
        """The answer where the contract declares none."""
        return Response(status_code=200)


def given(document: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an object that are not null."""
    return {name: value for name, value in document.items() if value is not None}


Handler = Callable[[Call], Any]
"""Gives the JSON of the answer, or a ``Response`` of its own."""
Declare = Callable[[Handler], Handler]


@dataclass(frozen=True)
class Operation:
    """One operation: what it needs and what it takes."""

    verb: str
    path: str
    handler: Handler
    needs: Permission | None
    query: checks.Fields
    body: checks.Check | None
    available: Callable[[ServerState], None]
    anonymous: bool
    since: str

    @property
    def text_ids(self) -> set[str]:
        return {part[1:-6] for part in self.path.split("/") if part.endswith(":text}")}


def always(_server: ServerState) -> None:
    return None


class Options(TypedDict, total=False):
    """What an operation asks for, where it differs from its resource.

    ``body`` as a mapping is an object with these fields, null where they need not be there.
    ``available`` may raise or divert where a tenant lacks the operation. An ``anonymous`` one asks
    for no credential. ``since`` is the first release that has the operation.
    """

    needs: Permission | None
    query: checks.Fields
    body: checks.Check | checks.Fields
    available: Callable[[ServerState], None]
    anonymous: bool
    since: str


class Resource:
    """The operations of one resource, declared by their verb and their path below ``path``.

    Path parameters are integers, unless written ``{name:text}``.
    """

    def __init__(
        self,
        path: str,
        *,
        needs: Permission | None = "DeploymentRead",
        available: Callable[[ServerState], None] = always,
        since: str = "0.0.0",
    ) -> None:
        self.path = path
        self._needs = needs
        self._available = available
        self._since = since
        self.operations: list[Operation] = []
        self.collections: dict[str, Callable[[ServerState], list[dict[str, Any]]]] = {}
        """Items that tests can change through the control API, by the resource's name."""

    def get(self, path: str = "", **options: Unpack[Options]) -> Declare:
        return self._operation("GET", path, options)

    def post(self, path: str = "", **options: Unpack[Options]) -> Declare:
        return self._operation("POST", path, options)

    def put(self, path: str = "", **options: Unpack[Options]) -> Declare:
        return self._operation("PUT", path, options)

    def patch(self, path: str = "", **options: Unpack[Options]) -> Declare:
        return self._operation("PATCH", path, options)

    def delete(self, path: str = "", **options: Unpack[Options]) -> Declare:
        return self._operation("DELETE", path, options)

    def _operation(self, verb: str, path: str, options: Options) -> Declare:
        body = options.get("body")

        def declare(handler: Handler) -> Handler:
            operation = Operation(
                verb,
                self.path + path,
                handler,
                needs=options.get("needs", self._needs),
                query=options.get("query", {}),
                body=checks.nullable_fields(body) if isinstance(body, Mapping) else body,
                available=options.get("available", self._available),
                anonymous=options.get("anonymous", False),
                since=options.get("since", self._since),
            )
            self.operations.append(operation)
            return handler

        return declare


def routes(resources: Iterable[Resource]) -> list[Route]:
    """One route for each path; a fixed segment comes before a parameter in its place."""
    paths: dict[str, dict[str, Operation]] = {}
    for resource in resources:
        for operation in resource.operations:
            paths.setdefault(operation.path, {})[operation.verb] = operation
    order = sorted(paths, key=lambda path: [part.startswith("{") for part in path.split("/")])
    return [_route(path, paths[path]) for path in order]


def _route(path: str, operations: dict[str, Operation]) -> Route:
    async def endpoint(request: Request) -> Response:
        handler = handler_of(request.scope)
        operation = operations.get(request.method)
        if operation is None:
            raise ApiError(405, f"Cannot {request.method} {request.url.path}")
        return perform(handler.server, operation, request, handler.body)

    return Route(path.replace(":text}", "}"), endpoint, methods=list(VERBS))


class Diverted(Exception):
    """The operation does not exist on this tenant; makes its answer from the request's path."""

    def __init__(self, answer: Callable[[str], Response]) -> None:
        super().__init__("not available")
        self.answer = answer


def perform(server: ServerState, operation: Operation, request: Request, body: bytes) -> Response:
    """Check one request in the order a service does, then carry it out."""
    try:
        check_available(server, operation)
    except Diverted as diverted:
        return diverted.answer(request.url.path)
    credential, user = ("", 0) if operation.anonymous else _authenticate(server, request)
    path = _path_values(request.path_params, operation.text_ids)
    call = Call(server, path, credential, user)
    deployment = path.get("deploymentId")
    if deployment is not None and deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {deployment} not found")
    if operation.needs is not None:
        call.require(operation.needs)
    call.query, messages = checks.query_values(operation.query, request.query_params.multi_items())
    call.document = _document(operation, request, body, messages)
    if messages:
        raise ApiError(400, messages)
    answer = operation.handler(call)
    return answer if isinstance(answer, Response) else JSONResponse(answer)


def check_available(server: ServerState, operation: Operation) -> None:
    """Raise or divert where the tenant does not have the operation."""
    operation.available(server)
    if server.settings.has(operation.since):
        return
    if server.settings.missing_operation == "html":
        raise Diverted(lambda _path: web_page())
    raise ApiError(int(server.settings.missing_operation), "This tenant has no such operation")


def _authenticate(server: ServerState, request: Request) -> tuple[str, int]:
    """What names the token, and its user; raises ``ApiError`` (401)."""
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    tokens = {
        server.credentials.management_token: server.settings.caller,
        **server.credentials.further_tokens,
    }
    for known, user in tokens.items():
        if scheme.lower() == "bearer" and matches(token, known):
            return hashlib.sha256(known.encode()).hexdigest()[:16], user
    raise ApiError(401, "Unauthorized")


def _path_values(parameters: dict[str, Any], text_ids: Collection[str]) -> dict[str, Any]:
    """Path parameters, which arrive encoded: a slash inside one does not end it."""
    values: dict[str, Any] = {}
    messages = []
    for name, encoded in parameters.items():
        text = unquote(encoded)
        if name in text_ids:
            values[name] = text
        elif text.isascii() and text.isdigit():
            values[name] = int(text)
        else:
            messages.append(f"{name} must be an integer")
    if messages:
        raise ApiError(400, messages)
    return values


def _document(
    operation: Operation, request: Request, body: bytes, messages: list[str]
) -> dict[str, Any]:
    """The body; broken rules are added to ``messages``."""
    if not body:
        document: Any = {}
    else:
        try:
            document = json.loads(body)
        except ValueError:
            raise ApiError(400, ["the body must be JSON"]) from None
        if not is_json(request.headers):
            raise ApiError(415, "Content-Type must be application/json")
    if operation.body is None:
        if document != {}:
            messages.append("the operation takes no body")
        return {}
    messages += operation.body(document, "")
    return document if isinstance(document, dict) else {}
