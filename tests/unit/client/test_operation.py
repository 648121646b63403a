"""Operations as data: paths, queries and bodies that go where they are meant to go."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.models import AnswerModel, InputModel
from airflow_provider_platform.client.operation import (
    Endpoint,
    check_path,
    fill_path,
    raw_operation,
)

MANAGEMENT = "https://acme.example.com/api"


class Start(InputModel):
    branch_name: str | None = Field(default=None, min_length=1)


class Started(AnswerModel):
    sync_job_id: str


def endpoint(**options: Any) -> Endpoint[Any]:
    defaults: dict[str, Any] = {
        "operation_id": "start",
        "method": "POST",
        "path": "/v1/deployments/{deploymentId}/dbt-sync",
        "answer": Started,
        "description": "dbt sync start",
    }
    return Endpoint(**{**defaults, **options})


def test_a_call() -> None:
    start = endpoint(body=Start)
    operation = start(deployment_id=7, body=Start.build(branch_name="nightly"))
    assert operation.url(MANAGEMENT) == f"{MANAGEMENT}/v1/deployments/7/dbt-sync"
    assert operation.body == {"branchName": "nightly"}
    assert operation.query == {}
    assert str(operation) == ("dbt sync start (deployment 7): POST /v1/deployments/7/dbt-sync")
    assert operation.read({"syncJobId": "a"}).sync_job_id == "a"
    assert start.path_parameters == ["deploymentId"]


def test_bodies_that_are_absent_empty_or_required() -> None:
    assert endpoint()(deployment_id=7).body is None
    assert endpoint(body_required=True)(deployment_id=7).body == {}
    assert endpoint(body=Start)(deployment_id=7, body=Start.build()).body == {}


@pytest.mark.parametrize(
    ("method", "repeatable"),
    [("GET", True), ("PUT", True), ("DELETE", True), ("POST", False), ("PATCH", False)],
)
def test_what_may_be_repeated(method: str, repeatable: bool) -> None:
    assert endpoint(method=method)(deployment_id=7).repeatable is repeatable
    assert endpoint(method=method, repeatable=True)(deployment_id=7).repeatable
    assert raw_operation(method.lower(), "/v1/x").repeatable is repeatable
    assert raw_operation(method, "/v1/x").method == method


@pytest.mark.parametrize("value", [None, "", "  ", ".", ".."])
def test_path_parameters_name_one_resource(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent: deploymentId") as caught:
        endpoint()(deployment_id=value)
    assert caught.value.field == "deploymentId"


def test_parameters_are_given_by_their_names() -> None:
    with pytest.raises(PlatformInputError, match="deploymentId"):
        endpoint()()
    with pytest.raises(TypeError, match="no parameter reportId"):
        endpoint()(deployment_id=7, report_id=1)


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
