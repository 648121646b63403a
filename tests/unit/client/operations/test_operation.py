"""Operations as data: paths, queries and bodies."""

from __future__ import annotations

import inspect
import pydoc
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.management.deployments.deployments import list_deployments
from airflow_provider_platform.client.management.notifications.notifications import (
    create_notification,
)
from airflow_provider_platform.client.management.reports.reports import list_reports
from airflow_provider_platform.client.management.workbooks.workbooks import update_workbook
from airflow_provider_platform.client.operations.models import (
    NEVER_NULL,
    InputModel,
    KnownId,
    ResponseModel,
)
from airflow_provider_platform.client.operations.operation import (
    DeploymentId,
    endpoint,
    raw_operation,
)
from airflow_provider_platform.client.operations.paging import Page, PageQuery
from airflow_provider_platform.client.operations.paths import check_path, fill_path

if TYPE_CHECKING:
    from collections.abc import Callable

MANAGEMENT = "https://acme.example.com/api"
DAILY: dict[str, Any] = {"schedule_type": "DAILY"}


class Start(InputModel):
    branch_name: str | None = Field(default=None, min_length=1)


class Syncs(PageQuery):
    newest_first: bool | None = None

    @property
    def cursor_allowed(self) -> bool:
        return not self.newest_first


class Started(ResponseModel):
    sync_job_id: str


_SYNCS = "/v1/deployments/{deploymentId}/dbt-sync"


@endpoint("POST", _SYNCS, operation_id="startSync")
def start_sync(*, deployment_id: DeploymentId = None, body: Start | None = None) -> Started:
    """Start a sync."""


@endpoint("GET", _SYNCS, operation_id="listSyncs")
def list_syncs(*, deployment_id: DeploymentId = None, query: Syncs | None = None) -> Page[Started]:
    """All syncs."""


@endpoint("GET", _SYNCS + "/{id}", operation_id="getSync")
def get_sync(*, sync_id: int | str, deployment_id: DeploymentId = None) -> Started:
    """One sync; the service calls its id just `id`."""


@endpoint("DELETE", "/v1/syncs", operation_id="deleteSyncs")
def delete_syncs() -> None:
    """Delete what there is."""


def test_declared_operation_gives_path_body_and_response() -> None:
    operation = start_sync(deployment_id=7, body=Start(branch_name="nightly"))
    assert operation.url(MANAGEMENT) == f"{MANAGEMENT}/v1/deployments/7/dbt-sync"
    assert operation.body == {"branchName": "nightly"}
    assert operation.query == {}
    assert str(operation) == "start sync (deployment 7): POST /v1/deployments/7/dbt-sync"
    assert operation.read({"syncJobId": "a"}).sync_job_id == "a"
    assert start_sync.path_parameters == ["deploymentId"]


def test_declaration_exposes_its_models_and_name() -> None:
    assert (start_sync.body, start_sync.query, start_sync.answer) == (Start, None, Started)
    assert (list_syncs.body, list_syncs.query) == (None, Syncs)
    assert list_syncs.answer == Page[Started]
    assert delete_syncs.answer is type(None)
    assert (start_sync.name, start_sync.description) == ("start_sync", "start sync")


def test_an_operation_with_a_body_always_sends_one() -> None:
    assert delete_syncs().body is None
    assert start_sync(deployment_id=7).body == {}
    assert start_sync(deployment_id=7, body=Start()).body == {}


def test_a_body_is_checked_when_it_is_made() -> None:
    with pytest.raises(PlatformInputError, match="branch_name: must not be empty"):
        Start(branch_name="")
    with pytest.raises(PlatformInputError, match="branch: is not a known field"):
        Start(branch="x")  # type: ignore[call-arg]


def test_deployment_id_defaults_to_that_of_the_configuration() -> None:
    operation = get_sync(sync_id=5)
    assert str(operation) == ("get sync (sync 5): GET /v1/deployments/…/dbt-sync/5")

    resolved = operation.in_deployment(lambda: 8)

    assert str(resolved) == "get sync (deployment 8, sync 5): GET /v1/deployments/8/dbt-sync/5"
    assert (
        get_sync(sync_id=5, deployment_id="9")
        .in_deployment(lambda: 8)
        .path.startswith("/v1/deployments/9/")
    )
    assert delete_syncs().in_deployment(lambda: 8) == delete_syncs()


@pytest.mark.parametrize("given", ["x", "-1", 0, True, "7.0", "٣"])
def test_deployment_id_must_be_a_positive_integer(given: Any) -> None:
    with pytest.raises(PlatformInputError, match="positive whole number") as caught:
        get_sync(sync_id=5, deployment_id=given)
    assert caught.value.field == "deployment_id"


def test_query_model_decides_how_a_list_is_paged() -> None:
    assert list_syncs().paging == {"first", "after"}
    assert list_syncs(query=Syncs(newest_first=True)).paging == set()
    assert start_sync().paging == set()


@pytest.mark.parametrize(
    ("method", "repeatable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
def test_repeatability_follows_from_the_method(method: Any, repeatable: bool) -> None:
    def declaration() -> None:
        """Nothing."""

    assert endpoint(method, "/v1/x", operation_id="x")(declaration)().repeatable is repeatable
    assert endpoint(method, "/v1/x", operation_id="x", repeatable=True)(declaration)().repeatable
    assert raw_operation(method.lower(), "/v1/x").repeatable is repeatable
    assert raw_operation(method, "/v1/x").method == method


@pytest.mark.parametrize("value", [None, "", "  ", ".", ".."])
def test_path_parameters_name_one_resource(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: sync_id of get_sync") as caught:
        get_sync(sync_id=value, deployment_id=7)
    assert caught.value.field == "sync_id"


def refused(call: Callable[[], Any], *words: str) -> PlatformInputError:
    """What a wrong call raises; its message says what was wrong and what to write."""
    with pytest.raises(PlatformInputError, match=r"^Nothing was sent: ") as caught:
        call()
    for text in words:
        assert text in str(caught.value)
    return caught.value


def test_parameters_are_given_by_their_names() -> None:
    undeclared: Any = get_sync
    refused(lambda: undeclared(7), "by name", "Write get_sync(sync_id=…)")
    refused(lambda: undeclared(deployment_id=7), "needs sync_id", "Write get_sync(sync_id=…)")
    refused(
        lambda: undeclared(sync_ids=7), "no argument sync_ids (did you mean sync_id?)", "sync_id=…"
    )
    error = refused(
        lambda: undeclared(sync_id=7, report_id=1), "no argument report_id", "Write get_sync("
    )
    assert error.field == "report_id"


def test_field_in_place_of_its_model_is_refused() -> None:
    flat: Any = start_sync
    refused(lambda: flat(branch_name="x"), "Write start_sync(body=Start(branch_name=…))")
    flat = list_syncs
    refused(lambda: flat(newestFirst=True), "Write list_syncs(query=Syncs(newest_first=…))")


@pytest.mark.parametrize("value", [True, False, 3.5, 3.0, b"7", object(), [7], Started])
def test_id_must_be_an_integer_or_a_string(value: Any) -> None:
    error = refused(lambda: get_sync(sync_id=value), "sync_id of get_sync must be a whole number")
    assert error.field == "sync_id"


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: list_deployments(query={"first": True}), "first"),
        (lambda: list_deployments(query={"offset": False}), "offset"),
        (lambda: list_reports(query={"folder_id": True}), "folder_id"),
        (lambda: create_notification(body=DAILY | {"dashboard_id": True}), "dashboard_id"),
        (lambda: create_notification(body=DAILY | {"dashboardId": 5, "hour": True}), "hour"),
    ],
)
def test_boolean_is_not_accepted_as_a_number(call: Callable[[], Any], field: str) -> None:
    error = refused(call, f"{field}: must be a number, not true or false")
    assert error.field == field


def test_boolean_stays_a_boolean_in_a_body() -> None:
    enabled = create_notification(body=DAILY | {"dashboard_id": 5, "notification_enabled": True})
    assert enabled.body["notificationEnabled"] is True
    shown = [{"member": "orders.paid", "operator": "equals", "value": [True, False]}]
    filtered = create_notification(body=DAILY | {"dashboard_id": 5, "filters": shown})
    assert filtered.body["filters"][0]["value"] == [True, False]


def test_body_with_a_value_that_json_cannot_represent_is_refused() -> None:
    refused(
        lambda: update_workbook(workbook_id=1, body={"meta": {"owner": object()}}),
        "Nothing was sent: a field of UpdateWorkbookInput cannot be written as JSON",
    )


@pytest.mark.parametrize("path", [None, 5, b"/v1/x"])
def test_raw_path_that_is_not_a_string_is_refused(path: Any) -> None:
    error = refused(lambda: raw_operation("GET", path), "path must be text, not of type")
    assert error.field == "path"


def test_resource_in_place_of_its_id_is_refused() -> None:
    given: Any = Started.model_validate({"syncJobId": "a", "id": 7})
    refused(lambda: get_sync(sync_id=given), "give the id of the object, not the object")


def test_integer_of_another_library_is_accepted_as_an_id() -> None:
    class Int64:
        def __index__(self) -> int:
            return 7

    given: Any = Int64()
    assert get_sync(sync_id=given, deployment_id=1).path.endswith("/7")


def test_dict_body_and_query_are_converted_to_their_models() -> None:
    for body in ({"branch_name": "x"}, {"branchName": "x"}, MappingProxyType({"branch_name": "x"})):
        given: Any = body
        assert start_sync(body=given).body == {"branchName": "x"}
    given = {"newest_first": True, "first": None}
    operation = list_syncs(query=given)
    assert operation.query == {"newestFirst": True}
    assert operation.paging == set()
    given = {"branch": "x"}
    assert refused(lambda: start_sync(body=given), "branch: is not a known field").field == "branch"


@pytest.mark.parametrize("value", [Syncs(), Start, "x", [], 7, Started.model_construct()])
def test_wrong_model_is_refused_when_the_operation_is_called(value: Any) -> None:
    error = refused(lambda: start_sync(body=value), "must be Start(…) or a dict of its fields")
    assert error.field == "body"
    wrong: Any = Start()
    refused(lambda: list_syncs(query=wrong), "query of list_syncs must be Syncs(…)")


class Publish(InputModel):
    sync_id: KnownId = None
    deployment_id: KnownId = None
    note: Annotated[str | None, NEVER_NULL] = None
    title: str | None = None


@endpoint("POST", "/v1/syncs/{syncId}/publish", operation_id="publishSync")
def publish_sync(*, sync_id: int | str, body: Publish) -> None:
    """Publish a sync; the service wants both ids in the body."""


def test_required_body_must_be_given() -> None:
    @endpoint("POST", "/v1/x", operation_id="x")
    def create_x(*, body: Start) -> None:
        """Create an x."""

    missing: Any = create_x
    for call in (missing, lambda: missing(body=None)):
        assert refused(call, "Write create_x(body=Start(…))").field == "body"


def test_ids_of_the_path_and_the_connection_are_not_asked_for_twice() -> None:
    operation = publish_sync(sync_id="5", body=Publish(title="t"))
    assert operation.body == {"syncId": 5, "title": "t"}
    resolved = operation.in_deployment(lambda: 8)
    assert resolved.body == {"syncId": 5, "deploymentId": 8, "title": "t"}
    assert resolved.in_deployment(lambda: 9) == resolved

    given = publish_sync(sync_id=5, body=Publish(sync_id=5, deployment_id=7))
    assert given.body == given.in_deployment(lambda: 8).body == {"syncId": 5, "deploymentId": 7}


def test_two_values_of_one_id_are_refused() -> None:
    refused(lambda: publish_sync(sync_id=5, body=Publish(sync_id=6)), "two values of sync_id")


def test_none_is_sent_as_null_if_the_service_accepts_null() -> None:
    assert Publish(title=None, note=None).to_json() == {"title": None}
    assert Start(branch_name=None).to_json() == {"branchName": None}
    assert start_sync(body=Start(branch_name=None)).body == {"branchName": None}
    assert Start.build(branch_name=None).to_json() == Start().to_json() == {}
    assert list_syncs(query=Syncs(first=None, newest_first=None)).query == {}


def test_declaration_shows_in_help_and_signature() -> None:
    assert (start_sync.__name__, start_sync.__doc__) == ("start_sync", "Start a sync.")
    assert (start_sync.__module__, start_sync.__qualname__) == (__name__, "start_sync")
    assert inspect.signature(start_sync) == inspect.signature(start_sync.declaration)
    assert get_type_hints(start_sync)["body"] == Start | None
    shown = pydoc.render_doc(start_sync, renderer=pydoc.plaintext)
    assert "start_sync(*, deployment_id:" in shown
    assert "Start a sync." in shown
    assert "declaration" not in shown
    shown = pydoc.render_doc(list_reports, renderer=pydoc.plaintext)
    assert f"list_reports{inspect.signature(list_reports)}" in shown


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


def test_a_raw_answer_is_plain_json() -> None:
    operation = raw_operation("POST", "/v1/x", query={"first": 1}, body=[1])
    assert (operation.query, operation.body) == ({"first": 1}, [1])
    assert operation.read({"a": [1]}) == {"a": [1]}
    assert operation.read(None) is None
