"""The account: its configuration, its OAuth integrations, and the tenant's OpenAPI document."""

from __future__ import annotations

import re
from typing import Any

from airflow_provider_platform.client.table.table import Operation, Schema, definition, operations
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import samples, store
from airflow_provider_platform.sandbox.management.call import ANONYMOUS, Call, handles
from airflow_provider_platform.sandbox.management.items import Item


@handles("getAppConfig")
def app_config(_call: Call) -> Any:
    return samples.APP_CONFIG


# -- OAuth -----------------------------------------------------------------------------------


@handles("updateOAuthIntegration")
def update_integration(call: Call) -> Any:
    """Replace it; without a ``clientSecret`` the old one stays. Secrets are never returned."""
    blank = {"config": None, "scopes": None}
    return store.update(call, store.item(call), {**blank, **call.document})


@handles("deleteOAuthIntegration")
def delete_integration(call: Call) -> None:
    """The tokens granted through it are deleted too."""
    integration = store.item(call)
    for token in call.items.all("user-oauth-tokens"):
        if token["integrationId"] == integration["id"]:
            call.items.remove("user-oauth-tokens", token)
    store.delete(call, "oauth-integrations", integration)


@handles("getUserOAuthToken", "revokeUserOAuthToken")
def own_token(call: Call) -> Any:
    """The caller's token of the integration in the path."""
    integration = call.path["integrationId"]
    token = call.items.find("user-oauth-tokens", integrationId=integration, userId=call.user)
    if token is None:
        text = f"There is no token of this user for OAuth integration {integration}"
        raise ApiError(404, text)
    if call.operation.method == "DELETE":
        return store.delete(call, "user-oauth-tokens", token)
    return token


@handles("initiateOAuthFlow")
def initiate_flow(call: Call) -> None:
    """The user has to continue in a browser."""
    integration: Item = store.item(call, "oauth-integrations", call.path["integrationId"])
    call.record("created", "oauth-flows", integration["id"])


# -- the OpenAPI document --------------------------------------------------------------------


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


def _described(operation: Operation) -> dict[str, Any]:
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
