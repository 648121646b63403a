"""Checks the token, the branch and the body of each request to the data API."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from airflow_provider_platform.client.table import Schema, problems
from airflow_provider_platform.sandbox.http.request_handler import handler_of
from airflow_provider_platform.sandbox.http.responses import web_page
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS
from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.credentials import verify
from airflow_provider_platform.sandbox.state.pre_aggregations import PreAggregationJobs
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.warehouse import Warehouse


class Refused(Exception):
    """The request is refused with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status_code)
        self.response = response


@dataclass(frozen=True)
class DataRequest:
    """A checked request."""

    server: ServerState
    deployment: int
    branch: str
    document: dict[str, Any]

    def warehouse(self, sql: str) -> Warehouse:
        """Return the warehouse that a query reads."""
        jobs = self.server.store(PreAggregationJobs)
        return jobs.warehouse(self.server, self.deployment, self.branch, sql)


def read(request: Request, *, scope: str, body: Schema | None) -> DataRequest:
    """Check the token and its scope, the branch, then the body unless ``body`` is None; raises
    ``Refused``."""
    handler = handler_of(request.scope)
    server, deployment = handler.server, request.path_params["deployment"]
    claims = _claims(server, request.headers.get("authorization", ""))
    if deployment not in DEPLOYMENTS or claims.get("deploymentId", deployment) != deployment:
        raise refuse(403, "The token is for another deployment")
    if scope not in server.settings.default_api_scopes:
        raise refuse(403, f"API scope is missing: {scope}")
    branch = _open_branch(server, deployment, request.path_params.get("branch"))
    document = {} if body is None else _document(handler.body)
    messages = [] if body is None else problems(body, document)
    if messages:
        raise refuse(400, "; ".join(messages))
    handler.speaks_for(claims.get("externalId"))
    return DataRequest(server, deployment, branch, document)


def refuse(status: int, message: str) -> Refused:
    """Return an error in Cube's form: permanent, unless it says "Continue wait"."""
    return Refused(JSONResponse({"error": message}, status))


def _claims(server: ServerState, header: str) -> dict[str, Any]:
    """Return the claims of the token."""
    secret, now = server.credentials.api_secret, server.clock.now()
    try:
        return verify(header, secret, now)
    except ValueError as error:
        raise refuse(403, f"Invalid token: {error}") from None


def _open_branch(server: ServerState, deployment: int, path: str | None) -> str:
    """Return the branch in the path. Raises ``Refused`` if the branch is not served."""
    branches = branches_of(server, deployment)
    name = branches.deploy if path is None else unquote(path)
    answer = branches.ask(name, server)
    if answer.serves:
        return name
    if answer.kind in ("bad", "not_active"):
        raise refuse(400, answer.words)
    if answer.kind == "failed":
        raise refuse(500, f"Error: {answer.words}")
    page = web_page()
    raise Refused(Response(page.body, 503, {"content-type": "text/html"}))


def _document(body: bytes) -> Any:
    try:
        return json.loads(body)
    except ValueError:
        raise refuse(400, "the query must be JSON") from None
