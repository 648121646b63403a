"""Calls as data: arguments checked against the table, paths, queries and bodies."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from pydantic.alias_generators import to_snake

from airflow_provider_platform.client.argument_rules import check_path
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operation import (
    fill_path,
    operation,
    prepared,
    raw_operation,
)
from airflow_provider_platform.client.operations_table import operations, resolved

if TYPE_CHECKING:
    from collections.abc import Callable

MANAGEMENT = "https://acme.example.com/api"
IDS = sorted(operations())
SECRET = "hunter2 hunter2"


def refused(call: Callable[[], Any], *words: str) -> PlatformInputError:
    """What a wrong call raises; its message says what was wrong and what to write."""
    with pytest.raises(PlatformInputError, match=r"^Nothing was sent: ") as caught:
        call()
    for text in words:
        assert text in str(caught.value)
    return caught.value


def sample(schema: dict[str, Any]) -> Any:
    """The smallest value that a schema allows."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = kind if isinstance(kind, str) else kind[0]
    if kind == "object":
        fields = schema.get("properties", {})
        return {name: sample(fields[name]) for name in schema.get("required", ())}
    if kind == "array":
        return [sample(schema["items"])] * schema.get("minItems", 0)
    if kind == "string":
        texts = {"url": "https://a.example", "json": "{}", "email": "a@b", "timezone": "UTC"}
        if schema.get("pattern") == "^[0-9a-f]{32}$":
            return "0" * 32
        return texts.get(schema.get("format", ""), "a.b")
    return {"boolean": True}.get(kind, schema.get("minimum", 1))


def ids_of(name: str) -> dict[str, Any]:
    """An id for each parameter of the operation's path."""
    row = operations()[name]
    return {to_snake(one): "a/b c" if one in row.texts else 7 for one in row.ids}


@pytest.mark.parametrize("name", IDS)
def test_every_operation_makes_its_request(name: str) -> None:
    row = operations()[name]
    query, body = sample(row.query), sample(row.body) if row.body is not None else None
    known = {one: 7 for one in ("deploymentId", "workbookId") if one in (body or {})}
    body = body if body is None else body | known
    call = operation(name, query=query, body=body, **ids_of(name))
    path = row.path
    for one in row.ids:
        path = path.replace(f"{{{one}}}", quote("a/b c", safe="") if one in row.texts else "7")
    call = call.in_deployment(lambda: 7)
    assert call.method == row.method
    assert call.url(MANAGEMENT) == f"https://acme.example.com{path}"
    assert call.query == query
    assert call.body == body
    repeatable = row.method in ("GET", "PUT", "DELETE") or name in (
        "pauseReportDelivery",
        "resumeReportDelivery",
    )
    assert call.repeatable is repeatable


@pytest.mark.parametrize("name", IDS)
def test_missing_unknown_and_wrong_arguments_of_every_operation_are_refused(name: str) -> None:
    row = operations()[name]
    ids = ids_of(name)
    for one in ids.keys() - {"deployment_id"}:
        rest = {other: value for other, value in ids.items() if other != one}
        error = refused(lambda rest=rest: operation(name, **rest), f"needs {one}", "Write call(")
        assert error.field == one
        for wrong in ("..", " ", None, True, [7], 7.0):
            values: dict[str, Any] = {**rest, one: wrong}
            refused(lambda values=values: operation(name, **values), f"{one} of {name} must be")
    error = refused(lambda: operation(name, **ids, colour=1), "has no argument colour")
    assert error.field == "colour"
    error = refused(
        lambda: operation(name, query={"colour": SECRET}, **ids), "colour is not a known field"
    )
    assert SECRET not in str(error)
    if row.body is None:
        assert (
            refused(
                lambda: operation(name, query=sample(row.query), body={}, **ids), "takes no body"
            ).field
            == "body"
        )


def test_unknown_operation_is_refused_with_one_like_it() -> None:
    error = refused(lambda: operation("createFoldr"), "no operation createFoldr", "createFolder?")
    assert error.field == "operation"


@pytest.mark.parametrize(
    ("name", "arguments", "message", "field"),
    [
        ("getReport", {"reprot_id": 1}, "no argument reprot_id (did you mean report_id?)", None),
        ("getReports", {"search": "x"}, 'in its query. Write query={"search": …}', "search"),
        ("createFolder", {"parent_id": 1}, 'in its body. Write body={"parentId": …}', None),
        ("createFolder", {}, "body of createFolder: name is required", "name"),
        (
            "createFolder",
            {"body": {"nam": SECRET, "name": "a"}},
            "nam is not a known field (did you mean name?)",
            "nam",
        ),
        (
            "createFolder",
            {"body": {"name": "a", "parent_id": SECRET}},
            "parentId must be an integer",
            "parentId",
        ),
        ("createFolder", {"body": SECRET}, "the body must be an object", None),
        (
            "getReports",
            {"query": {"sort_by": SECRET}},
            "sortBy must be one of: name, createdAt, updatedAt, lastViewedAt",
            "sortBy",
        ),
        ("getReports", {"query": {"folder_id": True}}, "folderId must be an integer", "folderId"),
        ("getReports", {"query": SECRET}, "query of getReports must be a dict", "query"),
        (
            "createNotification",
            {"body": {"scheduleType": "DAILY", "filters": [{"membr": SECRET}]}},
            "filters[0].membr is not a known field (did you mean member?)",
            "filters[0].member",
        ),
    ],
)
def test_error_names_the_field_and_the_rule_and_never_the_value(
    name: str, arguments: dict[str, Any], message: str, field: str | None
) -> None:
    error = refused(lambda: operation(name, deployment_id=7, **arguments), message)
    assert SECRET not in str(error)
    assert field is None or error.field == field


def test_names_in_snake_case_become_those_of_the_service_at_every_depth() -> None:
    body = {
        "schedule_type": "DAILY",
        "dashboard_id": 3,
        "filters": ({"member": "o.s", "operator": "equals", "case_sensitive": True, "value": "a"},),
    }
    assert operation("createNotification", body=MappingProxyType(body)).body == {
        "scheduleType": "DAILY",
        "dashboardId": 3,
        "filters": [{"member": "o.s", "operator": "equals", "caseSensitive": True, "value": "a"}],
    }
    free = {"tenant_id": 5, "nested_name": {"some_key": None}}
    meta = operation("updateWorkbook", workbook_id=1, body={"meta": free})
    assert meta.body == {"meta": free}


def test_strings_stay_strings_unless_a_template_rendered_them() -> None:
    refused(lambda: operation("createFolder", body={"name": "a", "parentId": "3"}), "an integer")
    call = operation("createFolder", body={"name": 5, "parentId": "3"}, rendered=True)
    assert call.body == {"name": "5", "parentId": 3}
    body = {"scheduleType": "DAILY", "notificationEnabled": "False"}
    assert (
        operation("createNotification", body=body, rendered=True).body["notificationEnabled"]
        is False
    )
    refused(
        lambda: operation("createFolder", body={"name": "a", "parentId": "x"}, rendered=True),
        "parentId must be an integer",
    )


def test_none_is_absent_in_a_query_and_null_in_a_body() -> None:
    assert operation("getFolders", query={"parent_id": None, "first": 2}).query == {"first": 2}
    refused(lambda: operation("getFolders", query={"parent": None}), "parent is not a known field")
    moved = operation("updateWorkbook", workbook_id=1, body={"folder_id": None})
    assert moved.body == {"folderId": None}
    refused(lambda: operation("createFolder", body={"name": None}), "name must be a string")


def test_operation_with_a_body_always_sends_one() -> None:
    assert operation("duplicateWorkbook", workbook_id=1).body == {}
    assert operation("getReport", report_id=1).body is None


def test_secret_of_an_answer_can_be_sent_again() -> None:
    session = SecretStr("0123456789abcdef0123456789abcdef")
    call = operation("postTokenBySessionId", body={"session_id": session})
    assert call.body == {"sessionId": session.get_secret_value()}
    assert call.secrets == (session.get_secret_value(),)
    assert session.get_secret_value() not in repr(call)


def test_deployment_id_defaults_to_that_of_the_configuration() -> None:
    call = operation("getReport", report_id=5)
    assert str(call) == "get report (report 5): GET /v1/deployments/…/reports/5"
    found = call.in_deployment(lambda: 8)
    assert str(found) == "get report (deployment 8, report 5): GET /v1/deployments/8/reports/5"
    given = operation("getReport", report_id=5, deployment_id="9").in_deployment(lambda: 8)
    assert given.path == "/v1/deployments/9/reports/5"
    anywhere = operation("getAppConfig")
    assert anywhere.in_deployment(lambda: 8) == anywhere


@pytest.mark.parametrize("given", ["x", "-1", 0, True, "7.0", "٣"])
def test_deployment_id_must_be_a_positive_integer(given: Any) -> None:
    with pytest.raises(PlatformInputError, match="positive whole number") as caught:
        operation("getReport", report_id=5, deployment_id=given)
    assert caught.value.field == "deployment_id"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("getNotification", "get notification (deployment 7, notification 5)"),
        ("getReportDelivery", "get report delivery (deployment 7, delivery 5)"),
    ],
)
def test_error_calls_a_plain_id_by_its_resource(name: str, words: str) -> None:
    assert str(operation(name, deployment_id=7, id=5)).startswith(words)


def test_answer_is_json_with_its_credentials_hidden() -> None:
    call = operation("deploymentToken", deployment_id=7)
    answer = call.read({"cubeApiToken": SECRET, "more": [1]})
    assert answer == {"cubeApiToken": SecretStr(SECRET), "more": [1]}
    assert SECRET not in str(answer)
    assert operation("listUserOAuthTokens").read([{"id": 1}]) == [{"id": 1}]
    assert operation("deleteNotification", id=1).read(None) is None
    assert operation("downloadExport", job_id="j").binary


@pytest.mark.parametrize(
    ("method", "repeatable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
def test_repeatability_of_a_raw_call_follows_from_the_method(method: str, repeatable: bool) -> None:
    assert raw_operation(method.lower(), "/v1/x").repeatable is repeatable
    assert raw_operation(method, "/v1/x").method == method


def test_method_and_path_are_called_with_their_ids() -> None:
    call = prepared("patch /v1/x/{widgetId}/{name}", widget_id=5, name="a/b", body=[1])
    assert (call.method, call.path, call.body) == ("PATCH", "/v1/x/5/a%2Fb", [1])
    open_deployment = prepared("GET /v1/deployments/{deploymentId}/x")
    assert open_deployment.in_deployment(lambda: 8).path == "/v1/deployments/8/x"
    given = prepared("GET /v1/deployments/{deploymentId}/x", deployment_id=9)
    assert given.path == "/v1/deployments/9/x"
    refused(lambda: prepared("GET /v1/x", widget_id=5), "widget_id is not in the path")
    refused(lambda: prepared("GET /v1/{id}", id=".."), "must be given")
    refused(lambda: prepared("FETCH /v1/x"), "no operation FETCH /v1/x")


@pytest.mark.parametrize("path", [None, 5, b"/v1/x"])
def test_raw_path_that_is_not_a_string_is_refused(path: Any) -> None:
    error = refused(lambda: raw_operation("GET", path), "path must be text, not of type")
    assert error.field == "path"


def test_deployment_in_a_raw_path_is_the_one_of_the_configuration() -> None:
    operation = raw_operation("GET", "/v1/deployments/{deploymentId}/folders")
    assert operation.in_deployment(lambda: 8).path == "/v1/deployments/8/folders"


@pytest.mark.parametrize("path", ["/v1/x/{id}", "/v1/deployments/{deploymentId}/x/{reportId}"])
def test_other_placeholders_in_a_raw_path_are_refused(path: str) -> None:
    error = refused(
        lambda: raw_operation("GET", path), "has the placeholder {", "Replace it with the id"
    )
    assert error.field == "path"


def test_query_parameter_of_none_is_not_sent_and_null_in_a_raw_body_is() -> None:
    operation = raw_operation("POST", "/v1/x", query={"a": None, "b": 1}, body={"a": None})
    assert (operation.query, operation.body) == ({"b": 1}, {"a": None})


@given(st.text(min_size=1, max_size=12))
def test_a_path_parameter_is_one_segment(value: str) -> None:
    try:
        path = fill_path("/v1/{name}/x", {"name": value})
    except PlatformInputError:
        assert value.strip() in ("", ".", "..") or not value.isprintable()
        return
    before, name, after = path.removeprefix("/").split("/")
    assert (before, after) == ("v1", "x")
    assert unquote(name) == value.strip()
    assert name not in (".", "..")
    assert name.isascii()


def test_path_parameter_that_a_url_cannot_contain_is_refused() -> None:
    with pytest.raises(PlatformInputError, match="name contains characters"):
        fill_path("/v1/{name}", {"name": "\ud800"})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/v1/app-config", "/v1/app-config"),
        (" v1/app-config ", "/v1/app-config"),
        ("/v1/embed-tenants/a/", "/v1/embed-tenants/a/"),
        ("/v1/branches/feature%2Fx", "/v1/branches/feature%2Fx"),
        ("/v1/a...b/..c", "/v1/a...b/..c"),
        ("/notifications", "/notifications"),
    ],
)
def test_path_of_a_caller_is_normalized(path: str, expected: str) -> None:
    assert check_path(path) == expected
    assert raw_operation("GET", path).path == expected


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("https://evil.example/v1", "not a full URL"),
        ("//evil.example/v1", "not a full URL"),
        ("/v1/x?token=canary", "a query"),
        ("/v1/x#canary", "a fragment"),
        ("/v1\\x", "a backslash"),
        ("/v1/a b", "white space"),
        ("/v1/a\nb", "white space"),
        ("/v1/\u2028x", "white space"),
        ("", "empty"),
        ("/", "empty"),
        ("/v1//x", "relative segments"),
        ("/v1/x//", "relative segments"),
        ("/v1/../x", "relative segments"),
        ("/v1/./x", "relative segments"),
        ("/v1/..", "relative segments"),
        ("/v1/%2e%2E/x", "relative segments"),
        ("/v1/.%2e/x", "relative segments"),
        ("/v1/a%2f..%2Fx", "relative segments"),
        ("/v1/a%5c..%5cx", "relative segments"),
    ],
)
def test_path_outside_of_the_api_is_refused(path: str, rule: str) -> None:
    with pytest.raises(PlatformInputError, match=rule) as caught:
        raw_operation("GET", path)
    assert caught.value.field == "path"
    assert "canary" not in str(caught.value)


@given(st.text(st.characters() | st.sampled_from("/.%2eE?#\\:@ "), max_size=16))
def test_any_path_stays_below_the_management_address(path: str) -> None:
    try:
        operation = raw_operation("GET", path)
    except PlatformInputError:
        return
    assert operation.url(MANAGEMENT).startswith(f"{MANAGEMENT}/")
    steps = operation.path.removesuffix("/").split("/")[1:]
    assert not {"", ".", ".."} & {unquote(step) for step in steps}
    assert not set(operation.path) & set("?#\\ ")


@pytest.mark.parametrize("method", ["", "HEAD", "TRACE", "GET /x"])
def test_unknown_method_is_refused(method: str) -> None:
    with pytest.raises(PlatformInputError, match="GET, POST, PUT, PATCH, DELETE") as caught:
        raw_operation(method, "/v1/x")
    assert caught.value.field == "method"
