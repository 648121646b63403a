"""Bodies that are not one record per line: errors on several lines, busy errors, web pages."""

from __future__ import annotations

import codecs
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatStreamError,
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, chat_error
from airflow_provider_platform.resources.chat.record_reader import MAX_ERROR_LINES, is_busy
from airflow_provider_platform.resources.chat.run_state import Verdict
from airflow_provider_platform.resources.chat.thread import first_record, thread_is_streaming
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    cut_up,
    cutoff,
    echo,
    encode,
    feed,
    final,
    new_run,
)

RPC = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Bad {key}\n[1]"}}
WORDS = "Streaming for thread is in progress"
BUSY_BODIES = [
    WORDS,
    f"Error: {WORDS}",
    WORDS.upper(),
    json.dumps(WORDS),
    json.dumps({"error": WORDS}),
    json.dumps({"error": {"message": WORDS}}, indent=2),
    json.dumps({"message": WORDS}),
    json.dumps({"statusCode": 409, "message": WORDS}),
]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", ["", "\n"])
@pytest.mark.parametrize("indent", [0, 2, "\t"])
@pytest.mark.parametrize("begun", [[], [cutoff()], [cutoff(), echo(), final("Half")]])
def test_error_object_may_span_several_lines(
    begun: list[Any], indent: Any, last: str, line_end: str
) -> None:
    body = json.dumps(RPC, indent=indent).replace("\n", line_end) + last
    run = new_run()
    assert feed(run, encode(*begun), body.encode()) is Verdict.REFUSED
    assert run.connection.error == RPC["error"]
    refusal = new_run()
    assert feed(refusal, encode(*begun), b'{ "error":\n"Out of memory" }') is Verdict.FAILED
    assert refusal.connection.error == "Out of memory"


@given(places=st.lists(st.integers(min_value=0), max_size=20), indent=st.integers(0, 4))
def test_any_pieces_of_an_error_on_several_lines_are_the_same_error(
    places: list[int], indent: int
) -> None:
    body = encode(cutoff()) + json.dumps(RPC, indent=indent).encode()
    run = new_run()
    assert feed(run, *cut_up(body, places)) is Verdict.REFUSED
    assert run.connection.error == RPC["error"]


def test_error_cut_between_its_lines_counts_as_a_broken_connection() -> None:
    lines = json.dumps(RPC, indent=2).encode().splitlines(keepends=True)
    for count in range(1, len(lines)):
        assert feed(new_run(), *lines[:count]) is Verdict.BROKEN


@pytest.mark.parametrize(
    "junk",
    [
        b'{\n"id": "a", "role": "assistant"\n}\n',
        b'{"id": "a", "content": "cut he\n',
        b"{\n" + encode(final("x")),
        b'{"error":\n]\n',
        b"{\n" * (MAX_ERROR_LINES + 1),
        b'{"error": [\n' + b'"' + b"x" * 70_000 + b'",\n',
    ],
    ids=["a record", "inside a text", "a record after it", "not JSON", "lines", "bytes"],
)
def test_other_records_on_several_lines_break_the_protocol_and_name_the_first(junk: bytes) -> None:
    with pytest.raises(
        PlatformProtocolError, match=r"Line 3 of the stream is not valid JSON .error at char"
    ):
        feed(new_run(), encode(cutoff(), echo()), junk)


@pytest.mark.parametrize("last", ["", "\n", "\r\n"])
@pytest.mark.parametrize("begun", [[], [cutoff(streaming=True)]])
@pytest.mark.parametrize("body", BUSY_BODIES)
def test_busy_thread_is_recognized_in_every_form_of_body(
    body: str, begun: list[Any], last: str
) -> None:
    assert feed(new_run(), encode(*begun), (body + last).encode()) is Verdict.BUSY


@pytest.mark.parametrize("content_type", ["application/json", "text/plain", "text/html"])
@pytest.mark.parametrize("status", [200, 400, 409, 500])
@pytest.mark.parametrize("body", BUSY_BODIES)
def test_a_busy_thread_is_recognised_under_every_status_and_content_type(
    body: str, status: int, content_type: str
) -> None:
    headers = {"content-type": content_type}
    assert is_busy(chat_error(CHAT_STREAM, status, headers, body.encode(), now=0.0))


@pytest.mark.parametrize(
    "record",
    [
        echo(prompt=WORDS),
        final(f"It says: {WORDS}"),
        {"id": "note", "message": WORDS},
        {"id": "a", "role": "assistant", "error": WORDS},
    ],
)
def test_record_that_quotes_a_busy_message_is_not_a_refusal(record: Any) -> None:
    assert feed(new_run(), cutoff(), echo(), record) is Verdict.BROKEN
    cut = json.dumps(record).encode()[:-1]
    assert feed(new_run(), cutoff(), echo(), cut) is Verdict.BROKEN


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (json.dumps(RPC, indent=2), ChatRpcError),
        ('{\n"error": "Out of memory"\n}\n', ChatStreamError),
        ("<!doctype html>\n<html>", PlatformAddressError),
        ("\n \n<html>\n", PlatformAddressError),
        ("\ufeff<html>\n", PlatformAddressError),
        ("Bad gateway\n", PlatformProtocolError),
    ],
)
def test_poll_raises_an_error_or_page_sent_instead_of_the_thread(
    body: str, error: type[PlatformError]
) -> None:
    service = PlayedService(scripted=[[body.encode()]])
    with pytest.raises(error):
        drive(thread_is_streaming(api_with(service.clock), CHAT_ID, None, timeout=9.0), service)


def test_only_the_first_bytes_can_be_a_web_page() -> None:
    with pytest.raises(PlatformProtocolError, match="Line 2"):
        feed(new_run(), cutoff(), b"<html>\n")
    service = PlayedService(scripted=[[cutoff(), b"<html>\n"]])
    with pytest.raises(PlatformProtocolError, match="Line 2"):
        drive(first_record(api_with(service.clock), {}, lambda _: False, seconds=9.0), service)


@pytest.mark.parametrize("indent", [None, 0, 2])
@pytest.mark.parametrize("mark_ends", ["", " ", "\n", "\r\n"])
@pytest.mark.parametrize("begun", [[], [cutoff()]])
def test_an_error_object_after_a_byte_order_mark_is_read(
    begun: list[Any], mark_ends: str, indent: int | None
) -> None:
    body = codecs.BOM_UTF8 + mark_ends.encode() + json.dumps(RPC, indent=indent).encode()
    run = new_run()
    assert feed(run, encode(*begun), body) is Verdict.REFUSED
    assert run.connection.error == RPC["error"]
    assert feed(new_run(), *cut_up(encode(*begun) + body, [1, 2])) is Verdict.REFUSED
    service = PlayedService(scripted=[[body]])
    with pytest.raises(ChatRpcError):
        drive(thread_is_streaming(api_with(service.clock), CHAT_ID, None, timeout=9.0), service)
