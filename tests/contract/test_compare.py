"""The contract check finds each kind of difference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.contract.compare import Difference, Severity, compare
from airflow_provider_platform.contract.explanations import (
    ANY_INCOMPLETE,
    ANY_PAGED,
    Explanation,
    sort_out,
)
from tests.contract.small_contract import (
    create_bare_thing,
    create_thing,
    document,
    get_node,
    list_things,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations.operation import Endpoint


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
        ("ThingInput", "size", {"type": "number"}, ("body.size", "null not in the document")),
        ("ThingInput", "size", {"type": "string"}, ("body.size", "number not in the document")),
        ("Thing", "weight", {"type": "number"}, ("answer.weight", "not declared")),
        ("Thing", "secret", None, ("answer.secret", "not in the document")),
        ("Thing", "id", {"type": "object"}, ("answer.id", "object not readable in this provider")),
        (
            "Child",
            "name",
            {"type": "array"},
            ("answer.children[].name", "array not readable in this provider"),
        ),
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


def test_bare_array_is_compared_with_the_items_of_a_page() -> None:
    array = {"type": "array", "items": {"$ref": "#/components/schemas/Child"}}
    content = {"200": {"content": {"application/json": {"schema": array}}}}
    against = document()
    against["paths"] = {
        "/api/v1/things": {"get": {"operationId": "listThings", "responses": content}}
    }

    assert problems(against, list_things) == []
    against["components"]["schemas"]["Child"]["properties"]["age"] = {"type": "integer"}
    assert problems(against, list_things) == [("answer[].age", "not declared")]


def test_comparison_of_recursive_schemas_ends() -> None:
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


def test_explained_differences_are_not_reported_as_findings() -> None:
    against = document(operationId="makeThing")
    differences = compare([create_thing], against)
    explanation = Explanation(
        "POST /v1/things/{thingId}", "operation", differences[0].problem, "renamed", "history"
    )
    stale = Explanation("GET /x", "body", "not declared", "gone", "change history")

    assert sort_out(differences, [explanation, stale]) == ([], [stale])
    assert sort_out(differences, [stale]) == (differences, [stale])


def test_an_explanation_of_pages_explains_nothing_else() -> None:
    explanation = Explanation(
        ANY_PAGED, "answer.data", "not in the document", "one model", "history"
    )
    place = ("GET /v1/things", "answer.data", "not in the document")

    assert explanation.covers(Difference(*place, paged=True))
    assert not explanation.covers(Difference(*place))
    assert not explanation.covers(Difference(*place, incomplete=True))
    assert not explanation.covers(Difference("GET /v1/things", "answer.data", "other", paged=True))


def test_explanation_of_an_incomplete_schema_explains_nothing_else() -> None:
    explanation = Explanation(ANY_INCOMPLETE, "operation", "not declared", "unknown", "history")
    place = ("GET /v1/things", "operation", "not declared")

    assert explanation.covers(Difference(*place, incomplete=True))
    assert not explanation.covers(Difference(*place, paged=True))


def severities(against: dict[str, Any]) -> dict[str, str]:
    return {found.place: found.severity for found in compare([create_thing], against)}


def test_undeclared_field_of_the_document_is_an_addition() -> None:
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


def test_declared_field_missing_in_the_document_is_a_break() -> None:
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


def test_undeclared_required_field_is_a_break() -> None:
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
