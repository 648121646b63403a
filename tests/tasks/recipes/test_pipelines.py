"""The two pipelines on both tenants.

A synced branch answers nobody until it is open.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.sandbox.demo import dag_runs

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

PROJECT = Path(__file__).parents[3]
EXAMPLES = PROJECT / "example_dags"
OTHERS = ["dev", "main"]
"""The branches that the sandbox has at the start."""

PIPELINES = ["nightly_pipeline", "sync_gate_publish"]
every_pipeline = pytest.mark.parametrize("pipeline", PIPELINES, indirect=True)
asking_pipelines = pytest.mark.parametrize("pipeline", PIPELINES[:1], indirect=True)


@pytest.fixture
def run_dag(run_dag: RunDag) -> RunDag:
    """Run a DAG with ids of the sandbox for the parameters that have no default."""

    def run(dag: DAG, conf: dict[str, Any] | None = None) -> FinishedRun:
        ids = {"report_id": 101, "workbook_id": 301}
        needed = {name: value for name, value in ids.items() if name in dag.params}
        return run_dag(dag, conf=needed | (conf or {}))

    return run


@pytest.fixture
def pipeline(request: pytest.FixtureRequest) -> DAG:
    """The DAG as it is printed, without retries."""
    dag = dag_runs.load_dag(EXAMPLES / f"{request.param}.py", request.param)
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
    about_it = changes(platform_sandbox, "staging-environments", "branches")
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
    assert f"Closed branch {branch}. Closing deletes nothing" in capsys.readouterr().out


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

    def test_nothing_is_published_if_nothing_is_merged(
        self, pipeline: DAG, platform_sandbox: Sandbox, run_dag: RunDag
    ) -> None:
        platform_sandbox.control.set(merge_outcome="conflict")
        run = run_dag(pipeline)
        assert run.state == run.states["merge"] == "failed"
        assert "conflicts with main" in str(run.task("merge").error)
        seen = platform_sandbox.control.state()
        assert seen.changed("branches", "merged") == seen.changed("branches", "deleted") == []
        assert seen.changed("dashboards", "published") == []
        assert run.states["close_branch"] == "success"
        assert not answers(synced(run))
