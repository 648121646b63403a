"""Responses of the data API: every line is checked, and the rows are the same however they come."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    DataQueryError,
    DataQueryTimeoutError,
    PlatformAddressError,
    PlatformError,
    PlatformProtocolError,
    PlatformTransportError,
)
from airflow_provider_platform.resources.sql import response as module
from airflow_provider_platform.resources.sql.response import (
    CHUNK_ROWS,
    SqlChunk,
    SqlColumns,
    SqlResponse,
)
from tests.support.hypothesis_profiles import examples

SCHEMA = {"schema": [{"name": "city", "column_type": "String"}, {"name": "n"}]}
ROWS: list[list[Any]] = [["Berlin", "1"], ["Bonn", None]]
WHAT = "data query"


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def read(*pieces: bytes) -> list[SqlColumns | SqlChunk]:
    """What a whole response brings that comes in these pieces."""
    response = SqlResponse(WHAT)
    events = [event for piece in pieces for event in response.feed(piece)]
    return [*events, *response.finish()]


def rows_and_error(*pieces: bytes) -> tuple[list[Any], str | None]:
    """The rows of a response, and the error that it ends with."""
    response, rows = SqlResponse(WHAT), []
    try:
        for piece in (*pieces, None):
            for event in response.finish() if piece is None else response.feed(piece):
                rows += event.rows if isinstance(event, SqlChunk) else []
    except PlatformError as error:
        return rows, f"{type(error).__name__}: {error}"
    return rows, None


def test_types_of_columns_are_names_in_whatever_shape_they_come() -> None:
    shapes = ["Int32", {"Date": False}, {"Date": True}, {"Interval": "MonthDayNano"}, {"List": {}}]
    schema = [{"name": str(at), "column_type": shape} for at, shape in enumerate(shapes)]
    [columns] = read(lines({"schema": schema}))
    assert isinstance(columns, SqlColumns)
    names = [column["type"] for column in columns.columns]
    assert names == ["Int32", "Date", "Date", "Interval", "List"]


def test_response_gives_columns_before_rows() -> None:
    data = lines({**SCHEMA, "lastRefreshTime": None}, {"data": ROWS})
    columns = [{"name": "city", "type": "String"}, {"name": "n", "type": ""}]
    assert read(data[:30], data[30:]) == [SqlColumns(columns), SqlChunk(ROWS)]


@pytest.mark.parametrize(
    ("used", "names"),
    [
        (None, ()),
        ({}, ()),
        ({"dev.orders_main": {"targetTableName": "x"}}, ("dev.orders_main",)),
        ({"dev.orders_main": {"preAggregationId": "orders.main"}}, ("orders.main",)),
        ([{"name": "orders.main"}, {"tableName": "t"}, {"other": 1}], ("orders.main", "t")),
        (["orders.main", 7], ("orders.main",)),
        ("orders.main", ()),
    ],
)
def test_names_of_used_pre_aggregations_come_with_the_columns(
    used: Any, names: tuple[str, ...]
) -> None:
    [columns] = read(lines({**SCHEMA, "usedPreAggregations": used}))
    assert isinstance(columns, SqlColumns)
    assert columns.used_pre_aggregations == names


def test_an_empty_result_has_columns() -> None:
    columns, rows = read(lines(SCHEMA, {"data": []}))
    assert isinstance(columns, SqlColumns)
    assert rows == SqlChunk([])


def test_a_last_line_without_its_end_counts_if_it_is_whole() -> None:
    assert read(lines(SCHEMA), b'{"data": [["Berlin", "1"]]}')[1:] == [SqlChunk([["Berlin", "1"]])]


@pytest.mark.parametrize("cut", [b"", b'{"data": [["Ber'])
def test_cut_response_raises_a_transport_error(cut: bytes) -> None:
    with pytest.raises(PlatformTransportError):
        read(lines(SCHEMA) if cut else b"", cut)


def test_an_error_line_ends_the_query_even_after_rows() -> None:
    with pytest.raises(DataQueryError, match="warehouse is gone"):
        read(lines(SCHEMA, {"data": ROWS}, {"error": "the warehouse is gone", "requestId": "r"}))


def test_a_time_out_of_the_database_can_be_retried() -> None:
    said = "Error: Query execution timeout after 10 min of waiting"
    for before in ((), (SCHEMA, {"data": ROWS})):
        with pytest.raises(
            DataQueryTimeoutError, match="The query timed out: Error: Query"
        ) as caught:
            read(lines(*before, {"error": said}))
        assert caught.value.retryable
        assert "A retry may succeed." in str(caught.value)
    with pytest.raises(DataQueryError) as refused:
        read(lines({"error": 'column "timeout" does not exist'}))
    assert not refused.value.retryable


def test_continue_wait_means_that_the_query_still_runs() -> None:
    response = SqlResponse(WHAT)
    assert [*response.feed(lines({"error": "Continue wait"}))] == []
    assert response.still_runs
    assert [*response.finish()] == []


def test_continue_wait_after_rows_is_an_error() -> None:
    with pytest.raises(DataQueryError):
        read(lines(SCHEMA, {"error": "Continue wait"}))


@pytest.mark.parametrize(
    "line",
    [{"data": [["Berlin"]]}, {"data": ["Berlin"]}, {"rows": []}, [], 5, {"data": {"city": "B"}}],
)
def test_a_line_of_another_shape_is_refused(line: Any) -> None:
    with pytest.raises(PlatformProtocolError, match="Line 2"):
        read(lines(SCHEMA, line))


def test_rows_in_the_same_line_as_the_columns_are_read() -> None:
    columns, *chunks = read(lines({**SCHEMA, "data": ROWS}, {"data": ROWS}))
    assert isinstance(columns, SqlColumns)
    assert chunks == [SqlChunk([*ROWS, *ROWS])]
    assert len(read(lines({**SCHEMA, "data": []}))) == 1


def test_response_may_repeat_its_columns_but_not_change_them() -> None:
    assert SqlChunk(ROWS) in read(lines(SCHEMA, SCHEMA, {"data": ROWS}))
    for other in ([{"name": "city"}, {"name": "n"}], [{"name": "city", "column_type": "String"}]):
        with pytest.raises(PlatformProtocolError, match=r"Line 3 of .* has different columns"):
            read(lines(SCHEMA, {"data": ROWS}, {"schema": other}, {"data": []}))


def test_column_names_are_sanitized() -> None:
    (columns,) = read(lines({"schema": [{"name": "\ud83d"}, {"name": None}, "n"]}))
    assert isinstance(columns, SqlColumns)
    assert [column["name"] for column in columns.columns] == ["\ufffd", "", ""]


@pytest.mark.parametrize("page", [b"<!DOCTYPE html>\n<html></html>\n", b"<html></html>"])
def test_a_web_page_is_a_wrong_address(page: bytes) -> None:
    with pytest.raises(PlatformAddressError, match="web page"):
        read(page)


def test_rows_before_columns_are_refused() -> None:
    with pytest.raises(PlatformProtocolError, match="Line 1"):
        read(lines({"data": ROWS}))


def test_rows_that_come_one_by_one_are_put_together() -> None:
    count = 2 * CHUNK_ROWS + 500
    data = lines(SCHEMA, *({"data": [["Berlin", str(number)]]} for number in range(count)))
    chunks = [event.rows for event in read(data) if isinstance(event, SqlChunk)]
    assert [len(rows) for rows in chunks] == [CHUNK_ROWS, CHUNK_ROWS, 500]
    assert [int(row[1]) for rows in chunks for row in rows] == [*range(count)]


@pytest.mark.parametrize("end", [{"data": [["Ulm", "5"]]}, {"error": "gone"}, {"data": [["Ulm"]]}])
def test_a_cut_at_any_byte_changes_neither_rows_nor_error(end: Any) -> None:
    data = lines(SCHEMA, {"data": ROWS}, {"data": [["Köln\n", "2"]]}, end)
    whole = rows_and_error(data)
    assert whole[0][:3] == [*ROWS, ["Köln\n", "2"]]
    for at in range(len(data)):
        assert rows_and_error(data[:at], data[at:]) == whole


def test_lone_surrogate_is_replaced_and_a_pair_is_joined() -> None:
    line = b'{"data": [["\\ud83d", "\\ud83d\\ude00"]]}'
    assert read(lines(SCHEMA), line)[1:] == [SqlChunk([["\ufffd", "\U0001f600"]])]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=6,
)
CELLS = st.none() | st.text() | st.integers(-(10**30), 10**30) | st.floats() | VALUES
LINES = st.lists(
    st.fixed_dictionaries(
        {"data": st.lists(st.lists(CELLS, min_size=2, max_size=2) | VALUES, max_size=3) | VALUES},
        optional={"error": VALUES, "other": VALUES},
    ).map(json.dumps)
    | VALUES.map(json.dumps)
    | st.text(max_size=9)
    | st.sampled_from(
        [
            '{"data": [["a", "b"]], "data": [["c", "d"]]}',
            '{"data": [["\\ud83d", "\\ude00"]]}',
            '{"data": [[1e999, 123456789012345678901]]}',
            '{"data": [' + "[" * 150 + "]" * 150 + "]}",
            '{"data": [["a", ' + "[" * 120 + "]" * 120 + "]]}",
        ]
    ),
    max_size=4,
)


@given(rest=LINES)
@example(rest=['{"data": [["a", NaN]]}'])
def test_fast_path_reads_plain_rows_like_the_full_path(rest: list[str]) -> None:
    data = lines(SCHEMA) + "\n".join(rest).encode("utf-8", "surrogatepass")
    quick = rows_and_error(data)
    with patch.object(module, "_are_plain", lambda rows: False):
        assert repr(rows_and_error(data)) == repr(quick)


TRAPS = st.sampled_from(['"],["', "],[", "]", '"', "\\", '\\"', "{", "é],[", "\ud83d", "a\u2028"])
TEXT_CELLS = st.none() | st.booleans() | st.lists(TRAPS | st.text(max_size=3)).map("".join)


@given(
    rows=st.lists(st.lists(TEXT_CELLS | VALUES, min_size=2, max_size=2), max_size=9),
    separators=st.sampled_from([(",", ":"), (", ", ": "), (" , ", " :\t")]),
    after=st.sampled_from([{}, {"note": [["x"]]}, {"error": "gone"}]),
    spoiled=st.none() | st.tuples(st.integers(0, 200), st.sampled_from(["", "]", '"', "x"])),
    ascii_only=st.booleans(),
)
@settings(max_examples=examples(300))
def test_long_line_gives_the_same_rows_and_errors_as_a_short_one(
    rows: list[list[Any]],
    separators: tuple[str, str],
    after: dict[str, Any],
    spoiled: tuple[int, str] | None,
    ascii_only: bool,
) -> None:
    line = json.dumps({"data": rows, **after}, separators=separators, ensure_ascii=ascii_only)
    if spoiled is not None:
        at, put = min(spoiled[0], len(line)), spoiled[1]
        line = line[:at] + put + line[at + 1 :]
    data = lines(SCHEMA) + line.encode("utf-8", "surrogatepass") + b"\n"
    whole, error = rows_and_error(data)
    with patch.object(module, "LONG_LINE_BYTES", 0), patch.object(module, "CHUNK_ROWS", 2):
        found, said = rows_and_error(data)
    assert (error is None) == (said is None)
    assert error is None or str(said).split(":")[0] == error.split(":")[0]
    if error is None:
        assert repr(found) == repr(whole)
    else:  # rows before the wrong one may have come
        assert repr(found[: len(whole)]) == repr(whole)


def test_long_line_comes_in_chunks_while_rows_before_it_are_known_to_arrive() -> None:
    rows = [["Berlin", str(number)] for number in range(100_000)]
    response = SqlResponse(WHAT)
    data = lines(SCHEMA, {"data": rows})
    columns, begun = list(response.feed(data[:-99]))
    assert isinstance(columns, SqlColumns)
    assert begun == SqlChunk([])
    chunks = [event.rows for event in response.feed(data[-99:]) if isinstance(event, SqlChunk)]
    assert max(map(len, chunks)) == CHUNK_ROWS
    assert [row for chunk in chunks for row in chunk] == rows


def test_line_beyond_the_limit_names_paging_as_the_way_out() -> None:
    response = SqlResponse("data query", max_line_bytes=2**20)
    with pytest.raises(PlatformProtocolError, match=r"more than 1 MB.*page_by.*fewer columns"):
        [*response.feed(lines(SCHEMA) + b"x" * (2**20 + 1))]
