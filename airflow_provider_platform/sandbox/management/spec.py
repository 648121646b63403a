"""The tenant's OpenAPI document."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_platform.client.table.table import (
    OperationRow,
    Schema,
    definition,
    operations,
)
from airflow_provider_platform.sandbox.management.call import ANONYMOUS, Call, handles


@handles("getSpec")
def spec(call: Call) -> Any:
    """OpenAPI 3.1: methods, paths, parameters and bodies of what this tenant serves."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations().values():
        if call.server.settings.has(operation.since):
            described = paths.setdefault(operation.path, {})
            described[operation.method.lower()] = _described(operation)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Analytics Platform management API (sandbox)", "version": "1.0.0"},
        "servers": [{"url": call.server.base_url}],
        "security": [{"bearerAuth": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"bearerAuth": {"type": "http", "scheme": "bearer"}},
        },
    }


def _described(operation: OperationRow) -> dict[str, Any]:
    query = operation.query.get("properties", {})
    described: dict[str, Any] = {
        "operationId": operation.id,
        "parameters": [
            *(
                _parameter(
                    "path", name, {"type": "string" if name in operation.texts else "integer"}
                )
                for name in re.findall(r"\{(\w+)\}", operation.path)
            ),
            *(
                _parameter("query", name, schema, name in operation.query.get("required", ()))
                for name, schema in query.items()
            ),
        ],
        "responses": {str(operation.status): {"description": "Successful response"}},
    }
    if operation.id == ANONYMOUS:
        described["security"] = []
    if operation.body is not None:
        schema = _whole(operation.body)
        content = {"application/json": {"schema": schema}}
        described["requestBody"] = {"required": "required" in schema, "content": content}
    return described


def _parameter(place: str, name: str, schema: Schema, required: bool = True) -> dict[str, Any]:
    return {"name": name, "in": place, "required": required, "schema": schema}


def _whole(schema: Any) -> Any:
    """Return a schema with the schemas that it refers to."""
    if isinstance(schema, list):
        return [_whole(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _whole(definition(schema["$ref"].rpartition("/")[2]))
    return {name: _whole(value) for name, value in schema.items() if name != "since"}
