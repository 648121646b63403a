"""Every operation of the table is served, checks what it gets, and answers what its schema says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import operations_table as table
from airflow_provider_platform.client.operations_table import OperationRow, operations, resolved

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

IDS = {
    "deploymentId": 1,
    "environmentId": 11,
    "folderId": 13,
    "reportId": 101,
    "workbookId": 301,
    "taskId": 601,
    "integrationId": 3,
    "publicId": "dash00000501",
    "slug": "sales-overview",
    "embedTenantName": "acme-retail",
    "externalWorkbookId": "1AbC",
}
BODIES: dict[str, dict[str, Any]] = {
    # What a schema does not say: which fields exclude each other, and what exists.
    "startExport": {"format": "png", "dashboardId": 501},
    "createNotification": {"scheduleType": "DAILY", "dashboardId": 501},
    "addRecipients": {"recipients": [{"type": "USER", "userId": 7}]},
    "removeRecipients": {"recipients": [{"type": "USER", "id": 7}]},
    "moveWorkspaceObject": {"type": "REPORT", "id": 101},
    "publishDashboard": {"workbookId": 301},
    "updatePublishedDashboardAiWidgetThread": {"widgetId": "ai-1", "threadId": "t"},
    "updateEmbedAccess": {"allowEmbed": True},
    "addGroupMembers": {"members": [{"externalId": "shop-paris"}]},
    "removeGroupMembers": {"members": [{"externalId": "shop-paris"}]},
    "setBranchStagingEnvironment": {"branchName": "dev", "enabled": True},
    "createBranch": {"name": "feature"},
    "pull": {"branchName": "dev"},
    "mergeIntoParentBranch": {"branchName": "dev"},
    "mergeToDefaultBranch": {"branchName": "dev", "message": "m"},
    "startEvaluation": {"branchName": "main"},
    "startDevMode": {"branchName": "dev"},
    "provisionEmbedUsers": {"users": [{"externalId": "shop-rome"}]},
}
QUERIES = {"removeBranch": {"branchName": "dev"}, "buildStatus": {"branchName": "main"}}


def sample(schema: dict[str, Any]) -> Any:
    """A value that fits a schema, with the required fields only."""
    schema = resolved(schema)
    if "anyOf" in schema:
        return sample(schema["anyOf"][0])
    if "enum" in schema:
        return schema["enum"][0]
    kinds = schema.get("type", "object")
    kind = kinds if isinstance(kinds, str) else kinds[0]
    if kind == "object":
        return {name: sample(schema["properties"][name]) for name in schema.get("required", ())}
    if kind == "array":
        return [sample(schema["items"])] * schema.get("minItems", 0)
    if kind == "string":
        if schema.get("format") == "url":
            return "https://example.com/a"
        return "0" * 32 if "pattern" in schema else "some text"
    return {"boolean": False}.get(kind, schema.get("minimum", 1))


def prepared(platform: Platform, operation: OperationRow) -> tuple[dict[str, Any], Any]:
    """The ids of items that exist, and a valid body."""
    ids: dict[str, Any] = dict(IDS)
    at = operation.path

    def new(path: str, body: Any) -> Any:
        answer = platform.call("POST", path, json=body)
        assert answer.is_success, answer.text
        return answer.json()

    if "/notifications/{id}" in at:
        body = {"scheduleType": "DAILY", "dashboardId": 501}
        ids["id"] = new("deployments/1/notifications", body)["id"]
    if "/report-deliveries/{id}" in at:
        ids["id"] = 501
    if "{runId}" in at:
        ids["runId"] = new("deployments/1/report-deliveries/501/runs", {})["runId"]
    if "/groups/{id}" in at:
        ids["id"] = 951
    if "/oauth-integrations/{id}" in at:
        ids["id"] = 3
    if "{jobId}" in at:
        body = {"format": "png", "dashboardId": 501}
        ids["jobId"] = new("deployments/1/dashboard-exports", body)["jobId"]
    if "{evaluationId}" in at:
        body = {"branchName": "main"}
        ids["evaluationId"] = new("deployments/1/evaluations", body)["id"]
    if "{syncJobId}" in at:
        ids["syncJobId"] = new("deployments/1/dbt-sync", {})["syncJobId"]
    if "by-public-id" in at:
        ids["publicId"] = "report000101"
    body = BODIES.get(operation.id)
    if body is None and operation.body is not None:
        body = sample(operation.body)
    if operation.id == "postTokenBySessionId":
        body = new("embed/generate-session", {"deploymentId": 1})
    return ids, body


@pytest.mark.parametrize("name", sorted(operations()))
def test_operation_is_served_and_answers_as_its_schema_says(platform: Platform, name: str) -> None:
    operation = operations()[name]
    ids, body = prepared(platform, operation)
    url = platform.sandbox.url + re.sub(
        r"\{(\w+)\}", lambda parameter: str(ids[parameter[1]]), operation.path
    )
    response = platform.http.request(
        operation.method,
        url,
        headers=platform.bearer,
        json=body,
        params=QUERIES.get(name),
    )
    assert response.status_code == operation.status, response.text
    if operation.media:
        assert response.headers["content-type"] in operation.media
    elif operation.answer:
        assert table.problems(operation.answer, response.json(), strict=False) == []
    else:
        assert response.content == b""
