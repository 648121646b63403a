"""Streams that are not records: a web page, broken JSON, wrong types."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
)
from airflow_provider_platform.resources.chat.run_state import Verdict
from tests.support.fakes.streams import (
    ANY_JSON,
    EARLIER_ID,
    MESSAGE_ID,
    PROMPT,
    cutoff,
    echo,
    feed,
    given_thread,
    new_run,
    serialized,
)
from tests.support.hypothesis_profiles import examples


@pytest.mark.parametrize("start", [b"", b"\n \n"])
@pytest.mark.parametrize("page", [b"<!doctype html>\n<p>", b"<html>", b"<p>\n</p>\n"])
def test_a_web_page_is_a_wrong_address(start: bytes, page: bytes) -> None:
    with pytest.raises(PlatformAddressError, match=r"web application.*chat_url"):
        feed(new_run(), start + page)


@pytest.mark.parametrize("junk", [b"{]\n", b"<b>\n", b'{"a": "\xff"}\n', b"[" * 5000 + b"\n"])
def test_broken_json_names_its_line(junk: bytes) -> None:
    run = new_run()
    with pytest.raises(PlatformProtocolError, match="Line 3 of the stream") as caught:
        feed(run, cutoff(), echo(), junk)
    assert caught.value.retryable


JSON = st.sampled_from([*ANY_JSON, "�", {"text": [{"text": 1}]}])
IDS = st.sampled_from(
    [
        MESSAGE_ID,
        EARLIER_ID,
        "a",
        "b",
        "__cutoff__",
        "__state__",
        "__aborted__",
        "__suspended__",
        "__usage__",
        "__other__",
    ]
)
MESSAGES = st.lists(
    JSON
    | st.builds(
        lambda kind, content, more: serialized(kind, content, **more),
        st.sampled_from(["HumanMessage", "AIMessage", "ToolMessage"]),
        JSON | st.just(PROMPT),
        st.dictionaries(st.sampled_from(["tool_calls", "additional_kwargs"]), JSON),
    ),
    max_size=4,
)
STATES = st.fixed_dictionaries(
    {}, optional={"chatId": JSON, "isStreaming": JSON, "messages": JSON | MESSAGES}
)
RECORDS = st.fixed_dictionaries(
    {},
    optional={
        "id": IDS | JSON,
        "role": st.sampled_from(["user", "assistant"]) | JSON,
        "content": JSON,
        "thinking": JSON,
        "graphPath": st.lists(st.just("final"), max_size=3) | JSON,
        "isDelta": st.booleans() | JSON,
        "isInProcess": st.booleans() | JSON,
        "sort": st.integers(0, 9) | JSON,
        "state": STATES | JSON,
        "toolCall": st.fixed_dictionaries({}, optional={"name": JSON, "result": JSON}) | JSON,
        "usage": JSON,
        "error": JSON,
        "jsonrpc": JSON,
    },
)


@settings(max_examples=examples(80))
@given(
    connections=st.lists(
        st.tuples(st.lists(RECORDS | JSON, max_size=8), st.booleans(), st.booleans()), max_size=3
    ),
    in_existing_thread=st.booleans(),
    accepted=st.booleans(),
)
def test_records_of_any_types_give_a_verdict_or_a_platform_error(
    connections: list[tuple[list[Any], bool, bool]], in_existing_thread: bool, accepted: bool
) -> None:
    """Whatever JSON the records hold: a verdict or a PlatformError, and plain JSON as result."""
    run = given_thread(in_existing_thread=in_existing_thread, accepted=accepted)
    for records, submits, clean in connections:
        run.connect(submits=submits)
        try:
            run.feed(encode_any(records), 0.0)
        finally:
            assert run.disconnect(clean=clean) in Verdict
    with suppress(PlatformError):
        plain = run.result().to_json()
        assert isinstance(plain["answer"], str)
        assert json.loads(json.dumps(plain, allow_nan=False)) == plain


def encode_any(records: list[Any]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()
