"""What happens between sending a submission and its confirmation by the service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client import repeats
from airflow_provider_platform.client.errors import (
    PlatformDeadlineError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from tests.support.remote_tasks import LOOK, PROMPT, chat
from tests.support.task_context import StateStore, TaskTries
from tests.support.wire.http_server import Exchange, answer, serving

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

REFUSALS: dict[str, dict[str, Any]] = {
    "400": {"kind": "status", "status": 400},
    "403": {"kind": "status", "status": 403},
    "HTML": {"kind": "html"},
    "JSON-RPC": {"kind": "jsonrpc"},
}
"""What no repetition of the same request mends."""


@pytest.fixture(autouse=True)
def short_retry_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Repeats come soon: what is tested is what they lead to."""
    monkeypatch.setattr(repeats, "FIRST_PAUSE", 0.01)


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_retry_stops_the_run_if_its_search_is_refused(
    control: SandboxControl, refusal: dict[str, Any]
) -> None:
    control.set_breakpoint("after_cutoff")
    control.fault("cut", after=1)
    control.fault(**refusal, **LOOK, count=None)
    tries = TaskTries()
    with pytest.raises(PlatformTransportError, match="A retry looks for the message"):
        chat().execute(tries.context())
    with pytest.raises(AirflowFailException):
        chat().execute(tries.context())
    assert [run.status for run in control.state().runs] == ["aborted"]


def test_retry_reuses_the_message_id_after_an_invalid_stream_without_a_chat_id(
    control: SandboxControl,
) -> None:
    control.fault("broken_json", has_input=True)
    tries = TaskTries()
    with pytest.raises(PlatformProtocolError):
        chat().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"
    sent = tries.store[STORE_KEY]["ids"]["message_id"]
    assert chat().execute(tries.context())["message_id"] == sent


def test_question_is_sent_to_another_thread_if_the_first_does_not_exist(
    control: SandboxControl,
) -> None:
    control.fault("cut", after=1)
    control.fault("status", **LOOK, status=404)
    result = chat().execute(TaskTries().context())
    first, second = control.state().messages
    assert first.message_id == second.message_id == result["message_id"]
    assert result["chat_id"] == second.chat_id != first.chat_id


class WrittenThreads(StateStore):
    """Remembers the thread of every write."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[str | None] = []

    def set(self, key: str, value: Any) -> None:
        super().set(key, value)
        self.threads.append(value["ids"].get("chat_id"))


def test_id_of_the_second_thread_is_recorded(
    control: SandboxControl,
) -> None:
    control.fault("cut", after=1, has_input=True, count=2)
    control.fault("status", **LOOK, status=404)
    control.fault("drop", **LOOK, nth=2, count=20)
    tries = TaskTries()
    tries.store = written = WrittenThreads()
    with pytest.raises(PlatformTransportError, match="A retry looks for the message"):
        chat().execute(tries.context())
    first, second = (message.chat_id for message in control.state().messages)
    assert written.threads == [None, first, second]
    control.clear_faults()
    assert chat().execute(tries.context())["chat_id"] == second
    assert len(control.state().messages) == 2


class UnreachableAtFirst(StateStore):
    """Cannot be reached for the second and the third write."""

    writes = 0

    def set(self, key: str, value: Any) -> None:
        self.writes += 1
        if self.writes in (2, 3):
            raise ConnectionError("Airflow's API server does not answer")
        super().set(key, value)


def test_unwritten_record_is_written_at_the_end_of_the_try(control: SandboxControl) -> None:
    control.set(pace=0.05)
    control.fault("cut", after=3, has_input=True)
    control.fault("drop", **LOOK, count=6)
    tries = TaskTries()
    tries.store = UnreachableAtFirst()
    with pytest.raises(PlatformTransportError):
        chat().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    assert chat().execute(tries.context())["answer"]
    assert len(control.state().messages) == len(control.state().runs) == 1


def test_message_without_a_known_thread_is_repeated_under_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def response(message_id: str) -> bytes:
        mark = {"id": "__cutoff__", "role": "assistant", "state": {"isStreaming": True}}
        own = {"id": message_id, "role": "user", "sort": 1, "content": PROMPT}
        return b"".join(json.dumps(record).encode() + b"\n" for record in (mark, own))

    def cut(exchange: Exchange) -> None:
        answer(body=response(json.loads(exchange.request.body)["messageId"]), length=10**6)(
            exchange
        )

    with serving(cut, cut) as server:
        monkeypatch.setenv(
            "AIRFLOW_CONN_PLATFORM_DEFAULT",
            json.dumps(
                {
                    "conn_type": "platform",
                    "extra": {
                        "chat_url": f"{server.url}/chat",
                        "chat_api_key": "key-key-key",
                        "session_settings": {"externalId": "tests"},
                    },
                }
            ),
        )
        tries = TaskTries()
        for _ in range(2):
            with pytest.raises(PlatformTransportError, match="may still be running"):
                chat().execute(tries.context())
            assert tries.store[STORE_KEY]["phase"] == "intent"
        first, second = (json.loads(request.body) for request in server.requests)
    assert first == second


def test_run_with_known_thread_is_stopped_after_an_invalid_stream(
    control: SandboxControl,
) -> None:
    control.set(pace=0.2)
    control.fault("broken_json", after=1)
    with pytest.raises(PlatformProtocolError):
        chat().execute(TaskTries().context())
    assert [run.status for run in control.state().runs] == ["aborted"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("given", [False, True])
def test_hook_stops_a_run_with_a_chat_id_that_was_not_accepted(
    control: SandboxControl, given: bool
) -> None:
    chat_id = chat().execute(TaskTries().context())["chat_id"] if given else None
    control.set(pace=1)
    control.fault("silence", after=1, has_input=True)
    with pytest.raises(PlatformDeadlineError):
        PlatformHook().chat(PROMPT, chat_id=chat_id, timeout=3)
    assert control.state().runs[-1].status == "aborted"
