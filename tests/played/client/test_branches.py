"""A branch is opened and closed as the tenant supports it, found at its address, and deleted."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.argument_rules import check_branch_name
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    OperationMissingError,
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformServerError,
)
from airflow_provider_platform.client.failed_calls import management_error
from airflow_provider_platform.resources.branches import (
    branch_address_beside,
    close_branch,
    find_branch_address,
    find_opened_address,
    is_open,
    open_branch,
    set_branch_staging_environment,
)
from airflow_provider_platform.resources.deployments import get_build_status
from airflow_provider_platform.resources.sql.query import SqlQuery, find_address
from tests.support.fakes.effects import API, api_with
from tests.support.fakes.played_branches import MISSING, PlayedBranches

BRANCH = "dbt-sync/main-1"
OTHER = "feature"
FORBIDDEN = PlatformPermissionError("not allowed", status=403)
HOST = "https://acme.example.com"


def opened(tenant: PlayedBranches, branch_name: str = BRANCH) -> str | None:
    found: str | None = tenant.run(open_branch(API, 1, branch_name))
    return found


def closed(tenant: PlayedBranches, branch_name: str = BRANCH) -> str | None:
    """Why nothing was closed."""
    found: str | None = tenant.run(close_branch(API, 1, branch_name))
    return found


class TestOpen:
    def test_opening_switches_staging_on_and_returns_the_commit(self) -> None:
        tenant = PlayedBranches()
        assert tenant.run(is_open(API, 1, BRANCH)) is False
        assert opened(tenant) == "c0ffee"
        assert tenant.switched_on == {BRANCH}
        assert tenant.run(is_open(API, 1, BRANCH)) is True

    @pytest.mark.parametrize("build_api", [False, True])
    @pytest.mark.parametrize("missing", MISSING)
    def test_tenant_without_staging_is_named(self, missing: str, build_api: bool) -> None:
        tenant = PlayedBranches(staging=False, build_api=build_api, missing=missing)
        with pytest.raises(OperationMissingError, match="does not have the operation"):
            opened(tenant)

    @pytest.mark.parametrize("staging", [True, False])
    @pytest.mark.parametrize("program", [is_open, open_branch])
    def test_unknown_branch_is_not_reported_as_a_missing_operation(
        self, program: Any, staging: bool
    ) -> None:
        with pytest.raises(
            BranchNotWrittenError,
            match=r"No branch has this name.*\(branch nowhere, deployment 1\)",
        ):
            PlayedBranches(staging=staging).run(program(API, 1, "nowhere"))

    def test_unknown_deployment_is_not_reported_as_a_missing_operation(self) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, deployment=False)
        with pytest.raises(PlatformNotFoundError):
            opened(tenant)

    def test_wrong_address_is_not_reported_as_a_missing_operation(self) -> None:
        tenant = PlayedBranches(
            staging=False,
            build_api=False,
            missing="HTML",
            faults={"getReports": [MISSING["HTML"]]},
        )
        with pytest.raises(PlatformAddressError):
            opened(tenant)

    @pytest.mark.parametrize(
        "error", [FORBIDDEN, PlatformBadRequestError("not a shared branch", status=400)]
    )
    def test_refused_request_is_not_reported_as_a_missing_operation(
        self, error: PlatformError
    ) -> None:
        tenant = PlayedBranches(faults={"setBranchStagingEnvironment": [error]})
        with pytest.raises(type(error)):
            opened(tenant)

    @pytest.mark.parametrize(
        ("operation", "permission"),
        [
            (
                set_branch_staging_environment(
                    deployment_id=1,
                    body={"enabled": True, "branchName": "b"},
                ),
                "SchemaUpdateDevBranches",
            ),
            (get_build_status(deployment_id=1), "DeploymentRead"),
        ],
    )
    def test_error_403_names_the_missing_permission(self, operation: Any, permission: str) -> None:
        error = management_error(operation, 403, {}, b"{}", now=0.0)
        assert permission in error.message


class TestClose:
    def test_opened_branch_is_closed(self) -> None:
        tenant = PlayedBranches()
        opened(tenant)
        assert closed(tenant) is None
        assert tenant.switched_on == set()

    def test_a_branch_that_is_gone_is_closed(self) -> None:
        assert "no longer exists" in str(closed(PlayedBranches(), "gone"))

    @pytest.mark.parametrize("build_api", [False, True])
    @pytest.mark.parametrize("missing", MISSING)
    def test_tenant_without_staging_has_nothing_to_close(
        self, missing: str, build_api: bool
    ) -> None:
        tenant = PlayedBranches(staging=False, build_api=build_api, missing=missing)
        assert "no staging environments" in str(closed(tenant))

    @pytest.mark.parametrize(
        "error", [FORBIDDEN, PlatformServerError("down", status=503), *MISSING.values()]
    )
    def test_failure_to_close_a_branch_is_raised(self, error: PlatformError) -> None:
        tenant = PlayedBranches(
            faults={"setBranchStagingEnvironment": [error]}, switched_on={BRANCH}
        )
        with pytest.raises(type(error)):
            closed(tenant)


class TestNames:
    @pytest.mark.parametrize(
        "name",
        ["..", ".", "a/../b", "../main", "/a", "a/", "a//b", "", "a b", "a\\b", "a?b", "a.lock",
         ".a", "a..b", "a@{b", "@", "-a", "a\n", "a\u202eb"],
    )  # fmt: skip
    def test_name_that_no_branch_has_is_refused_wherever_it_goes_into_an_address(
        self, name: str
    ) -> None:
        for call in (
            lambda: check_branch_name(name),
            lambda: branch_address_beside("https://data.example.com", name),
            lambda: address(PlayedBranches(), name),
        ):
            with pytest.raises(PlatformInputError, match="cannot be a branch name"):
                call()

    @pytest.mark.parametrize("name", ["dbt-sync/main-1", "feature/#12+3", "nightly_2026.11.24"])
    def test_name_of_a_branch_is_accepted(self, name: str) -> None:
        assert check_branch_name(name) == name

    def test_run_id_is_refused_with_its_character_and_a_name_to_use(self) -> None:
        with pytest.raises(PlatformInputError, match=r"the character ':' is not.*ts_nodash"):
            check_branch_name("feature-manual__2026-11-24T04:01:10+00:00")


def listed(branch: str, url: str | None) -> dict[str, Any]:
    credentials = [
        {"type": "sql", "version": 1, "host": "sql.example.com", "port": 5432},
        {"type": "rest", "version": 1, "url": url},
    ]
    return {"id": branch, "type": "staging", "branch": branch, "api_credentials": credentials}


def address(tenant: PlayedBranches, branch: str = BRANCH, **options: Any) -> str:
    api = api_with(
        lambda: 0.0, PlatformConfig.build(host=f"{HOST}/api", management_token="t", **options)
    )
    return tenant.run(find_branch_address(api, 1, branch))


class TestAddress:
    URL = f"{HOST}/dev-mode/dbt-sync/main-1/cubejs-api/v1"

    def test_address_from_the_services_list_is_used_first(self) -> None:
        environments = [listed("other", f"{HOST}/other"), listed(BRANCH, self.URL)]
        tenant = PlayedBranches(environments=environments)
        assert address(tenant) == self.URL.removesuffix("/v1")
        assert tenant.operations[0].query == {"type": "staging"}
        assert len(tenant.calls) == 1

    def test_a_branch_that_is_not_listed_has_its_name_as_one_segment(self) -> None:
        assert address(PlayedBranches()) == f"{HOST}/dev-mode/dbt-sync%2Fmain-1/cubejs-api"
        assert address(PlayedBranches(), OTHER) == f"{HOST}/dev-mode/{OTHER}/cubejs-api"

    @pytest.mark.parametrize("error", [*MISSING.values(), FORBIDDEN])
    def test_address_is_built_if_the_list_cannot_be_read(self, error: PlatformError) -> None:
        tenant = PlayedBranches(faults={"getDeploymentEnvironments": [error]})
        assert address(tenant, OTHER) == f"{HOST}/dev-mode/{OTHER}/cubejs-api"

    def test_list_that_cannot_be_read_for_now_gives_no_other_address(self) -> None:
        down = PlatformServerError("down", status=503)
        with pytest.raises(PlatformServerError):
            address(PlayedBranches(faults={"getDeploymentEnvironments": [down]}), OTHER)

    @pytest.mark.parametrize("credentials", [{}, {"api_credentials": None}])
    def test_address_is_built_if_the_environment_has_none(
        self, credentials: dict[str, None]
    ) -> None:
        tenant = PlayedBranches(environments=[{**listed("feature", None), **credentials}])
        assert address(tenant, "feature") == f"{HOST}/dev-mode/feature/cubejs-api"

    @pytest.mark.parametrize("url", ["http://acme.example.com/x", "https://u:p@acme.example.com/x"])
    def test_address_in_a_response_is_checked_like_a_setting(self, url: str) -> None:
        with pytest.raises(PlatformConfigError):
            address(PlayedBranches(environments=[listed(BRANCH, url)]))

    @pytest.mark.parametrize("ending", ["", "/cubejs-api", "/cubejs-api/v1"])
    def test_address_is_built_next_to_the_data_api_of_the_connection(self, ending: str) -> None:
        found = address(PlayedBranches(), OTHER, data_api_url=f"https://data.example.com{ending}")
        assert found == f"https://data.example.com/dev-mode/{OTHER}/cubejs-api"

    def test_no_address_is_built_next_to_an_unusual_path(self) -> None:
        with pytest.raises(PlatformInputError, match=r"data_api_url.*does not end in /cubejs-api"):
            branch_address_beside("https://data.example.com/custom", OTHER)

    def test_unknown_deployment_address_gives_none(self) -> None:
        config = PlatformConfig.build(host=f"{HOST}/api", management_token="t")
        tenant = PlayedBranches(deployment_url=None)
        assert tenant.run(find_opened_address(api_with(tenant.clock, config), 1, OTHER)) is None
        tenant = PlayedBranches(faults={"getDeployment": [FORBIDDEN]})
        assert tenant.run(find_opened_address(api_with(tenant.clock, config), 1, OTHER)) is None

    def test_query_without_the_management_api_is_sent_next_to_the_data_api(self) -> None:
        config = PlatformConfig.build(
            chat_url=f"{HOST}/agents/1/chat",
            chat_api_key="k",
            data_api_url="https://data.example.com",
            session_settings={"externalId": "a"},
        )
        query = SqlQuery("SELECT 1", deployment_id=None, deadline=1.0, branch_name=OTHER)
        tenant = PlayedBranches()
        found = tenant.run(find_address(api_with(tenant.clock, config), query))
        assert found == f"https://data.example.com/dev-mode/{OTHER}/cubejs-api/v1/cubesql"
        assert tenant.calls == []
