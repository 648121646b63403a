"""What the sandbox refuses: each request with the status and the words of its refusal. A refused
request changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.raw_client import USER

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

HERE = "deployments/1"
BUILD, OTHER = (f"../../build/api/v1/deployments/{number}" for number in (1, 2))
"""The operations on branches are beside the management API's address."""
WORKBOOK = f"{HERE}/workbooks/301"
DRAFT = f"{HERE}/workbooks/303"
NIGHTLY = f"{HERE}/notifications"
RECIPIENTS = f"{NIGHTLY}/1/recipients"
EXPORTS = f"{HERE}/dashboard-exports"
EXPORT = {"dashboardId": 501, "format": "png"}
SYNC = f"{HERE}/dbt-sync"
EVALUATIONS = f"{HERE}/evaluations"
SESSION = "embed/generate-session"
DAILY = {"scheduleType": "DAILY"}
OF_TENANT = {"type": "EMBED_USER", "embedTenantName": "acme-retail"}


def to(*recipients: dict[str, Any]) -> dict[str, Any]:
    return {"recipients": list(recipients)}


MANAGEMENT: list[tuple[str, str, Any, int, str]] = [
    # Workbooks and their dashboards.
    ("GET", f"{HERE}/workbooks/401", None, 404, "Workbook 401 not found in deployment 1"),
    ("GET", f"{HERE}/workbooks/one", None, 400, "workbookId must be an integer"),
    ("PUT", WORKBOOK, {"title": "x"}, 400, "property title should not exist"),
    ("PUT", WORKBOOK, {"folderId": 21}, 404, "Folder 21 not found in deployment 1"),
    ("PUT", f"{HERE}/workbooks/302", {"slug": "sales-overview"}, 409, "belongs to another"),
    ("POST", f"{DRAFT}/duplicate", {"shared": True}, 400, "only a workbook with a published"),
    ("POST", f"{WORKBOOK}/publish", {"workbookId": 302}, 400, "must be the one of the path"),
    (
        "POST",
        f"{WORKBOOK}/publish",
        {"workbookId": 301, "dashboardId": 502},
        404,
        "Dashboard 502 not found in this workbook",
    ),
    (
        "POST",
        f"{WORKBOOK}/dashboard/ai-widget-thread",
        {"threadId": "t", "widgetId": "chart-1"},
        400,
        "widget chart-1 is no AI widget",
    ),
    (
        "POST",
        f"{WORKBOOK}/dashboard/ai-widget-thread",
        {"threadId": "t", "widgetId": "x"},
        404,
        "Widget x not found",
    ),
    (
        "POST",
        f"{DRAFT}/dashboard/ai-widget-thread",
        {"threadId": "t", "widgetId": "ai-1"},
        404,
        "Workbook 303 has no published dashboard",
    ),
    # Notifications.
    ("POST", NIGHTLY, DAILY, 400, "exactly one of dashboardId and dashboardPublicId"),
    (
        "POST",
        NIGHTLY,
        {**DAILY, "dashboardId": 501, "dashboardPublicId": "dash00000501"},
        400,
        "exactly one of dashboardId and dashboardPublicId",
    ),
    ("POST", NIGHTLY, {**DAILY, "dashboardId": 601}, 404, "Dashboard 601 not found"),
    (
        "POST",
        NIGHTLY,
        {"scheduleType": "CUSTOM", "dashboardId": 501},
        400,
        "customCron is required",
    ),
    ("POST", RECIPIENTS, to({"type": "SLACK", "channelId": "C1"}), 400, "is a Slack channel"),
    ("POST", RECIPIENTS, to({"type": "USER"}), 400, "exactly one of userId and email"),
    ("POST", RECIPIENTS, to({"type": "USER", "userId": 99}), 400, "is no user of this account"),
    ("POST", RECIPIENTS, to(OF_TENANT), 400, "needs embedTenantName and externalId"),
    ("POST", RECIPIENTS, to({**OF_TENANT, "externalId": "x"}), 400, "no user of the embed tenant"),
    (
        "POST",
        RECIPIENTS,
        to({"type": "USER", "userId": 7}, {**OF_TENANT, "externalId": "shop-paris"}),
        400,
        "recipients[1] has no e-mail address",
    ),
    # Exports.
    ("POST", EXPORTS, {**EXPORT, "layout": "print"}, 400, "layout print needs format pdf"),
    ("POST", EXPORTS, {"format": "png"}, 404, "exactly one of dashboardId, dashboardPublicId"),
    ("POST", EXPORTS, {**EXPORT, "renderAs": {"type": "USER"}}, 400, "one of userId and email"),
    (
        "POST",
        EXPORTS,
        {**EXPORT, "renderAs": {"type": "USER", "userId": 99}},
        404,
        "renderAs names no active user",
    ),
    (
        "POST",
        EXPORTS,
        {**EXPORT, "renderAs": OF_TENANT},
        400,
        "needs embedTenantName and externalId",
    ),
    # Reports, lists and pages.
    ("PUT", f"{HERE}/reports/101", {"expectedVersion": 9}, 409, "has version 1"),
    ("POST", f"{HERE}/reports", {"jsonQuery": "{"}, 400, "must be JSON text"),
    ("GET", f"{HERE}/reports?first=1&page=1", None, 400, "cannot be mixed with first and after"),
    ("GET", f"{HERE}/reports?after=xx", None, 400, "after is not a cursor of this list"),
    ("GET", f"{HERE}/reports?after=b3RoZXI6MQ==", None, 400, "after is not a cursor"),
    ("GET", f"{HERE}/reports?first=1&first=2", None, 400, "first must be given once"),
    ("PATCH", f"{HERE}/reports", {}, 405, "Cannot PATCH"),
    # Branches of the data model.
    ("POST", f"{BUILD}/branches", {"name": "dev"}, 400, "the branch dev exists already"),
    ("DELETE", f"{BUILD}/branches?branchName=main", None, 400, "deploy branch cannot be deleted"),
    (
        "PUT",
        f"{BUILD}/branches/staging-environment",
        {"branchName": "main", "enabled": True},
        400,
        "the deploy branch has no staging environment",
    ),
    (
        "PUT",
        f"{BUILD}/branches/staging-environment",
        {"branchName": "dev", "branchId": 2, "enabled": True},
        400,
        "exactly one of branchId and branchName",
    ),
    (
        "PUT",
        f"{BUILD}/branches/staging-environment",
        {"branchId": 99, "enabled": True},
        404,
        "99",
    ),
    ("POST", f"{BUILD}/merge-to-default", {"message": "m"}, 400, "main is the deploy branch"),
    ("POST", f"{BUILD}/merge", {"branchName": "main"}, 400, "main is the deploy branch"),
    (
        "GET",
        f"{BUILD}/data-model/validate?branchName=dev&devMode=true",
        None,
        400,
        "exclude each other",
    ),
    ("GET", f"{BUILD}/data-model/validate?devMode=true", None, 400, "no branch is active"),
    ("GET", f"{OTHER}/data-model/validate?branchName=dev", None, 400, "Branch is not active"),
    # Syncs, evaluations, deliveries, environments.
    ("POST", SYNC, {"source": "manifest"}, 400, "manifest is required"),
    ("POST", SYNC, {"source": "manifest", "manifest": {}, "ref": "x"}, 400, "ref cannot be given"),
    ("POST", SYNC, {"branchName": "a b"}, 400, "branchName must match"),
    ("GET", f"{EVALUATIONS}/9", None, 404, "Evaluation 9 not found in deployment 1"),
    ("POST", EVALUATIONS, {"branchName": "main", "agentName": "x"}, 400, "agentName: no agent x"),
    ("POST", EVALUATIONS, {"branchName": "main", "questionFile": "x"}, 400, "no questions in x"),
    ("POST", EVALUATIONS, {"branchName": "gone"}, 404, "Bad branch"),
    ("GET", f"{HERE}/report-deliveries/501/runs/x", None, 404, "Run x not found"),
    (
        "POST",
        f"{HERE}/environments/99/tokens",
        {"security_context": {}},
        404,
        "Environment 99 not found in deployment 1",
    ),
    # Embedding.
    ("POST", SESSION, {"deploymentId": 9}, 404, "Deployment 9 not found"),
    ("POST", SESSION, {"deploymentId": 1, "branchName": "gone"}, 404, "gone is not a branch"),
    ("POST", "embed/session/token", {"sessionId": "0" * 32}, 401, "unknown or has been used"),
]


@pytest.mark.parametrize(("method", "path", "body", "status", "words"), MANAGEMENT)
def test_management_api_refuses(
    platform: Platform, method: str, path: str, body: Any, status: int, words: str
) -> None:
    platform.control.set(evaluations=True)
    if path == RECIPIENTS:
        platform.call("POST", NIGHTLY, json={**DAILY, "dashboardId": 501})
    before = platform.control.state().changes
    options = {} if body is None else {"json": body}
    response = platform.call(method, path, **options)
    assert response.status_code == status, response.text
    assert words in str(response.json()["message"])
    assert platform.control.state().changes == before


def test_an_export_that_failed_has_no_file(platform: Platform) -> None:
    platform.control.set(export_outcome="failed")
    job = platform.call("POST", EXPORTS, json=EXPORT).json()["jobId"]
    assert platform.call("GET", f"{EXPORTS}/{job}").json()["status"] == "failed"
    assert platform.call("GET", f"{EXPORTS}/{job}/download").status_code == 422


def test_a_workbook_without_a_draft_can_only_be_published_with_a_config(
    platform: Platform,
) -> None:
    number = platform.call("POST", f"{HERE}/workbooks", json={"name": "New"}).json()["id"]
    path = f"{HERE}/workbooks/{number}/publish"
    refused = platform.call("POST", path, json={"workbookId": number})
    assert (refused.status_code, "has no saved draft" in refused.text) == (400, True)
    config = {"workbookId": number, "config": {"widgets": []}}
    assert platform.call("POST", path, json=config).json()["versionNumber"] == 1


# -- the chat and data APIs ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "content", "status", "words"),
    [
        ("stream-chat-state", b"{", 400, "the body must be JSON"),
        ("stream-chat-state", b"[]", 400, "the body must be an object"),
        ("stream-chat-state", b"", 400, "sessionSettings is required"),
        ("stream-chat-state", b'{"sessionSettings": {}}', 400, "exactly one of externalId"),
        (
            "stream-chat-state",
            b'{"sessionSettings": {"internalId": "nobody@acme.example.com"}}',
            400,
            "no user nobody@acme.example.com",
        ),
        ("abort", b"{}", 400, "chatId is required"),
        ("abort", b'{"chatId": "x", "sessionSettings": {"externalId": "A"}}', 400, "lowercase"),
    ],
)
def test_chat_api_refuses(
    platform: Platform, operation: str, content: bytes, status: int, words: str
) -> None:
    headers = {**platform.key, "Content-Type": "application/json"}
    url = f"{platform.sandbox.chat_url}/{operation}"
    response = platform.http.post(url, content=content, headers=headers)
    assert (response.status_code, words in response.text) == (status, True), response.text
    assert platform.control.state().runs == []


def test_a_console_user_asks_under_the_own_address(platform: Platform) -> None:
    settings = {"internalId": "analyst@acme.example.com"}
    assert platform.ask("orders per month", sessionSettings=settings)


def test_chat_api_has_known_agents_and_takes_only_post(platform: Platform) -> None:
    url = f"{platform.sandbox.chat_url}/stream-chat-state"
    assert platform.http.get(url, headers=platform.key).status_code == 405
    other = url.replace("/agents/1/", "/agents/9/")
    response = platform.http.post(other, headers=platform.key, json={"sessionSettings": USER})
    assert (response.status_code, "Agent not found" in response.text) == (404, True)


JOBS = "pre-aggregations/jobs"
LOOK = {"action": "get", "tokens": []}


@pytest.mark.parametrize(
    ("method", "path", "content", "status", "words"),
    [
        ("POST", "cubesql", b"{", 400, "the query must be JSON"),
        ("POST", "cubesql", b"{}", 400, "query is required"),
        ("GET", "cubesql", b"", 405, "Cannot GET"),
        ("POST", "meta", b"{}", 405, "Cannot POST"),
        ("POST", JOBS, b" ", 400, "No job description provided"),
        ("POST", JOBS, b"{}", 400, "No job description provided"),
        ("POST", JOBS, b"{", 400, "Invalid Job query format: the body must be JSON"),
        ("POST", JOBS, b'{"action": "get"}', 400, "Invalid Job query format: tokens is required"),
    ],
)
def test_data_api_refuses(
    platform: Platform, method: str, path: str, content: bytes, status: int, words: str
) -> None:
    platform.control.set(default_api_scopes=["meta", "data", "jobs"])
    token = platform.call("POST", f"{HERE}/token").json()["cubeApiToken"]
    url = f"{platform.sandbox.url}/{HERE}/cubejs-api/v1/{path}"
    response = platform.http.request(method, url, content=content, headers={"Authorization": token})
    assert (response.status_code, words in response.json()["error"]) == (status, True)


# -- the control API ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operation", "arguments", "status", "words"),
    [
        ("nonsense", {}, 404, "no such control operation"),
        ("_branch", {}, 404, "no such control operation"),
        ("advance", [], 400, "the body must be an object"),
        ("advance", {"seconds": -1}, 400, "at least 0"),
        ("rotate", {"which": "x"}, 400, "no such credential; known are"),
        ("release_fault", {"fault_id": "x"}, 404, "no fault x"),
        ("abort_thread", {"chat_id": "x"}, 404, "nothing is running in thread x"),
        ("branches", {"deployment": 9}, 404, "no deployment 9"),
        (
            "report_build",
            {"name": "x", "deployment": 1, "status": None, "error_text": None},
            404,
            "no branch x in deployment 1",
        ),
        ("arm", {"kind": "status", "api": "x"}, 400, "api must be chat, management or data"),
        ("arm", {"kind": "status", "count": 0}, 400, "count must be at least 1"),
        ("arm", {"kind": "status", "colour": 1}, 400, "unknown fields: colour"),
        ("arm", {}, 400, "kind"),
        ("set_breakpoint", {"name": "before_final", "path": "x"}, 400, "applies to a run"),
    ],
)
def test_control_api_refuses(
    platform: Platform, operation: str, arguments: Any, status: int, words: str
) -> None:
    response = platform.http.post(f"{platform.sandbox.url}/sandbox/{operation}", json=arguments)
    assert (response.status_code, words in response.json()["error"]) == (status, True), (
        response.text
    )
