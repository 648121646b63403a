"""A branch is opened as the tenant supports it, found at its address, and closed again."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.data_api.query import SqlQuery, find_address
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    BranchUnsupportedError,
    DevModeBusyError,
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformServerError,
)
from airflow_provider_platform.client.http.api_errors import management_error
from airflow_provider_platform.client.management.data_model.branches import (
    set_branch_staging_environment,
    start_dev_mode,
)
from airflow_provider_platform.client.management.data_model.open_and_close import (
    NothingToClose,
    OpenedBranch,
    branch_address_beside,
    close_branch,
    find_branch_address,
    find_opened_address,
    open_branch,
)
from airflow_provider_platform.client.management.deployments.deployments import get_build_status
from tests.unit.client.fakes.played_branches import MISSING, PlayedBranches

BRANCH = "dbt-sync/main-1"
FORK = "dev-dbt-sync-main-1"
FORBIDDEN = PlatformPermissionError("not allowed", status=403)
HOST = "https://acme.example.com"


def opened(tenant: PlayedBranches, environment: str, branch_name: str = BRANCH) -> OpenedBranch:
    return tenant.run(open_branch(1, branch_name, environment))


def closed(tenant: PlayedBranches, environment: str, branch_name: str = BRANCH) -> Any:
    return tenant.run(close_branch(1, branch_name, environment))


class TestOpen:
    @pytest.mark.parametrize("environment", ["staging", "if_supported"])
    def test_staging_is_switched_on_under_the_branchs_own_name(self, environment: str) -> None:
        tenant = PlayedBranches()
        assert opened(tenant, environment) == OpenedBranch(
            BRANCH, BRANCH, "staging", "c0ffee", "c0ffee"
        )
        assert tenant.switched_on == {BRANCH}
        assert len(tenant.calls) == 1

    def test_dev_mode_returns_the_forks_name(self) -> None:
        tenant = PlayedBranches()
        assert opened(tenant, "dev_mode") == OpenedBranch(FORK, BRANCH, "dev_mode")
        assert tenant.switched_on == set()

    def test_dev_mode_on_another_branch_is_not_replaced(self) -> None:
        tenant = PlayedBranches(branches={BRANCH: "main", "other": "main"})
        fork = opened(tenant, "dev_mode", "other").branch_name
        with pytest.raises(DevModeBusyError, match=f"another branch, {fork}") as raised:
            tenant.run(open_branch(1, BRANCH, "dev_mode", replaces=False))
        assert (raised.value.retryable, tenant.dev_mode) == (True, fork)
        assert tenant.run(open_branch(1, "other", "dev_mode", replaces=False)).branch_name == fork

    def test_dev_mode_that_another_run_enters_in_the_same_moment_is_noticed(self) -> None:
        tenant = PlayedBranches(branches={BRANCH: "main", "dev-other": "other"})
        program = open_branch(1, BRANCH, "dev_mode", replaces=False)

        def interleaved() -> Any:
            """The program, and another run that enters right after it."""
            effect = next(program)
            while True:
                outcome = yield effect
                if getattr(effect, "operation", None) is not None:
                    name = effect.operation.operation_id
                    if name == "startDevMode":
                        tenant.dev_mode = "dev-other"
                effect = program.send(outcome)

        with pytest.raises(DevModeBusyError, match="another branch, dev-other"):
            tenant.run(interleaved())

    @pytest.mark.parametrize("missing", MISSING)
    def test_a_tenant_without_staging_opens_in_dev_mode(self, missing: str) -> None:
        tenant = PlayedBranches(staging=False, missing=missing)
        assert opened(tenant, "if_supported") == OpenedBranch(FORK, BRANCH, "dev_mode")

    @pytest.mark.parametrize("missing", MISSING)
    def test_a_tenant_with_neither_opens_nothing(self, missing: str) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, missing=missing)
        assert opened(tenant, "if_supported") == OpenedBranch(BRANCH, BRANCH, None)

    @pytest.mark.parametrize("missing", MISSING)
    @pytest.mark.parametrize("environment", ["staging", "dev_mode"])
    def test_chosen_environment_that_is_missing_is_an_error(
        self, missing: str, environment: str
    ) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, missing=missing)
        with pytest.raises(BranchUnsupportedError, match="release v0"):
            opened(tenant, environment)

    def test_missing_staging_suggests_dev_mode(self) -> None:
        with pytest.raises(BranchUnsupportedError, match="environment='dev_mode'"):
            opened(PlayedBranches(staging=False), "staging")

    @pytest.mark.parametrize("staging", [True, False])
    @pytest.mark.parametrize("environment", ["staging", "dev_mode", "if_supported"])
    def test_unknown_branch_is_not_reported_as_a_missing_operation(
        self, staging: bool, environment: str
    ) -> None:
        with pytest.raises(
            BranchNotWrittenError,
            match=r"No branch has this name.*\(branch nowhere, deployment 1\)",
        ):
            opened(PlayedBranches(staging=staging), environment, "nowhere")

    def test_unknown_deployment_is_not_reported_as_a_missing_operation(self) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, deployment=False)
        with pytest.raises(PlatformNotFoundError):
            opened(tenant, "if_supported")

    @pytest.mark.parametrize("environment", ["staging", "dev_mode", "if_supported"])
    def test_wrong_address_is_not_reported_as_a_missing_operation(self, environment: str) -> None:
        tenant = PlayedBranches(
            staging=False,
            build_api=False,
            missing="HTML",
            faults={"getReports": [MISSING["HTML"]]},
        )
        with pytest.raises(PlatformAddressError):
            opened(tenant, environment)

    def test_missing_staging_and_dev_mode_are_both_named(self) -> None:
        tenant = PlayedBranches(staging=False, build_api=False)
        with pytest.raises(BranchUnsupportedError, match="no dev mode either"):
            opened(tenant, "staging")

    @pytest.mark.parametrize(
        "error", [FORBIDDEN, PlatformBadRequestError("not a shared branch", status=400)]
    )
    def test_refused_request_is_not_reported_as_a_missing_operation(
        self, error: PlatformError
    ) -> None:
        tenant = PlayedBranches(faults={"setBranchStagingEnvironment": [error]})
        with pytest.raises(type(error)):
            opened(tenant, "if_supported")
        assert tenant.dev_mode is None

    @given(st.sampled_from(["staging", "dev_mode", "if_supported"]), st.booleans())
    def test_opening_again_changes_nothing(self, environment: str, staging: bool) -> None:
        tenant = PlayedBranches(staging=staging or environment == "staging")
        first = opened(tenant, environment)
        state = (set(tenant.switched_on), tenant.dev_mode, dict(tenant.branches))
        assert opened(tenant, environment) == first
        assert (tenant.switched_on, tenant.dev_mode, tenant.branches) == state

    def test_dev_mode_without_a_fork_is_refused(self) -> None:
        tenant = PlayedBranches()
        tenant._body_of = lambda _: {"active": True}  # type: ignore[method-assign]
        with pytest.raises(PlatformProtocolError, match="did not return the name of the fork"):
            opened(tenant, "dev_mode")

    def test_a_lost_answer_may_be_repeated(self) -> None:
        assert start_dev_mode().repeatable

    @pytest.mark.parametrize(
        ("operation", "permission"),
        [
            (start_dev_mode(deployment_id=1), "SchemaUpdateDevBranches"),
            (get_build_status(deployment_id=1), "DeploymentRead"),
        ],
    )
    def test_error_403_names_the_missing_permission(self, operation: Any, permission: str) -> None:
        error = management_error(operation, 403, {}, b"{}", now=0.0)
        assert permission in error.message
        assert set_branch_staging_environment.permission == start_dev_mode.permission


class TestClose:
    @given(
        st.sampled_from(["staging", "dev_mode", "if_supported"]),
        st.sampled_from(["same", "if_supported"]),
        st.booleans(),
    )
    def test_opened_branch_is_closed_once(self, way: str, closing: str, by_fork: bool) -> None:
        tenant = PlayedBranches()
        found = opened(tenant, way)
        name = found.branch_name if by_fork else found.opened_branch
        environment = str(found.environment) if closing == "same" else closing
        assert closed(tenant, environment, name) is None
        assert (tenant.switched_on, tenant.dev_mode) == (set(), None)
        if environment != "staging":
            tenant.staging = False
            assert isinstance(closed(tenant, environment, name), NothingToClose)

    @pytest.mark.parametrize("environment", ["staging", "if_supported"])
    def test_a_branch_that_is_gone_is_closed(self, environment: str) -> None:
        assert isinstance(closed(PlayedBranches(), environment, "gone"), NothingToClose)

    @pytest.mark.parametrize("status", [400, 404])
    def test_dev_mode_that_was_left_already_is_closed(self, status: int) -> None:
        kind = {400: PlatformBadRequestError, 404: PlatformNotFoundError}[status]
        tenant = PlayedBranches(faults={"stopDevMode": [kind("no session", status=status)]})
        assert isinstance(closed(tenant, "dev_mode"), NothingToClose)

    @pytest.mark.parametrize("environment", ["dev_mode", "if_supported"])
    def test_the_dev_mode_of_another_branch_stays_open(self, environment: str) -> None:
        tenant = PlayedBranches(branches={BRANCH: "main", "theirs": "main"}, staging=False)
        opened(tenant, "dev_mode", "theirs")
        assert "dev-theirs" in closed(tenant, environment).reason
        assert tenant.dev_mode == "dev-theirs"

    @pytest.mark.parametrize("missing", MISSING)
    @pytest.mark.parametrize("environment", ["staging", "dev_mode", "if_supported"])
    def test_a_tenant_with_neither_has_nothing_to_close(
        self, environment: str, missing: str
    ) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, missing=missing)
        tenant.faults["buildStatus"] = [MISSING[missing]]
        assert isinstance(closed(tenant, environment), NothingToClose)

    @pytest.mark.parametrize("environment", ["staging", "dev_mode", "if_supported"])
    def test_wrong_address_closes_nothing_and_raises_an_error(self, environment: str) -> None:
        html = MISSING["HTML"]
        tenant = PlayedBranches(
            staging=False,
            build_api=False,
            missing="HTML",
            faults={"getReports": [html], "buildStatus": [html]},
        )
        with pytest.raises(PlatformAddressError):
            closed(tenant, environment)

    @pytest.mark.parametrize("environment", ["staging", "dev_mode", "if_supported"])
    def test_unknown_deployment_closes_nothing_and_raises_an_error(self, environment: str) -> None:
        tenant = PlayedBranches(staging=False, build_api=False, deployment=False)
        tenant.faults["buildStatus"] = [MISSING["404"]]
        with pytest.raises(PlatformNotFoundError):
            closed(tenant, environment)

    @pytest.mark.parametrize(
        ("environment", "operation"),
        [
            ("staging", "setBranchStagingEnvironment"),
            ("if_supported", "setBranchStagingEnvironment"),
            ("dev_mode", "stopDevMode"),
            ("dev_mode", "buildStatus"),
        ],
    )
    @pytest.mark.parametrize("error", [FORBIDDEN, PlatformServerError("down", status=503)])
    def test_failure_to_close_a_branch_is_raised(
        self, environment: str, operation: str, error: PlatformError
    ) -> None:
        tenant = PlayedBranches(faults={operation: [error]})
        if operation == "buildStatus" and error is FORBIDDEN:
            return  # who may not read it leaves dev mode all the same
        with pytest.raises(type(error)):
            closed(tenant, environment)

    def test_dev_mode_is_left_without_permission_to_read_the_build_status(self) -> None:
        tenant = PlayedBranches()
        opened(tenant, "dev_mode")
        tenant.faults["buildStatus"] = [FORBIDDEN]
        assert closed(tenant, "dev_mode") is None
        assert tenant.dev_mode is None


def listed(branch: str, url: str | None) -> dict[str, Any]:
    credentials = [
        {"type": "sql", "version": 1, "host": "sql.example.com", "port": 5432},
        {"type": "rest", "version": 1, "url": url},
    ]
    return {"id": branch, "type": "staging", "branch": branch, "api_credentials": credentials}


def address(tenant: PlayedBranches, branch: str = BRANCH, **options: Any) -> str:
    return tenant.run(find_branch_address(1, branch, **{"allow_http": False, **options}))


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
        assert address(PlayedBranches(), FORK) == f"{HOST}/dev-mode/{FORK}/cubejs-api"

    @pytest.mark.parametrize("error", [*MISSING.values(), FORBIDDEN])
    def test_address_is_built_if_the_list_cannot_be_read(self, error: PlatformError) -> None:
        tenant = PlayedBranches(faults={"getDeploymentEnvironments": [error]})
        assert address(tenant, FORK) == f"{HOST}/dev-mode/{FORK}/cubejs-api"

    def test_address_is_built_if_the_environment_has_none(self) -> None:
        tenant = PlayedBranches(environments=[listed("feature", None)])
        assert address(tenant, "feature") == f"{HOST}/dev-mode/feature/cubejs-api"

    @pytest.mark.parametrize("url", ["http://acme.example.com/x", "https://u:p@acme.example.com/x"])
    def test_address_in_a_response_is_checked_like_a_setting(self, url: str) -> None:
        with pytest.raises(PlatformConfigError):
            address(PlayedBranches(environments=[listed(BRANCH, url)]))

    @pytest.mark.parametrize("ending", ["", "/cubejs-api", "/cubejs-api/v1"])
    def test_address_is_built_next_to_the_data_api_of_the_connection(self, ending: str) -> None:
        found = address(PlayedBranches(), FORK, data_api_url=f"https://data.example.com{ending}")
        assert found == f"https://data.example.com/dev-mode/{FORK}/cubejs-api"

    @pytest.mark.parametrize("ending", ["/cubejs-api", "/cubejs-api/v1"])
    def test_data_api_of_the_connection_may_have_a_path_before_it(self, ending: str) -> None:
        """As the address of a deployment may: what is built is the same with both."""
        root = f"{HOST}/deployments/1"
        expected = address(PlayedBranches(deployment_url=root), FORK)
        assert address(PlayedBranches(), FORK, data_api_url=f"{root}{ending}") == expected

    def test_listed_address_is_used_before_the_data_api_of_the_connection(self) -> None:
        tenant = PlayedBranches(environments=[listed(BRANCH, self.URL)])
        found = address(tenant, data_api_url="https://data.example.com/custom")
        assert found == self.URL.removesuffix("/v1")

    def test_no_address_is_built_next_to_an_unusual_path(self) -> None:
        with pytest.raises(PlatformInputError, match=r"data_api_url.*does not end in /cubejs-api"):
            branch_address_beside("https://data.example.com/custom", FORK)

    def test_unknown_deployment_address_gives_none(self) -> None:
        config = PlatformConfig.build(host=f"{HOST}/api", management_token="t")
        fork = OpenedBranch(FORK, BRANCH, "dev_mode")
        tenant = PlayedBranches(deployment_url=None)
        assert tenant.run(find_opened_address(fork, 1, config)) is None
        tenant = PlayedBranches(faults={"getDeployment": [FORBIDDEN]})
        assert tenant.run(find_opened_address(fork, 1, config)) is None

    def test_query_without_the_management_api_is_sent_next_to_the_data_api(self) -> None:
        config = PlatformConfig.build(
            chat_url=f"{HOST}/agents/1/chat",
            chat_api_key="k",
            data_api_url="https://data.example.com",
            session_settings={"externalId": "a"},
        )
        query = SqlQuery.build("SELECT 1", deployment_id=None, deadline=1.0, branch_name=FORK)
        tenant = PlayedBranches()
        found = tenant.run(find_address(query, config))
        assert found == f"https://data.example.com/dev-mode/{FORK}/cubejs-api/v1/cubesql"
        assert tenant.calls == []
