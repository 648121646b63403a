"""Breakpoints: the sandbox stops at a chosen moment until the test releases it."""

from __future__ import annotations

import json
import threading

import httpx
import pytest

from airflow_provider_platform.sandbox import SandboxControlError
from tests.support.raw_client import Platform, answer, ids

MESSAGE = "1732512345678-message"


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("after_cutoff", "__cutoff__"),
        ("after_echo", MESSAGE),
        ("mid_stream", "text"),
        ("before_final", "tool"),
        ("after_final", "final"),
        ("before_state", "final"),
    ],
)
def test_breakpoint_stops_a_run(platform: Platform, name: str, last: str) -> None:
    platform.control.set_breakpoint(name)
    with platform.stream(input="revenue by country", messageId=MESSAGE) as response:
        lines = response.iter_lines()
        thread = json.loads(next(lines))["state"]["chatId"]
        (hit,) = platform.control.wait_for_breakpoint(name)
        assert (hit.chat_id, hit.message_id) == (thread, MESSAGE)
        (run,) = platform.control.state().runs
        seen = [json.loads(next(lines)) for _ in range(run.records)]
        newest = seen[-1] if seen else {"id": "__cutoff__"}
        kind = {
            "tool": newest.get("toolCall", {}).get("result") is not None,
            "final": newest.get("graphPath") == ["final"] and not newest["isDelta"],
            "text": newest.get("content", "").startswith("model first"),
        }
        assert newest["id"] == last or kind.get(last)
        assert platform.control.release(name) == 1
        rest = [json.loads(line) for line in lines]
    assert ids(rest)[-1] == "__usage__"


@pytest.mark.parametrize(("name", "processed"), [("before_call", 0), ("before_answer", 1)])
def test_breakpoint_stops_a_request(platform: Platform, name: str, processed: int) -> None:
    platform.control.set_breakpoint(name, method="POST", path="dbt-sync$")
    responses: list[httpx.Response] = []
    caller = threading.Thread(
        target=lambda: responses.append(platform.call("POST", "deployments/1/dbt-sync"))
    )
    caller.start()
    (hit,) = platform.control.wait_for_breakpoint(name)
    assert (hit.method, hit.path) == ("POST", "/api/v1/deployments/1/dbt-sync")
    assert len(platform.control.state().syncs) == processed
    platform.control.release(name)
    caller.join()
    assert responses[0].status_code == 200
    assert len(platform.control.state().syncs) == 1


@pytest.mark.parametrize("process", [True, False])
def test_client_may_disconnect_at_a_breakpoint(platform: Platform, process: bool) -> None:
    platform.control.set_breakpoint("before_call", has_input=True, process_disconnected=process)
    impatient = httpx.Timeout(30, read=0.05)
    with pytest.raises(httpx.ReadTimeout):
        platform.http.post(
            f"{platform.sandbox.chat_url}/stream-chat-state",
            json={"input": "revenue by country", "sessionSettings": {"externalId": "a"}},
            headers=platform.key,
            timeout=impatient,
        )
    if process:
        platform.control.wait_for_breakpoint("before_call")
        platform.control.release()
        platform.control.wait_until(lambda state: bool(state.runs))
    else:
        state = platform.control.wait_until(lambda state: state.requests[0].ended is not None)
        platform.control.release()
        assert (state.requests[0].ended, state.messages) == ("disconnected", [])


def test_breakpoint_stops_one_request_and_lets_others_continue(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo", text="country")
    assert answer(platform.ask("top 5 products"))
    with platform.stream(input="revenue by country"):
        platform.control.wait_for_breakpoint("after_echo")
        assert answer(platform.ask("revenue by country"))


def test_waiting_for_a_breakpoint_times_out(platform: Platform) -> None:
    platform.control.set_breakpoint("before_final")
    with pytest.raises(TimeoutError, match="before_final"):
        platform.control.wait_for_breakpoint("before_final", timeout=0.05)
    with pytest.raises(TimeoutError, match="condition"):
        platform.control.wait_until(lambda state: bool(state.runs), timeout=0.05)
    with pytest.raises(SandboxControlError, match="no breakpoint is set at after_echo"):
        platform.control.wait_for_breakpoint("after_echo")
    with pytest.raises(ValueError, match="no breakpoint 'somewhere'"):
        platform.control.set_breakpoint("somewhere")


def test_reset_ends_streams_stopped_at_a_breakpoint(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country") as response:
        lines = response.iter_lines()
        next(lines)
        platform.control.wait_for_breakpoint("after_echo")
        platform.control.reset()
        with pytest.raises(httpx.RemoteProtocolError):
            list(lines)
    assert platform.control.state().runs == []
    assert answer(platform.ask("revenue by country"))
