"""The management and data APIs: checks, paging, dbt syncs, reports, SQL."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.sandbox import SandboxControlError
from tests.support.raw_client import Platform, results

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


def test_failing_sync_reports_its_error(platform: Platform) -> None:
    platform.control.set(dbt_outcome="FAILED")
    job = start(platform, branchName="nightly")
    ended(platform)
    status = platform.call("GET", f"{SYNC}/{job}").json()
    assert (status["status"], "dbt-compile" in status["error"]) == ("FAILED", True)
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


def test_missing_permission_is_refused(platform: Platform) -> None:
    platform.control.set(token_lacks=["SchemaUpdate", "SchemaUpdateDevBranches"])
    assert platform.call("POST", SYNC).status_code == 403
    assert platform.call("GET", SYNC).status_code == 200


def test_unknown_paths_are_the_web_application(platform: Platform) -> None:
    response = platform.call("GET", "no-such-thing")
    assert response.status_code == 200
    assert "text/html" in response.headers["content-type"]


def test_described_tenant_deletes_an_embed_tenant_only_under_the_path_with_a_slash(
    platform: Platform,
) -> None:
    platform.control.set(tenant="described")
    tenant = "embed-tenants/acme-retail"
    assert "text/html" in platform.call("DELETE", tenant).headers["content-type"]
    assert platform.call("DELETE", f"{tenant}/").status_code == 204


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
