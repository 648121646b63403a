"""Dashboard exports against the sandbox: both modes give the same file, XCom and errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

MODES = {"on the worker": False, "deferred": True}


@pytest.fixture(params=MODES.values(), ids=MODES.keys())
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
                task_id="export", deferrable=request.param, retries=0, **arguments
            )
        return run_dag(dag).task("export")

    return run


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


def test_export_applies_filters_and_renders_its_path(export: Any, tmp_path: Path) -> None:
    path = tmp_path / "{{ dag.dag_id }}.png"
    filters = [{"member": "orders.status", "operator": "equals", "value": ["{{ 'paid' }}"]}]
    task = export(output_path=f"file://{path}", format="png", filters=filters)
    assert task.error is None
    assert (tmp_path / "export.png").read_bytes().startswith(b"\x89PNG")


def test_failed_export_names_the_reason(export: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(export_outcome="failed")
    task = export()
    assert task.error.startswith("DashboardExportFailedError")
    assert "ran into its time limit" in task.error


def test_expired_export_is_reported(export: Any, platform_sandbox: Sandbox) -> None:
    status = {"path": "/dashboard-exports/[^/]+$", "status": 404, "count": None}
    platform_sandbox.control.fault("status", method="GET", **status)
    task = export()
    assert task.error.startswith("DashboardExportFailedError")
    assert "no longer has the dashboard export" in task.error


@pytest.mark.exhaustive
def test_export_fails_at_its_deadline(export: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(export_pace=60)
    task = export(timeout=2)
    assert task.error.startswith("PlatformDeadlineError")


def test_export_fails_if_the_dashboard_restricts_downloads(
    export: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.change("dashboards", 501, restrictDataDownload=True)
    task = export()
    assert task.error.startswith("AirflowFailException")
    assert "does not allow data to be downloaded" in task.error


def test_dashboard_is_found_by_its_title_in_both_modes(
    export: Any, platform_sandbox: Sandbox
) -> None:
    """The look-up happens again after a wait."""
    platform_sandbox.control.set(export_pace=0.1)
    task = export(dashboard_id=None, dashboard="{{ 'Sales overview' }}")
    assert task.error is None
    assert task.xcoms["return_value"]["size"] > 0
