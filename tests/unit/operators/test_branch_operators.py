"""Branches: opened, waited for and closed by tasks, in both modes and over tries."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    BuildFailedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInputError,
    PlatformServerError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._submission.record import STORE_KEY
from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.unit.operators.remote_tasks import chat
from tests.unit.operators.task_context import TaskDeferred, TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from tests.unit.operators.captured_log import Capture

pytestmark = pytest.mark.one_case_in(4)

BRANCH = "dbt-sync/main-1"
BROKEN = "dbt-sync/broken-1"
ENVIRONMENTS = ["staging", "dev_mode"]
MODES = {"on the worker": False, "deferred": True}
COUNT = "SELECT COUNT(*) AS orders FROM orders"

both_modes = pytest.mark.parametrize("deferrable", MODES.values(), ids=MODES.keys())
both_environments = pytest.mark.parametrize("environment", ENVIRONMENTS)


def through(operator: Any, tries: TaskTries) -> Any:
    """Execute an operator to its end, whatever it defers to."""
    context = tries.context()
    if not operator.deferrable:
        return operator.execute(context)
    call, arguments = operator.execute, {}
    for _ in range(5):
        try:
            return call(context, **arguments)
        except TaskDeferred as deferred:
            event = asyncio.run(only_event(deferred.trigger))
            call = getattr(operator, deferred.method_name)
            arguments = {"event": event, **stored(deferred.kwargs)}
    raise AssertionError("the task defers without end")


async def only_event(trigger: Any) -> Any:
    [event] = [event async for event in trigger.run()]
    return stored(event.payload)


def stored(value: Any) -> Any:
    """What Airflow's database gives back."""
    return json.loads(json.dumps(value))


def opening(**arguments: Any) -> PlatformOpenBranchOperator:
    return PlatformOpenBranchOperator(
        task_id="open",
        **{"branch_name": BRANCH, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def syncing(**arguments: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(
        task_id="sync",
        **{"branch_name": BRANCH, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def close(**arguments: Any) -> dict[str, Any]:
    operator = PlatformCloseBranchOperator(task_id="close", **arguments)
    return operator.execute(TaskTries().context())


def delete(**arguments: Any) -> list[str]:
    """Run the operator; returns the names that it deleted."""
    operator = PlatformDeleteBranchOperator(task_id="delete", **arguments)
    return operator.execute(TaskTries().context())["deleted"]


def answers(branch_name: str) -> bool:
    """Whether the branch answers a query."""
    try:
        return bool(list(PlatformHook().run_sql(COUNT, branch_name=branch_name, timeout=60)))
    except PlatformError:
        return False


@pytest.fixture(autouse=True)
def branch(control: SandboxControl) -> None:
    """A branch as a dbt sync leaves it: closed."""
    control.set(dbt_pace=0.02)
    control.add_branch(BRANCH)
    control.add_branch(BROKEN, compiles=False)


class TestOpen:
    @both_modes
    @both_environments
    def test_opened_branch_can_be_queried_under_the_returned_name(
        self, environment: str, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_delay=0.2, build_seconds=0.2)
        assert not answers(BRANCH)
        task = opening(environment=environment, deferrable=deferrable)
        found = through(task, TaskTries())
        assert found["opened_branch"] == BRANCH
        assert (found["branch_name"] == BRANCH) == (environment == "staging")
        assert (found["environment"], found["status"]) == (environment, "built")
        assert len(found["hash"]) == 40
        assert answers(found["branch_name"])

    @both_environments
    def test_both_modes_return_the_same_result_of_opening(self, environment: str) -> None:
        one = through(opening(environment=environment, deferrable=False), TaskTries())
        two = through(opening(environment=environment, deferrable=True), TaskTries())
        assert one == two

    @both_environments
    def test_queries_go_to_the_returned_address(
        self, environment: str, control: SandboxControl
    ) -> None:
        control.set(branch_path="plain" if environment == "staging" else "encoded")
        found = through(opening(environment=environment), TaskTries())
        assert answers(found["branch_name"])
        [path] = {request.path for request in control.state().requests if "cubesql" in request.path}
        assert found["url"].endswith(path.removesuffix("/v1/cubesql"))

    @pytest.mark.parametrize(
        ("release", "environment"), [("0.19.1", "staging"), ("0.3.0", "dev_mode"), ("0.2.1", None)]
    )
    @pytest.mark.parametrize("missing", ["html", "404", "405"])
    @both_modes
    def test_open_operator_opens_what_each_release_supports(
        self,
        release: str,
        environment: str | None,
        missing: str,
        deferrable: bool,
        control: SandboxControl,
    ) -> None:
        control.set(release=release, missing_operation=missing)
        task = opening(environment="if_supported", deferrable=deferrable)
        found = through(task, TaskTries())
        assert found["environment"] == environment
        assert found["status"] == ("built" if environment else None)
        assert found["opened_branch"] == BRANCH

    def test_tenant_that_cannot_open_branches_is_warned_about_once(
        self, control: SandboxControl, capsys: pytest.CaptureFixture[str]
    ) -> None:
        control.set(release="0.2.1")
        through(opening(environment="if_supported"), TaskTries())
        lines = capsys.readouterr().out.splitlines()
        [warning] = [line for line in lines if "warning" in line.lower() and " branch " in line]
        assert "only if the branch is open in the platform" in warning

    @both_modes
    def test_a_build_that_fails_fails_the_task_with_its_reason(
        self, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_seconds=0.2)
        task = opening(branch_name=BROKEN, deferrable=deferrable)
        with pytest.raises(BuildFailedError, match=r"customers, which does not exist.*log ends"):
            through(task, TaskTries())

    @both_modes
    def test_a_build_that_takes_too_long_ends_at_the_deadline(
        self, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_seconds=60)
        with pytest.raises(PlatformDeadlineError, match="last status of the build was building"):
            through(opening(deferrable=deferrable, timeout=0.5), TaskTries())

    @pytest.mark.parametrize("release", ["0.19.1", "0.3.0"])
    def test_a_branch_that_is_not_written_yet_is_opened_by_a_retry(
        self, control: SandboxControl, release: str
    ) -> None:
        """A tenant without the history of dbt syncs does not report when one is complete."""
        control.set(release=release)
        tries = TaskTries()
        with pytest.raises(BranchNotWrittenError, match="No branch has this name"):
            through(opening(branch_name="later", environment="if_supported"), tries)
        control.add_branch("later")
        found = through(opening(branch_name="later", environment="if_supported"), tries)
        assert found["status"] == "built"

    @pytest.mark.parametrize(
        ("lacks", "environment"),
        [("SchemaUpdate", "staging"), ("SchemaUpdate", "dev_mode"), ("DeploymentRead", "staging")],
    )
    def test_the_missing_permission_is_named(
        self, lacks: str, environment: str, control: SandboxControl
    ) -> None:
        control.set(token_lacks=[lacks])
        with pytest.raises(AirflowFailException, match=lacks):
            through(opening(environment=environment), TaskTries())

    def test_wait_for_build_false_ends_the_task_when_the_branch_is_open(
        self, control: SandboxControl
    ) -> None:
        control.set(build_seconds=60)
        found = through(opening(wait_for_build=False), TaskTries())
        assert (found["environment"], found["status"]) == ("staging", None)

    @pytest.mark.exhaustive
    @both_environments
    def test_retry_reopens_a_branch_that_was_closed_meanwhile(
        self, environment: str, control: SandboxControl
    ) -> None:
        control.set(build_seconds=0.2)
        tries = TaskTries()
        control.fault("status", method="GET", path="/build-status", status=500, count=6)
        with pytest.raises(PlatformServerError):
            through(opening(environment=environment), tries)
        assert tries.store[STORE_KEY]["phase"] == "running"
        close(branch_name=BRANCH, environment=environment)
        found = through(opening(environment=environment), tries)
        assert answers(found["branch_name"])

    def test_log_names_a_fork_that_was_not_deleted(
        self, control: SandboxControl, capsys: pytest.CaptureFixture[str]
    ) -> None:
        through(opening(environment="dev_mode"), TaskTries())
        control.add_branch(BRANCH)
        assert "an earlier data model" not in capsys.readouterr().out
        through(opening(environment="dev_mode"), TaskTries())
        assert "an earlier data model" in capsys.readouterr().out

    @pytest.mark.parametrize(
        "bad", [{"branch_name": ""}, {"environment": "production"}, {"wait_for_build": "maybe"}]
    )
    def test_bad_arguments_are_refused_at_parse_time(self, bad: dict[str, Any]) -> None:
        with pytest.raises(PlatformInputError, match="Nothing was sent"):
            opening(**bad)

    @pytest.mark.parametrize(("fork", "stale"), [("stale", True), ("updated", False)])
    def test_old_fork_that_lacks_new_commits_is_warned_about(
        self, fork: str, stale: bool, control: SandboxControl, capture: Capture
    ) -> None:
        control.set(reentered_fork=fork)
        first = through(opening(environment="dev_mode"), TaskTries())
        assert close(branch_name=BRANCH, environment="dev_mode")["closed"]
        control.add_branch(BRANCH)
        capture.lines()
        again = through(opening(environment="dev_mode"), TaskTries())
        assert again["branch_name"] == first["branch_name"]
        assert (again["hash"] != again["opened_hash"]) is stale
        said = "Answers may come from an earlier data model"
        assert any(said in line for line in capture.lines()) is stale

    @pytest.mark.parametrize("report", ["tool", "line"])
    def test_question_about_a_closed_branch_names_the_operator_that_opens_it(
        self, report: str, control: SandboxControl
    ) -> None:
        control.set(branch_error=report)
        with pytest.raises(PlatformError, match=r"not active.*PlatformOpenBranchOperator"):
            chat(active_branch_name=BRANCH).execute(TaskTries().context())


class TestClose:
    @both_environments
    @pytest.mark.parametrize("by", ["branch_name", "opened_branch"])
    @pytest.mark.parametrize("explicit", [True, False])
    def test_close_operator_closes_an_opened_branch(
        self, environment: str, by: str, explicit: bool
    ) -> None:
        found = through(opening(environment=environment), TaskTries())
        given = {"environment": found["environment"]} if explicit else {}
        assert close(branch_name=found[by], **given)["closed"]
        assert not answers(found["branch_name"])

    @pytest.mark.parametrize("environment", [None, "None", "", "if_supported", "dev_mode"])
    def test_a_branch_that_is_closed_stays_closed(self, environment: Any) -> None:
        assert close(branch_name=BRANCH, environment="staging")["closed"]
        assert close(branch_name=BRANCH, environment="dev_mode")["closed"] is False
        assert not answers(BRANCH)

    @pytest.mark.parametrize("answer", ["400", "404", "200"])
    def test_dev_mode_that_is_off_is_no_failure(self, answer: str, control: SandboxControl) -> None:
        """The service may also answer 200, which looks like a branch that was closed now."""
        control.set(leave_nothing=answer)
        closed = close(branch_name=BRANCH, environment="dev_mode")["closed"]
        assert closed is (answer == "200")

    @pytest.mark.parametrize("name", [None, "", "None"])
    def test_closing_a_branch_that_was_never_opened_succeeds(self, name: Any) -> None:
        assert close(branch_name=name)["closed"] is False

    def test_the_dev_mode_of_another_branch_stays_open(self, control: SandboxControl) -> None:
        control.add_branch("theirs")
        theirs = through(opening(branch_name="theirs", environment="dev_mode"), TaskTries())
        assert close(branch_name=BRANCH, environment="dev_mode")["closed"] is False
        assert answers(theirs["branch_name"])

    def test_close_succeeds_on_a_tenant_that_cannot_open_branches(
        self, control: SandboxControl
    ) -> None:
        control.set(release="0.2.1")
        assert close(branch_name=BRANCH)["closed"] is False

    def test_missing_permission_to_close_a_branch_fails_the_task(
        self, control: SandboxControl
    ) -> None:
        control.set(token_lacks=["SchemaUpdate"])
        with pytest.raises(AirflowFailException, match="SchemaUpdate"):
            close(branch_name=BRANCH)


class TestDelete:
    @both_environments
    def test_the_fork_is_deleted_before_its_branch(
        self, environment: str, control: SandboxControl
    ) -> None:
        found = through(opening(environment=environment), TaskTries())
        names = {"branch_name": BRANCH, "fork": found["branch_name"]}
        assert delete(**names) == list(dict.fromkeys([found["branch_name"], BRANCH]))
        assert not {found["branch_name"], BRANCH} & set(control.branches())
        assert BROKEN in control.branches()
        assert control.state().changed("dev-mode", "entered") == [] or environment == "dev_mode"

    def test_deletion_of_a_missing_branch_succeeds(self, control: SandboxControl) -> None:
        assert delete(branch_name=BRANCH) == [BRANCH]
        assert delete(branch_name=BRANCH, fork="dev-7-gone") == []

    @pytest.mark.parametrize("name", [None, "", "None"])
    def test_empty_branch_name_deletes_nothing(self, name: Any, control: SandboxControl) -> None:
        before = control.branches()
        assert delete(branch_name=name, fork=name) == []
        assert control.branches() == before

    @pytest.mark.parametrize("missing", ["html", "404", "405"])
    @pytest.mark.parametrize("release", ["0.3.0", "0.2.1"])
    def test_tenant_that_cannot_delete_branches_is_warned_about(
        self,
        release: str,
        missing: str,
        control: SandboxControl,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        control.set(release=release, missing_operation=missing)
        assert delete(branch_name=BRANCH) == []
        assert f"Branch {BRANCH} was not deleted: this tenant has no" in capsys.readouterr().out
        assert BRANCH in control.branches()

    def test_production_is_never_deleted(self, control: SandboxControl) -> None:
        with pytest.raises(AirflowFailException, match="deploy branch"):
            delete(branch_name="main")
        assert "main" in control.branches()

    def test_the_missing_permission_is_named(self, control: SandboxControl) -> None:
        control.set(token_lacks=["SchemaUpdate"])
        with pytest.raises(AirflowFailException, match="SchemaUpdateDevBranches"):
            delete(branch_name=BRANCH)

    @pytest.mark.parametrize("remove", [False, True])
    def test_deletion_always_sends_the_upstream_flag(
        self, remove: bool, control: SandboxControl
    ) -> None:
        delete(branch_name=BRANCH, remove_on_upstream=remove)
        [sent] = [entry for entry in control.state().requests if entry.method == "DELETE"]
        assert f"removeOnUpstream={str(remove).lower()}" in sent.query


class TestSync:
    """A dbt sync that opens its branch."""

    @both_modes
    @pytest.mark.parametrize("open_branch", [*ENVIRONMENTS, "if_supported"])
    def test_synced_branch_can_be_queried_under_the_returned_name(
        self, open_branch: Any, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_delay=0.1, build_seconds=0.2)
        task = syncing(branch_name="nightly", open_branch=open_branch, deferrable=deferrable)
        found = through(task, TaskTries())
        assert (found["branch_name"], found["status"]) == ("nightly", "COMPLETED")
        assert found["result"]["cubeCount"] == 3
        way = "staging" if open_branch == "if_supported" else open_branch
        assert (found["environment"], found["build_status"]) == (way, "built")
        assert (found["active_branch_name"] == "nightly") == (way == "staging")
        assert found["url"]
        assert answers(found["active_branch_name"])
        assert len(control.state().syncs) == 1

    @both_modes
    def test_sync_without_opening_keeps_its_result_keys(self, deferrable: bool) -> None:
        found = through(syncing(deferrable=deferrable), TaskTries())
        assert set(found) == {"sync_job_id", "workflow_id", "branch_name", "status", "result"}

    @both_modes
    @pytest.mark.parametrize(("release", "way"), [("0.4.0", "staging"), ("0.2.1", None)])
    def test_sync_operator_opens_what_each_release_supports(
        self, release: str, way: str | None, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(release=release)
        task = syncing(open_branch="if_supported", deferrable=deferrable)
        found = through(task, TaskTries())
        assert (found["environment"], found["active_branch_name"]) == (way, BRANCH)
        assert found["status"] == ("COMPLETED" if way else None)

    @pytest.mark.parametrize("open_branch", ENVIRONMENTS)
    def test_unsupported_environment_fails_before_the_sync(
        self, open_branch: Any, control: SandboxControl
    ) -> None:
        control.set(release="0.2.1")
        with pytest.raises(AirflowFailException, match="Nothing was started"):
            through(syncing(open_branch=open_branch), TaskTries())
        assert control.state().syncs == []

    @pytest.mark.parametrize("asked", [{"open_branch": "staging"}, {"wait_for_completion": True}])
    def test_token_without_permission_for_syncs_is_not_mistaken_for_an_old_tenant(
        self, asked: dict[str, Any], control: SandboxControl
    ) -> None:
        control.set(token_lacks=["SchemaRead"])
        with pytest.raises(AirflowFailException, match="lacks the permission SchemaRead"):
            through(syncing(**asked), TaskTries())
        assert control.state().syncs == []

    def test_warning_about_an_unreadable_sync_names_the_permission(
        self, control: SandboxControl, capsys: pytest.CaptureFixture[str]
    ) -> None:
        control.set(token_lacks=["SchemaRead"])
        assert through(syncing(open_branch="if_supported"), TaskTries())["status"] is None
        assert "lacks the permission SchemaRead" in capsys.readouterr().out

    @both_modes
    def test_a_model_that_does_not_compile_fails_the_task(self, deferrable: bool) -> None:
        task = syncing(branch_name="broken", open_branch="staging", deferrable=deferrable)
        with pytest.raises(BuildFailedError, match="which does not exist"):
            through(task, TaskTries())

    @pytest.mark.exhaustive
    @both_modes
    @pytest.mark.parametrize("open_branch", ENVIRONMENTS)
    def test_a_retry_opens_the_branch_of_the_same_sync(
        self, open_branch: Any, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_seconds=0.3)
        tries = TaskTries()
        control.fault("status", method="GET", path="/build-status", status=500, count=6)
        arguments = {"open_branch": open_branch, "deferrable": deferrable}
        with pytest.raises(PlatformServerError):
            through(syncing(**arguments), tries)
        close(branch_name=BRANCH, environment=open_branch)
        found = through(syncing(**arguments), tries)
        assert answers(found["active_branch_name"])
        assert len(control.state().syncs) == 1

    def test_late_event_of_the_sync_does_not_end_the_wait_for_the_build(
        self, control: SandboxControl
    ) -> None:
        control.set(build_seconds=0.2)
        context = TaskTries().context()
        task = syncing(open_branch="staging", deferrable=True)
        synced = deferral(task.execute, context)
        event = asyncio.run(only_event(synced.trigger))
        built = deferral(task.execute_complete, context, event, **stored(synced.kwargs))
        again = deferral(task.execute_complete, context, event, **stored(built.kwargs))
        found = task.execute_complete(
            context, asyncio.run(only_event(again.trigger)), **stored(again.kwargs)
        )
        assert found["build_status"] == "built"

    @pytest.mark.parametrize(
        "bad",
        [
            {"open_branch": "production"},
            {"open_branch": "staging", "wait_for_completion": False},
            {"open_branch": "staging", "output_mode": "files"},
        ],
    )
    def test_environment_that_cannot_be_opened_is_refused_at_parse_time(
        self, bad: dict[str, Any]
    ) -> None:
        with pytest.raises(PlatformInputError, match="open_branch"):
            syncing(**bad)
