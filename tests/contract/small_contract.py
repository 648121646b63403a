"""A small contract: some declared operations, and a document that agrees with them."""

from __future__ import annotations

import json
from typing import Any, Literal

from pydantic import Field, SecretStr

from airflow_provider_platform.client.operations.models import InputModel, ResponseModel, Timestamp
from airflow_provider_platform.client.operations.operation import endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery


class Child(ResponseModel):
    name: str | None = None


class Thing(ResponseModel):
    id: int
    made: Timestamp | None = None
    secret: SecretStr | None = None
    children: list[Child] | None = None
    anything: Any = None


class ThingInput(InputModel):
    kind: Literal["a", "b"]
    size: int | None = Field(default=None, ge=1)


@endpoint("POST", "/v1/things/{thingId}", operation_id="createThing")
def create_thing(*, thing_id: int, body: ThingInput, query: PageQuery | None = None) -> Thing:
    """Create a thing."""


@endpoint("POST", "/v1/things/{thingId}", operation_id="createThing")
def create_bare_thing(*, thing_id: int, query: PageQuery | None = None) -> Thing:
    """Create a thing without a body."""


@endpoint("GET", "/v1/things", operation_id="listThings")
def list_things() -> Page[Child]:
    """All things."""


class Node(ResponseModel):
    nodes: list[Node] | None = None


@endpoint("GET", "/v1/node", operation_id="getNode")
def get_node() -> Node:
    """One node."""


def schemas() -> dict[str, Any]:
    nullable = {"oneOf": [{"type": "string"}, {"type": "null"}]}
    return {
        "Child": {"type": "object", "properties": {"name": nullable}},
        "Thing": {
            "type": "object",
            "required": ["id"],
            "properties": {
                "id": {"type": "integer"},
                "made": {
                    "oneOf": [
                        {"type": "string", "format": "date"},
                        {"type": "string", "format": "date-time"},
                    ]
                },
                "secret": nullable,
                "children": {"type": "array", "items": {"$ref": "#/components/schemas/Child"}},
                "anything": {},
            },
        },
        "Kind": {"type": "string", "enum": ["a", "b"]},
        "ThingInput": {
            "type": "object",
            "required": ["kind"],
            "properties": {
                "kind": {"$ref": "#/components/schemas/Kind"},
                "size": {"oneOf": [{"type": "number"}, {"type": "null"}]},
            },
        },
    }


def document(**changed: Any) -> dict[str, Any]:
    def content(name: str) -> dict[str, Any]:
        reference = {"$ref": f"#/components/schemas/{name}"}
        return {"content": {"application/json": {"schema": reference}}}

    operation = {
        "operationId": "createThing",
        "parameters": [
            {"in": "path", "name": "thingId", "required": True, "schema": {"type": "string"}},
            {"in": "query", "name": "first", "schema": {"type": "integer"}},
            {"in": "query", "name": "after", "schema": {"type": "string"}},
        ],
        "requestBody": content("ThingInput"),
        "responses": {"200": content("Thing")},
    }
    found = {
        "paths": {"/api/v1/things/{thingId}": {"post": {**operation, **changed}}},
        "components": {"schemas": schemas()},
    }
    copied: dict[str, Any] = json.loads(json.dumps(found))
    return copied
