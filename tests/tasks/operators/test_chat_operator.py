"""What a try of a chat task does with an earlier try's record, and with its trigger's event."""

from __future__ import annotations

import asyncio
import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client import repeats
from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatStreamError,
    PlatformDeadlineError,
    PlatformServerError,
)
from airflow_provider_platform.operators._run_record import STORE_KEY
from tests.support.fakes.streams import EXPECTED, MESSAGE_ID, PROMPT, Turn, cutoff
from tests.support.remote_tasks import chat, deferral_while_stopped
from tests.support.task_context import StateStore, TaskDeferred, TaskTries, deferral
from tests.support.wire.http_server import answer, serving

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from tests.support.captured_log import Capture


def deferred(tries: TaskTries, **arguments: Any) -> Any:
    """What a deferrable task hands to its trigger."""
    return deferral(chat(deferrable=True, **arguments).execute, tries.context())


def statuses(control: SandboxControl) -> list[str]:
    return [run.status for run in control.state().runs]


def test_chat_record_passes_its_phases_in_order(control: SandboxControl) -> None:
    tries = TaskTries()
    phases: list[tuple[str, bool]] = []

    def note(key: str, value: Any) -> None:
        phases.append((value["phase"], value["ids"].get("chat_id") is not None))
        tries.store[key] = value
        if phases[-1] == ("intent", True):
            control.release()

    tries.store.set = note  # type: ignore[method-assign]
    control.set_breakpoint("after_cutoff")  # the thread is known, the prompt is not accepted
    chat(timeout=60).execute(tries.context())
    assert phases == [("intent", False), ("intent", True), ("running", True), ("done", True)]


@pytest.mark.parametrize("details", [True, False])
def test_details_contain_the_memory_id_of_each_query(
    control: SandboxControl, *, details: bool
) -> None:
    control.set(pace=0.0)
    (query,) = chat(details=details).execute(TaskTries().context())["queries"]
    assert bool(query.get("memory_id")) is details


def test_an_event_of_another_run_is_ignored(control: SandboxControl) -> None:
    """Trigger ids are used again, so that an old trigger's event can reach a new try."""
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    waiting = deferred(tries)
    run = waiting.kwargs["run"]
    stray = {
        "status": "error",
        "run": {**run, "message_id": "1700000000000-message"},
        "error": ChatAbortedError("stopped").to_payload(),
    }
    complete = chat(deferrable=True).execute_complete
    again = deferral(complete, tries.context(), event=stray, run=run)
    assert again.trigger.ids == waiting.trigger.ids
    assert len(control.state().messages) == 1


def test_trigger_timeout_stops_the_run_of_a_silent_trigger(
    control: SandboxControl,
) -> None:
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    waiting = deferred(tries)
    with pytest.raises(Exception, match="Trigger timeout"):
        chat(deferrable=True).resume_execution(
            "__fail__",
            {"error": "Trigger timeout", "run": waiting.kwargs["run"]},
            tries.context(),
        )
    assert statuses(control) == ["aborted"]
    assert tries.store[STORE_KEY]["phase"] == "failed"


def test_retry_asks_again_once_if_its_run_was_stopped_meanwhile(control: SandboxControl) -> None:
    """The stop of the old try can land after the new one has taken up the run."""
    control.set_breakpoint("mid_stream", count=2)
    tries = TaskTries()
    first = deferred(tries).kwargs["run"]
    second = deferred(tries).kwargs["run"]
    assert (second["message_id"], second["reattached"]) == (first["message_id"], True)
    aborted = {
        "status": "error",
        "run": second,
        "error": ChatAbortedError("stopped").to_payload(),
    }
    control.abort_thread(first["chat_id"])
    anew = chat(deferrable=True)
    third = deferral(anew.execute_complete, tries.context(), event=aborted, run=second).kwargs[
        "run"
    ]
    assert third["message_id"] != first["message_id"]
    assert "reattached" not in third
    with pytest.raises(ChatAbortedError):
        anew.execute_complete(tries.context(), event={**aborted, "run": third}, run=third)
    assert len(control.state().messages) == 2


@pytest.fixture(params=["state", "aborted", "close"])
def stopped_thread(request: pytest.FixtureRequest, control: SandboxControl) -> str:
    """What a service may answer later looks at a thread that was stopped."""
    control.set(stopped_thread=request.param)
    found: str = request.param
    return found


@pytest.fixture
def short_retry_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeated looks come soon."""
    monkeypatch.setattr(repeats, "FIRST_PAUSE", 0.01)


@pytest.mark.usefixtures("stopped_thread", "short_retry_pauses")
def test_retry_asks_again_if_its_run_is_dead(control: SandboxControl) -> None:
    control.set_breakpoint("mid_stream")
    tries = TaskTries(max_tries=1)
    run = deferred(tries).kwargs["run"]
    control.abort_thread(run["chat_id"])
    control.release()
    found = chat().execute(tries.context())
    assert found["message_id"] != run["message_id"]
    assert statuses(control)[-2:] == ["aborted", "finished"]
    assert tries.store[STORE_KEY]["phase"] == "done"


@pytest.mark.usefixtures("short_retry_pauses")
def test_retry_asks_again_if_its_run_ended_without_an_answer(
    control: SandboxControl,
) -> None:
    control.fault("no_final")
    control.set_breakpoint("mid_stream")
    tries = TaskTries(max_tries=1)
    run = deferred(tries).kwargs["run"]
    control.release()
    found = chat().execute(tries.context())
    assert found["message_id"] != run["message_id"]
    assert statuses(control) == ["finished", "finished"]


@pytest.mark.parametrize("ended", [True, False])
def test_retry_after_the_deadline_polls_once(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch, ended: bool
) -> None:
    if not ended:
        monkeypatch.setattr(
            "airflow_provider_platform.resources.chat.call.SINGLE_POLL_SECONDS", 1.0
        )
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    run = deferred(tries).kwargs["run"]
    tries.store[STORE_KEY]["ids"]["submitted_at"] -= 3600
    if ended:
        control.release()
        control.wait_until(lambda state: state.runs[0].status == "finished")
    found = chat(timeout=1800).execute(tries.context())
    assert statuses(control) == (["finished"] if ended else ["aborted", "finished"])
    assert (found["message_id"] == run["message_id"]) is ended


def lose_connection(control: SandboxControl) -> None:
    """The run is accepted, then the service cannot be reached until the try gives up."""
    control.set_breakpoint("mid_stream")
    control.fault("cut", after=4)
    control.fault("status", api="chat", has_input=False, status=503, retry_after=0, count=6)


class StoreOfIntents(StateStore):
    """Takes the record before the submission and none that names the thread."""

    def set(self, key: str, value: Any) -> None:
        if value["ids"].get("chat_id"):
            raise ConnectionError("Airflow's API server does not answer")
        super().set(key, value)


@pytest.mark.parametrize("why", ["last try", "no store", "no record"])
def test_failed_try_stops_a_run_that_no_retry_finds(control: SandboxControl, why: str) -> None:
    lose_connection(control)
    tries = TaskTries(store=why != "no store", max_tries=0 if why == "last try" else 2)
    if why == "no record":
        tries.store = StoreOfIntents()
    with pytest.raises(PlatformServerError):
        chat().execute(tries.context())
    assert statuses(control) == ["aborted"]


class Policy:
    """A retry policy with one answer."""

    def __init__(self, action: str | Exception, max_reschedules: int | None = None) -> None:
        self.action = action
        self.max_reschedules = max_reschedules
        self.asked: list[BaseException] = []

    def evaluate(self, *, exception: BaseException, **_: Any) -> Any:
        self.asked.append(exception)
        if isinstance(self.action, Exception):
            raise self.action
        return SimpleNamespace(
            action=SimpleNamespace(value=self.action),
            max_reschedules=self.max_reschedules,
            reschedule_timeout=None,
        )


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("action", "status"),
    [
        ("fail", "aborted"),
        ("retry", "streaming"),
        ("default", "streaming"),
        (ValueError("broken policy"), "streaming"),
    ],
)
def test_a_failed_try_stops_its_run_if_the_retry_policy_refuses_a_retry(
    control: SandboxControl, action: Any, status: str
) -> None:
    lose_connection(control)
    operator = chat()
    operator.retry_policy = policy = Policy(action)
    with pytest.raises(PlatformServerError):
        operator.execute(TaskTries().context())
    assert statuses(control) == [status]
    assert [type(error) for error in policy.asked] == [PlatformServerError]


@pytest.mark.parametrize("rescheduled", [0, 1])
def test_rescheduled_try_follows_its_run_though_no_retry_is_left(
    control: SandboxControl, rescheduled: int
) -> None:
    """A policy of Airflow 3.4 reschedules the try once: it goes on with the same number."""
    lose_connection(control)
    tries = TaskTries(max_tries=0)
    context = {**tries.context(), "task_reschedule_count": rescheduled}
    operator = chat()
    operator.retry_policy = Policy("reschedule", max_reschedules=1)
    with pytest.raises(PlatformServerError):
        operator.execute(context)
    if rescheduled:  # as often as the policy allows: this was the last try
        assert statuses(control) == ["aborted"]
        return
    assert statuses(control) == ["streaming"]
    control.release()
    assert chat().execute(context)["answer"]
    assert len(statuses(control)) == 1


@pytest.mark.parametrize(
    ("failing", "status"),
    [("PlatformServerError", "aborted"), ("PlatformDeadlineError", "streaming")],
)
def test_airflows_own_retry_policy_decides_by_the_error_whether_the_run_is_stopped(
    control: SandboxControl, failing: str, status: str
) -> None:
    policies = pytest.importorskip("airflow.sdk.definitions.retry_policy")
    lose_connection(control)
    operator = chat()
    refused = f"airflow_provider_platform.client.errors.{failing}"
    rule = policies.RetryRule(exception=refused, action=policies.RetryAction.FAIL)
    operator.retry_policy = policies.ExceptionRetryPolicy(rules=[rule])
    with pytest.raises(PlatformServerError):
        operator.execute(TaskTries().context())
    assert statuses(control) == [status]


@pytest.mark.parametrize(("cleared", "runs"), [(True, 2), (False, 1)])
def test_clear_is_distinguished_from_a_retry_after_retries_was_lowered(
    control: SandboxControl, cleared: bool, runs: int
) -> None:
    """Clearing after the first try with two retries sets max_tries to 3, which it was before."""
    lose_connection(control)
    tries = TaskTries(max_tries=3)
    with pytest.raises(PlatformServerError):
        chat().execute(tries.context())
    control.release()
    tries.retries = 2
    if cleared:
        tries.clear()
    chat().execute(tries.context())
    assert len(statuses(control)) == runs


@pytest.mark.exhaustive
@pytest.mark.usefixtures("task_state")
def test_retry_waits_for_a_run_that_nothing_may_stop_at_its_deadline(
    control: SandboxControl,
) -> None:
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    operator = chat(timeout=3, cancel_on_kill=False)
    with pytest.raises(PlatformDeadlineError):
        operator.execute(tries.context())
    assert control.state().aborts == []
    assert statuses(control) == ["streaming"]
    control.release()
    operator.execute(tries.context())
    assert statuses(control) == ["finished"]


def test_whole_answer_is_the_result_although_the_service_names_no_thread(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    records = [cutoff(chat_id=None), *Turn().records(), *Turn().end()]
    stream = answer(body=b"".join(json.dumps(record).encode() + b"\n" for record in records))
    with serving(stream) as server:
        extra = {"chat_url": f"{server.url}/chat", "chat_api_key": "canary-secret"}
        connection = {"conn_type": "platform", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(connection))
        user = {"externalId": "nightly"}
        asking = chat(prompt=PROMPT, message_id=MESSAGE_ID, session_settings=user)
        assert asking.execute(TaskTries().context())["answer"] == EXPECTED["answer"]
    assert len(server.requests) == 1


@pytest.mark.usefixtures("task_state")
def test_kill_before_the_record_is_written_sends_nothing(control: SandboxControl) -> None:
    operator = chat()

    def kill(*_: Any) -> None:
        operator.on_kill()
        raise InterruptedError

    tries = TaskTries()
    tries.store.set = kill  # type: ignore[method-assign]
    with pytest.raises(InterruptedError):
        operator.execute(tries.context())
    assert control.state().messages == []
    assert control.state().aborts == []


def test_refused_credential_in_mid_run_fails_the_task_without_a_retry(
    control: SandboxControl,
) -> None:
    control.fault("cut", after=4)
    control.fault("jsonrpc", api="chat", has_input=False, count=None)
    with pytest.raises(AirflowFailException):
        chat().execute(TaskTries().context())
    assert len(control.state().messages) == 1


def test_each_try_asks_again_without_a_task_state_store(control: SandboxControl) -> None:
    """Before Airflow 3.3."""
    control.fault("error", after=4)
    tries = TaskTries(store=False)
    with pytest.raises(ChatStreamError):
        chat().execute(tries.context())
    chat().execute(tries.context())
    assert statuses(control) == ["failed", "finished"]


def large_event(
    control: SandboxControl, tries: TaskTries, monkeypatch: pytest.MonkeyPatch
) -> tuple[TaskDeferred, dict[str, Any]]:
    """A deferred chat whose result is too large for an event: its deferral and that event."""
    monkeypatch.setattr("airflow_provider_platform.resources.chat.run.MAX_EVENT_BYTES", 0)
    waiting = deferral_while_stopped(control, chat(deferrable=True).execute, tries.context())

    async def only_event() -> Any:
        async for event in waiting.trigger.run():
            return event.payload
        return None

    event = asyncio.run(only_event())
    assert (event["status"], event["result"]) == ("success", None)
    return waiting, event


def resumed(tries: TaskTries, waiting: Any, event: Any) -> Any:
    """The result of a chat after its trigger's event."""
    complete = chat(deferrable=True).execute_complete
    return complete(tries.context(), event=event, run=waiting.kwargs["run"])


def test_a_result_too_large_for_an_event_has_the_queries_of_the_synchronous_mode(
    control: SandboxControl,
    monkeypatch: pytest.MonkeyPatch,
    capture: Capture,
) -> None:
    expected = chat().execute(TaskTries().context())
    tries = TaskTries()
    result = resumed(tries, *large_event(control, tries, monkeypatch))
    assert expected["queries"]
    for one in (*expected["queries"], *result["queries"]):
        one.pop("uuid")
    assert result["queries"] == expected["queries"]
    assert result["answer"] == expected["answer"]
    assert "queries missing" not in "\n".join(capture.lines())


def test_warning_counts_the_queries_that_the_thread_no_longer_has(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch, capture: Capture
) -> None:
    tries = TaskTries()
    waiting, event = large_event(control, tries, monkeypatch)
    control.set(replay="none")
    held = event["queries"]
    assert held > 0
    result = resumed(tries, waiting, event)
    said = "\n".join(capture.lines())
    assert (bool(result["answer"]), result["queries"]) == (True, [])
    assert f"queries missing from the result: {held} of {held}." in said
    assert "run the task with deferrable=False" in said
