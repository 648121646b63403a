"""The demo's task logs are where Airflow's UI reads them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from airflow_provider_platform.sandbox.demo.task_log_writer import (
    TaskLogWriter,
    announced_task_logs,
)

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def line(event: str, logger: str = "task", **fields: object) -> str:
    return json.dumps({"event": event, "logger": logger, "level": "info", **fields})


def written(file: Path) -> list[dict[str, object]]:
    return [json.loads(text) for text in file.read_text().splitlines()]


def test_lines_go_to_the_file_of_the_task_that_runs(tmp_path: Path) -> None:
    one, two = tmp_path / "task_id=one" / "attempt=1.log", tmp_path / "two.log"
    writer = TaskLogWriter()

    assert not writer.take(line("before any task"))
    assert writer.take(json.dumps({"task_log_file": str(one)}))
    writer.take(line("of one"))
    writer.take(line("Task started", "airflow.api_fastapi.execution_api.routes"))
    writer.take(line("[DAG TEST] end task task_id=one map_index=-1", "airflow.sdk.definitions.dag"))
    writer.take(line("between"))
    writer.take(json.dumps({"task_log_file": str(two)}))
    writer.take("printed, no JSON")
    writer.close()

    assert [entry["event"] for entry in written(one)] == ["of one"]
    assert two.read_text() == "printed, no JSON\n"


def test_resumed_task_appends_to_its_log_file(tmp_path: Path) -> None:
    writer = TaskLogWriter()
    for event in ("first", "second"):
        writer.take(json.dumps({"task_log_file": str(tmp_path / "a.log")}))
        writer.take(line(event))
    writer.close()

    assert [entry["event"] for entry in written(tmp_path / "a.log")] == ["first", "second"]


def test_exception_is_logged_in_the_field_that_the_page_reads(tmp_path: Path) -> None:
    writer = TaskLogWriter()
    writer.take(json.dumps({"task_log_file": str(tmp_path / "a.log")}))
    writer.take(line("Task failed with exception", exception=[{"exc_type": "ValueError"}]))
    writer.close()

    (entry,) = written(tmp_path / "a.log")
    assert entry["error_detail"] == [{"exc_type": "ValueError"}]


def test_log_groups_have_begin_and_end(tmp_path: Path) -> None:
    writer = TaskLogWriter()
    writer.take(json.dumps({"task_log_file": str(tmp_path / "a.log")}))
    events = ["::endgroup::", "work", "::group::Post Execute", "Pushing xcom", "::endgroup::"]
    for event in events:
        writer.take(line(event))
    writer.close()

    assert [entry["event"] for entry in written(tmp_path / "a.log")] == events[1:]


def test_a_run_announces_each_task_by_the_name_that_airflow_gives_its_log(
    run_dag, capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.configuration import conf
    from airflow.sdk import DAG, task

    with DAG("logged", start_date=datetime(2025, 1, 1, tzinfo=UTC), schedule=None) as dag:

        @task
        def halve(number: int) -> float:
            return number / 2

        halve.expand(number=[2, 4])

    with announced_task_logs():
        run = run_dag(dag)

    said = [text for text in capfd.readouterr().out.splitlines() if "task_log_file" in text]
    folder = conf.get("logging", "base_log_folder")
    # Older releases take mapped tasks in any order.
    assert sorted(json.loads(text)["task_log_file"] for text in said) == [
        f"{folder}/dag_id=logged/run_id={run.run_id}/task_id=halve/map_index={index}/attempt=1.log"
        for index in (0, 1)
    ]
