"""Merges by tasks: made once over all tries, waited for in both modes, refused with a reason."""

from __future__ import annotations

from threading import Timer
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    MergedBuildFailedError,
    PlatformInputError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator
from tests.support.task_context import TaskTries
from tests.tasks.operators.test_branch_operators import both_modes, stored, through

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

BRANCH = "dbt-sync/main-1"
NO_WRITING = ("SchemaUpdate", "SchemaUpdateDevBranches")
MERGE = {"api": "management", "method": "POST", "path": "/merge"}


def merging(**arguments: Any) -> PlatformMergeBranchOperator:
    return PlatformMergeBranchOperator(
        task_id="merge",
        **{"branch_name": BRANCH, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def requests(control: SandboxControl) -> list[str]:
    """The paths of the merges that were sent."""
    paths = [one.path for one in control.state().requests if one.method == "POST"]
    return [path.rpartition("/")[2] for path in paths if "/merge" in path]


def merged(control: SandboxControl) -> list[str]:
    return [str(entry.id) for entry in control.state().changed("branches", "merged")]


def commits() -> dict[str, str | None]:
    """The commit of each branch."""
    return {one["name"]: one.get("lastHash") for one in PlatformHook().iterate("listBranches")}


def merge_by_somebody_else() -> None:
    body = {"branchName": BRANCH, "message": "by hand", "removeBranchAfterMerge": False}
    PlatformHook().call("mergeToDefaultBranch", body=body)


@pytest.fixture(autouse=True)
def branch(control: SandboxControl) -> None:
    control.add_branch(BRANCH)


@both_modes
@pytest.mark.parametrize("merge_commit", ["own", "fast_forward"])
def test_merge_returns_once_production_is_built_from_it(
    deferrable: bool, merge_commit: str, control: SandboxControl
) -> None:
    control.set(build_delay=0.2, build_seconds=0.2, merge_commit=merge_commit)
    before = commits()["main"]
    found = through(merging(deferrable=deferrable), TaskTries())
    assert found == {
        "branch_name": BRANCH,
        "branch_hash": commits()[BRANCH],
        "into": "main",
        "merged": True,
        "branch_deleted": False,
        "hash": commits()["main"],
        "status": "built",
    }
    assert found["hash"] != before
    assert (merged(control), requests(control)) == ([BRANCH], ["merge-to-default"])


def test_branch_is_deleted_with_the_merge_if_asked_for(control: SandboxControl) -> None:
    found = through(merging(delete_branch=True), TaskTries())
    assert found["branch_deleted"] is True
    assert BRANCH not in control.branches()


def test_merge_into_the_parent_waits_for_no_build(control: SandboxControl) -> None:
    control.add_branch("feature", parent=BRANCH)
    found = through(merging(branch_name="feature", into="parent"), TaskTries())
    assert (found["into"], found["merged"], found["status"]) == (BRANCH, True, None)
    assert requests(control) == ["merge"]


def test_wait_for_build_false_returns_after_the_merge(control: SandboxControl) -> None:
    control.set(build_seconds=60)
    found = through(merging(wait_for_build=False), TaskTries())
    assert (found["merged"], found["status"]) == (True, None)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"merge_outcome": "conflict"}, "conflicts with main"),
        ({"token_lacks": NO_WRITING}, "The operation requires: SchemaUpdate"),
        ({"token_lacks": ("SchemaUpdate",)}, "SchemaUpdateDevBranches is not enough"),
    ],
    ids=str,
)
def test_refusal_fails_the_task_with_its_reason_and_is_not_retried(
    settings: dict[str, Any], words: str, control: SandboxControl
) -> None:
    control.set(**settings)
    with pytest.raises(AirflowFailException, match=words):
        through(merging(), TaskTries())
    assert not merged(control)


class TestTries:
    def test_retry_without_a_record_finds_that_production_has_the_branch(
        self, control: SandboxControl
    ) -> None:
        """Before Airflow 3.3."""
        control.open_branch(BRANCH)
        control.set(build_outcome="failed")
        tries = TaskTries(store=False)
        with pytest.raises(MergedBuildFailedError):
            through(merging(), tries)
        control.report_build("main", "built")
        found = through(merging(), tries)
        assert (found["merged"], found["status"]) == (False, "built")
        assert merged(control) == [BRANCH]

    def test_merge_that_was_not_made_is_made_by_the_retry(self, control: SandboxControl) -> None:
        control.fault("drop", **MERGE)
        tries = TaskTries()
        with pytest.raises(PlatformTransportError, match="A retry compares the commits"):
            through(merging(), tries)
        assert tries.store[STORE_KEY]["phase"] == "intent"
        assert through(merging(), tries)["merged"] is True
        assert merged(control) == [BRANCH]

    def test_retry_does_not_merge_unchecked_commits(self, control: SandboxControl) -> None:
        """The branch and production have both moved since: nobody knows what was merged."""
        tries = self.died(control)
        merge_by_somebody_else()
        control.add_branch(BRANCH)
        with pytest.raises(AirflowFailException, match="do not show whether the merge was made"):
            through(merging(), tries)
        assert tries.store[STORE_KEY]["phase"] == "lost"
        tries.clear()
        assert through(merging(), tries)["merged"] is True

    @both_modes
    def test_retry_after_the_deadline_waits_for_the_build_of_the_merge_that_was_made(
        self, deferrable: bool, control: SandboxControl
    ) -> None:
        """The worker died after the merge, and the retry begins when its time is over."""
        control.set(build_outcome="failed")
        tries = TaskTries()
        with pytest.raises(MergedBuildFailedError):
            through(merging(deferrable=deferrable, delete_branch=True), tries)
        record = stored(tries.store[STORE_KEY])
        record["ids"]["submitted_at"] -= 3600
        tries.store[STORE_KEY] = {**record, "phase": "running"}
        control.report_build("main", "building")
        Timer(0.4, lambda: control.report_build("main", "built")).start()
        found = through(merging(deferrable=deferrable, delete_branch=True), tries)
        assert (found["merged"], found["branch_deleted"]) == (True, True)
        assert len(requests(control)) == 1

    @pytest.mark.parametrize("delete", [True, False])
    def test_cleared_task_does_not_repeat_its_merge(
        self, delete: bool, control: SandboxControl
    ) -> None:
        tries = TaskTries()
        first = through(merging(delete_branch=delete), tries)
        tries.clear()
        assert through(merging(delete_branch=delete), tries) == first
        assert len(requests(control)) == 1

    def test_cleared_task_waits_for_the_checked_commit_that_it_has_merged(
        self, control: SandboxControl
    ) -> None:
        """Somebody has committed to the branch since: production has the checked commit."""
        tries, checked = TaskTries(), commits()[BRANCH]
        first = through(merging(hash=checked), tries)
        tries.clear()
        control.add_branch(BRANCH)
        assert through(merging(hash=checked), tries) == first
        assert len(requests(control)) == 1

    def test_cleared_task_merges_a_branch_that_was_written_again(
        self, control: SandboxControl
    ) -> None:
        tries = TaskTries()
        first = through(merging(), tries)
        tries.clear()
        control.add_branch(BRANCH)
        assert through(merging(), tries)["hash"] != first["hash"]
        assert len(requests(control)) == 2

    @staticmethod
    def died(control: SandboxControl) -> TaskTries:
        """The tries of a task whose first one died between its record and its request's answer."""
        tries = TaskTries()
        control.fault("drop", **MERGE)
        with pytest.raises(PlatformTransportError):
            through(merging(), tries)
        tries.store[STORE_KEY] = stored(tries.store[STORE_KEY])
        return tries


class TestArguments:
    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ({"branch_name": ""}, "branch_name"),
            ({"into": "production"}, "into must be one of default, parent"),
            ({"delete_branch": "perhaps"}, "delete_branch"),
            ({"wait_for_build": "perhaps"}, "wait_for_build"),
            ({"timeout": 0}, "timeout"),
        ],
        ids=str,
    )
    def test_bad_arguments_are_refused_when_the_dag_is_parsed(
        self, arguments: dict[str, Any], words: str
    ) -> None:
        with pytest.raises(PlatformInputError, match=words):
            merging(**arguments)

    def test_message_is_sent_and_names_the_task_by_default(self) -> None:
        assert merging().run_kind().message.endswith("task merge")
        assert merging(message="Nightly").run_kind().message == "Nightly"


@pytest.mark.parametrize("named", ["branches", "none"])
def test_merge_waits_for_the_build_on_a_tenant_that_names_no_commit(
    named: str, control: SandboxControl
) -> None:
    control.set(build_delay=0.2, build_seconds=0.4, named_commits=named)
    job = PlatformHook().call("buildStatus", query={"branchName": "main"})["buildJobId"]
    found = through(merging(), TaskTries())
    assert (found["merged"], found["hash"], found["status"]) == (True, None, "built")
    status = PlatformHook().call("buildStatus", query={"branchName": "main"})
    assert status["status"] == "built"
    assert status["buildJobId"] != job, "the build before the merge"
