"""Each fault does what its name says, for the selected requests, and as often as requested."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from airflow_provider_platform.sandbox import Fault, SandboxControlError
from tests.support.raw_client import USER, Platform, answer, chat_id, ids, records, results

MESSAGE = "1732512345678-message"


def connect(platform: Platform, **body: Any) -> socket.socket:
    """Send a question over a bare socket."""
    target = urlsplit(platform.sandbox.chat_url)
    content = json.dumps({"sessionSettings": USER, **body}).encode()
    head = (
        f"POST {target.path}/stream-chat-state HTTP/1.1\r\nHost: {target.netloc}\r\n"
        f"Authorization: Api-Key {platform.sandbox.chat_api_key}\r\n"
        "Content-Type: application/json\r\nConnection: close\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    connection = socket.create_connection((target.hostname, target.port), timeout=30)
    connection.sendall(head.encode() + content)
    return connection


def raw(platform: Platform, **body: Any) -> tuple[bytes, bool]:
    """Ask over a bare socket; returns what came and whether the connection was reset."""
    received = b""
    with connect(platform, **body) as connection:
        while True:
            try:
                data = connection.recv(65536)
            except ConnectionResetError:
                return received, True
            if not data:
                return received, False
            received += data


def lines_of(response: bytes) -> list[bytes]:
    """The lines of a chunked answer, the last one possibly incomplete."""
    _, _, rest = response.partition(b"\r\n\r\n")
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body.split(b"\n")


@pytest.mark.parametrize("after", [0, 1, 2, 5, 19, 20])
def test_fault_cut_ends_the_stream_after_a_record(platform: Platform, after: int) -> None:
    platform.control.fault("cut", after=after)
    received, reset = raw(platform, input="revenue by country")
    lines = lines_of(received)
    assert (len(lines) - 1, lines[-1], reset) == (after, b"", False)
    assert not received.endswith(b"0\r\n\r\n")
    state = platform.control.wait_until(lambda state: state.runs[0].status == "finished")
    assert state.requests[0].ended == "cut"


def test_fault_cut_can_reset_the_connection(platform: Platform) -> None:
    platform.control.fault("cut", after=2, reset=True)
    received, reset = raw(platform, input="revenue by country")
    assert reset
    assert len(lines_of(received)) == 3


def test_fault_cut_can_break_a_line_or_a_character(platform: Platform) -> None:
    platform.control.fault("cut", after=3, bytes=17)
    lines = lines_of(raw(platform, input="revenue by country")[0])
    assert (len(lines), len(lines[-1])) == (4, 17)

    platform.control.fault("cut", after=3, inside_character=True)
    last = lines_of(raw(platform, input="revenue by country")[0])[-1]
    with pytest.raises(UnicodeDecodeError, match="unexpected end of data"):
        last.decode()


def test_fault_close_ends_the_stream_without_state(platform: Platform) -> None:
    platform.control.fault("close", after=4)
    received, _ = raw(platform, input="revenue by country")
    assert received.endswith(b"0\r\n\r\n")
    assert len(lines_of(received)) == 5


def test_fault_silence_lasts_until_it_is_released(platform: Platform) -> None:
    fault = platform.control.fault("silence", after=2)
    with platform.stream(input="revenue by country") as response:
        lines = response.iter_lines()
        assert [json.loads(next(lines)).get("sort") for _ in range(2)] == [0, 1]
        platform.control.wait_until(lambda state: state.runs[0].status == "finished")
        platform.control.release_fault(fault)
        assert json.loads(list(lines)[-1])["id"] == "__usage__"


def test_fault_blank_lines_lasts_until_it_is_released(platform: Platform) -> None:
    platform.control.fault("blank_lines", after=2, interval=0.01)
    with platform.stream(input="revenue by country") as response:
        lines = response.iter_lines()
        assert [next(lines) == "" for _ in range(6)] == [False, False, True, True, True, True]
        platform.control.clear_faults()
        assert json.loads(list(lines)[-1])["id"] == "__usage__"


def test_fault_broken_json_spoils_one_line(platform: Platform) -> None:
    platform.control.fault("broken_json", after=3)
    lines = platform.chat(input="revenue by country").content.split(b"\n")
    with pytest.raises(ValueError, match=r"Unterminated|Expecting|delimiter"):
        json.loads(lines[3])
    assert json.loads(lines[4])


def test_fault_gzip_compresses_and_dribble_sends_single_bytes(platform: Platform) -> None:
    platform.control.fault("gzip")
    platform.control.fault("dribble")
    response = platform.chat(input="revenue by country")
    assert response.headers["content-encoding"] == "gzip"
    assert answer(records(response.content))

    platform.control.fault("dribble")
    with platform.stream(input="hello") as stream:
        pieces = list(stream.iter_raw())
    assert ids(records(b"".join(pieces)))[-1] == "__usage__"


@pytest.mark.parametrize(
    ("parameters", "status", "body"),
    [
        ({"kind": "status"}, 503, "json"),
        ({"kind": "status", "status": 429, "retry_after": 7}, 429, "json"),
        ({"kind": "status", "status": 500, "body": "html"}, 500, "html"),
        ({"kind": "status", "status": 502, "body": "empty"}, 502, "empty"),
        ({"kind": "html"}, 200, "html"),
        ({"kind": "redirect"}, 302, "empty"),
        ({"kind": "redirect", "status": 307}, 307, "empty"),
        ({"kind": "jsonrpc"}, 200, "json"),
    ],
)
@pytest.mark.parametrize("api", ["chat", "management"])
def test_answer_fault_replaces_the_response(
    platform: Platform, api: str, parameters: dict[str, Any], status: int, body: str
) -> None:
    platform.control.fault(api=api, **parameters)
    response = (
        platform.chat(input="revenue by country")
        if api == "chat"
        else platform.call("POST", "deployments/1/dbt-sync")
    )
    assert response.status_code == status
    assert response.headers.get("retry-after") == ("7" if status == 429 else None)
    if status in (302, 307):
        assert response.headers["location"].startswith("http")
    if body == "json":
        assert "error" in response.json()
    else:
        assert response.text.startswith("<!doctype" if body == "html" else "")
    state = platform.control.state()
    assert (state.messages, state.runs, state.syncs) == ([], [], [])


def test_fault_status_can_send_retry_after_as_a_date(platform: Platform) -> None:
    platform.control.fault("status", retry_after=100, retry_after_form="date")
    given = platform.chat(input="x").headers["retry-after"]
    assert 90 < parsedate_to_datetime(given).timestamp() - time.time() <= 100


def test_everything_is_sent_before_a_run_stops_at_a_breakpoint(platform: Platform) -> None:
    platform.control.fault("dribble")
    platform.control.set_breakpoint("mid_stream", after=6)
    with connect(platform, input="revenue by country") as connection:
        platform.control.wait_for_breakpoint("mid_stream")
        connection.setblocking(False)
        received = b""
        with contextlib.suppress(BlockingIOError):
            while data := connection.recv(65536):
                received += data
    assert len(lines_of(received)) == 8


def test_fault_odd_field_changes_the_response_of_a_processed_request(platform: Platform) -> None:
    platform.control.fault("odd_field", field="items.1.name", value={"text": "x"}, path="workbooks")
    platform.control.fault("odd_field", field="nothing.here.2", value=1, path="workbooks")
    listed = platform.call("GET", "deployments/1/workbooks").json()
    assert listed["items"][1]["name"] == {"text": "x"}
    assert "nothing" not in listed
    again = platform.call("GET", "deployments/1/workbooks").json()
    assert again["items"][1]["name"] == "Customer health"
    with pytest.raises(ValueError, match="odd_field needs the field"):
        platform.control.fault("odd_field", value=1)


@pytest.mark.parametrize(
    ("kind", "after", "changed"),
    [
        ("close", 0, lambda _: b""),
        ("gzip", 0, lambda whole: whole),
        ("broken_json", 0, lambda whole: whole[: len(whole) // 2] + b"\n"),
        ("error_line", 0, lambda _: b'{"error": "the service failed"}\n'),
        ("error_line", 5, lambda whole: whole + b'{"error": "the service failed"}\n'),
    ],
)
def test_fault_that_changes_the_length_changes_a_response_of_known_length(
    platform: Platform, kind: str, after: int, changed: Any
) -> None:
    whole = platform.call("GET", "deployments/1/workbooks").content
    parts = {"message": "the service failed"} if kind == "error_line" else {}
    platform.control.fault(kind, after=after, path="workbooks", **parts)
    assert platform.call("GET", "deployments/1/workbooks").content == changed(whole)


def test_fault_lost_processes_the_request_and_drop_does_not(platform: Platform) -> None:
    platform.control.fault("lost_response", method="POST", path="/dbt-sync$")
    with pytest.raises(httpx.RemoteProtocolError):
        platform.call("POST", "deployments/1/dbt-sync")
    platform.control.fault("drop", method="POST", path="/dbt-sync$")
    with pytest.raises(httpx.RemoteProtocolError):
        platform.call("POST", "deployments/1/dbt-sync")
    state = platform.control.state()
    assert len(state.syncs) == 1
    assert [request.status for request in state.requests] == [None, None]
    assert [request.ended for request in state.requests] == ["cut", "cut"]


def test_fault_affects_only_the_selected_requests(platform: Platform) -> None:
    platform.control.fault("status", has_input=False, nth=2, count=2)
    thread = chat_id(platform.ask("revenue by country"))

    def look() -> int:
        return platform.chat(chatId=thread).status_code

    assert [look() for _ in range(5)] == [200, 503, 503, 200, 200]
    platform.control.fault("status", chat_id=thread, count=None)
    assert platform.ask("revenue by country")
    assert [look() for _ in range(3)] == [503, 503, 503]
    assert [status.hits for status in platform.control.faults()] == [2, 3]
    platform.control.clear_faults()
    assert look() == 200


@pytest.mark.parametrize(
    ("form", "after", "expected"),
    [("line", 0, "error"), ("line", 6, "error"), ("jsonrpc", 6, "jsonrpc")],
)
def test_fault_error_ends_the_run_with_an_error(
    platform: Platform, form: str, after: int, expected: str
) -> None:
    platform.control.fault("error", form=form, after=after, message="out of tokens")
    stream = platform.ask("revenue by country", messageId=MESSAGE)
    assert len(stream) == after + 2
    assert expected in stream[-1]
    assert "out of tokens" in json.dumps(stream[-1])
    assert platform.control.state().runs[0].status == "failed"
    assert answer(platform.ask("and by product?", chatId=chat_id(stream))) is not None


def test_suspended_run_is_resumed_by_a_follow_up(platform: Platform) -> None:
    platform.control.fault("suspend", after=5, resume="follow_up")
    first = platform.ask("revenue by country", messageId=MESSAGE)
    assert ids(first)[-1] == "__suspended__"
    thread = chat_id(first)
    other = records(platform.chat(chatId=thread).content)
    assert ids(other)[-1] == "__state__"
    second = records(platform.chat(chatId=thread, messageId=MESSAGE).content)
    assert answer(second)
    assert [run.status for run in platform.control.state().runs] == ["finished"]


def test_slow_stream_still_ends_at_the_suspension(platform: Platform) -> None:
    platform.control.fault("suspend", after=5, resume="follow_up")
    silence = platform.control.fault("silence", after=3)
    with platform.stream(input="revenue by country", messageId=MESSAGE) as first:
        lines = first.iter_lines()
        thread = json.loads(next(lines))["state"]["chatId"]
        platform.control.wait_until(lambda state: state.runs[0].status == "suspended")
        assert answer(records(platform.chat(chatId=thread, messageId=MESSAGE).content))
        platform.control.release_fault(silence)
        assert json.loads(list(lines)[-1])["id"] == "__suspended__"


def test_suspended_run_is_resumed_by_the_repeated_input(platform: Platform) -> None:
    platform.control.fault("suspend", after=5)
    thread = chat_id(platform.ask("revenue by country", messageId=MESSAGE))
    still = records(platform.chat(chatId=thread, messageId=MESSAGE).content)
    assert ids(still)[-1] == "__suspended__"
    resumed = platform.ask("revenue by country", chatId=thread, messageId=MESSAGE)
    assert answer(resumed)
    state = platform.control.state()
    assert [message.outcome for message in state.messages] == ["started", "resumed"]
    assert len(state.runs) == 1


@pytest.mark.parametrize(("hours", "outcome"), [(23, "resumed"), (25, "started")])
def test_a_suspended_run_can_be_resumed_for_a_day(
    platform: Platform, hours: int, outcome: str
) -> None:
    platform.control.fault("suspend", after=5)
    thread = chat_id(platform.ask("revenue by country", messageId=MESSAGE))
    platform.control.advance(hours * 3600)
    assert answer(platform.ask("revenue by country", chatId=thread, messageId=MESSAGE))
    assert platform.control.state().messages[-1].outcome == outcome


def test_new_message_replaces_a_suspended_run(platform: Platform) -> None:
    platform.control.fault("suspend", after=5, resume="input")
    thread = chat_id(platform.ask("revenue by country", messageId=MESSAGE))
    assert answer(platform.ask("top 5 products", chatId=thread))
    assert [run.status for run in platform.control.state().runs] == ["failed", "finished"]


def test_fault_abort_stops_the_run(platform: Platform) -> None:
    platform.control.fault("abort", after=5)
    assert ids(platform.ask("revenue by country"))[-1] == "__aborted__"
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country") as response:
        lines = response.iter_lines()
        thread = json.loads(next(lines))["state"]["chatId"]
        platform.control.wait_for_breakpoint("after_echo")
        platform.control.abort_thread(thread)
        assert json.loads(list(lines)[-1])["id"] == "__aborted__"


@pytest.mark.parametrize(
    ("stopped_thread", "end"),
    [("state", "__state__"), ("aborted", "__aborted__"), ("close", "__cutoff__")],
)
def test_read_of_a_stopped_thread_ends_as_the_setting_says(
    platform: Platform, stopped_thread: str, end: str
) -> None:
    platform.control.set(stopped_thread=stopped_thread)
    platform.control.fault("abort", after=5)
    thread = chat_id(platform.ask("revenue by country", messageId=MESSAGE))
    looked_at = records(platform.chat(chatId=thread, messageId=MESSAGE).content)
    assert (looked_at[0]["id"], looked_at[-1]["id"]) == (MESSAGE, end)
    mark = next(record for record in looked_at if record["id"] == "__cutoff__")
    assert mark["state"]["isStreaming"] is False
    assert answer(platform.ask("top 5 products", chatId=thread))
    later = records(platform.chat(chatId=thread).content)
    assert later[-1]["id"] == "__state__"


@pytest.mark.parametrize("kind", ["no_answer", "no_final"])
def test_faults_can_end_a_run_without_an_answer(platform: Platform, kind: str) -> None:
    platform.control.fault(kind)
    stream = platform.ask("revenue by country", messageId=MESSAGE)
    assert answer(stream) is None
    assert ids(stream)[-2:] == ["__state__", "__usage__"]
    last = stream[-2]["state"]["messages"][-1]
    assert last["id"][-1] == ("HumanMessage" if kind == "no_answer" else "ToolMessage")
    later = records(platform.chat(chatId=chat_id(stream)).content)
    assert later[-1] == stream[-2]


def test_fault_can_keep_half_of_the_answer(platform: Platform) -> None:
    plain = answer(platform.ask("revenue by country")) or ""
    platform.control.fault("deltas_only", kept="half")
    stream = platform.ask("revenue by country")
    assert answer(stream) == plain
    kept = stream[-2]["state"]["messages"][-1]["kwargs"]["content"]
    assert kept == plain[: len(plain) // 2]


def test_fault_can_send_an_error_on_several_lines(platform: Platform) -> None:
    platform.control.fault("jsonrpc", indented=True, message="thread_busy")
    response = platform.chat(input="hello")
    assert response.text.count("\n") > 2
    assert response.json()["error"]["message"] == "thread_busy"


def test_fault_can_leave_out_the_usage(platform: Platform) -> None:
    platform.control.fault("no_usage")
    stream = platform.ask("revenue by country")
    assert answer(stream) is not None
    assert ids(stream)[-1] == "__state__"


def test_fault_can_send_the_answer_only_in_the_state(platform: Platform) -> None:
    platform.control.fault("answer_only_in_state")
    stream = platform.ask("revenue by country")
    assert answer(stream) is None
    assert "€" in stream[-2]["state"]["messages"][-1]["kwargs"]["content"]


def test_faults_in_records_do_not_change_the_answer(platform: Platform) -> None:
    plain = answer(platform.ask("revenue by country"))
    for parameters in (
        {"kind": "deltas_only"},
        {"kind": "decoy_final"},
        {"kind": "same_sort"},
        {"kind": "repeat_deltas"},
        {"kind": "unknown_records"},
        {"kind": "wrong_order", "order": "echo_late"},
        {"kind": "wrong_order", "order": "result_first"},
        {"kind": "wrong_order", "order": "usage_first"},
    ):
        platform.control.fault(**parameters)
        stream = platform.ask("revenue by country", messageId=MESSAGE)
        assert answer(stream) == plain, parameters
        seen = ids(stream)
        if parameters["kind"] == "same_sort":
            assert len({r["sort"] for r in stream if r.get("graphPath") == ["final"]}) == 1
        if parameters["kind"] == "decoy_final":
            assert any(r.get("graphPath") == ["final", "critic", "note"] for r in stream)
        if parameters.get("order") == "usage_first":
            assert seen[-2:] == ["__usage__", "__state__"]
        if parameters.get("order") == "echo_late":
            assert seen.index(MESSAGE) == 2
        if parameters.get("order") == "result_first":
            assert next("result" in r["toolCall"] for r in stream if "toolCall" in r)


def test_faults_can_send_line_separators_and_a_huge_line(platform: Platform) -> None:
    platform.control.fault("line_separators")
    stream = platform.ask("revenue by country")
    assert "\u2028" in (answer(stream) or "")
    assert "\u2028" in stream[-2]["state"]["messages"][-1]["kwargs"]["content"]

    platform.control.fault("huge_line", size=20_000_000)
    response = platform.chat(input="revenue by country")
    assert max(map(len, response.content.split(b"\n"))) > 20_000_000
    assert answer(records(response.content))
    assert results(records(response.content))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"kind": "explode"}, "no fault 'explode'"),
        ({"kind": "cut", "status": 500}, "cut takes no status"),
        ({"kind": "cut", "nth": 0}, "nth counts from 1"),
        ({"kind": "cut", "path": "("}, "not a regular expression"),
        ({"kind": "suspend", "path": "/abort"}, "applies to a run"),
    ],
)
def test_invalid_fault_is_refused(
    platform: Platform, parameters: dict[str, Any], words: str
) -> None:
    with pytest.raises(ValueError, match=words.replace("(", r"\(")):
        Fault(**parameters)
    url = f"{platform.sandbox.url}/sandbox/arm"
    refused = platform.http.post(url, json=parameters)
    assert refused.status_code == 400
    assert words in refused.json()["error"]
    with pytest.raises(SandboxControlError, match="no setting 'speed'"):
        platform.control.set(speed=1)
