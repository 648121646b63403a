"""What all operations share: the sandbox's own OpenAPI document, lists, methods, faults."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.operations_table import OperationRow, operations
from airflow_provider_platform.sandbox import SandboxControlError

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

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


def test_body_without_a_json_content_type_is_refused(platform: Platform) -> None:
    url = f"{platform.sandbox.management_url}/v1/deployments/1/workbooks"
    headers = {**platform.bearer, "Content-Type": "text/plain"}
    assert platform.http.post(url, content=b"{}", headers=headers).status_code == 415
    chat = f"{platform.sandbox.chat_url}/stream-chat-state"
    headers = {**platform.key, "Content-Type": "text/plain"}
    assert platform.http.post(chat, content=b"{}", headers=headers).status_code == 415


def test_invalid_settings_and_clock_values_are_refused(platform: Platform) -> None:
    with pytest.raises(SandboxControlError, match=r"token_lacks: .*'Admin'"):
        platform.control.set(token_lacks=["Everything"])
    with pytest.raises(SandboxControlError, match="seconds must be a number"):
        platform.control.advance(-1)
