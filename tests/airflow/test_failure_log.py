"""The last lines of a failed task's log, as Airflow writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.airflow.conftest import StartTask
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])


def logged_failure(task: TaskRun) -> list[dict[str, Any]]:
    """The errors, causes included, that Airflow's line of the failure shows."""
    lines = [json.loads(line) for line in task.log(1).splitlines() if line.startswith("{")]
    (failed,) = [line for line in lines if line["event"] == "Task failed with exception"]
    errors: list[dict[str, Any]] = failed["error_detail"]
    return errors


def assert_one_sentence(error: dict[str, Any]) -> None:
    files = [frame["filename"] for frame in error["frames"]]
    assert files, "Airflow shows where it called the operator"
    assert [name for name in files if "/airflow/" not in name] == []


@MODES
def test_failure_at_the_service_is_logged_in_one_sentence(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.fault("error", after=8)
    sandbox.set_breakpoint("mid_stream")
    task = ask(dag_id="ask_once", deferrable=deferrable)
    sandbox.wait_for_breakpoint("mid_stream")
    if deferrable:
        task.wait("deferred")
    sandbox.release()
    task.wait("failed")
    (error,) = logged_failure(task)
    # Another connection than the one that failed shows only that there is no answer.
    assert error["exc_type"] == ("ChatNoAnswerError" if deferrable else "ChatStreamError")
    assert_one_sentence(error)


def test_failed_connection_is_logged_without_its_causes(
    ask: StartTask, sandbox: PatientControl, api: AirflowApi, connection_id: str
) -> None:
    nowhere = sandbox.connection(chat_url="http://127.0.0.1:1/agents/1/chat", max_attempts=1)
    api.put_connection(connection_id, nowhere)
    task = ask(dag_id="ask_once")
    task.wait("failed")
    (error,) = logged_failure(task)
    assert error["exc_type"] == "PlatformTransportError"
    assert_one_sentence(error)


def test_error_without_retry_is_logged_without_its_cause(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.fault("jsonrpc", api="chat", count=None)
    task = ask()
    task.wait("failed")
    (error,) = logged_failure(task)
    assert error["exc_type"] == "AirflowFailException"
    assert_one_sentence(error)
