"""A wait in the triggerer survives temporary failures, and notices an external end of the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.files.xcom_size import XCOM_BYTES

if TYPE_CHECKING:
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

STATUS = {"method": "GET", "path": "/dbt-sync/[^/]+$"}


def test_rotated_management_token_is_read_while_waiting_for_a_sync(
    sync: StartTask, api: AirflowApi, sandbox: PatientControl, connection_id: str
) -> None:
    sandbox.set(dbt_pace=1)
    sandbox.set_breakpoint("before_call", **STATUS)
    task = sync(deferrable=True)
    sandbox.wait_for_breakpoint("before_call")
    old = sandbox.info()["management_token"]
    sandbox.rotate_management_token()
    api.put_connection(connection_id, sandbox.connection())
    assert sandbox.info()["management_token"] != old
    sandbox.release()
    task.wait("success", try_number=1)
    assert [one.status for one in sandbox.state().syncs] == ["COMPLETED"]


def test_rotated_chat_key_is_read_while_following_a_chat(
    ask: StartTask, api: AirflowApi, sandbox: PatientControl, connection_id: str
) -> None:
    sandbox.fault("cut", after=4)
    sandbox.set_breakpoint("mid_stream", after=5)
    sandbox.set_breakpoint("before_call", api="chat", has_input=False)
    task = ask(deferrable=True)
    sandbox.wait_for_breakpoint("before_call")
    sandbox.rotate_chat_key()
    api.put_connection(connection_id, sandbox.connection())
    sandbox.release()
    task.wait("success", try_number=1)
    assert [run.status for run in sandbox.state().runs] == ["finished"]
    assert len(sandbox.state().messages) == 1


def test_a_chat_that_stays_suspended_is_resumed_by_repeating_its_input_once(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.fault("suspend", after=4, resume="input")
    task = ask(deferrable=True)
    task.wait("success", try_number=1)
    assert [one.outcome for one in sandbox.state().messages] == ["started", "resumed"]
    assert len(sandbox.state().runs) == 1


def test_an_answer_too_large_for_an_event_is_read_from_its_thread(
    ask: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("mid_stream")  # a run that ends at once needs no event
    task = ask("sql: SELECT hex(zeroblob(2000)) AS wide FROM orders", deferrable=True)
    task.wait("deferred")
    task.wait_trigger()
    sandbox.release()
    task.wait("success", try_number=1)
    rows = task.result["queries"][0]["rows"]
    assert {len(value) for [value] in rows} == {4000}
    # As many as may go to XCom.
    assert 200_000 < len(json.dumps(rows)) <= XCOM_BYTES
    state = sandbox.state()
    assert len(state.runs) == 1
    # One by the trigger, and one by the worker that took up after it.
    assert len([request for request in state.requests if request.has_input is False]) == 2


def test_sensor_ends_in_the_triggerer_without_a_second_worker(
    start_task: StartTask, sandbox: PatientControl
) -> None:
    task = start_task("wait_for_report", "wait").mapped(0)
    task.wait("deferred")
    task.wait_trigger()
    sandbox.change("reports", 101, name="Written later")
    task.wait("success", try_number=1)
    task.wait_run("success")
    assert json.loads(task.result)["id"] == 101  # the triggerer stores an XCom as JSON text
    log = task.log(1)
    assert log.count("Worker startup parse complete") == 1, log


@pytest.mark.parametrize("deferrable", [False, True], ids=["running", "deferred"])
def test_retry_policy_ends_a_task_by_the_class_of_its_error(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.fault("no_final")
    task = ask(dag_id="ask_by_policy", deferrable=deferrable)
    task.wait("failed", try_number=1)
    assert len(sandbox.state().runs) == 1


@pytest.mark.history_allows("sync_started_again", because="the first sync left no record")
def test_retry_of_a_sync_that_is_not_durable_starts_another_one(
    sync: StartTask, sandbox: PatientControl
) -> None:
    sandbox.set_breakpoint("before_call", **STATUS)
    task = sync(dag_id="sync_not_durable")
    sandbox.wait_for_breakpoint("before_call")
    assert task.record == {}
    task.kill()
    sandbox.release()
    task.wait("success", try_number=2)
    first, second = sandbox.state().syncs
    assert task.result["sync_job_id"] == second.sync_job_id != first.sync_job_id
    assert task.record == {}
