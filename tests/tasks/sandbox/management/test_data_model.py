"""Branches of the data model: how they are opened, built, merged and deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox import SandboxControlError
from tests.support.raw_client import answer, results

if TYPE_CHECKING:
    import httpx

    from tests.support.raw_client import Platform

COMPILE_ERROR = "orders.yml: the cube orders joins customers"


def build(
    platform: Platform,
    method: str,
    path: str,
    *,
    deployment: int = 1,
    token: str | None = None,
    **options: Any,
) -> httpx.Response:
    """Call the API below /build, which is beside the management address."""
    url = f"{platform.sandbox.url}/build/api/v1/deployments/{deployment}/{path}"
    headers = platform.bearer if token is None else {"Authorization": f"Bearer {token}"}
    return platform.http.request(method, url, headers=headers, **options)


def names(platform: Platform, deployment: int = 1) -> list[str]:
    page = build(platform, "GET", "branches", deployment=deployment).json()
    assert page["data"] == page["items"]
    return [branch["name"] for branch in page["items"]]


def branch_hash(platform: Platform, name: str) -> str:
    page = build(platform, "GET", "branches").json()
    return next(str(one["lastHash"]) for one in page["items"] if one["name"] == name)


def status(platform: Platform, name: str | None = None, deployment: int = 1) -> dict[str, Any]:
    query = {} if name is None else {"branchName": name}
    response = platform.call("GET", f"deployments/{deployment}/build-status", params=query)
    assert response.status_code == 200
    return dict(response.json())


def staging(platform: Platform, name: str, enabled: bool = True) -> httpx.Response:
    body = {"branchName": name, "enabled": enabled}
    return build(platform, "PUT", "branches/staging-environment", json=body)


def sync(platform: Platform, branch: str, deployment: int = 1) -> None:
    """Have a dbt sync write the branch."""
    path = f"deployments/{deployment}/dbt-sync"
    assert platform.call("POST", path, json={"branchName": branch}).status_code == 200
    done = platform.control.wait_until(lambda state: all(one.ended_at for one in state.syncs))
    assert done.syncs[-1].status == "COMPLETED"


def sql(platform: Platform, name: str | None = None, deployment: int = 1) -> httpx.Response:
    """Run SQL with the deployment's token, on production or on a branch without a slash."""
    path = f"deployments/{deployment}"
    url = str(platform.call("GET", path).json()["deploymentUrl"])
    token = str(platform.call("POST", f"{path}/token").json()["cubeApiToken"])
    below = "" if name is None else f"/dev-mode/{name}"
    return platform.http.post(
        f"{url}{below}/cubejs-api/v1/cubesql",
        json={"query": "SELECT 1"},
        headers={"Authorization": token},
    )


def refused(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, str(response.json()["error"])


class TestOpening:
    def test_synced_branch_answers_no_query_until_it_is_opened(self, platform: Platform) -> None:
        sync(platform, "nightly")
        report = status(platform, "nightly")
        assert (report["status"], report["errorText"]) == ("building", "Branch is not active")
        assert (report["buildJobId"], report["lastHash"], report["mode"]) == (
            None,
            None,
            "dev_mode",
        )
        assert refused(sql(platform, "nightly")) == (400, "Branch is not active")
        (result,) = results(platform.ask("revenue by country", activeBranchName="nightly"))
        assert result == {"error": "Error: BadRequestError: Branch is not active"}
        session = {"deploymentId": 1, "branchName": "nightly"}
        assert platform.call("POST", "embed/generate-session", json=session).status_code == 400
        assert staging(platform, "nightly").json()["data"]["isStagingEnvironmentEnabled"] is True
        assert status(platform, "nightly")["status"] == "built"
        assert sql(platform, "nightly").status_code == 200
        (result,) = results(platform.ask("revenue by country", activeBranchName="nightly"))
        assert result["totalRows"] == 8
        assert platform.call("POST", "embed/generate-session", json=session).status_code == 200

    def test_unknown_branch_is_reported_as_bad_branch_everywhere(self, platform: Platform) -> None:
        report = status(platform, "gone")
        assert (report["status"], report["errorText"]) == ("building", "Bad branch")
        assert refused(sql(platform, "gone")) == (400, "Bad branch")
        stream = platform.ask("revenue by country", activeBranchName="gone")
        (result,) = results(stream)
        assert result == {"error": "Error: BadRequestError: Bad branch"}
        assert "I am sorry" in str(answer(stream))
        session = {"deploymentId": 1, "branchName": "gone"}
        assert platform.call("POST", "embed/generate-session", json=session).status_code == 404

    def test_switching_staging_off_closes_the_branch(self, platform: Platform) -> None:
        platform.control.open_branch("nightly")
        assert sql(platform, "nightly").status_code == 200
        assert staging(platform, "nightly", enabled=False).status_code == 200
        assert status(platform, "nightly")["errorText"] == "Branch is not active"
        assert refused(sql(platform, "nightly")) == (400, "Branch is not active")
        changed = platform.control.state().changed
        assert [one.id for one in changed("staging-environments", "disabled")] == ["nightly"]

    def test_each_deployment_has_branches_of_its_own(self, platform: Platform) -> None:
        sync(platform, "nightly", deployment=2)
        assert names(platform) == ["main", "dev"]
        assert names(platform, 2) == ["master", "dev", "nightly"]
        settings = platform.call("GET", "deployments/2/settings").json()
        assert settings["deployBranchName"] == "master"
        assert status(platform, deployment=2)["branchName"] == "master"
        assert sql(platform, deployment=2).status_code == 200
        assert refused(sql(platform, "dev", deployment=2)) == (400, "Branch is not active")


class TestBuilds:
    def test_branch_serves_queries_after_the_build_time_that_is_set(
        self, platform: Platform
    ) -> None:
        platform.control.set(build_delay=20, build_seconds=30)
        platform.control.add_branch("nightly")
        staging(platform, "nightly")
        report = status(platform, "nightly")
        assert (report["status"], report["errorText"]) == ("building", "Branch is not active")
        assert refused(sql(platform, "nightly")) == (400, "Branch is not active")
        platform.control.advance(21)
        report = status(platform, "nightly")
        assert (report["status"], report["errorText"]) == ("building", None)
        waiting = sql(platform, "nightly")
        assert (waiting.status_code, waiting.headers["content-type"]) == (503, "text/html")
        (result,) = results(platform.ask("revenue by country", activeBranchName="nightly"))
        assert result == {"error": "Error: the branch is being built"}
        platform.control.advance(30)
        report = status(platform, "nightly")
        assert (report["status"], report["lastHash"]) == (
            "built",
            branch_hash(platform, "nightly"),
        )
        assert sql(platform, "nightly").status_code == 200

    def test_a_model_that_does_not_compile_syncs_and_fails_afterwards(
        self, platform: Platform
    ) -> None:
        sync(platform, "broken-model")
        assert status(platform, "broken-model")["errorText"] == "Branch is not active"
        staging(platform, "broken-model")
        report = status(platform, "broken-model")
        assert report["status"] == "failed"
        assert COMPILE_ERROR in report["errorText"]
        code, error = refused(sql(platform, "broken-model"))
        assert (code, COMPILE_ERROR in error) == (500, True)
        stream = platform.ask("revenue by country", activeBranchName="broken-model")
        assert COMPILE_ERROR in results(stream)[0]["error"]
        query = {"branchName": "broken-model"}
        verdict = build(platform, "GET", "data-model/validate", params=query)
        assert (verdict.status_code, verdict.json()["valid"]) == (200, False)
        assert verdict.json()["errors"][0]["fileName"] == "orders.yml"

    @pytest.mark.parametrize("outcome", ["failed", "cancelled", "stopped", "none"])
    def test_branch_serves_no_queries_if_its_build_did_not_succeed(
        self, platform: Platform, outcome: str
    ) -> None:
        platform.control.set(build_outcome=outcome)
        platform.control.add_branch("nightly")
        staging(platform, "nightly")
        report = status(platform, "nightly")
        assert report["status"] == outcome
        assert (report["errorText"] is not None) == (outcome == "failed")
        assert sql(platform, "nightly").status_code == 500
        lines = platform.call("GET", "deployments/1/logs?source=dev").json()["items"]
        assert len(lines) == 4
        assert any(str(report["errorText"] or outcome) in one["message"] for one in lines)

    def test_a_new_build_can_report_why_the_one_before_failed(self, platform: Platform) -> None:
        sync(platform, "nightly")
        platform.control.set(build_outcome="failed")
        staging(platform, "nightly")
        failed = status(platform, "nightly")
        platform.control.set(build_outcome="built", build_seconds=30)
        sync(platform, "nightly")
        report = status(platform, "nightly")
        assert (report["status"], report["errorText"]) == ("building", failed["errorText"])
        assert report["buildJobId"] > failed["buildJobId"]
        platform.control.advance(31)
        report = status(platform, "nightly")
        assert (report["status"], report["errorText"]) == ("built", None)

    def test_an_idle_branch_sleeps_and_the_next_query_wakes_it(self, platform: Platform) -> None:
        platform.control.open_branch("nightly")
        platform.control.advance(599)
        assert sql(platform, "nightly").status_code == 200
        platform.control.advance(601)
        assert status(platform, "nightly")["status"] == "stopped"
        assert sql(platform, "nightly").status_code == 503
        assert status(platform, "nightly")["status"] == "built"
        assert sql(platform, "nightly").status_code == 200
        platform.control.advance(601)
        assert sql(platform).status_code == 200


class TestMerging:
    def merge(self, platform: Platform, name: str, **flags: Any) -> httpx.Response:
        body = {"branchName": name, "message": "nightly", **flags}
        return build(platform, "POST", "merge-to-default", json=body)

    def test_production_is_built_again_after_a_merge(self, platform: Platform) -> None:
        sync(platform, "nightly")
        before = status(platform)
        platform.control.set(build_delay=10, build_seconds=30)
        answer = self.merge(platform, "nightly", removeBranchAfterMerge=True).json()
        assert answer == {"merged": True, "branchDeleted": True}
        assert "nightly" not in names(platform)
        assert branch_hash(platform, "main") != before["lastHash"]
        assert status(platform) == before
        platform.control.advance(11)
        during = status(platform)
        assert (during["status"], during["lastHash"]) == ("building", branch_hash(platform, "main"))
        assert sql(platform).status_code == 200
        platform.control.advance(30)
        assert status(platform)["status"] == "built"
        state = platform.control.state()
        assert [entry.id for entry in state.changed("branches", "merged")] == ["nightly"]

    def test_production_keeps_serving_through_a_failed_build(self, platform: Platform) -> None:
        sync(platform, "broken")
        self.merge(platform, "broken")
        assert status(platform)["status"] == "failed"
        assert sql(platform).status_code == 200

    def test_in_deploy_mode_cli_nothing_builds_production(self, platform: Platform) -> None:
        platform.control.set(deploy_mode="cli")
        assert platform.call("GET", "deployments/1/settings").json()["deployMode"] == "cli"
        before = status(platform)
        sync(platform, "nightly")
        assert self.merge(platform, "nightly").json()["merged"] is True
        sync(platform, "main")
        assert status(platform) == before
        assert branch_hash(platform, "main") != before["lastHash"]

    def test_merge_without_changes_reports_that_nothing_was_merged(
        self, platform: Platform
    ) -> None:
        sync(platform, "nightly")
        keep = {"removeBranchAfterMerge": False}
        first = self.merge(platform, "nightly", **keep).json()
        assert first == {"merged": True, "branchDeleted": False}
        again = self.merge(platform, "nightly", removeBranchAfterMerge=True).json()
        assert again == {"merged": False, "branchDeleted": False}
        platform.control.set(merge_outcome="nothing")
        sync(platform, "nightly")
        assert self.merge(platform, "nightly").json()["merged"] is False
        platform.control.set(merge_outcome="conflict")
        assert self.merge(platform, "nightly").status_code == 409


class TestDescribedTenant:
    def test_described_tenant_starts_syncs_but_opens_no_branch(self, platform: Platform) -> None:
        platform.control.set(tenant="described")
        body = {"branchName": "nightly", "ref": "x", "source": "manifest", "output": "files"}
        assert platform.call("POST", "deployments/1/dbt-sync", json=body).status_code == 200
        platform.control.wait_until(lambda state: all(sync.ended_at for sync in state.syncs))
        assert "nightly" in platform.control.branches()
        for method, path in (
            ("GET", "deployments/1/build-status"),
            ("GET", "deployments/1/settings"),
            ("GET", "deployments/1/logs"),
            ("GET", "deployments/1/dbt-sync"),
            ("GET", "spec"),
        ):
            response = platform.call(method, path)
            assert (response.status_code, response.text[:9]) == (200, "<!doctype")
        assert build(platform, "GET", "branches").text[:9] == "<!doctype"
        assert staging(platform, "nightly").text[:9] == "<!doctype"


class TestControl:
    def test_a_branch_can_be_added_opened_and_closed_from_outside(self, platform: Platform) -> None:
        platform.control.add_branch("a", deployment=2)
        assert (platform.control.branches(), platform.control.branches(2)) == (
            ["dev", "main"],
            ["a", "dev", "master"],
        )
        platform.control.set(build_delay=60, build_seconds=60)
        platform.control.open_branch("b")
        assert sql(platform, "b").status_code == 200
        assert staging(platform, "b", enabled=False).status_code == 200
        assert refused(sql(platform, "b")) == (400, "Branch is not active")
        platform.control.add_branch("c", compiles=False)
        platform.control.open_branch("c")
        assert status(platform, "c")["status"] == "failed"
        for refused_call in (
            lambda: platform.control.open_branch("main"),
            lambda: platform.control.add_branch("a", deployment=3),
        ):
            with pytest.raises(SandboxControlError):
                refused_call()


@pytest.mark.parametrize("name", ["main", "dev"])
def test_writing_an_open_branch_again_builds_other_files(platform: Platform, name: str) -> None:
    hashes = []
    for _ in range(3):
        report = status(platform, name)
        assert report["status"] == "built"
        hashes.append((report["lastHash"], report["filesHash"], report["buildJobId"]))
        assert status(platform, name) == report
        platform.control.add_branch(name)
    assert [len(set(column)) for column in zip(*hashes, strict=True)] == [3, 3, 3]
