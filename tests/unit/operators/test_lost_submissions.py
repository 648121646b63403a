"""What happens between the sending of a submission and the service's word that it is accepted."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client import retry
from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformProtocolError,
    PlatformRateLimitError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._submission import STORE_KEY
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.unit.operators.task_context import StateStore, TaskTries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.operators._remote_run import Work
    from airflow_provider_platform.sandbox.control import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox

OUTAGES: dict[str, dict[str, Any]] = {
    "429": {"kind": "status", "status": 429},
    "503 with Retry-After": {"kind": "status", "status": 503, "retry_after": 0},
    "500": {"kind": "status", "status": 500},
    "no answer": {"kind": "drop"},
}
LOOK = {"api": "chat", "has_input": False}
HISTORY = {"method": "GET", "path": "/dbt-sync$"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats come soon: what is tested is what they lead to."""
    monkeypatch.setattr(retry, "FIRST_PAUSE", 0.01)


@pytest.fixture
def control(platform_sandbox: Sandbox) -> SandboxControl:
    return platform_sandbox.control


class NamingStore(StateStore):
    """Says when the thread of the run is written down."""

    def __init__(self) -> None:
        super().__init__()
        self.named = threading.Event()

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        if value["ids"].get("chat_id") is not None:
            self.named.set()


def chat(**arguments: Any) -> PlatformChatOperator:
    return PlatformChatOperator(
        task_id="ask",
        **{
            "prompt": "revenue by country",
            "poll_interval": 0.05,
            "deferrable": False,
            **arguments,
        },
    )


def sync(**arguments: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(
        task_id="sync", **{"poll_interval": 0.05, "deferrable": False, **arguments}
    )


@pytest.fixture
def task(control: SandboxControl) -> Iterator[Any]:
    """`task(operator)`: its first try, in another thread; the sandbox holds nothing at the end."""
    threads: list[threading.Thread] = []

    def start(operator: Any, tries: TaskTries) -> threading.Thread:
        def run() -> None:
            try:
                operator.execute(tries.context())
            except (PlatformError, AirflowFailException) as error:
                operator.log.info("The try ended: %s", error)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        return threads[-1]

    yield start
    control.release()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.parametrize("given", [False, True])
@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_a_look_up_that_fails_leaves_the_prompt_to_be_looked_up(
    control: SandboxControl, outage: dict[str, Any], given: bool
) -> None:
    chat_id = chat().execute(TaskTries().context())["chat_id"] if given else None
    before = len(control.state().runs)
    control.fault("cut", after=1)
    control.fault(**outage, **LOOK, count=None)
    tries = TaskTries()
    with pytest.raises(PlatformTransportError, match="A retry looks the message up"):
        chat(chat_id=chat_id).execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"
    control.clear_faults()
    result = chat(chat_id=chat_id).execute(tries.context())
    state = control.state()
    assert len(state.messages) == len(state.runs) == before + 1
    assert result["message_id"] == state.runs[-1].message_id


def test_the_last_try_stops_what_it_could_not_look_up(control: SandboxControl) -> None:
    control.set(pace=1)
    control.fault("cut", after=1)
    control.fault("drop", **LOOK, path="/stream-chat-state$", count=None)
    with pytest.raises(PlatformTransportError, match="A retry looks the message up"):
        chat().execute(TaskTries(max_tries=0).context())
    assert [run.status for run in control.state().runs] == ["aborted"]


@pytest.mark.parametrize("outage", OUTAGES.values(), ids=OUTAGES)
def test_a_look_up_that_fails_leaves_the_start_to_be_looked_up(
    control: SandboxControl, outage: dict[str, Any]
) -> None:
    control.fault("lost_response", method="POST", path="/dbt-sync$")
    control.fault(**outage, **HISTORY, nth=2, count=50)
    tries = TaskTries()
    with pytest.raises(PlatformTransportError, match="A retry looks it up"):
        sync().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"
    control.clear_faults()
    result = sync().execute(tries.context())
    (one,) = control.state().syncs
    assert result["sync_job_id"] == one.sync_job_id


def test_a_thread_that_is_gone_is_asked_for_no_more(control: SandboxControl) -> None:
    control.fault("cut", after=1)
    control.fault("status", **LOOK, status=404)
    result = chat().execute(TaskTries().context())
    first, second = control.state().messages
    assert first.message_id == second.message_id == result["message_id"]
    assert result["chat_id"] == second.chat_id != first.chat_id


def test_a_run_that_was_named_and_not_accepted_is_stopped_at_the_deadline(
    control: SandboxControl,
) -> None:
    control.hold("after_cutoff")
    tries = TaskTries()
    with pytest.raises(PlatformDeadlineError, match="was not accepted"):
        chat(timeout=1).execute(tries.context())
    assert [run.status for run in control.state().runs] == ["aborted"]
    assert tries.store[STORE_KEY]["phase"] == "failed"


def test_a_run_whose_stream_breaks_the_contract_is_stopped_when_it_is_named(
    control: SandboxControl,
) -> None:
    control.set(pace=0.2)
    control.fault("broken_json", after=1)
    with pytest.raises(PlatformProtocolError):
        chat().execute(TaskTries().context())
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_a_kill_stops_a_run_that_was_named_and_not_accepted(
    control: SandboxControl, task: Any
) -> None:
    control.hold("after_cutoff")
    operator, tries = chat(), TaskTries()
    tries.store = store = NamingStore()
    task(operator, tries)
    control.wait_held("after_cutoff")
    assert store.named.wait(30)
    operator.on_kill()
    control.wait_until(lambda state: state.runs[0].status == "aborted")


def test_a_chat_that_is_accepted_after_the_kill_is_stopped_then(
    control: SandboxControl, task: Any
) -> None:
    control.hold("before_call", has_input=True)
    control.hold("mid_stream")
    operator = chat()
    task(operator, TaskTries())
    control.wait_held("before_call")
    operator.on_kill()
    control.release("before_call")
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])


def test_a_deferrable_task_does_not_defer_after_the_kill(
    control: SandboxControl, task: Any
) -> None:
    control.hold("before_call", has_input=True)
    control.hold("mid_stream")
    operator = chat(deferrable=True)
    ended = task(operator, TaskTries())
    control.wait_held("before_call")
    operator.on_kill()
    control.release("before_call")
    control.wait_until(lambda state: [run.status for run in state.runs] == ["aborted"])
    ended.join(30)
    assert not ended.is_alive()


def test_a_sync_that_is_started_after_the_kill_is_cancelled_then(
    control: SandboxControl, task: Any
) -> None:
    control.set(dbt_pace=60)
    control.hold("before_answer", method="POST", path="/dbt-sync$")
    operator = sync()
    task(operator, TaskTries())
    control.wait_held("before_answer")
    operator.on_kill()
    control.release("before_answer")
    control.wait_until(lambda state: [one.status for one in state.syncs] == ["CANCELLED"])


class HasEnded(PlatformChatOperator):
    """Its lost run turns out to have ended while it is looked up."""

    def recover(self, work: Work, ids: dict[str, Any]) -> dict[str, Any] | None:
        raise ChatAbortedError("the run was stopped from outside")


def test_a_lost_run_that_has_ended_meanwhile_is_asked_anew_by_the_next_retry(
    control: SandboxControl,
) -> None:
    tries = TaskTries()
    chat().execute(tries.context())
    tries.store[STORE_KEY]["phase"] = "intent"
    with pytest.raises(ChatAbortedError):
        HasEnded(task_id="ask", prompt="revenue by country").execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "failed"
    assert chat().execute(tries.context())["answer"]
    assert len(control.state().runs) == 2


def test_a_stop_reads_a_rotated_key_again(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch, task: Any
) -> None:
    control.hold("mid_stream")
    ended = task(chat(timeout=2), TaskTries())
    control.wait_held("mid_stream")
    control.rotate_chat_key()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(control.connection()))
    ended.join(30)
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_a_refused_start_is_not_repeated_beyond_the_timeout(control: SandboxControl) -> None:
    control.fault("status", method="POST", path="/dbt-sync$", status=429, retry_after=100)
    with pytest.raises(PlatformRateLimitError):
        sync(timeout=5).execute(TaskTries().context())
    assert control.state().syncs == []


def test_the_hook_stops_a_run_that_was_named_and_not_accepted(control: SandboxControl) -> None:
    control.hold("after_cutoff")
    with pytest.raises(PlatformDeadlineError):
        PlatformHook().chat("revenue by country", timeout=1)
    assert [run.status for run in control.state().runs] == ["aborted"]
