"""Every recipe runs as it is printed, and says no when it should."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet as pq
import pytest

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

EXAMPLES = Path(__file__).parents[2] / "example_dags"


def test_the_gate_asks_on_the_branch_of_the_sync(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    run = run_dag(EXAMPLES / "sync_gate_publish.py")
    assert set(run.states.values()) == {"success"}
    branch = run.xcom("sync_dbt", "branch_name")
    asked = [
        entry.path for entry in platform_sandbox.control.state().requests if entry.api == "data"
    ]
    assert asked
    assert all(f"dev-mode/{branch}" in path for path in asked), asked


def test_each_customer_is_asked_about_once(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    run = run_dag(EXAMPLES / "prompt_per_customer.py")
    assert set(run.states.values()) == {"success"}
    asked = {message.text for message in platform_sandbox.control.state().messages}
    countries = ("Germany", "France", "Spain")
    assert asked == {f"orders per month for {country}" for country in countries}
    assert set(run.xcom("collect")) == set(countries)
    assert {task.map_index for task in run.tasks if task.task_id == "ask"} == {0, 1, 2}


def test_a_broken_rule_fails_the_run_and_is_named(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    assert run_dag(EXAMPLES / "quality_check.py").state == "success"
    run = run_dag(EXAMPLES / "quality_check.py", conf={"limit": 1})
    assert run.state == "failed"
    assert "no order above the limit" in str(run.task("check").error)
    assert run.states["count"] == "success"


def test_too_many_rows_fail_the_run(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    run = run_dag(EXAMPLES / "quality_check.py", conf={"most_orders": 479})
    assert run.states == {"check": "success", "orders": "success", "count": "failed"}
    assert "480 orders: expected 1 to 479" in str(run.task("count").error)


def test_new_credentials_are_tried_before_they_are_needed(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.rotate_chat_key()
    new = platform_sandbox.control.connection()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_NEXT", json.dumps(new))
    assert run_dag(EXAMPLES / "rotate_key.py").state == "success"

    # The connection that still has the old key.
    run = run_dag(EXAMPLES / "rotate_key.py", conf={"connection": "platform_default"})
    assert run.states["try_connection"] == "failed"
    assert "chat" in str(run.task("try_connection").error)
    assert len(platform_sandbox.control.state().messages) == 1


def test_the_waits_and_the_export(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    file = tmp_path / "dashboard.pdf"
    run = run_dag(EXAMPLES / "waits_and_exports.py", conf={"output_path": str(file)})
    assert set(run.states.values()) == {"success"}
    assert file.read_bytes().startswith(b"%PDF")


def test_all_rows_are_stored(platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    run = run_dag(EXAMPLES / "rows_to_object_storage.py", conf={"folder": str(tmp_path)})
    assert set(run.states.values()) == {"success"}
    stored = run.xcom("store_orders")
    rows = parquet.read_table(tmp_path / "2025-03.parquet")
    assert rows.num_rows == stored["row_count"] > 5 == len(stored["rows"])
    assert (tmp_path / "customers-1.csv").read_text().startswith("id,name,city\n")
    assert run.xcom("total") > rows.num_rows


def test_the_weekly_report_ends_with_its_files_and_the_message(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    run = run_dag(EXAMPLES / "weekly_report.py", conf={"folder": str(tmp_path)})
    assert run.state == "success"
    (query,) = run.xcom("ask_agent", "queries")
    assert pq.read_table(query["path"]).num_rows == query["row_count"] > 0
    (picture,) = query["chart_paths"]
    assert Path(picture).read_bytes().startswith(b"\x89PNG")
    assert (tmp_path / "dashboard.pdf").read_bytes().startswith(b"%PDF")
    message = (Path(run.xcom("ask_agent", "manifest")).parent / "message.md").read_text()
    assert message.startswith("## The week")
    assert str(query["rows"][0][0]) in message


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_no_example_imports_what_is_to_go(file: Path) -> None:
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("error", kind)
        exec(compile(file.read_text(), file, "exec"), {"__name__": file.stem, "__doc__": "a DAG"})
