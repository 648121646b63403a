"""The demo's own process: what it prints and writes while the DAG runs, and how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo import __main__ as demo

if TYPE_CHECKING:
    from pathlib import Path

OPERATOR = "airflow.task.operators.airflow_provider_platform.operators.chat.PlatformChatOperator"


def line(event: str, logger: str = OPERATOR, **fields: object) -> str:
    return json.dumps({"event": event, "logger": logger, "level": "info", **fields})


def starting(file: Path) -> str:
    return json.dumps({"task": "ask", "file": str(file)})


def followed(*lines: str) -> str:
    """What the terminal shows of these lines."""
    screen = StringIO()
    progress = demo._Progress(screen)
    for text in lines:
        progress.take(text)
    return screen.getvalue()


def written(file: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in file.read_text().splitlines()]


def test_terminal_shows_lines_of_the_packages_operators_only(tmp_path: Path) -> None:
    shown = followed(
        starting(tmp_path / "a.log"),
        line("Asked the agent"),
        line("record", level="debug"),
        line("Marking run", "airflow.models"),
        "printed by a task",
        '["no record"]',
    )
    assert shown == "\nask\n  Asked the agent\n"


def test_terminal_shows_no_folded_groups() -> None:
    said = ["Asked", "::group::Answer", "a", "b", "::endgroup::", "Platform", "::endgroup::", "c"]
    assert followed(*map(line, said)).split() == ["Asked", "Platform", "c"]


def test_terminal_shows_the_error_of_a_task_in_one_line() -> None:
    error = {"exc_type": "PlatformError", "exc_value": "Bad branch", "frames": []}
    shown = followed(line("Task failed with exception", "task", exception=[error]))
    assert shown == "  failed: PlatformError: Bad branch\n"


def test_lines_of_a_task_go_to_the_tasks_log_file(tmp_path: Path) -> None:
    one, two = tmp_path / "task_id=one" / "attempt=1.log", tmp_path / "two.log"
    followed(
        line("before any task"),
        starting(one),
        line("of one"),
        line("Task started", "airflow.api_fastapi.execution_api.routes"),
        line("[DAG TEST] end task task_id=one map_index=-1", "airflow.sdk.definitions.dag"),
        line("between"),
        starting(two),
        "printed, no JSON",
        starting(one),
        line("resumed", exception=[{"exc_type": "ValueError"}]),
    )
    assert [entry["event"] for entry in written(one)] == ["of one", "resumed"]
    assert written(one)[1]["error_detail"] == [{"exc_type": "ValueError"}]
    assert two.read_text() == "printed, no JSON\n"


def test_help_lists_each_example_dag_with_what_it_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "--help"])
    with pytest.raises(SystemExit):
        demo._options()
    printed = capsys.readouterr().out
    assert "  model_to_production     From model to production: sync, prove" in printed


def test_unknown_dag_is_refused_with_the_choices(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["demo", "nightly"])
    with pytest.raises(SystemExit):
        demo._options()
    assert "model_to_production" in capsys.readouterr().err


COMMAND = [sys.executable, "-u", "-m", "airflow_provider_platform.sandbox.demo"]


@pytest.mark.exhaustive
def test_demo_runs_a_deferrable_dag_and_the_log_is_where_the_ui_reads_it(tmp_path: Path) -> None:
    env = {**os.environ, "PLATFORM_DEMO_FOLDER": str(tmp_path)}
    done = subprocess.run(
        [*COMMAND, "stop_below_threshold"], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "The pipeline worked" in done.stdout
    logs = "airflow-*/logs/dag_id=stop_below_threshold/*/task_id=ask_agent/attempt=1.log"
    [log] = tmp_path.glob(logs)
    assert any("Asking the agent" in str(entry.get("event")) for entry in written(log))


@pytest.mark.exhaustive
def test_interruption_stops_the_demo_in_a_running_task(tmp_path: Path) -> None:
    env = {**os.environ, "PLATFORM_DEMO_FOLDER": str(tmp_path)}
    with subprocess.Popen(
        COMMAND, env=env, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        assert process.stdout is not None
        while "Started dbt sync" not in (said := process.stdout.readline()):
            assert said, "the demo ended before its first task began"
        process.send_signal(signal.SIGINT)
        rest = process.stdout.read()  # ends when no process has this output any more
    assert process.returncode == 130
    assert "nothing is left running" in rest
