"""Branches: opened, waited for and closed by tasks, in both modes and over tries."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    BranchNotWrittenError,
    BuildFailedError,
    PlatformError,
    PlatformInputError,
    PlatformServerError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformOpenBranchOperator,
)
from tests.support.remote_tasks import chat
from tests.support.task_context import TaskDeferred, TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

BRANCH = "dbt-sync/main-1"
BROKEN = "dbt-sync/broken-1"
MODES = {"on the worker": False, "deferred": True}
COUNT = "SELECT COUNT(*) AS orders FROM orders"

both_modes = pytest.mark.parametrize("deferrable", MODES.values(), ids=MODES.keys())


def lacks_branches(control: SandboxControl, missing: str) -> None:
    """Play a tenant whose missing operations answer with a page or with a status."""
    control.set(tenant="described")
    if missing != "html":
        path = "/branches|staging-environment"
        control.fault("status", path=path, status=int(missing), count=None)


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


def close(**arguments: Any) -> dict[str, Any]:
    operator = PlatformCloseBranchOperator(task_id="close", **arguments)
    return operator.execute(TaskTries().context())


def delete(**arguments: Any) -> bool:
    """Run the operator; returns whether it deleted the branch."""
    operator = PlatformDeleteBranchOperator(task_id="delete", **arguments)
    deleted: bool = operator.execute(TaskTries().context())["deleted"]
    return deleted


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
    def test_opened_branch_can_be_queried_under_the_returned_name(
        self, deferrable: bool, control: SandboxControl
    ) -> None:
        control.set(build_delay=0.2, build_seconds=0.2)
        assert not answers(BRANCH)
        task = opening(deferrable=deferrable)
        found = through(task, TaskTries())
        assert (found["branch_name"], found["opened_branch"]) == (BRANCH, BRANCH)
        assert found["status"] == "built"
        assert len(found["hash"]) == 40
        assert answers(found["branch_name"])

    def test_queries_go_to_the_returned_address(self, control: SandboxControl) -> None:
        found = through(opening(), TaskTries())
        assert answers(found["branch_name"])
        [path] = {request.path for request in control.state().requests if "cubesql" in request.path}
        assert unquote(found["url"]).endswith(path.removesuffix("/v1/cubesql"))

    def test_branch_that_was_open_before_is_reported(self, control: SandboxControl) -> None:
        control.open_branch(BRANCH)
        found = through(opening(), TaskTries())
        assert (found["branch_name"], found["opened_branch"]) == (BRANCH, None)

    @pytest.mark.parametrize("before", [True, False])
    def test_commit_of_an_earlier_build_is_unknown_if_no_build_names_its_commit(
        self, before: bool, control: SandboxControl
    ) -> None:
        """Else a merge takes a commit that nobody checked."""
        control.set(named_commits="branches")
        if before:
            control.open_branch(BRANCH)
        found = through(opening(), TaskTries())
        assert found["status"] == "built"
        assert (found["hash"] is None) == before

    @both_modes
    @pytest.mark.parametrize("before", [True, False])
    def test_failed_task_closes_the_branch_that_it_opened(
        self, before: bool, deferrable: bool, control: SandboxControl
    ) -> None:
        if before:
            control.open_branch(BRANCH)
        control.fault("status", method="GET", path="/environments$", status=500, count=None)
        with pytest.raises(PlatformServerError):
            through(opening(deferrable=deferrable), TaskTries(max_tries=0))
        control.clear_faults()
        assert answers(BRANCH) is before

    @both_modes
    @pytest.mark.parametrize("before", [True, False])
    def test_branch_whose_build_fails_is_closed_unless_it_was_open(
        self, before: bool, deferrable: bool, control: SandboxControl
    ) -> None:
        if before:
            control.open_branch(BROKEN)
        with pytest.raises(BuildFailedError):
            through(opening(branch_name=BROKEN, deferrable=deferrable), TaskTries())
        [broken] = [one for one in PlatformHook().iterate("listBranches") if one["name"] == BROKEN]
        assert broken["isStagingEnvironmentEnabled"] is before

    def test_retry_after_a_switch_whose_answer_was_lost_knows_that_the_branch_was_closed(
        self, control: SandboxControl
    ) -> None:
        tries = TaskTries()
        control.fault("lost_response", method="PUT", path="/staging-environment$")
        control.fault("status", method="PUT", path="/staging-environment$", status=500, count=9)
        with pytest.raises(PlatformError):
            through(opening(), tries)
        control.clear_faults()
        assert through(opening(), tries)["opened_branch"] == BRANCH

    @both_modes
    def test_sleeping_branch_is_woken_by_one_request(
        self, deferrable: bool, control: SandboxControl
    ) -> None:
        control.open_branch(BRANCH)
        control.advance(3600)
        assert through(opening(deferrable=deferrable), TaskTries())["status"] == "built"
        woken = [one for one in control.state().requests if one.path.endswith("/cubesql")]
        assert len(woken) == 1

    def test_a_branch_that_is_not_written_yet_is_opened_by_a_retry(
        self, control: SandboxControl
    ) -> None:
        tries = TaskTries()
        with pytest.raises(BranchNotWrittenError, match="No branch has this name"):
            through(opening(branch_name="later"), tries)
        control.add_branch("later")
        found = through(opening(branch_name="later"), tries)
        assert found["status"] == "built"

    @pytest.mark.parametrize("lacks", ["SchemaRead", "SchemaUpdate"])
    def test_the_missing_permission_is_named(self, lacks: str, control: SandboxControl) -> None:
        control.set(token_lacks=[lacks, "SchemaUpdateDevBranches"])
        with pytest.raises(AirflowFailException, match=lacks):
            through(opening(), TaskTries())

    @pytest.mark.parametrize(
        "bad",
        [
            {"branch_name": ""},
            {"branch_name": ".."},
            {"branch_name": "feature-manual__2026-11-24T04:01:10+00:00"},
            {"if_unsupported": "perhaps"},
            {"wait_for_build": "maybe"},
        ],
    )
    def test_bad_arguments_are_refused_at_parse_time(self, bad: dict[str, Any]) -> None:
        with pytest.raises(PlatformInputError, match="Nothing was sent"):
            opening(**bad)

    @pytest.mark.parametrize("report", ["tool", "line"])
    def test_question_about_a_closed_branch_names_the_operator_that_opens_it(
        self, report: str, control: SandboxControl
    ) -> None:
        if report == "line":
            control.fault("error", after=1, message="BadRequestError: Branch is not active")
        with pytest.raises(PlatformError, match=r"not active.*PlatformOpenBranchOperator"):
            chat(active_branch_name=BRANCH).execute(TaskTries().context())


class TestClose:
    @pytest.mark.parametrize("name", [None, "", "None"])
    def test_closing_a_branch_that_was_never_opened_succeeds(self, name: Any) -> None:
        assert close(branch_name=name)["closed"] is False

    def test_close_succeeds_on_a_tenant_that_cannot_open_branches(
        self, control: SandboxControl
    ) -> None:
        control.set(tenant="described")
        assert close(branch_name=BRANCH)["closed"] is False

    def test_missing_permission_to_close_a_branch_fails_the_task(
        self, control: SandboxControl
    ) -> None:
        control.set(token_lacks=["SchemaUpdate", "SchemaUpdateDevBranches"])
        with pytest.raises(AirflowFailException, match="SchemaUpdate"):
            close(branch_name=BRANCH)


class TestDelete:
    def test_open_branch_is_deleted(self, control: SandboxControl) -> None:
        through(opening(), TaskTries())
        assert delete(branch_name=BRANCH)
        assert BRANCH not in control.branches()

    def test_branch_at_another_commit_is_kept(
        self, control: SandboxControl, capsys: pytest.CaptureFixture[str]
    ) -> None:
        commit = through(opening(), TaskTries())["hash"]
        assert not delete(branch_name=BRANCH, hash="0" * 40)
        assert "only commit 0000" in capsys.readouterr().out
        assert BRANCH in control.branches()
        assert delete(branch_name=BRANCH, hash=commit)

    def test_deletion_of_a_missing_branch_succeeds(self, control: SandboxControl) -> None:
        assert delete(branch_name=BRANCH)
        assert not delete(branch_name=BRANCH)

    @pytest.mark.parametrize("name", [None, "", "None"])
    def test_empty_branch_name_deletes_nothing(self, name: Any, control: SandboxControl) -> None:
        before = control.branches()
        assert not delete(branch_name=name)
        assert control.branches() == before

    @pytest.mark.parametrize("missing", ["html", "404"])
    def test_tenant_that_cannot_delete_branches_is_warned_about(
        self,
        missing: str,
        control: SandboxControl,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        lacks_branches(control, missing)
        assert not delete(branch_name=BRANCH)
        assert f"Branch {BRANCH} was not deleted: this tenant has no" in capsys.readouterr().out
        assert BRANCH in control.branches()

    @pytest.mark.parametrize("remove", [False, True])
    def test_deletion_always_sends_the_upstream_flag(
        self, remove: bool, control: SandboxControl
    ) -> None:
        delete(branch_name=BRANCH, remove_on_upstream=remove)
        [sent] = [entry for entry in control.state().requests if entry.method == "DELETE"]
        assert f"removeOnUpstream={str(remove).lower()}" in sent.query
