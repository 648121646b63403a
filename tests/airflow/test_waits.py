"""A wait in the triggerer survives temporary failures, and notices an external end of the run."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import httpx
import pytest

from airflow_provider_platform.files.save import XCOM_BYTES

if TYPE_CHECKING:
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
STATUS = {"method": "GET", "path": "/dbt-sync/[^/]+$"}


@MODES
def test_rotated_management_token_is_read_while_waiting_for_a_sync(
    sync: StartTask, api: AirflowApi, sandbox: PatientControl, connection_id: str, deferrable: bool
) -> None:
    sandbox.set(dbt_pace=1)
    sandbox.set_breakpoint("before_call", **STATUS)
    task = sync(deferrable=deferrable)
    sandbox.wait_for_breakpoint("before_call")
    old = sandbox.info()["management_token"]
    sandbox.rotate_management_token()
    api.put_connection(connection_id, sandbox.connection())
    assert sandbox.info()["management_token"] != old
    sandbox.release()
    task.wait("success", try_number=1)
    assert [one.status for one in sandbox.state().syncs] == ["COMPLETED"]


@MODES
def test_rotated_chat_key_is_read_while_following_a_chat(
    ask: StartTask, api: AirflowApi, sandbox: PatientControl, connection_id: str, deferrable: bool
) -> None:
    sandbox.fault("cut", after=4)
    sandbox.set_breakpoint("mid_stream", after=5)
    sandbox.set_breakpoint("before_call", api="chat", has_input=False)
    task = ask(deferrable=deferrable)
    sandbox.wait_for_breakpoint("before_call")
    sandbox.rotate_chat_key()
    api.put_connection(connection_id, sandbox.connection())
    sandbox.release()
    task.wait("success", try_number=1)
    assert [run.status for run in sandbox.state().runs] == ["finished"]
    assert len(sandbox.state().messages) == 1


@MODES
def test_permanently_refused_token_ends_the_wait(
    sync: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set(dbt_pace=60)
    sandbox.fault("status", **STATUS, status=401, count=None)
    task = sync(deferrable=deferrable)
    task.wait("failed", try_number=1)
    assert "401" in task.logs()


@MODES
def test_wait_survives_temporary_failures_of_the_service(
    sync: StartTask, ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    for status, kind in ((503, "status"), (500, "status"), (None, "drop"), (429, "status")):
        parameters = {} if status is None else {"status": status}
        sandbox.fault(kind, **STATUS, **parameters)
        sandbox.fault(kind, api="chat", has_input=False, **parameters)
    sandbox.fault("cut", api="chat", after=4)
    syncing, asking = sync(deferrable=deferrable), ask(deferrable=deferrable)
    syncing.wait("success", try_number=1)
    asking.wait("success", try_number=1)
    state = sandbox.state()
    assert (len(state.syncs), len(state.messages), len(state.runs)) == (1, 1, 1)


@MODES
def test_a_sync_that_is_cancelled_outside_shows_in_the_history_only(
    sync: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.set(dbt_pace=600)
    task = sync(dag_id="sync_once", deferrable=deferrable)
    state = sandbox.wait_until(lambda state: bool(state.syncs))
    info = sandbox.info()
    job = state.syncs[0].sync_job_id
    httpx.delete(
        f"{info['management_url']}/v1/deployments/1/dbt-sync/{job}",
        headers={"Authorization": f"Bearer {info['management_token']}"},
        trust_env=False,
    ).raise_for_status()
    task.wait("failed")
    assert "The dbt sync was cancelled" in task.logs()


@MODES
def test_a_chat_that_stays_suspended_is_resumed_by_repeating_its_input_once(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    sandbox.fault("suspend", after=4, resume="input")
    task = ask(deferrable=deferrable)
    task.wait("success", try_number=1)
    assert [one.outcome for one in sandbox.state().messages] == ["started", "resumed"]
    assert len(sandbox.state().runs) == 1


@MODES
def test_task_waits_for_a_busy_thread(
    ask: StartTask, sandbox: PatientControl, deferrable: bool
) -> None:
    """The second question goes in when the first one is answered, and once."""
    first = ask()
    first.wait("success")
    chat_id = first.result["chat_id"]
    sandbox.set_breakpoint("mid_stream", text="chart")
    other = ask("as a chart", chat_id=chat_id)
    sandbox.wait_for_breakpoint("mid_stream")
    task = ask("and by product?", chat_id=chat_id, deferrable=deferrable)
    sandbox.wait_until(lambda state: state.messages[-1].outcome == "busy")
    sandbox.release()
    other.wait("success")
    task.wait("success", try_number=1)
    texts = [run.text for run in sandbox.state().runs]
    assert texts == ["revenue by country", "as a chart", "and by product?"]


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
