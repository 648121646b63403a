"""A long line of rows is read in parts: the same rows and errors, however the line arrives."""

from __future__ import annotations

import json
from contextlib import suppress
from itertools import chain, pairwise, takewhile
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.data_api import row_lines
from airflow_provider_platform.client.data_api.response import SqlChunk, SqlResponse
from airflow_provider_platform.client.data_api.row_lines import PART_BYTES, RowLine, RowLineReader
from airflow_provider_platform.client.errors import PlatformError, PlatformProtocolError
from airflow_provider_platform.client.formats.ndjson import MAX_LINE_BYTES, MAX_LINE_CONTAINERS
from tests.hypothesis_profiles import examples
from tests.unit.client.fakes.streams import cut_up

if TYPE_CHECKING:
    from collections.abc import Iterable

SCHEMA = b'{"schema":[{"name":"city","column_type":"String"},{"name":"n"}]}\n'
ENDLESS = 10**9


def outcome(pieces: Iterable[bytes], part_bytes: int, most: int = 400) -> tuple[list[Any], str]:
    """The rows of a response, and the error that it ends with."""
    response, rows = SqlResponse("data query", RowLineReader(part_bytes, most)), []
    try:
        for piece in (*pieces, None):
            for event in response.finish() if piece is None else response.feed(piece):
                rows += event.rows if isinstance(event, SqlChunk) else []
    except PlatformError as error:
        return rows, f"{type(error).__name__}: {error}"
    return rows, ""


def parts(data: bytes, size: int, part_bytes: int = PART_BYTES) -> list[RowLine]:
    """The lines and parts of a stream that comes in pieces of this size."""
    reader = RowLineReader(part_bytes)
    found = [line for at in range(0, len(data), size) for line in reader.feed(data[at : at + size])]
    return [*found, *reader.finish()]


TRAPS = st.sampled_from(['"],["', "],[", "]", "[", '"', "\\", '\\"', '\\"],[', "{", "\\\\", "é],["])
TEXTS = st.lists(TRAPS | st.text(max_size=3), max_size=4).map("".join)
PLAIN = st.none() | st.booleans() | TEXTS
WHOLE = st.integers(-(2**63), 2**63 - 1)
"""Whole numbers beyond 64 bits are floats, whichever way they come."""
NESTED = st.recursive(PLAIN | WHOLE, lambda inner: st.lists(inner, max_size=3), max_leaves=5)
OBJECTS = st.dictionaries(TEXTS, PLAIN, max_size=2)
ROWS = st.lists(st.tuples(PLAIN | NESTED | OBJECTS, PLAIN).map(list), max_size=12)
SEPARATORS = st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (" " * 9 + ",", ":\t")])
PLACES = st.lists(st.integers(min_value=0), max_size=12)


@st.composite
def lines_of_rows(draw: st.DrawFn) -> tuple[bytes, list[Any]]:
    """A response with long lines, and its rows."""
    data, rows = SCHEMA, []
    for _ in range(draw(st.integers(1, 3))):
        found = draw(ROWS)
        before = draw(
            st.sampled_from([{}, {"note": '"data":[["x"],["z"]]'}, {"b": {"data": [[1], [2]]}}])
        )
        after = draw(st.sampled_from([{}, {"b": {"data": [[1], [2]]}}, {"c": "],["}]))
        line = json.dumps(
            {**before, "data": found, **after},
            separators=draw(SEPARATORS),
            ensure_ascii=draw(st.booleans()),
        )
        data += line.encode("utf-8", "surrogatepass") + draw(st.sampled_from([b"\n", b"\r\n\n"]))
        rows += found
    return data, rows


@settings(max_examples=examples(200))
@given(response=lines_of_rows(), places=PLACES, part_bytes=st.integers(1, 60))
def test_long_line_gives_its_rows_in_pieces_of_any_size(
    response: tuple[bytes, list[Any]], places: list[int], part_bytes: int
) -> None:
    data, rows = response
    assert outcome(cut_up(data, places), part_bytes, ENDLESS) == (rows, "")


@st.composite
def spoiled(draw: st.DrawFn) -> bytes:
    """A response that is cut, or in which a few bytes are others."""
    data = bytearray(draw(lines_of_rows())[0])
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(len(SCHEMA), len(data)))
        data[at : at + draw(st.integers(0, 3))] = draw(
            st.sampled_from(
                [b"", b'"', b"[", b"]", b"],[", b",", b"\\", b"{", b"}", b"\n", b" " * 99]
            )
        )
    return bytes(data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data)


@settings(max_examples=examples(200))
@given(data=spoiled(), places=PLACES, part_bytes=st.integers(1, 60), most=st.integers(60, 400))
@example(data=SCHEMA + b'{"data":[["a","],["],["b', places=[*range(99)], part_bytes=1, most=99)
@example(
    data=SCHEMA
    + b'{"data":[[null         ,null]         ,[null         ,null]         ,'
    + b"[null         ,nul]        ,[null         ,null]]}\n",
    places=[154],
    part_bytes=43,
    most=79,
)
def test_pieces_change_neither_the_rows_nor_the_error_of_any_response(
    data: bytes, places: list[int], part_bytes: int, most: int
) -> None:
    assert outcome(cut_up(data, places), part_bytes, most) == outcome([data], part_bytes, most)


def before_the_first_broken(found: list[Any]) -> list[tuple[bytes, int]]:
    """The parts up to the first that is not JSON, which ends the result with an error."""
    return [(part.data, part.skipped) for part in takewhile(lambda part: is_json(part.data), found)]


def is_whole(found: list[Any]) -> bool:
    return all(is_json(part.data) for part in found)


def is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@settings(max_examples=examples(200))
@given(data=spoiled(), part_bytes=st.integers(1, 60))
@example(data=b'{"data":[["\\\\"],["\\"],["],["a"],["b"],["c"]]}', part_bytes=9)
@example(data=b'{"data":[["a"],["b"]  ,  ["c"],[[1],[2]],["d"],["e"]]}', part_bytes=2)
@example(data=b'{"data":[[1],[\\"\\"],[\\""],[2],[3]]}', part_bytes=3)
def test_a_line_is_cut_at_the_same_places_bracket_by_bracket_and_byte_by_byte(
    data: bytes, part_bytes: int
) -> None:
    quick = parts(data, ENDLESS, part_bytes)
    with patch.object(row_lines, "read_unchecked_json", side_effect=ValueError):
        for size in (ENDLESS, 1):
            careful = parts(data, size, part_bytes)
            assert before_the_first_broken(careful) == before_the_first_broken(quick)
            assert all(is_json(part.data) for part in careful) == all(
                is_json(part.data) for part in quick
            )


@settings(max_examples=examples(200))
@given(data=spoiled(), part_bytes=st.integers(1, 60))
def test_a_response_that_fails_as_a_whole_fails_in_parts_and_none_of_its_rows_is_lost(
    data: bytes, part_bytes: int
) -> None:
    rows, error = outcome([data], ENDLESS, ENDLESS)
    found, failed = outcome([data], part_bytes, ENDLESS)
    assert bool(failed) == bool(error)
    assert found[: len(rows)] == rows
    assert error or found == rows


def test_a_cut_at_any_byte_of_a_long_line_is_an_error() -> None:
    rows = [[f"{at}],[", None if at % 2 else "\\"] for at in range(9)]
    data = SCHEMA + json.dumps({"data": rows}).encode()
    for at in range(len(SCHEMA), len(data)):
        found, error = outcome([data[:at]], 16)
        if at > len(SCHEMA):
            said = "The data API's response was cut off. Run the query again."
            assert error == f"PlatformTransportError: {said} (data query)"
        assert found == rows[: len(found)]
    assert outcome([data], 16) == (rows, "")


def test_rows_after_a_part_that_fails_are_not_read() -> None:
    rows = [*([["Köln", "1"]] * 5), ["Bonn"], *([["Ulm", "2"]] * 5)]
    data = SCHEMA + json.dumps({"data": rows}, ensure_ascii=False).encode() + b"\n"
    found, error = outcome([data], 30)
    assert found == [["Köln", "1"]] * 5
    assert (
        "Line 2 of the data API's response has a row that does not have exactly 2 values." in error
    )


def test_error_in_the_same_line_as_rows_ends_the_query() -> None:
    line = {"data": [["a", "b"]] * 20, "error": "the warehouse is gone"}
    found, error = outcome([SCHEMA + json.dumps(line).encode()], 30)
    assert found == line["data"]
    assert "the warehouse is gone" in error
    first = dict(reversed(line.items()))
    assert outcome([SCHEMA + json.dumps(first).encode()], 30) == ([], error)


def test_columns_and_all_rows_may_come_in_one_line() -> None:
    rows = [["a", "b"]] * 50
    line = {**json.loads(SCHEMA), "lastRefreshTime": None, "data": rows}
    assert outcome([json.dumps(line).encode()], 100, ENDLESS) == (rows, "")


def test_a_text_that_is_not_json_is_named_with_its_place() -> None:
    data = SCHEMA + b'{"data":[' + b'["a","b"],' * 9 + b'["a","b"}]}\n'
    error = outcome([data], 30)[1]
    assert error.startswith(
        "PlatformProtocolError: Line 2 of the stream could not be read. The part"
    )


def rows_of(count: int, columns: int) -> Iterable[bytes]:
    """A line of so many rows, a piece at a time."""
    row = b",".join(b'"%d0123456789 ]"' % at for at in range(columns))
    yield b'{"data":['
    for at in range(count):
        yield b",[" * bool(at) + b"[" * (not at) + row + b"]"
    yield b"]}\n"


@pytest.mark.exhaustive
def test_a_line_beyond_every_limit_of_other_lines_is_read() -> None:
    count, columns = MAX_LINE_BYTES // 600 + 1, 40
    line = b"".join(rows_of(count, columns))
    assert len(line) > MAX_LINE_BYTES
    found = parts(line, 64 * 1024)
    assert sum(len(part.value["data"]) for part in found if part.value) > count - 1000
    assert max(len(part.data) for part in found) < PART_BYTES + 2000
    assert [part.data for part in parts(line, len(line))] == [part.data for part in found]
    assert {part.number for part in found} == {1}


@pytest.mark.exhaustive
def test_a_line_of_more_than_a_million_rows_is_read() -> None:
    line = b'{"data":[' + b"[]," * MAX_LINE_CONTAINERS + b"[]]}\n"
    assert sum(part.data.count(b"[]") for part in parts(line, 2**16)) == MAX_LINE_CONTAINERS + 1


ENDINGS = {
    "a string": b'[["x' + b"x" * 99,
    "spaces": b"  " * 50,
    "spaces between rows": b'[["a"]' + b" " * 99,
    "a list in a row": b'[["a",[' + b"[1],[2]," * 20,
    "brackets in a string": b'[["' + b"],[" * 33,
    "values that are no rows": b"[" + b"1,2,3," * 20,
    "backslashes": b'[["' + b"\\" * 100,
}


@pytest.mark.parametrize("start", [b"", b'{"data":', b'{"other":'], ids=["bare", "rows", "other"])
@pytest.mark.parametrize("kind", ENDINGS)
@pytest.mark.parametrize("step", [7, 4000])
def test_a_line_that_never_ends_is_refused_within_its_limit(
    start: bytes, kind: str, step: int
) -> None:
    reader, taken = RowLineReader(100, 3000), []
    unit = ENDINGS[kind][-60:]
    data = start + ENDINGS[kind] + unit * 200
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    with pytest.raises(PlatformProtocolError, match="Line 1 of the stream exceeds 3000 bytes"):
        list(chain.from_iterable(reader.feed(taken.append(piece) or piece) for piece in pieces))
    assert sum(map(len, taken)) <= 3000 + 200 + step


def test_no_part_of_a_line_is_searched_twice() -> None:
    """Each search begins where the one before it has ended."""
    texts = {
        "quick": b'{"data":[["' + b"],[" * 4000,
        "careful": b'{"data":[[[1],[2],"' + b"x" * 9000,
    }
    for text in texts.values():
        reader, seen = RowLineReader(100), []

        def search(data: bytearray, at: int, seen: list[int] = seen) -> None:
            seen.append(len(data) - at)

        for at in range(0, len(text), 50):
            list(reader.feed(text[at : at + 50]))
        with (
            patch.object(row_lines, "_BETWEEN_ROWS", search=search),
            patch.object(row_lines, "_INSIDE_STRING", search=search),
            patch.object(row_lines, "_OUTSIDE_STRING", search=search),
        ):
            list(reader.feed(b"x" * 50))
        assert seen
        assert max(seen) <= 50 + row_lines._BETWEEN_BYTES


def test_a_row_of_too_many_lists_is_refused() -> None:
    full = b'{"data":[["a"],[' + b"[]," * MAX_LINE_CONTAINERS + b'1],["b"],["c"]]}\n'
    with pytest.raises(
        PlatformProtocolError, match="Line 1 of the stream contains more than 1000000"
    ):
        parts(full, 2**20)


def test_short_lines_are_not_divided() -> None:
    data = b'{"data":[["a"],["b"]]}\r\n \n[1]\n2'
    for size in (1, 3, 99):
        found = [(line.data, line.number) for line in parts(data, size, 40)]
        assert found == [(b'{"data":[["a"],["b"]]}', 1), (b"[1]", 3), (b"2", 4)]


@given(text=st.lists(st.sampled_from(["a", "\\\\", '\\"', "é", "],["]), max_size=9).map("".join))
def test_escaped_quotes_do_not_end_a_string(text: str) -> None:
    assert not row_lines._has_odd_quotes(f'"{text}"'.encode())
    assert row_lines._has_odd_quotes(f'["a","{text}'.encode())


def test_parts_of_a_line_have_all_rows_in_order() -> None:
    data = b'{"data":[' + b",".join(b'["%d"]' % at for at in range(40)) + b'],"more":1}\n'
    found = parts(data, 11, 30)
    rows = [row for part in found for row in json.loads(part.data)["data"]]
    assert rows == [[str(at)] for at in range(40)]
    assert json.loads(found[-1].data) == {"data": [], "more": 1}
    with suppress(IndexError):
        assert all(one.skipped < other.skipped for one, other in pairwise(found))
