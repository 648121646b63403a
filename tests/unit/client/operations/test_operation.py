"""Operations as data: paths, queries and bodies that go where they are meant to go."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operations.models import InputModel, ResponseModel
from airflow_provider_platform.client.operations.operation import (
    DeploymentId,
    endpoint,
    raw_operation,
)
from airflow_provider_platform.client.operations.paging import Page, PageQuery
from airflow_provider_platform.client.operations.paths import check_path, fill_path

MANAGEMENT = "https://acme.example.com/api"


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


def test_a_call() -> None:
    operation = start_sync(deployment_id=7, body=Start(branch_name="nightly"))
    assert operation.url(MANAGEMENT) == f"{MANAGEMENT}/v1/deployments/7/dbt-sync"
    assert operation.body == {"branchName": "nightly"}
    assert operation.query == {}
    assert str(operation) == "start sync (deployment 7): POST /v1/deployments/7/dbt-sync"
    assert operation.read({"syncJobId": "a"}).sync_job_id == "a"
    assert start_sync.path_parameters == ["deploymentId"]


def test_what_a_declaration_says_of_itself() -> None:
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
    with pytest.raises(PlatformInputError, match="branch_name: String should have at least 1"):
        Start(branch_name="")
    with pytest.raises(PlatformInputError, match="branch: Extra inputs"):
        Start(branch="x")  # type: ignore[call-arg]
    assert Start(branch_name=None).to_json() == {}


def test_without_a_deployment_the_one_of_the_configuration_is_meant() -> None:
    operation = get_sync(sync_id=5)
    assert str(operation) == ("get sync (sync 5): GET /v1/deployments/{deploymentId}/dbt-sync/5")

    resolved = operation.in_deployment(lambda: 8)

    assert str(resolved) == "get sync (deployment 8, sync 5): GET /v1/deployments/8/dbt-sync/5"
    assert (
        get_sync(sync_id=5, deployment_id="9")
        .in_deployment(lambda: 8)
        .path.startswith("/v1/deployments/9/")
    )
    assert delete_syncs().in_deployment(lambda: 8) == delete_syncs()


@pytest.mark.parametrize("given", ["x", "-1", 0, True, "7.0", "٣"])
def test_a_deployment_is_a_positive_whole_number(given: Any) -> None:
    with pytest.raises(PlatformInputError, match="positive whole number") as caught:
        get_sync(sync_id=5, deployment_id=given)
    assert caught.value.field == "deployment_id"


def test_by_what_a_list_can_be_paged() -> None:
    assert list_syncs().paging == {"first", "after"}
    assert list_syncs(query=Syncs(newest_first=True)).paging == set()
    assert start_sync().paging == set()


@pytest.mark.parametrize(
    ("method", "repeatable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
def test_what_may_be_repeated(method: Any, repeatable: bool) -> None:
    def declaration() -> None:
        """Nothing."""

    assert endpoint(method, "/v1/x", operation_id="x")(declaration)().repeatable is repeatable
    assert endpoint(method, "/v1/x", operation_id="x", repeatable=True)(declaration)().repeatable
    assert raw_operation(method.lower(), "/v1/x").repeatable is repeatable
    assert raw_operation(method, "/v1/x").method == method


@pytest.mark.parametrize("value", [None, "", "  ", ".", ".."])
def test_path_parameters_name_one_resource(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: id") as caught:
        get_sync(sync_id=value, deployment_id=7)
    assert caught.value.field == "id"


def test_parameters_are_given_by_their_names() -> None:
    with pytest.raises(TypeError, match="sync_id"):
        get_sync(deployment_id=7)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="report_id"):
        get_sync(sync_id=7, report_id=1)  # type: ignore[call-arg]


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


def test_a_path_parameter_that_no_address_can_carry() -> None:
    with pytest.raises(PlatformInputError, match="name holds characters"):
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
def test_paths_of_a_caller(path: str, expected: str) -> None:
    assert check_path(path) == expected
    assert raw_operation("GET", path).path == expected


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("https://evil.example/v1", "not a URL"),
        ("//evil.example/v1", "not a URL"),
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
def test_paths_that_lead_elsewhere(path: str, rule: str) -> None:
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
def test_unknown_methods(method: str) -> None:
    with pytest.raises(PlatformInputError, match="GET, POST, PUT, PATCH, DELETE") as caught:
        raw_operation(method, "/v1/x")
    assert caught.value.field == "method"


def test_a_raw_answer_is_plain_json() -> None:
    operation = raw_operation("POST", "/v1/x", query={"first": 1}, body=[1])
    assert (operation.query, operation.body) == ({"first": 1}, [1])
    assert operation.read({"a": [1]}) == {"a": [1]}
    assert operation.read(None) is None
