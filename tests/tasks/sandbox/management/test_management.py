"""The management and data APIs: checks, paging, dbt syncs, reports, SQL."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.sandbox import SandboxControlError
from tests.support.raw_client import Platform, records, results

SYNC = "deployments/1/dbt-sync"


def start(platform: Platform, **body: Any) -> str:
    response = platform.call("POST", SYNC, json=body)
    assert response.status_code == 200, response.text
    assert set(response.json()) == {"syncJobId", "workflowId", "branchName"}
    job: str = response.json()["syncJobId"]
    return job


def ended(platform: Platform) -> None:
    platform.control.wait_until(lambda state: all(sync.ended_at for sync in state.syncs))


def test_sync_passes_its_stages_and_creates_its_branch(platform: Platform) -> None:
    job = start(platform, branchName="feature/orders")
    ended(platform)

    status = platform.call("GET", f"{SYNC}/{job}").json()
    assert status["status"] == status["progress"]["stage"] == "COMPLETED"
    assert platform.control.state().syncs[0].stages == [
        "INITIALIZING",
        "CREATING_SANDBOX",
        "UPLOADING_PROJECT",
        "INSTALLING_DEPENDENCIES",
        "RUNNING_DBT_DEPS",
        "COMPILING_DBT",
        "PROCESSING_MANIFEST",
        "WRITING_CUBE_FILES",
        "FINALIZING",
        "COMPLETED",
    ]
    assert platform.call("GET", f"{SYNC}/{job}/result").json()["cubeCount"] == 3
    assert platform.call("GET", f"{SYNC}/{job}/logs").json()["items"]
    platform.control.open_branch("feature/orders")
    (result,) = results(platform.ask("revenue by country", activeBranchName="feature/orders"))
    assert result["totalRows"] == 8


def test_a_cancelled_sync_shows_only_in_the_history(platform: Platform) -> None:
    platform.control.set(dbt_pace=60)
    job = start(platform)
    assert platform.call("GET", f"{SYNC}/{job}/result").status_code == 404
    assert "cancelled" in platform.call("DELETE", f"{SYNC}/{job}").json()["message"]
    assert platform.call("GET", f"{SYNC}/{job}").json()["status"] == "INITIALIZING"
    (entry,) = platform.call("GET", f"{SYNC}?status=CANCELLED").json()["items"]
    assert entry["syncJobId"] == job
    assert platform.control.state().syncs[0].cancelled_at is not None
    assert "already" in platform.call("DELETE", f"{SYNC}/{job}").json()["message"]


@pytest.mark.parametrize(("setting", "body"), [("FAILED", {}), ("COMPLETED", {"ref": "broken"})])
def test_failing_sync_reports_its_error(
    platform: Platform, setting: str, body: dict[str, str]
) -> None:
    platform.control.set(dbt_outcome=setting)
    job = start(platform, branchName="nightly", **body)
    ended(platform)
    status = platform.call("GET", f"{SYNC}/{job}").json()
    assert status["status"] == "FAILED"
    assert "dbt-compile" in status["error"]
    (entry,) = platform.call("GET", f"{SYNC}?status=FAILED").json()["items"]
    assert entry["failedPhase"] == "dbt-compile"
    assert "nightly" not in platform.control.branches()


def test_outcome_of_a_sync_can_be_unknown(platform: Platform) -> None:
    platform.control.set(dbt_outcome="UNKNOWN")
    job = start(platform)
    ended(platform)
    assert platform.call("GET", f"{SYNC}/{job}").json()["status"] == "FINALIZING"
    assert platform.call("GET", SYNC).json()["items"][0]["status"] == "UNKNOWN"


def test_described_tenant_has_only_the_start_of_a_sync(platform: Platform) -> None:
    platform.control.set(tenant="described")
    job = start(platform, branchName="x", ref="dropped-silently")
    for method, path in (("GET", SYNC), ("GET", f"{SYNC}/{job}"), ("DELETE", f"{SYNC}/{job}")):
        response = platform.call(method, path)
        assert response.status_code == 200
        assert "text/html" in response.headers["content-type"]


def test_sync_history_is_paged(platform: Platform) -> None:
    jobs = [start(platform, branchName=f"b{number}") for number in range(5)]
    seen: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = platform.call("GET", SYNC, params={"first": 2, **after}).json()
        seen += [item["syncJobId"] for item in page["items"]]
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = {"after": page["pageInfo"]["endCursor"]}
    assert seen == jobs[::-1]
    assert platform.call("GET", SYNC, params={"trigger": "webhook"}).json()["items"] == []


@pytest.mark.parametrize(
    ("method", "path", "options", "status", "words"),
    [
        ("POST", SYNC, {"json": {"branch": "x"}}, 400, "property branch should not exist"),
        ("POST", SYNC, {"json": {"branchName": "two words"}}, 400, "branchName must match"),
        ("POST", SYNC, {"json": {"branchName": 7}}, 400, "branchName must be a string"),
        ("POST", SYNC, {"json": {"source": "manifest"}}, 400, "manifest is required"),
        ("POST", SYNC, {"content": b"{"}, 400, "must be JSON"),
        ("POST", SYNC, {"json": []}, 400, "must be an object"),
        ("GET", f"{SYNC}?status=DONE", {}, 400, "status must be one of"),
        ("GET", f"{SYNC}?first=0", {}, 400, "first must not be less than 1"),
        ("GET", f"{SYNC}?limit=2", {}, 400, "property limit should not exist"),
        ("GET", f"{SYNC}?after=zzz", {}, 400, "not a cursor"),
        ("GET", f"{SYNC}/nope", {}, 404, "dbt sync nope not found in deployment 1"),
        ("GET", "deployments/9/dbt-sync", {}, 404, "Deployment 9 not found"),
        ("GET", "deployments/one/reports", {}, 400, "deploymentId must be an integer"),
        ("GET", "deployments/1/reports/999", {}, 404, "Report 999 not found in deployment 1"),
        ("GET", "deployments/1/reports/201", {}, 404, "Report 201 not found in deployment 1"),
        (
            "PUT",
            "deployments/1/reports/101/connect-workbook",
            {"json": {"externalWorkbookId": "w"}},
            400,
            "resultLocation is required",
        ),
        ("PATCH", "deployments/1/reports", {}, 405, "Cannot PATCH"),
        ("POST", "deployments/1/token", {"json": {"expiresIn": 5}}, 400, "less than 60"),
    ],
)
def test_invalid_management_requests_are_refused(
    platform: Platform, method: str, path: str, options: dict[str, Any], status: int, words: str
) -> None:
    response = platform.call(method, path, **options)
    assert response.status_code == status
    assert words in str(response.json()["message"])


def test_missing_permission_is_refused(platform: Platform) -> None:
    platform.control.set(token_lacks=["SchemaUpdate", "SchemaUpdateDevBranches"])
    assert platform.call("POST", SYNC).status_code == 403
    assert platform.call("GET", SYNC).status_code == 200


def test_unknown_paths_are_the_web_application(platform: Platform) -> None:
    response = platform.call("GET", "no-such-thing")
    assert response.status_code == 200
    assert "text/html" in response.headers["content-type"]


def test_reports_filter_sort_and_page(platform: Platform) -> None:
    def names(query: str) -> list[str]:
        page = platform.call("GET", f"deployments/1/reports?{query}").json()
        assert page["data"] == page["items"]
        return [item["name"] for item in page["items"]]

    assert names("search=REVENUE") == ["Revenue by country"]
    assert names("folderId=11&sortBy=name") == [
        "Orders per month",
        "Revenue by country",
        "Top products",
    ]
    assert names("sortBy=name&sortDirection=DESC&first=1") == ["Top products"]
    platform.control.set(lists="legacy")
    legacy = platform.call("GET", "deployments/1/reports").json()
    assert set(legacy) == {"data", "count"}
    assert legacy["count"] == 7


def test_a_placement_is_recorded_updated_and_removed(platform: Platform) -> None:
    path = "deployments/1/reports/101/connect-workbook"
    spot = {"externalWorkbookId": "sheet-1", "resultLocation": "A1"}
    platform.call("PUT", path, json=spot)
    report = platform.call("PUT", path, json={**spot, "endResultCell": "B9"}).json()
    (placement,) = report["externalWorkbookPlacements"]
    assert (placement["workbookId"], placement["endResultCell"]) == ("sheet-1", "B9")
    assert report["externalWorkbookId"] == "sheet-1"
    listed = platform.call("GET", "deployments/1/reports?externalWorkbookId=sheet-1").json()
    assert [item["id"] for item in listed["items"]] == [101]
    gone = platform.call("DELETE", path, json=spot).json()
    assert gone["externalWorkbookPlacements"] == []


def test_control_changes_a_sample(platform: Platform) -> None:
    platform.control.change("user-oauth-tokens", 3, status="expired")
    assert platform.call("GET", "user-oauth-tokens").json()[0]["status"] == "expired"
    platform.control.change("reports", 101, updatedAt="2026-11-20")
    assert platform.call("GET", "deployments/1/reports/101").json()["updatedAt"] == "2026-11-20"
    with pytest.raises(SandboxControlError, match="no resource nonsense; known are"):
        platform.control.change("nonsense", 1)
    with pytest.raises(SandboxControlError, match="reports has no item 999"):
        platform.control.change("reports", 999)


def test_body_above_the_limit_is_refused(platform: Platform) -> None:
    response = platform.call("POST", SYNC, content=b" " * (50 * 1024 * 1024 + 1))
    assert response.status_code == 413


def test_data_api_runs_sql(platform: Platform) -> None:
    deployment = platform.call("GET", "deployments/1").json()
    token = platform.call("POST", "deployments/1/token", json={"expiresIn": 60}).json()
    url = f"{deployment['deploymentUrl']}/cubejs-api/v1/cubesql"
    headers = {"Authorization": token["cubeApiToken"]}

    def sql(query: str, **body: Any) -> list[dict[str, Any]]:
        body["query"] = query
        return records(platform.http.post(url, json=body, headers=headers).content)

    platform.control.set(data_chunk_rows=200)
    head, *chunks = sql("SELECT id, amount FROM orders")
    assert [column["name"] for column in head["schema"]] == ["id", "amount"]
    assert [len(chunk["data"]) for chunk in chunks] == [200, 200, 80]
    assert chunks[0]["data"][0][0] == "1"
    assert sql("SELECT 1 WHERE 0")[1:] == [{"data": []}]
    assert sql("SELEC")[-1]["error"]
    many = "SELECT a.id FROM orders a, orders b"
    assert sum(len(chunk["data"]) for chunk in sql(many)[1:]) == 10_000
    assert sum(len(chunk["data"]) for chunk in sql(f"{many} LIMIT 99999")[1:]) == 50_000
    platform.control.fault("continue_wait", api="data")
    assert sql("SELECT 1") == [{"error": "Continue wait"}]
    bearer = {"Authorization": f"Bearer {token['cubeApiToken']}"}
    assert platform.http.post(url, json={"query": "SELECT 1"}, headers=bearer).status_code == 403
    unknown = platform.http.post(url, json={"query": "SELECT 1", "limit": 5}, headers=headers)
    assert unknown.status_code == 400
    on_branch = url.replace("/cubejs-api", "/dev-mode/feature%2Fx/cubejs-api")
    gone = platform.http.post(on_branch, json={"query": "SELECT 1"}, headers=headers)
    assert "Bad branch" in gone.json()["error"]
    platform.control.open_branch("feature/x")
    assert platform.http.post(on_branch, json={"query": "SELECT 1"}, headers=headers).is_success
