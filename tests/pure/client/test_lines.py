"""Bytes to lines: any pieces give the same lines, and an error names the line and position."""

from __future__ import annotations

import json
import math
import re
from contextlib import nullcontext
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.json_text import (
    MAX_DEPTH,
    MAX_LINE_BYTES,
    MAX_LINE_CONTAINERS,
    LineReader,
    parse_line,
    read_json,
)
from tests.support.fakes.streams import cut_up
from tests.support.hypothesis_profiles import examples

SEPARATORS = "a\u2028b\u2029c\u0085d\x0b\x0c\x1ce"
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)  # beyond that they become floats
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def read_all(pieces: list[bytes]) -> list[tuple[Any, int]]:
    reader = LineReader()
    lines = [line for piece in pieces for line in reader.feed(piece)]
    rest = reader.rest()
    if rest:
        lines.append((rest, reader.lines_seen + 1))
    return [(parse_line(line, number), number) for line, number in lines]


@settings(max_examples=examples(80))
@given(
    values=st.lists(VALUES, max_size=6),
    ends=st.lists(st.sampled_from(["\n", "\r\n", "\n\n", " \n \t\r\n"]), min_size=6, max_size=6),
    places=st.lists(st.integers(min_value=0), max_size=20),
    closed=st.booleans(),
)
@example(values=[SEPARATORS, {"é": "📈"}], ends=["\n"] * 6, places=list(range(60)), closed=True)
def test_lines_do_not_depend_on_the_pieces(
    values: list[Any], ends: list[str], places: list[int], closed: bool
) -> None:
    texts = [
        json.dumps(value, ensure_ascii=False) + end
        for value, end in zip(values, ends, strict=False)
    ]
    until_end = "".join(texts)
    data = (until_end if closed else until_end.rstrip()).encode()
    numbers = [1 + "".join(texts[:at]).count("\n") for at in range(len(texts))]
    assert read_all(cut_up(data, places)) == list(zip(values, numbers, strict=True))


@given(
    data=st.lists(st.sampled_from([b"a", b"bc", b"{}", b" ", b"\t", b"\r", b"\n"])).map(b"".join),
    places=st.lists(st.integers(min_value=0), max_size=8),
)
def test_every_line_comes_once_and_a_long_line_is_refused(data: bytes, places: list[int]) -> None:
    longest = 6
    *ended, rest = data.split(b"\n")
    expected = [(line.strip(), number) for number, line in enumerate(ended, 1) if line.strip()]
    too_long = [number for number, line in enumerate([*ended, rest], 1) if len(line) > longest]
    reader, received = LineReader(longest), []
    refused = pytest.raises(PlatformProtocolError, match=f"^Line {min(too_long, default=0)} of")
    with refused if too_long else nullcontext():
        for piece in cut_up(data, places):
            received += reader.feed(piece)
    assert received == expected[: len(received)]
    if not too_long:
        assert (received, reader.rest(), reader.lines_seen) == (expected, rest.strip(), len(ended))


@pytest.mark.parametrize(
    ("piece", "active"), [(b"", False), (b"\n", False), (b" \r\n\n", False), (b"{", True)]
)
def test_blank_lines_do_not_count_as_activity(piece: bytes, active: bool) -> None:
    reader = LineReader()
    assert reader.feed(piece) == []
    assert reader.active is active


def test_longest_line_is_read_and_a_longer_one_is_refused() -> None:
    reader = LineReader()
    half = b'"' + b"x" * (MAX_LINE_BYTES // 2 - 1)
    assert reader.feed(half) == []
    [(line, number)] = reader.feed(half[:-1] + b'"\n')
    assert (len(line), number) == (MAX_LINE_BYTES, 1)
    with pytest.raises(PlatformProtocolError, match="Line 2 of the stream exceeds 33554432 bytes"):
        reader.feed(b"x" * (MAX_LINE_BYTES + 1))


@pytest.mark.parametrize("size", [2**16, 2**30], ids=["in pieces", "at once"])
def test_a_line_of_a_few_bytes_for_each_of_a_million_lists_is_refused(size: int) -> None:
    """It would be read into a hundred times the memory."""
    reader = LineReader()
    full = b"[" + b"[]," * (MAX_LINE_CONTAINERS - 1) + b"1]\n"
    assert len(lines(reader, full, size)) == 1
    with pytest.raises(
        PlatformProtocolError, match="Line 2 of the stream contains more than 1000000"
    ):
        lines(reader, b"[" + full, size)


def lines(reader: LineReader, data: bytes, size: int) -> list[tuple[bytes, int]]:
    return [
        line
        for start in range(0, len(data), size)
        for line in reader.feed(data[start : start + size])
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b'{"a": }', "Line 7 of the stream is not valid JSON (error at character 6"),
        (b'{"a": 1}{', "is not valid JSON (error at character 8"),
        (b"\xff{}", "is not valid UTF-8 (error at byte 0)"),
        (b'{"a": "\xc3"}', "is not valid UTF-8 (error at byte 7)"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"[" * (MAX_DEPTH + 2) + b"]" * (MAX_DEPTH + 2), "is nested too deeply"),
        (b"1" * 5000, "contains a number with too many digits"),
        (b"\x00", "is not valid JSON"),
        (b"plain words", "The line begins with 'plain words'"),
    ],
)
def test_error_names_line_and_position_of_invalid_json(line: bytes, problem: str) -> None:
    with pytest.raises(PlatformProtocolError, match=re.escape(problem)) as caught:
        parse_line(line, 7)
    assert "\n" not in caught.value.message
    assert len(caught.value.message) < 300


def test_nan_and_infinity_become_none() -> None:
    assert read_json("[NaN, Infinity, -Infinity, 1e999, 1.5, 12345678901234567890]") == [
        None,
        None,
        None,
        None,
        1.5,
        12345678901234567890,
    ]


def test_json_nested_up_to_the_limit_is_read() -> None:
    value: Any = 1
    for _ in range(MAX_DEPTH):
        value = [value]
    assert read_json(json.dumps(value)) == value
    assert len(read_json(json.dumps([[1]] * 1000))) == 1000


def test_byte_order_mark_is_skipped() -> None:
    assert read_json(b'\xef\xbb\xbf{"a": 1}') == {"a": 1}


@given(st.binary(max_size=60))
def test_any_bytes_give_a_value_or_a_protocol_error(data: bytes) -> None:
    try:
        value = parse_line(data, 1)
    except PlatformProtocolError:
        return
    assert value is None or not (isinstance(value, float) and math.isnan(value))
