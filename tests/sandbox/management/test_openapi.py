"""What all operations share: the sandbox's own OpenAPI document, lists, methods, faults."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox import SandboxControlError

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform

ROWS = (
    ("get", "/api/v1/user-oauth-tokens"),
    ("post", "/api/v1/deployments/{deploymentId}/dbt-sync"),
    ("put", "/api/v1/deployments/{deploymentId}/reports/{reportId}/connect-workbook"),
    (
        "post",
        "/api/v1/deployments/{deploymentId}/workbooks/{workbookId}/dashboard/ai-widget-thread",
    ),
    ("delete", "/api/v1/embed-tenants/{embedTenantName}/"),
    ("get", "/api/v1/app-config"),
    ("get", "/api/v1/deployments/{deploymentId}/reports"),
    ("get", "/api/v1/deployments/{deploymentId}/folders"),
    ("get", "/api/v1/deployments/{deploymentId}/notifications"),
    ("post", "/api/v1/deployments/{deploymentId}/notifications"),
    ("post", "/api/v1/deployments/{deploymentId}/workbooks/{workbookId}/duplicate"),
    ("put", "/api/v1/deployments/{deploymentId}/workbooks/{workbookId}"),
    ("post", "/api/v1/embed/generate-session"),
)
SAMPLES = {
    "deploymentId": "1",
    "environmentId": "11",
    "reportId": "101",
    "workbookId": "301",
    "folderId": "11",
    "integrationId": "3",
    "publicId": "dash00000501",
    "embedTenantName": "acme-retail",
    "slug": "a-slug",
    "externalWorkbookId": "w",
}


def spec(platform: Platform) -> dict[str, Any]:
    response = platform.call("GET", "spec")
    assert response.status_code == 200
    return dict(response.json())


def operations(platform: Platform) -> list[tuple[str, str, dict[str, Any]]]:
    paths = spec(platform)["paths"]
    return [(verb, path, one) for path, item in paths.items() for verb, one in item.items()]


def test_document_lists_every_described_operation(platform: Platform) -> None:
    document = spec(platform)
    assert document["openapi"].startswith("3.1")
    for verb, path in ROWS:
        assert verb in document["paths"][path], path
    ids = [one["operationId"] for _, _, one in operations(platform)]
    assert len(set(ids)) == len(ids)


def test_parameters_and_bodies_are_described(platform: Platform) -> None:
    paths = spec(platform)["paths"]
    listing = paths["/api/v1/deployments/{deploymentId}/reports"]["get"]
    by_name = {one["name"]: one for one in listing["parameters"]}
    assert by_name["deploymentId"]["in"] == "path"
    assert by_name["sortBy"]["schema"]["enum"] == [
        "name",
        "createdAt",
        "updatedAt",
        "lastViewedAt",
        None,
    ]
    create = paths["/api/v1/deployments/{deploymentId}/notifications"]["post"]
    schema = create["requestBody"]["content"]["application/json"]["schema"]
    assert schema["required"] == ["scheduleType"]
    hour = {"type": ["integer", "null"], "minimum": 0, "maximum": 23}
    assert schema["properties"]["hour"] == hour
    assert paths["/api/v1/embed/session/token"]["post"]["security"] == []


def test_the_document_follows_the_settings(platform: Platform) -> None:
    platform.control.set(release="0.4.0")
    paths = spec(platform)["paths"]
    assert "/api/v1/usage-analytics/token" not in paths
    sync = "/api/v1/deployments/{deploymentId}/dbt-sync/{syncJobId}"
    assert (sync in paths, f"{sync}/generated-files" in paths) == (True, False)


def test_every_operation_needs_the_token(platform: Platform) -> None:
    for verb, path, operation in operations(platform):
        filled = re.sub(r"\{(\w+)\}", lambda found: SAMPLES.get(found[1], "1"), path)
        response = platform.http.request(verb.upper(), platform.sandbox.url + filled)
        if operation.get("security") == []:
            assert response.status_code == 400, path
        else:
            assert response.status_code == 401, path


def test_every_operation_refuses_undeclared_parameters(platform: Platform) -> None:
    for verb, path, operation in operations(platform):
        filled = re.sub(r"\{(\w+)\}", lambda found: SAMPLES.get(found[1], "1"), path)
        url = f"{platform.sandbox.url}{filled}?nonsense=1"
        body = {"nonsense": 1}
        response = platform.http.request(verb.upper(), url, json=body, headers=platform.bearer)
        assert response.status_code == 400, path
        messages = response.json()["message"]
        assert "property nonsense should not exist" in messages, path
        if "requestBody" not in operation:
            assert "the operation takes no body" in messages, path
    assert platform.control.state().changes == []


@pytest.mark.parametrize("verb", ["GET", "PUT", "DELETE", "PATCH"])
def test_chat_paths_refuse_other_methods(platform: Platform, verb: str) -> None:
    for operation in ("stream-chat-state", "abort"):
        url = f"{platform.sandbox.chat_url}/{operation}"
        response = platform.http.request(verb, url, headers=platform.key)
        assert response.status_code == 405
        assert response.json()["statusCode"] == 405


def test_body_without_a_json_content_type_is_refused(platform: Platform) -> None:
    url = f"{platform.sandbox.management_url}/v1/deployments/1/workbooks"
    headers = {**platform.bearer, "Content-Type": "text/plain"}
    assert platform.http.post(url, content=b"{}", headers=headers).status_code == 415
    chat = f"{platform.sandbox.chat_url}/stream-chat-state"
    headers = {**platform.key, "Content-Type": "text/plain"}
    assert platform.http.post(chat, content=b"{}", headers=headers).status_code == 415


def test_faults_and_breakpoints_work_on_every_operation(platform: Platform) -> None:
    platform.control.fault("status", path="folders$", status=500)
    body = {"name": "Never"}
    assert platform.call("POST", "deployments/1/folders", json=body).status_code == 500
    assert platform.control.state().changed("folders") == []
    platform.control.set_breakpoint("before_call", path="workspace/move$")
    move = {"type": "WORKBOOK", "id": 302, "folderId": 12}
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(platform.call, "POST", "deployments/1/workspace/move", json=move)
        platform.control.wait_for_breakpoint("before_call")
        assert platform.control.state().changed("workbooks", "moved") == []
        platform.control.release()
        assert call.result().json()["folderId"] == 12
    assert len(platform.control.state().changed("workbooks", "moved")) == 1


def test_invalid_settings_and_clock_values_are_refused(platform: Platform) -> None:
    with pytest.raises(SandboxControlError, match=r"token_lacks: .*'Admin'"):
        platform.control.set(token_lacks=["Everything"])
    with pytest.raises(SandboxControlError, match="seconds must be a number"):
        platform.control.advance(-1)
