"""The tenant's OpenAPI document."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.table import operations
from airflow_provider_platform.sandbox.management.call import Call, handles


@handles("getSpec")
def spec(call: Call) -> Any:
    """OpenAPI 3.1: the methods and paths that this tenant serves."""
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations().values():
        if call.server.settings.has(operation.since):
            paths.setdefault(operation.path, {})[operation.method.lower()] = {
                "operationId": operation.id,
                "responses": {str(operation.status): {"description": "Successful response"}},
            }
    return {
        "openapi": "3.1.0",
        "info": {"title": "Analytics Platform management API (sandbox)", "version": "1.0.0"},
        "paths": paths,
    }
