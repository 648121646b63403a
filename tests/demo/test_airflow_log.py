"""Which of Airflow's log lines the demo shows."""

from __future__ import annotations

import json

from airflow_provider_platform.sandbox.demo.airflow_log import Unfolded, read_line

OPERATOR = "airflow.task.operators.airflow_provider_platform.operators.chat.PlatformChatOperator"


def line(**fields: object) -> str:
    return json.dumps({"timestamp": "2026-01-02T03:04:05Z", "level": "info"} | fields)


def test_lines_of_our_operators_are_shown():
    read = read_line(line(logger=OPERATOR, event="Asked the agent", loc="chat.py:12"))

    assert read.message == "Asked the agent"
    assert read.text == f"2026-01-02T03:04:05Z info [{OPERATOR}] Asked the agent"


def test_debug_lines_and_airflows_own_lines_go_to_the_file_only():
    assert read_line(line(logger=OPERATOR, event="record", level="debug")).message is None
    other = read_line(line(logger="airflow.models", event="Marking run", run="r1"))
    assert other.message is None
    assert other.text.endswith('[airflow.models] Marking run {"run": "r1"}')


def test_start_of_a_task_is_recognized():
    event = "[DAG TEST] starting task_id=ask map_index=-1"

    assert read_line(line(logger="airflow.sdk.definitions.dag", event=event)).task_starting == "ask"


def test_lines_that_are_not_log_records_are_passed_on():
    for raw in ("printed by a task", "[1, 2]", '{"no": "event"}', ""):
        assert read_line(raw).text == raw
        assert read_line(raw).message is None


def test_the_error_of_a_task_is_shown_in_one_line_and_written_with_its_frames():
    frame = {"filename": "chat.py", "lineno": 7, "name": "execute"}
    error = {"exc_type": "PlatformError", "exc_value": "Bad branch", "frames": [frame]}

    read = read_line(
        line(logger="task", level="error", event="Task failed with exception", exception=[error])
    )

    assert read.message == "failed: PlatformError: Bad branch"
    assert read.text.endswith("\nPlatformError: Bad branch\n    chat.py:7 in execute")


def test_folded_log_groups_are_not_shown():
    unfolded = Unfolded()
    said = ["Asked", "::group::Answer", "a", "b", "::endgroup::", "Platform", "::endgroup::", "c"]
    assert [one for one in said if unfolded.shown(one)] == ["Asked", "Platform", "c"]
