"""What all operations share: the sandbox's own OpenAPI document, lists, methods, faults."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.operations_table import OperationRow, operations
from airflow_provider_platform.sandbox import SandboxControlError

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

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


def address(platform: Platform, operation: OperationRow) -> str:
    path = re.sub(r"\{(\w+)\}", lambda found: SAMPLES.get(found[1], "1"), operation.path)
    return platform.sandbox.url + path


def test_document_lists_the_operations_of_the_newest_tenant(platform: Platform) -> None:
    document = platform.call("GET", "spec").json()
    assert document["openapi"].startswith("3.1")
    for verb, path in ROWS:
        assert verb in document["paths"][path], path
    assert "/api/v1/deployments/{deploymentId}/dbt-sync/{syncJobId}" in document["paths"]


def test_every_operation_needs_the_token(platform: Platform) -> None:
    for operation in operations().values():
        response = platform.http.request(operation.method, address(platform, operation))
        expected = 400 if operation.id == "postTokenBySessionId" else 401
        assert response.status_code == expected, operation.id


def test_every_operation_refuses_undeclared_parameters(platform: Platform) -> None:
    for operation in operations().values():
        url, body = f"{address(platform, operation)}?nonsense=1", {"nonsense": 1}
        response = platform.http.request(operation.method, url, json=body, headers=platform.bearer)
        assert response.status_code == 400, operation.id
        messages = response.json()["message"]
        assert "property nonsense should not exist" in messages, operation.id
        if operation.body is None:
            assert "the operation takes no body" in messages, operation.id
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
    platform.control.set_breakpoint("before_call", path="folders/11$")
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(platform.call, "PUT", "deployments/1/folders/11", json={"name": "Money"})
        platform.control.wait_for_breakpoint("before_call")
        assert platform.control.state().changed("folders", "updated") == []
        platform.control.release()
        assert call.result().json()["name"] == "Money"
    assert len(platform.control.state().changed("folders", "updated")) == 1


def test_invalid_settings_and_clock_values_are_refused(platform: Platform) -> None:
    with pytest.raises(SandboxControlError, match=r"token_lacks: .*'Admin'"):
        platform.control.set(token_lacks=["Everything"])
    with pytest.raises(SandboxControlError, match="seconds must be a number"):
        platform.control.advance(-1)
