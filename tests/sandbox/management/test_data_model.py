"""Branches of the data model: making, validating, merging and removing them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.sandbox.raw_client import Platform


def build(platform: Platform, method: str, path: str, **options: Any) -> httpx.Response:
    """Call the API below /build, which is beside the management address."""
    url = f"{platform.sandbox.url}/build/api/v1/deployments/1/{path}"
    return platform.http.request(method, url, headers=platform.bearer, **options)


def names(platform: Platform) -> list[str]:
    page = build(platform, "GET", "branches").json()
    assert page["data"] == page["items"]
    return [branch["name"] for branch in page["items"]]


def test_a_branch_from_making_to_removing(platform: Platform) -> None:
    body = {"name": "feature/x", "from": "dev"}
    made = build(platform, "POST", "branches", json=body).json()
    assert made == {"active": False, "branchName": "feature/x", "parentBranch": "dev"}
    assert "feature/x" in platform.control.branches()
    assert build(platform, "POST", "branches", json=body).status_code == 400
    staging = {"branchName": "feature/x", "enabled": True}
    enabled = build(platform, "PUT", "branches/staging-environment", json=staging).json()
    assert enabled["data"]["isStagingEnvironmentEnabled"] is True
    gone = build(platform, "DELETE", "branches", params={"branchName": "feature/x"})
    assert gone.json() == {"success": True}
    assert names(platform) == ["main", "dev"]
    again = build(platform, "DELETE", "branches", params={"branchName": "feature/x"})
    assert again.status_code == 404


def test_the_branch_of_a_dbt_sync_is_there(platform: Platform) -> None:
    platform.call("POST", "deployments/1/dbt-sync", json={"branchName": "sync/nightly"})
    platform.control.wait_until(lambda state: all(sync.ended_at for sync in state.syncs))
    query = {"branchName": "sync/nightly"}
    report = build(platform, "GET", "data-model/validate", params=query).json()
    assert (report["valid"], report["errors"], report["mode"]) == (True, [], "dev_mode")
    merge = {"branchName": "sync/nightly", "message": "nightly", "removeBranchAfterMerge": True}
    answer = build(platform, "POST", "merge-to-default", json=merge).json()
    assert answer == {"merged": True, "branchDeleted": True}
    assert "sync/nightly" not in names(platform)
    state = platform.control.state()
    assert [entry.id for entry in state.changed("branches", "merged")] == ["sync/nightly"]


def test_a_model_that_does_not_compile(platform: Platform) -> None:
    platform.control.add_branch("broken-model")
    query = {"branchName": "broken-model"}
    response = build(platform, "GET", "data-model/validate", params=query)
    assert response.status_code == 200
    assert response.json()["valid"] is False
    assert response.json()["errors"][0]["fileName"] == "orders.yml"


def test_development_mode_is_personal(platform: Platform) -> None:
    assert build(platform, "POST", "commit", json={}).status_code == 400
    started = build(platform, "POST", "dev-mode", json={"branchName": "dev"}).json()
    assert started["active"] is True
    own = build(platform, "GET", "data-model/validate?devMode=true").json()
    assert own["branchName"] == started["branchName"]
    platform.control.set(caller=8)
    other = build(platform, "GET", "data-model/validate?devMode=true").json()
    assert other["branchName"] == "main"
    platform.control.set(caller=7)
    done = build(platform, "POST", "commit", json={"message": "m", "exitDevMode": True})
    assert done.json() == {"success": True}
    assert build(platform, "DELETE", "dev-mode").json() == {"success": True}
    assert build(platform, "POST", "pull", json={"branchName": "dev"}).json() == {
        "buildTriggered": False
    }
    merged = build(platform, "POST", "merge", json={"branchId": 2}).json()
    assert merged == {"merged": True, "branchDeleted": False}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("DELETE", "branches", None, 400, "branchName is required"),
        ("DELETE", "branches?branchName=main", None, 400, "deploy branch"),
        ("DELETE", "branches?branchName=dev&removeOnUpstream=1", None, 400, "must be a boolean"),
        ("POST", "branches", {"name": "a", "from": "gone"}, 404, "Branch gone"),
        ("PUT", "branches/staging-environment", {"enabled": True}, 400, "exactly one of"),
        ("GET", "data-model/validate?branchName=dev&devMode=true", None, 400, "exclude"),
        ("GET", "data-model/validate?branchName=gone", None, 404, "Branch gone"),
        ("POST", "merge", {"branchName": "main"}, 400, "has no parent"),
        ("POST", "merge-to-default", {"branchName": "dev"}, 400, "message is required"),
        ("POST", "merge", {"branchId": 99}, 404, "Branch 99"),
    ],
)
def test_refusals(
    platform: Platform, method: str, path: str, body: Any, status: int, words: str
) -> None:
    response = build(platform, method, path, **({} if body is None else {"json": body}))
    assert response.status_code == status
    assert words in str(response.json()["message"])
