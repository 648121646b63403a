"""README's DAG and the two pipelines at tenants of each release.

A synced branch answers nobody until it is open. Staging environments came with v0.4.0, dev mode
with v0.3.0; a tenant of July 2026 has neither.
"""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.state.builds import DOES_NOT_COMPILE

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

PROJECT = Path(__file__).parents[2]
EXAMPLES = PROJECT / "example_dags"
STAGING, DEV_MODE, JULY = "0.19.1", "0.3.0", "0.2.1"
OTHERS = ["dev", "main"]
"""The branches that the sandbox has at the start."""

PIPELINES = ["README", "nightly_pipeline", "sync_gate_publish"]
every_pipeline = pytest.mark.parametrize("pipeline", PIPELINES, indirect=True)
asking_pipelines = pytest.mark.parametrize("pipeline", PIPELINES[:2], indirect=True)


@pytest.fixture
def run_dag(run_dag: RunDag) -> RunDag:
    """Run a DAG with ids of the sandbox for the parameters that have no default."""

    def run(dag: DAG, conf: dict[str, Any] | None = None) -> FinishedRun:
        ids = {"report_id": 101, "workbook_id": 301}
        needed = {name: value for name, value in ids.items() if name in dag.params}
        return run_dag(dag, conf=needed | (conf or {}))

    return run


@pytest.fixture
def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> DAG:
    """The DAG as it is printed, without retries."""
    file, dag_id = EXAMPLES / f"{request.param}.py", request.param
    if request.param == "README":
        printed = re.search(
            r"^```python\n(# dags/nightly\.py\n.*?)^```$",
            (PROJECT / "README.md").read_text(),
            re.DOTALL | re.MULTILINE,
        )
        assert printed
        file, dag_id = tmp_path / "nightly.py", "nightly"
        file.write_text(printed[1])
    dag = dag_runs.load_dag(file, dag_id)
    for task in dag.tasks:
        task.retries = 0  # which would wait here as long as they do in production
    return dag


def synced(run: FinishedRun) -> str:
    """The branch that the sync wrote."""
    return str(run.xcom("sync_dbt", "branch_name"))


def answers(branch: str) -> bool:
    """Whether a query on the branch is answered."""
    try:
        return bool(list(PlatformHook().run_sql("SELECT id FROM orders", branch_name=branch)))
    except PlatformError:
        return False


def changes(sandbox: Sandbox, *resources: str) -> list[tuple[str, Any]]:
    """Actions and ids of what was changed, in order."""
    seen = sandbox.control.state().changes
    return [(entry.action, entry.id) for entry in seen if entry.resource in resources]


@every_pipeline
def test_staging_branch_is_opened_asked_closed_and_deleted(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_delay=0.1, build_seconds=0.3)
    run = run_dag(pipeline)
    assert set(run.states.values()) == {"success"}, run.states
    branch = synced(run)
    about_it = changes(platform_sandbox, "staging-environments", "branches", "dev-mode")
    assert [entry for entry in about_it if entry[0] != "merged"] == [
        ("enabled", branch),
        ("disabled", branch),
        ("deleted", branch),
    ]
    assert platform_sandbox.control.branches() == OTHERS
    assert answers("dev")


@every_pipeline
def test_two_runs_of_one_day_write_different_branches(pipeline: DAG) -> None:
    assert "| ts_nodash" in pipeline.get_task("sync_dbt").branch_name  # type: ignore[attr-defined]


@asking_pipelines
def test_question_is_asked_once_on_the_opened_branch(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    run = run_dag(pipeline)
    seen = platform_sandbox.control.state()
    assert [entry.branch for entry in seen.runs] == [synced(run)]
    assert len(seen.messages) == len(seen.syncs) == 1


@asking_pipelines
def test_dev_mode_fork_is_asked_and_left(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(release=DEV_MODE)
    run = run_dag(pipeline)
    assert set(run.states.values()) == {"success"}, run.states
    fork = run.xcom("open_branch", "branch_name")
    assert fork.startswith("dev-")
    seen = platform_sandbox.control.state()
    assert [entry.branch for entry in seen.runs] == [fork]
    assert changes(platform_sandbox, "dev-mode", "staging-environments") == [
        ("entered", fork),
        ("left", fork),
    ]
    # This release cannot delete branches by API, and the task says so.
    assert run.xcom("delete_branch")["deleted"] == []
    assert platform_sandbox.control.branches() == sorted([*OTHERS, fork, synced(run)])


def test_dev_mode_fork_and_its_branch_are_deleted(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    dag = dag_runs.load_dag(EXAMPLES / "nightly_pipeline.py", "nightly_pipeline")
    dag.get_task("open_branch").environment = "dev_mode"  # type: ignore[attr-defined]
    run = run_dag(dag)
    assert set(run.states.values()) == {"success"}
    fork = run.xcom("open_branch", "branch_name")
    assert changes(platform_sandbox, "dev-mode", "branches") == [
        ("entered", fork),
        ("left", fork),
        ("deleted", fork),
        ("deleted", synced(run)),
    ]
    assert platform_sandbox.control.branches() == OTHERS


@asking_pipelines
def test_retry_opens_the_branch_of_a_sync_with_an_unreadable_status(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    """Releases between v0.3.0 and v0.4.0 open branches and do not report how a sync goes."""
    platform_sandbox.control.set(release=DEV_MODE, dbt_pace=0.5)
    opening = pipeline.get_task("open_branch")
    opening.retries, opening.retry_delay = 20, timedelta(seconds=1)
    assert set(run_dag(pipeline).states.values()) == {"success"}
    assert len(platform_sandbox.control.state().syncs) == 1


@asking_pipelines
def test_tenant_of_july_continues_with_a_warning_on_an_open_branch(
    pipeline: DAG,
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    capsys: pytest.CaptureFixture[str],
) -> None:
    platform_sandbox.control.set(release=JULY)
    platform_sandbox.control.open_branch("nightly")
    pipeline.get_task("sync_dbt").branch_name = "nightly"  # type: ignore[attr-defined]
    run = run_dag(pipeline)
    assert set(run.states.values()) == {"success"}, [task.error for task in run.tasks]
    assert [entry.branch for entry in platform_sandbox.control.state().runs] == ["nightly"]
    assert capsys.readouterr().out.count("This tenant has no operation that opens a branch") == 1
    assert changes(platform_sandbox, "branches", "staging-environments", "dev-mode") == []
    assert answers("nightly")


@asking_pipelines
def test_retry_asks_again_if_the_branch_was_being_built(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    """A tenant of July 2026 builds an open branch again after a sync and cannot report it."""
    control = platform_sandbox.control
    control.set(release=JULY, build_seconds=600)
    control.open_branch("nightly")
    pipeline.get_task("sync_dbt").branch_name = "nightly"  # type: ignore[attr-defined]
    asking = pipeline.get_task("ask_agent")
    asking.retries, asking.retry_delay = 1, timedelta(seconds=1)
    asking.on_retry_callback = [lambda _: control.advance(600)]  # which ends the build
    run = run_dag(pipeline)
    assert set(run.states.values()) == {"success"}, [task.error for task in run.tasks]
    assert len(control.state().messages) == 2


@every_pipeline
def test_tenant_of_july_says_what_to_do_for_a_closed_branch(
    pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(release=JULY)
    run = run_dag(pipeline)
    asking = "gate" if pipeline.dag_id == "sync_gate_publish" else "ask_agent"
    assert run.state == run.states[asking] == "failed"
    error = str(run.task(asking).error)
    assert "Branch is not active" in error
    assert "in the platform" in error
    assert run.states["open_branch"] == run.states["close_branch"] == "success"
    assert platform_sandbox.control.branches() == sorted([*OTHERS, synced(run)])


@every_pipeline
@pytest.mark.parametrize("environment", ["staging", "dev_mode"])
def test_broken_model_shows_when_its_branch_is_built(
    pipeline: DAG, environment: str, platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    pipeline.get_task("sync_dbt").branch_name = "broken"  # type: ignore[attr-defined]
    pipeline.get_task("open_branch").environment = environment  # type: ignore[attr-defined]
    run = run_dag(pipeline)
    assert run.state == "failed"
    assert run.states["sync_dbt"] == "success"
    assert run.states["open_branch"] == "failed"
    assert DOES_NOT_COMPILE in str(run.task("open_branch").error)
    assert set(run.states.values()) == {"success", "failed", "upstream_failed"}
    # Nothing was asked, merged or published, and the branch is closed and kept for a look.
    assert run.states["close_branch"] == "success"
    assert run.xcom("close_branch")["closed"] is True
    seen = platform_sandbox.control.state()
    assert (seen.messages, seen.changed("dashboards", "published")) == ([], [])
    assert changes(platform_sandbox, "branches") == []
    assert "broken" in platform_sandbox.control.branches()


@asking_pipelines
def test_failed_question_leaves_the_branch_closed_and_kept(
    pipeline: DAG,
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    capsys: pytest.CaptureFixture[str],
) -> None:
    platform_sandbox.control.fault("error", api="chat", count=None)
    run = run_dag(pipeline)
    assert run.state == run.states["ask_agent"] == "failed"
    branch = synced(run)
    assert changes(platform_sandbox, "staging-environments", "branches") == [
        ("enabled", branch),
        ("disabled", branch),
    ]
    assert f"Closed branch {branch}. The branch is kept" in capsys.readouterr().out


class TestMerge:
    """`sync_gate_publish` after its gate has held."""

    @pytest.fixture
    def pipeline(self) -> DAG:
        dag = dag_runs.load_dag(EXAMPLES / "sync_gate_publish.py", "sync_gate_publish")
        for task in dag.tasks:
            task.retries = 0
        return dag

    def test_workbook_is_published_after_production_is_built_from_the_merge(
        self, pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
    ) -> None:
        platform_sandbox.control.set(build_delay=0.5, build_seconds=0.5)
        run = run_dag(pipeline)
        assert set(run.states.values()) == {"success"}, run.states
        built = run.xcom("merge")
        assert (built["into"], built["merged"], built["status"]) == ("main", True, "built")
        seen = platform_sandbox.control.state()
        [merged] = seen.changed("branches", "merged")
        [published] = seen.changed("dashboards", "published")
        assert published.at - merged.at >= 1  # the sandbox's time of a build

    def test_flags_of_the_merge_are_sent(
        self, pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
    ) -> None:
        """A tenant that deletes merged branches by default keeps this one until it is published."""
        platform_sandbox.control.set(merge_removes_branch=True)
        run = run_dag(pipeline)
        [merged] = platform_sandbox.control.state().changed("branches", "merged")
        assert sorted(merged.fields) == ["branchName", "message", "removeBranchAfterMerge"]
        assert run.xcom("delete_branch")["deleted"] == [synced(run)]

    @pytest.mark.parametrize(
        ("setting", "said"),
        [
            ({"merge_outcome": "nothing"}, "it merged nothing"),
            ({"merge_outcome": "conflict"}, "conflicts with main"),
            (
                {"deploy_mode": "cli"},
                "deploy mode cli. In this mode a merge does not build production",
            ),
            ({"deploy_branch_merge_allowed": False}, "Merging into main is not allowed"),
            ({"release": DEV_MODE}, "release before v0.4.0"),
        ],
        ids=["nothing merged", "conflict", "deploy mode cli", "not allowed", "v0.3.0"],
    )
    def test_nothing_is_published_if_nothing_is_merged(
        self,
        pipeline: DAG,
        platform_sandbox: Sandbox,
        run_dag: RunDag,
        setting: dict[str, Any],
        said: str,
    ) -> None:
        platform_sandbox.control.set(**setting)
        run = run_dag(pipeline)
        assert run.state == run.states["merge"] == "failed"
        assert said in str(run.task("merge").error)
        seen = platform_sandbox.control.state()
        assert seen.changed("branches", "merged") == seen.changed("branches", "deleted") == []
        assert seen.changed("dashboards", "published") == []
        assert run.states["close_branch"] == "success"
        assert not answers(synced(run))

    def test_nothing_is_published_if_production_does_not_build(
        self, pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
    ) -> None:
        control = platform_sandbox.control
        control.report_build("main", "failed", "the warehouse refused the connection")
        run = run_dag(pipeline)
        assert run.states["merge"] == "failed"
        assert "the warehouse refused" in str(run.task("merge").error)
        assert control.state().changed("dashboards", "published") == []
        assert control.state().changed("branches", "deleted") == []

    def test_closed_gate_keeps_the_branch_closed(
        self, pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
    ) -> None:
        run = run_dag(pipeline, conf={"least_orders": 1_000_000})
        assert run.state == "success"
        assert run.xcom("close_branch")["closed"] is True
        assert changes(platform_sandbox, "branches") == []
        assert synced(run) in platform_sandbox.control.branches()
