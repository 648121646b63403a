"""Dashboard exports against the sandbox: both modes give the same file, XCom and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture
def export(
    request: pytest.FixtureRequest, run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> Any:
    """Export dashboard 501 in a DAG of its own; returns the finished task."""

    def run(**arguments: Any) -> FinishedTask:
        arguments = {
            "output_path": str(tmp_path / "out" / "dashboard.pdf"),
            "dashboard_id": 501,
            "poll_interval": 0.05,
            **arguments,
        }
        with DAG(dag_id="export") as dag:
            PlatformExportDashboardOperator(
                task_id="export", deferrable=is_deferred(request), retries=0, **arguments
            )
        return run_dag(dag).task("export")

    return run


@in_both_modes("export")
def test_export_writes_the_file_and_returns_its_path(
    export: Any, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    platform_sandbox.control.set(export_pace=0.1)
    task = export(layout="print")
    assert task.error is None
    path = tmp_path / "out" / "dashboard.pdf"
    data = path.read_bytes()
    found = task.xcoms["return_value"]
    assert data.startswith(b"%PDF")
    assert (found["path"], found["size"]) == (str(path), len(data))
    assert found["content_type"] == "application/pdf"
    assert list(path.parent.iterdir()) == [path]
