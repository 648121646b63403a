"""The contract check itself: it finds what it is there to find."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any, Literal

import pytest
from pydantic import Field, SecretStr

from airflow_provider_platform.client.operations.models import InputModel, ResponseModel, Timestamp
from airflow_provider_platform.client.operations.operation import Endpoint, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery
from airflow_provider_platform.contract import __main__ as command
from airflow_provider_platform.contract.__main__ import main
from airflow_provider_platform.contract.compare import Difference, Severity, compare
from airflow_provider_platform.contract.document import NotADocumentError, read_document
from airflow_provider_platform.contract.explanations import (
    ANY_INCOMPLETE,
    ANY_PAGED,
    Explanation,
    sort_out,
)

if TYPE_CHECKING:
    from pathlib import Path


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


def problems(against: dict[str, Any], *endpoints: Endpoint[..., Any]) -> list[tuple[str, str]]:
    return [(found.place, found.problem) for found in compare(endpoints or [create_thing], against)]


def test_a_declaration_that_agrees_has_no_differences() -> None:
    assert problems(document()) == []


def test_nullable_by_a_list_of_types_agrees_too() -> None:
    against = document()
    fields = against["components"]["schemas"]["Thing"]["properties"]
    fields["secret"] = {"type": ["string", "null"]}

    assert problems(against) == []


@pytest.mark.parametrize(
    ("schema", "change", "difference"),
    [
        ("Kind", {"enum": ["a"]}, ("body.kind", "value b not in the document")),
        ("Kind", {"enum": ["a", "b", "c"]}, ("body.kind", "value c not declared")),
        (
            "ThingInput",
            {"required": ["kind", "size"]},
            ("body.size", "required in the document, optional here"),
        ),
        ("Thing", {"required": []}, ("answer.id", "required here, optional in the document")),
    ],
)
def test_changes_of_a_schema_are_found(
    schema: str, change: dict[str, Any], difference: tuple[str, str]
) -> None:
    against = document()
    against["components"]["schemas"][schema].update(change)

    assert problems(against) == [difference]


@pytest.mark.parametrize(
    ("schema", "field", "new", "difference"),
    [
        ("ThingInput", "colour", {"type": "string"}, ("body.colour", "not declared")),
        ("ThingInput", "size", None, ("body.size", "not in the document")),
        ("ThingInput", "size", {"type": "string"}, ("body.size", "number not in the document")),
        ("Thing", "weight", {"type": "number"}, ("answer.weight", "not declared")),
        ("Thing", "secret", None, ("answer.secret", "not in the document")),
        ("Thing", "id", {"type": "object"}, ("answer.id", "object not readable here")),
        ("Child", "name", {"type": "array"}, ("answer.children[].name", "array not readable here")),
        ("Child", "age", {"type": "integer"}, ("answer.children[].age", "not declared")),
    ],
)
def test_changes_of_a_field_are_found(
    schema: str, field: str, new: Any, difference: tuple[str, str]
) -> None:
    against = document()
    fields = against["components"]["schemas"][schema]["properties"]
    if new is None:
        del fields[field]
    else:
        fields[field] = new

    assert difference in problems(against)


def test_changes_of_an_operation_are_found() -> None:
    query = [
        {"in": "query", "name": "first", "schema": {"type": "integer"}, "required": True},
        {"in": "query", "name": "search", "schema": {"type": "string"}},
    ]

    assert problems(document(parameters=query)) == [
        ("query.after", "not in the document"),
        ("query.first", "required in the document, optional here"),
        ("query.search", "not declared"),
    ]
    assert problems(document(operationId="makeThing")) == [
        ("operation", "is called makeThing in the document")
    ]
    assert problems(document(requestBody={})) == [("body", "not in the document")]
    assert problems(document(responses={"204": {}})) == [("answer", "not in the document")]


def test_operations_on_one_side_only_are_found() -> None:
    against = document()
    against["paths"]["/build/api/v1/x"] = {"get": {}, "put": {"x-incomplete": "body"}}
    against["paths"]["/api/v1/things/{id}"] = against["paths"].pop("/api/v1/things/{thingId}")

    assert [str(found) for found in compare([create_thing], against)] == [
        "addition | GET /build/api/v1/x | operation | not declared",
        "addition | POST /v1/things/{id} | operation | not declared",
        "break | POST /v1/things/{thingId} | operation | not in the document",
        "addition | PUT /build/api/v1/x | operation | incomplete in the document",
    ]


def test_a_bare_array_is_held_against_the_items_of_a_page() -> None:
    array = {"type": "array", "items": {"$ref": "#/components/schemas/Child"}}
    content = {"200": {"content": {"application/json": {"schema": array}}}}
    against = document()
    against["paths"] = {
        "/api/v1/things": {"get": {"operationId": "listThings", "responses": content}}
    }

    assert problems(against, list_things) == []
    against["components"]["schemas"]["Child"]["properties"]["age"] = {"type": "integer"}
    assert problems(against, list_things) == [("answer[].age", "not declared")]


def test_recursive_schemas_come_to_an_end() -> None:
    node = {
        "type": "object",
        "properties": {"nodes": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}},
    }
    reference = {"$ref": "#/components/schemas/Node"}
    against = {
        "paths": {
            "/api/v1/node": {
                "get": {
                    "responses": {"200": {"content": {"application/json": {"schema": reference}}}}
                }
            }
        },
        "components": {"schemas": {"Node": node}},
    }

    assert problems(against, get_node) == []


def test_explained_differences_are_no_findings() -> None:
    against = document(operationId="makeThing")
    differences = compare([create_thing], against)
    told = Explanation(
        "POST /v1/things/{thingId}", "operation", differences[0].problem, "renamed", "history"
    )
    stale = Explanation("GET /x", "body", "not declared", "gone", "change history")

    assert sort_out(differences, [told, stale]) == ([], [stale])
    assert sort_out(differences, [stale]) == (differences, [stale])


def test_an_explanation_of_pages_explains_nothing_else() -> None:
    told = Explanation(ANY_PAGED, "answer.data", "not in the document", "one model", "history")
    place = ("GET /v1/things", "answer.data", "not in the document")

    assert told.covers(Difference(*place, paged=True))
    assert not told.covers(Difference(*place))
    assert not told.covers(Difference(*place, incomplete=True))
    assert not told.covers(Difference("GET /v1/things", "answer.data", "other", paged=True))


def test_an_explanation_of_what_is_incomplete_explains_nothing_else() -> None:
    told = Explanation(ANY_INCOMPLETE, "operation", "not declared", "unknown", "history")
    place = ("GET /v1/things", "operation", "not declared")

    assert told.covers(Difference(*place, incomplete=True))
    assert not told.covers(Difference(*place, paged=True))


def severities(against: dict[str, Any]) -> dict[str, str]:
    return {found.place: found.severity for found in compare([create_thing], against)}


def test_what_the_document_has_more_is_an_addition() -> None:
    against = document()
    schemas = against["components"]["schemas"]
    schemas["Kind"]["enum"].append("c")
    schemas["ThingInput"]["properties"]["colour"] = {"type": "string"}
    schemas["Thing"]["properties"]["weight"] = {"type": "number"}
    operation = against["paths"]["/api/v1/things/{thingId}"]["post"]
    operation["parameters"].append({"in": "query", "name": "search", "schema": {}})
    against["paths"]["/api/v1/more"] = {"get": {}}

    assert severities(against) == dict.fromkeys(
        ["answer.weight", "body.colour", "body.kind", "operation", "query.search"], "addition"
    )


def test_what_is_declared_and_not_there_is_a_break() -> None:
    against = document()
    schemas = against["components"]["schemas"]
    schemas["Kind"]["enum"].remove("a")
    del schemas["ThingInput"]["properties"]["size"]
    schemas["Thing"]["properties"]["id"] = {"type": "object"}
    schemas["Child"]["properties"] = {}
    operation = against["paths"]["/api/v1/things/{thingId}"]["post"]
    del operation["parameters"][1]

    assert severities(against) == dict.fromkeys(
        ["answer.children[].name", "answer.id", "body.kind", "body.size", "query.first"], "break"
    )


def test_what_the_service_needs_and_is_not_declared_is_a_break() -> None:
    against = document()
    schema = against["components"]["schemas"]["ThingInput"]
    schema["properties"]["colour"] = {"type": "string"}
    schema["required"].append("colour")
    operation = against["paths"]["/api/v1/things/{thingId}"]["post"]
    operation["parameters"].append({"in": "query", "name": "x", "required": True, "schema": {}})
    needed = "required in the document, not declared"

    assert problems(against) == [("body.colour", needed), ("query.x", needed)]
    assert set(severities(against).values()) == {"break"}
    operation["parameters"].pop()
    assert problems(against, create_bare_thing) == [("body", "not declared")]
    operation["requestBody"]["required"] = True
    assert problems(against, create_bare_thing) == [("body", needed)]


def test_a_page_of_an_older_release_is_readable() -> None:
    items = {"type": "array", "items": {"$ref": "#/components/schemas/Child"}}

    def against(**fields: Any) -> dict[str, Any]:
        page = {"type": "object", "properties": fields}
        content = {"200": {"content": {"application/json": {"schema": page}}}}
        found = document()
        found["paths"] = {"/api/v1/things": {"get": {"responses": content}}}
        return found

    def breaks(**fields: Any) -> set[str]:
        differences = compare([list_things], against(**fields))
        assert all(found.paged for found in differences)
        return {found.place for found in differences if found.severity is Severity.BREAK}

    known = {"answer.totalCount", "answer.pagination"}
    assert breaks(data=items, count={"type": "integer"}) == known
    assert breaks(rows=items) >= {"answer.items", "answer.data"}


@pytest.mark.parametrize(
    ("change", "options", "status", "said"),
    [
        (None, [], 0, "0 breaks, 0 additions"),
        ("addition", [], 0, "0 breaks, 1 additions"),
        ("addition", ["--strict"], 1, "0 breaks, 1 additions"),
        ("break", [], 1, "1 breaks, 1 additions"),
    ],
)
def test_the_command_fails_where_something_breaks(
    change: str | None,
    options: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "declared_endpoints", lambda: [create_thing])
    against = document()
    if change is not None:
        against["paths"]["/api/v1/added"] = {"get": {}}
    if change == "break":
        del against["components"]["schemas"]["ThingInput"]["properties"]["size"]
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(against), encoding="utf-8")

    assert main([str(path), *options]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith(said)
    kinds = [line.split(" | ")[0] for line in lines[:-1]]
    assert kinds == {None: [], "addition": ["addition"], "break": ["break", "addition"]}[change]


def test_the_command_fails_where_there_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document()), encoding="utf-8")

    assert main([str(path), "--all"]) == 1
    assert "POST /v1/things/{thingId} | operation | not declared" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", "a: [", "openapi: 3.1.0", "<!doctype html>"])
def test_what_is_no_document_is_told(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(NotADocumentError, match=r"openapi\.yaml"):
        read_document(str(path))
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "missing.yaml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_address_needs_its_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PLATFORM_TOKEN", raising=False)

    assert main(["https://acme.example.com/api"]) == 2
    assert "token" in capsys.readouterr().err


def test_the_document_that_a_tenant_serves_is_read_with_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    class Tenant(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            body = json.dumps(document()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Keep the test's output clean."""

    monkeypatch.setenv("PLATFORM_TOKEN", "canary-token")
    with ThreadingHTTPServer(("127.0.0.1", 0), Tenant) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert main([f"http://127.0.0.1:{server.server_port}"]) == 1
        finally:
            server.shutdown()

    assert asked == [("/api/v1/spec", "Bearer canary-token")]
    shown = capsys.readouterr()
    assert "canary-token" not in shown.out + shown.err
