"""Waiting for a branch until it is built, with every status in between."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    BranchClosedError,
    BranchNotActiveError,
    BranchNotFoundError,
    BranchNotServedError,
    BuildFailedError,
    OperationMissingError,
    PlatformAddressError,
    PlatformDeadlineError,
)
from airflow_provider_platform.client.polling import (
    NOT_FOUND_GRACE,
    PollInterval,
    Wait,
    poll_until,
)
from airflow_provider_platform.resources.branch_opening import BranchRunKind
from airflow_provider_platform.resources.builds import (
    ACTIVATION_GRACE,
    Build,
    BuildWanted,
    not_built,
    poll_build,
    report_unbuilt,
)
from airflow_provider_platform.resources.run_kind import RunEnvironment
from airflow_provider_platform.resources.sensor_conditions import Condition
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_branches import BUILT, PlayedBranches
from tests.support.fakes.played_tenant import NO_ANSWER, NOON

FORK = "dev-ada-1"
INACTIVE = {"status": "building", "errorText": "Error: Branch is not active. Enter dev mode."}
INTERVAL = 5.0
LATENCY = 0.1


def waiting(
    tenant: PlayedBranches, *, seconds: float = 900.0, opened: bool = False, **wanted: Any
) -> Build:
    build = BuildWanted(1, FORK, opened_at=NOON if opened else None, **wanted)
    env = RunEnvironment(NOON + seconds, INTERVAL)
    return tenant.run(Waiting(wanted=build).follow(api_with(tenant.clock), env, {}))


class Waiting(BranchRunKind):
    """A wait for a build, without a branch that was opened before it."""

    wanted: BuildWanted

    async def poll(self, api: Any, ids: dict[str, Any]) -> Build | None:
        return report_unbuilt(api, await poll_build(api, self.wanted))

    def overdue(self, ids: dict[str, Any], last: Any) -> PlatformDeadlineError:
        return not_built(self.wanted, last)


def tenant_with(*builds: dict[str, Any], **options: Any) -> PlayedBranches:
    """A tenant that gives these build statuses, the last one for ever."""
    return PlayedBranches(builds=list(builds), **options)


def lines(tenant: PlayedBranches) -> list[str]:
    return [str(event) for event in tenant.events]


class TestStatus:
    def test_a_built_branch_ends_the_wait_with_its_commit(self) -> None:
        tenant = tenant_with({"status": "building"}, {**BUILT, "lastHash": "abc"})
        assert waiting(tenant) == Build("built", "abc", "dev_mode")

    @given(st.lists(st.text(max_size=12), max_size=8))
    def test_unknown_build_status_means_that_the_build_continues(self, statuses: list[str]) -> None:
        ends = {"built", "failed", "cancelled", "none", "stopped"}
        going = [{"status": status} for status in statuses if status not in ends]
        assert waiting(tenant_with(*going, BUILT)).status == "built"

    @pytest.mark.parametrize("status", ["failed", "cancelled"])
    def test_a_build_that_ended_otherwise_fails_with_the_services_text(self, status: str) -> None:
        tenant = tenant_with({"status": status, "errorText": "orders.yml: no such column"})
        with pytest.raises(BuildFailedError, match=f"{status}: orders.yml: no such column"):
            waiting(tenant)

    def test_every_call_names_the_branch(self) -> None:
        tenant = tenant_with({"status": "building"}, {"status": "none"}, BUILT)
        waiting(tenant, opened=True)
        assert [operation.query for operation in tenant.operations] == [{"branchName": FORK}] * 3

    def test_a_build_that_takes_too_long_is_reported_with_its_last_status(self) -> None:
        tenant = tenant_with({"status": "warmup", "errorText": "still loading"})
        with pytest.raises(
            PlatformDeadlineError, match=r"last status of the build was warmup.*still loading"
        ):
            waiting(tenant)

    def test_each_change_is_reported_once(self) -> None:
        building = {"status": "building"}
        waiting(tenant := tenant_with(building, building, {"status": "warmup"}, building, BUILT))
        statuses = [line.removesuffix(f" (branch {FORK})") for line in lines(tenant)]
        assert statuses == [
            "Build status: building",
            "Build status: warmup",
            "Build status: building",
        ]


class TestErrorText:
    @pytest.mark.parametrize("status", ["building", "built", "failed", "none"])
    @pytest.mark.parametrize("opened", [False, True])
    def test_bad_branch_ends_the_wait_at_once(self, status: str, opened: bool) -> None:
        tenant = tenant_with(
            {"status": status, "errorText": "BadRequestError: Bad branch (x)"}, BUILT
        )
        with pytest.raises(BranchNotFoundError, match="Bad branch"):
            waiting(tenant, opened=opened)
        assert len(tenant.calls) == 1

    def test_error_text_inside_an_object_is_found(self) -> None:
        tenant = tenant_with({"status": "building", "errorText": {"message": "Bad branch"}}, BUILT)
        with pytest.raises(BranchNotFoundError, match="Bad branch"):
            waiting(tenant)

    def test_wait_for_an_inactive_branch_fails_at_once(self) -> None:
        tenant = tenant_with(INACTIVE, BUILT)
        with pytest.raises(BranchNotActiveError, match="PlatformOpenBranchOperator"):
            waiting(tenant)
        assert len(tenant.calls) == 1

    def test_an_inactive_branch_is_tolerated_right_after_we_opened_it(self) -> None:
        tenant = tenant_with(*[INACTIVE] * 10, BUILT)
        assert waiting(tenant, opened=True).status == "built"

    def test_a_branch_that_stays_inactive_fails_after_the_grace_time(self) -> None:
        tenant = tenant_with(INACTIVE)
        with pytest.raises(BranchClosedError, match="opened more than 60 seconds ago"):
            waiting(tenant, opened=True)
        assert ACTIVATION_GRACE <= tenant.now - NOON < ACTIVATION_GRACE + 2 * INTERVAL

    def test_wait_continues_and_shows_any_other_error_text(self) -> None:
        tenant = tenant_with({"status": "building", "errorText": "yesterday's failure"}, BUILT)
        assert waiting(tenant).status == "built"
        assert "yesterday's failure" in lines(tenant)[0]


class TestIdle:
    @given(
        st.lists(
            st.tuples(
                st.sampled_from(["none", "stopped", "building", "warmup"]),
                st.integers(min_value=1, max_value=20),
            ),
            max_size=6,
        )
    )
    def test_a_branch_without_a_build_is_tolerated_for_a_minute_in_a_row(
        self, stages: list[tuple[str, int]]
    ) -> None:
        polls = [status for status, count in stages for _ in range(count)]
        in_a_row, longest = 0, 0
        for status in polls:
            in_a_row = in_a_row + 1 if status in {"none", "stopped"} else 0
            longest = max(longest, in_a_row)
        fails = (longest - 1) * (INTERVAL + LATENCY) >= NOT_FOUND_GRACE
        tenant = tenant_with(*[{"status": status} for status in polls], BUILT)
        try:
            waiting(tenant)
        except BranchNotServedError:
            assert fails
        else:
            assert not fails

    def test_transient_failures_do_not_reset_the_minute(self) -> None:
        tenant = tenant_with({"status": "none"})
        tenant.faults["buildStatus"] = [None, NO_ANSWER] * 50
        with pytest.raises(BranchNotServedError):
            waiting(tenant)
        assert tenant.now - NOON < NOT_FOUND_GRACE + 3 * INTERVAL


class TestCommit:
    OLD: ClassVar[dict[str, Any]] = {"lastHash": "old"}
    NEW: ClassVar[dict[str, Any]] = {"lastHash": "new"}

    def test_a_wanted_commit_is_waited_for(self) -> None:
        tenant = tenant_with(
            {**BUILT, **self.OLD}, {"status": "building", **self.NEW}, {**BUILT, **self.NEW}
        )
        assert waiting(tenant, hash="new").hash == "new"
        assert "of commit old" in lines(tenant)[0]

    def test_wait_continues_after_the_failed_build_of_another_commit(self) -> None:
        tenant = tenant_with({"status": "failed", **self.OLD}, {**BUILT, **self.NEW})
        assert waiting(tenant, hash="new").hash == "new"

    def test_failed_build_of_the_wanted_commit_ends_the_wait(self) -> None:
        with pytest.raises(BuildFailedError):
            waiting(tenant_with({"status": "failed", **self.NEW}, BUILT), hash="new")

    def test_build_status_without_a_commit_counts(self) -> None:
        assert waiting(tenant_with({**BUILT, "lastHash": None}), hash="new").hash is None

    def test_build_of_another_commit_is_accepted_after_the_grace_time(self) -> None:
        tenant = tenant_with({**BUILT, "lastHash": "newer"})
        assert waiting(tenant, hash="new", opened=True).hash == "newer"
        assert ACTIVATION_GRACE <= tenant.now - NOON < ACTIVATION_GRACE + 2 * INTERVAL


class TestLog:
    FAILED: ClassVar[dict[str, Any]] = {"status": "failed", "errorText": "Compile errors"}

    @pytest.mark.parametrize(
        "log",
        [
            "one\ntwo\nthree\nfour",
            ["one", "two", "three", "four"],
            {"items": [{"message": text} for text in ("one", "two", "three", "four")]},
            {"logs": "one\ntwo\nthree\nfour"},
            {"data": {"lines": [{"log": "one"}, {"text": "two"}, {"line": "three\nfour"}]}},
        ],
    )
    def test_the_error_of_a_failed_build_ends_with_its_log(self, log: Any) -> None:
        tenant = tenant_with(self.FAILED, log=log)
        with pytest.raises(
            BuildFailedError, match=r"Compile errors.*ends with: two \| three \| four"
        ):
            waiting(tenant)
        assert lines(tenant) == [f"build log: {text}" for text in ("one", "two", "three", "four")]

    @pytest.mark.parametrize("log", [None, "", [], {}, {"items": None}, 7, {"items": [7, None]}])
    def test_a_tenant_without_a_log_fails_the_same_way(self, log: Any) -> None:
        with pytest.raises(BuildFailedError, match="Compile errors"):
            waiting(tenant_with(self.FAILED, log=log))

    @pytest.mark.parametrize(
        ("mode", "source"), [("production", "production"), ("dev_mode", "dev")]
    )
    def test_the_log_is_that_of_the_environment(self, mode: str, source: str) -> None:
        tenant = tenant_with({**self.FAILED, "mode": mode}, log="x")
        with pytest.raises(BuildFailedError):
            waiting(tenant)
        assert tenant.operations[-1].query["source"] == source


class TestCondition:
    """What the sensor polls."""

    CONFIG = PlatformConfig.build(host="https://acme.example.com/api", management_token="t")

    def seen(self, tenant: PlayedBranches, **subject: Any) -> Any:
        condition = Condition(
            "build", {"branch_name": FORK, "hash": None, "deployment_id": 1, **subject}
        )
        program = poll_until(
            api_with(tenant.clock, self.CONFIG),
            condition.poll,
            Wait(NOON + 900.0, PollInterval(INTERVAL), grace=condition.may_be_late),
        )
        return tenant.run(program)

    def test_sensor_returns_the_built_branch(self) -> None:
        found = self.seen(tenant_with({"status": "none"}, {**BUILT, "lastHash": "abc"}))
        assert found == {
            "branch_name": FORK,
            "status": "built",
            "hash": "abc",
            "mode": "dev_mode",
        }

    def test_sleeping_branch_is_woken_by_one_request_to_its_data_api(self) -> None:
        tenant = tenant_with(BUILT, asleep=True)
        assert self.seen(tenant)["status"] == "built"
        assert tenant.woken == [f"https://acme.example.com/dev-mode/{FORK}/cubejs-api/v1/cubesql"]

    def test_production_without_a_build_gets_no_request(self) -> None:
        tenant = tenant_with({"status": "stopped", "mode": "production"})
        with pytest.raises(BranchNotServedError):
            self.seen(tenant)
        assert tenant.woken == []

    def test_without_a_name_the_production_branch_is_named(self) -> None:
        tenant = tenant_with(BUILT)
        assert self.seen(tenant, branch_name=None)["branch_name"] == "main"
        assert tenant.operations[-1].query == {"branchName": "main"}

    def test_tenant_without_settings_does_not_say_which_branch_is_production(self) -> None:
        tenant = tenant_with(
            BUILT, faults={"getDeploymentSettings": [PlatformAddressError("HTML", is_html=True)]}
        )
        with pytest.raises(OperationMissingError):
            self.seen(tenant, branch_name=None)
