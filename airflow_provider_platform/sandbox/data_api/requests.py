"""What every request to the data API goes through: its token, its branch and its body."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import web_page
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS
from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.credentials import WITH_PREFIX, verify_data_token
from airflow_provider_platform.sandbox.state.pre_aggregations import PreAggregationJobs
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.warehouse import Warehouse

CONTINUE_WAIT = "Continue wait"


class Refused(Exception):
    """The request gets this answer and goes no further."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class DataRequest:
    """A request that may be answered. ``key`` names its query among those that are running."""

    server: ServerState
    deployment: int
    branch: str
    document: dict[str, Any]

    @property
    def key(self) -> tuple[object, ...]:
        return (self.deployment, self.branch, json.dumps(self.document, sort_keys=True))

    @property
    def warehouse(self) -> Warehouse:
        """What its queries read."""
        jobs = self.server.store(PreAggregationJobs)
        return jobs.warehouse(self.server, self.deployment, self.branch)


def read(request: Request, *, scope: str, body: checks.Check | None) -> DataRequest:
    """Check the token and its scope, the branch, then the body; raises ``Refused``.

    ``body`` is None for an operation without one.
    """
    handler = handler_of(request.scope)
    server, deployment = handler.server, request.path_params["deployment"]
    claims = _claims(server, request.headers.get("authorization", ""))
    if deployment not in DEPLOYMENTS or claims.get("deploymentId", deployment) != deployment:
        raise refuse(403, "The token is for another deployment")
    if scope not in _scopes(server, claims):
        raise refuse(403, f"API scope is missing: {scope}")
    branch = _open_branch(server, deployment, request.path_params.get("branch"))
    document = {} if body is None else _document(request, handler.body)
    messages = [] if body is None else body(document, "")
    if messages:
        raise refuse(400, "; ".join(messages))
    handler.speaks_for(claims.get("externalId"))
    return DataRequest(server, deployment, branch, document)


def refuse(status: int, message: str) -> Refused:
    """Cube's own error: permanent, unless it asks to continue waiting."""
    return Refused(JSONResponse({"error": message}, status))


def _claims(server: ServerState, header: str) -> dict[str, Any]:
    """What the token says."""
    secret, now = server.credentials.api_secret, server.clock.now()
    try:
        return verify_data_token(header, secret, now)
    except ValueError as error:
        raise refuse(403, f"Invalid token: {error}") from None


def _scopes(server: ServerState, claims: dict[str, Any]) -> tuple[str, ...]:
    """A metadata token cannot query data; every other one has the deployment's scopes."""
    metadata = "scope" in claims and WITH_PREFIX.items() <= claims.items()
    return ("meta",) if metadata else server.settings.default_api_scopes


def _open_branch(server: ServerState, deployment: int, path: str | None) -> str:
    """The branch that the path names, where it answers; raises ``Refused`` where it does not."""
    branches, settings = branches_of(server, deployment), server.settings
    name = branches.deploy if path is None else _branch_name(path, settings.branch_path)
    answer = branches.ask(name, server)
    if answer.serves or (answer.kind == "asleep" and settings.idle_answer == "none"):
        return name
    if answer.kind in ("bad", "not_active"):
        raise refuse(400, answer.words)
    if answer.kind == "failed":
        raise refuse(500, f"Error: {answer.words}")
    if answer.kind == "building" and settings.building_answer == "continue_wait":
        raise refuse(200, CONTINUE_WAIT)
    page = web_page()
    raise Refused(Response(page.body, 503, {"content-type": "text/html"}))


def _branch_name(path: str, form: str) -> str:
    """The branch that a path names: a slash in the other form makes it a name of no branch."""
    if form == "encoded":
        return f"{path} (not encoded)" if "/" in path else unquote(path)
    return f"{path} (encoded)" if "%2f" in path.lower() else unquote(path)


def _document(request: Request, body: bytes) -> Any:
    """The body as JSON; of a GET, its parameters, where ``query`` is JSON in a string."""
    try:
        if request.method == "GET":
            parameters: dict[str, Any] = dict(request.query_params)
            if "query" in parameters:
                parameters["query"] = json.loads(parameters["query"])
            return parameters
        return json.loads(body)
    except ValueError:
        raise refuse(400, "the query must be JSON") from None
