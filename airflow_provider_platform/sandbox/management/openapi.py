"""``GET /v1/spec``: an OpenAPI document of what this sandbox serves, made from its operations."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import (
    Call,
    Diverted,
    Operation,
    Resource,
    check_available,
)
from airflow_provider_platform.sandbox.state.server_state import ServerState

_ANSWER = {"200": {"description": "Successful response"}}


def describing(resources: Iterable[Resource]) -> Resource:
    """The resource whose one operation describes ``resources`` and itself."""
    resource = Resource("/api/v1/spec", needs=None, since="0.4.0")
    all_resources = (*resources, resource)

    @resource.get()
    def get_spec(call: Call) -> Any:
        return document(call.server, all_resources)

    return resource


def document(server: ServerState, resources: Iterable[Resource]) -> dict[str, Any]:
    """OpenAPI 3.1: methods, paths, parameters and request bodies; answers are not described."""
    paths: dict[str, dict[str, Any]] = {}
    for resource in resources:
        for operation in resource.operations:
            if _offered(server, operation):
                path = operation.path.replace(":text}", "}")
                paths.setdefault(path, {})[operation.verb.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Analytics Platform management API (sandbox)", "version": "1.0.0"},
        "servers": [{"url": server.base_url}],
        "security": [{"bearerAuth": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"bearerAuth": {"type": "http", "scheme": "bearer"}},
        },
    }


def _offered(server: ServerState, operation: Operation) -> bool:
    try:
        check_available(server, operation)
    except (ApiError, Diverted):
        return False
    return True


def _described(operation: Operation) -> dict[str, Any]:
    first, *rest = operation.handler.__name__.split("_")
    described: dict[str, Any] = {
        "operationId": first + "".join(word.capitalize() for word in rest),
        "summary": (operation.handler.__doc__ or "").strip().partition("\n")[0],
        "parameters": [*_path_parameters(operation), *_query_parameters(operation)],
        "responses": _ANSWER,
    }
    if operation.anonymous:
        described["security"] = []
    if operation.body is not None:
        schema = dict(operation.body.schema)
        described["requestBody"] = {
            "required": "required" in schema,
            "content": {"application/json": {"schema": schema}},
        }
    return described


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string" if text else "integer"},
        }
        for name, text in re.findall(r"\{(\w+)(:text)?\}", operation.path)
    ]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {"name": name, "in": "query", "required": check.required, "schema": dict(check.schema)}
        for name, check in operation.query.items()
    ]
