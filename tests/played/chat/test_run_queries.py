"""How tool calls become queries of the result: rows, errors, and which errors fail the run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.resources.chat.run_state import Verdict
from airflow_provider_platform.resources.chat.tool_calls import Query
from tests.support.fakes.streams import (
    ANSWER,
    ANY_JSON,
    CHAT_ID,
    EARLIER_ID,
    MESSAGE_ID,
    PROMPT,
    Record,
    cutoff,
    echo,
    feed,
    final,
    new_run,
    query_result,
    result_of,
    serialized,
    state,
    tool,
)
from tests.support.hypothesis_profiles import examples


@pytest.mark.parametrize("name", ["serviceSqlApi", "cubeSqlApi", "SqlApi", "acmeSqlApi"])
def test_a_query_is_known_by_the_end_of_the_tools_name(name: str) -> None:
    [query] = result_of(tool(name, {}, query_result([["a", 1]])), final("Done.")).queries
    assert query.rows == [["a", 1]]


@pytest.mark.parametrize("name", ["serviceMeta", "cubeMeta", "SqlApiHelper", "sqlapi", "", None])
def test_calls_of_other_tools_are_not_queries(name: Any) -> None:
    assert result_of(tool(name, {}, query_result([[1]])), final("Done.")).queries == []


def test_a_result_is_not_lost_to_the_late_record_of_its_start() -> None:
    begun, done = tool("cubeSqlApi"), tool("cubeSqlApi", {}, query_result([[1]]))
    [query] = result_of(done, begun, final("Done.")).queries
    assert (query.rows, query.error) == ([[1]], None)


def test_the_input_of_a_call_is_kept_when_its_result_leaves_it_out() -> None:
    begun = tool("cubeSqlApi", {"sqlQuery": "SELECT 2", "queryTitle": "Two", "vegaSpec": '{"a":1}'})
    done = {**tool("cubeSqlApi"), "toolCall": {"name": "cubeSqlApi", "result": '{"data": [[2]]}'}}
    [query] = result_of(begun, done, final("Done.")).queries
    assert (query.sql, query.title, query.chart, query.rows) == ("SELECT 2", "Two", {"a": 1}, [[2]])


@pytest.mark.parametrize("length", [1, 20_000])
def test_rows_beyond_the_limit_are_dropped_of_a_long_result_while_reading(length: int) -> None:
    run = new_run(max_rows=2)
    rows = [[str(n) * length] for n in range(5)]
    run.connect(submits=True)
    for record in (cutoff(), echo(), tool("cubeSqlApi", {}, query_result(rows, total=900))):
        run.feed(json.dumps(record).encode() + b"\n", 0.0)
    kept = next(iter(run._records())).tool_call
    assert kept is not None
    assert isinstance(kept.result, str) if length == 1 else kept.result["data"] == rows[:2]
    run.feed(json.dumps(final("Done.")).encode() + b"\n" + json.dumps(state()).encode() + b"\n", 0)
    run.disconnect(clean=True)
    [query] = run.result().queries
    assert (query.rows, query.total_rows, query.truncated) == (rows[:2], 900, True)


@pytest.mark.parametrize(
    ("rows", "total", "max_rows", "expected"),
    [
        (3, 3, 100, (3, 3, False)),
        (3, 3, 2, (2, 3, False)),
        (3, 3, 0, (0, 3, False)),
        (3, 10, 100, (3, 10, True)),
        (3, "10", 100, (3, 10, True)),
        (3, 2, 100, (3, 3, False)),
        (3, None, 100, (3, 3, False)),
        (3, "many", 2, (2, 3, False)),
        (0, 0, 100, (0, 0, False)),
        (3, float("inf"), 100, (3, 3, False)),
        (3, [], 100, (3, 3, False)),
    ],
)
def test_total_rows_is_at_least_the_number_of_received_rows(
    rows: int, total: Any, max_rows: int, expected: tuple[int, int, bool]
) -> None:
    response = {**query_result([[n] for n in range(rows)]), "totalRows": total}
    [query] = result_of(tool("SqlApi", {}, response), final("Done."), max_rows=max_rows).queries
    assert (len(query.rows), query.total_rows, query.truncated) == expected


@pytest.mark.parametrize(("rows", "truncated"), [(99, False), (100, True), (101, False)])
def test_as_many_rows_as_the_chat_sends_are_truncated_if_nobody_says_how_many_exist(
    rows: int, truncated: bool
) -> None:
    response = {**query_result([[n] for n in range(rows)]), "totalRows": None}
    [query] = result_of(tool("SqlApi", {}, response), final("Done."), max_rows=10).queries
    assert query.truncated is truncated
    del response["totalRows"]
    [query] = result_of(tool("SqlApi", {}, response), final("Done."), max_rows=10).queries
    assert query.truncated is truncated


@pytest.mark.parametrize(
    ("result", "error"),
    [
        ({"error": "Bad branch"}, "Bad branch"),
        ({"error": {"message": "Bad branch", "code": 1}}, "Bad branch"),
        ({"error": "two\nlines"}, "two\\nlines"),
        ({"error": None, "data": []}, None),
        ({"error": ""}, "The tool failed, and the service gave no reason."),
        ({"error": " \n"}, "The tool failed, and the service gave no reason."),
        ({"error": False}, None),
        ({"error": {"code": 7, "fields": ["a", None]}}, '{"code": 7, "fields": ["a", null]}'),
        ({"error": ["Bad branch", True]}, '["Bad branch", true]'),
        ("no JSON", "no JSON"),
        ("Error: Bad branch\n Fix it.", "Error: Bad branch\\n Fix it."),
        ('"Bad branch"', "Bad branch"),
        ('"{}"', "{}"),
        ("x" * 600, "x" * 499 + "…"),
        ("[1, 2]", "The result is not a JSON object: [1, 2]"),
        ("[1, 2", "The result is not a JSON object: [1, 2"),
        ("{'error': 1}", "The result is not a JSON object: {'error': 1}"),
        ("null", "The result is not a JSON object: null"),
        ("7", "The result is not a JSON object: 7"),
        ("", "The result is empty."),
        ('" "', "The result is empty."),
        (None, "The call had no result when the run ended."),
    ],
)
def test_query_error_is_read_from_every_form(result: Any, error: str | None) -> None:
    [query] = result_of(tool("SqlApi", {}, result), final("Sorry.")).queries
    assert query.error == error
    assert query.rows == []


@pytest.mark.parametrize("result", [{"error": "Bad branch"}, {"error": ""}, "no JSON", None])
def test_failed_query_has_no_chart(result: Any) -> None:
    drawn = {"vegaSpec": '{"mark": "bar"}'}
    if isinstance(result, dict):
        result = {**result, **drawn}
    [query] = result_of(tool("SqlApi", drawn, result), final("Sorry.")).queries
    assert query.error is not None
    assert query.chart is None


def test_error_of_a_run_whose_queries_all_failed_quotes_a_query() -> None:
    plain = tool("SqlApi", {"sqlQuery": "SELECT 1"}, "Error: no such branch")
    with pytest.raises(ChatToolError, match="Every query of the run failed: Error: no such branch"):
        result_of(plain, final("Sorry."), rule="all")


def test_plain_text_from_another_tool_is_not_a_failure() -> None:
    assert result_of(tool("Meta", {}, "found it"), final("Done."), rule="any").tool_errors == []


MONTH, REVENUE = {"name": "month", "type": "String"}, {"name": "revenue", "type": "Double"}


def column(name: str) -> dict[str, str]:
    return {"name": name, "type": ""}


@pytest.mark.parametrize(
    ("data", "has_schema", "columns", "rows"),
    [
        ([{"revenue": 1, "month": "a"}], True, [MONTH, REVENUE], [["a", 1]]),
        ([{"month": "a"}, {"revenue": 2}], True, [MONTH, REVENUE], [["a", None], [None, 2]]),
        ([{"month": "a", "x": 3}], True, [MONTH, REVENUE, column("x")], [["a", None, 3]]),
        (
            [["a", 1], {"x": 3, "revenue": 2}, "b", None],
            True,
            [MONTH, REVENUE, column("x")],
            [["a", 1, None], [None, 2, 3], ["b", None, None], [None, None, None]],
        ),
        ([["a", 1, 2], {"month": "b"}], True, [MONTH, REVENUE], [["a", 1, 2], ["b", None]]),
        (
            [{"b": 1, "a": 2}, {"c": 3, "a": 4}],
            False,
            [column("b"), column("a"), column("c")],
            [[1, 2, None], [None, 4, 3]],
        ),
        ([{}], False, [], [[]]),
        ([{}, {"a": {"b": [1]}}], False, [column("a")], [[None], [{"b": [1]}]]),
        (["a", 1, [2]], False, [], [["a"], [1], [2]]),
    ],
)
def test_rows_are_lists_in_column_order(
    data: list[Any], has_schema: bool, columns: list[Record], rows: list[list[Any]]
) -> None:
    response: Record = {**query_result([]), "data": data}
    if not has_schema:
        del response["schema"]
    [query] = result_of(tool("SqlApi", {}, response), final("Done.")).queries
    assert (query.columns, query.rows) == (columns, rows)
    assert query.total_rows == len(data)


NAMES = st.sampled_from(["month", "revenue", "x", "y"])
CELLS = st.none() | st.integers(0, 9)


@given(
    st.lists(st.dictionaries(NAMES, CELLS) | st.lists(CELLS, max_size=3) | CELLS, max_size=8),
    st.booleans(),
)
def test_no_value_of_a_row_is_lost(data: list[Any], has_schema: bool) -> None:
    response: Record = {**query_result([]), "data": data}
    if not has_schema:
        del response["schema"]
    [query] = result_of(tool("SqlApi", {}, response), final("Done.")).queries
    names = [found["name"] for found in query.columns]
    assert len(set(names)) == len(names)
    for row, given_row in zip(query.rows, data, strict=True):
        if isinstance(given_row, dict):
            assert dict(zip(names, row, strict=True)) == {**dict.fromkeys(names), **given_row}
        else:
            values = given_row if isinstance(given_row, list) else [given_row]
            assert row[: len(values)] == values
            assert all(value is None for value in row[len(values) :])


def fails(rule: str, *calls: Record) -> bool:
    try:
        result_of(*calls, final("I am sorry."), rule=rule)
    except ChatToolError as error:
        return "Bad branch" in error.message and "I am sorry." in error.message
    return False


def test_fail_on_tool_error_decides_which_failed_queries_fail_the_run() -> None:
    good = tool("SqlApi", {}, query_result([[1]]), record_id="good")
    bad = tool("SqlApi", {}, {"error": "Bad branch"}, record_id="bad")
    worse = tool("SqlApi", {}, {"error": "Bad branch, again"}, record_id="worse")
    meta = tool("Meta", {}, {"error": "Bad branch of metadata"}, record_id="meta")
    lost = tool("SqlApi", {}, record_id="lost")
    expected = [
        ((), False, False),
        ((good,), False, False),
        ((bad,), True, True),
        ((bad, worse), True, True),
        ((bad, good), False, True),
        ((meta,), False, True),
        ((meta, good), False, True),
        ((meta, bad), True, True),
        ((lost,), False, False),
        ((lost, good), False, False),
        ((lost, bad), False, True),
    ]
    for calls, every, some in expected:
        assert fails("all", *calls) is every, calls
        assert fails("any", *calls) is some, calls
        assert not fails("never", *calls)


def test_query_has_all_documented_fields() -> None:
    response = query_result([["x", 1]], vegaSpec='{"mark": "bar"}', memoryId="m", later={"a": 1})
    [query] = result_of(tool("SqlApi", {}, response), final("Done.")).queries
    assert query == Query(
        title="Revenue",
        description="by month",
        sql="SELECT 1",
        columns=[
            {"name": "month", "type": "String"},
            {"name": "revenue", "type": "Double"},
        ],
        rows=[["x", 1]],
        total_rows=1,
        truncated=False,
        uuid="q-1",
        chart={"mark": "bar"},
        sent_rows=1,
        memory_id="m",
    )


JSON = st.sampled_from([*ANY_JSON, "[1", {"name": 1}, [{"name": []}]])
FIELDS = sorted(
    {"data", "schema", "totalRows", "uuid", "queryTitle", "description", "sqlQuery", "vegaSpec"}
    | {"error", "searchQuery"}
)


@settings(max_examples=examples(100))
@given(
    result=st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON,
    given_=st.dictionaries(st.sampled_from(FIELDS), JSON) | JSON,
    as_text=st.booleans(),
    name=st.sampled_from(["SqlApi", "Meta"]),
)
def test_tool_calls_of_any_types_give_plain_json(
    result: Any, given_: Any, as_text: bool, name: str
) -> None:
    call = {"name": name, "input": given_, "result": result}
    if as_text:
        call = {**call, "input": json.dumps(given_), "result": json.dumps(result)}
    run = new_run()
    feed(run, cutoff(), echo(), {**tool(name), "toolCall": call}, final("Done."), state())
    plain = run.result().to_json()
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain
    for query in plain["queries"]:
        assert all(isinstance(row, list) for row in query["rows"])
        assert all(column.keys() == {"name", "type"} for column in query["columns"])
        assert isinstance(query["total_rows"], int)


def call_messages(sql: str, rows: list[list[Any]] | None, call_id: str) -> list[Record]:
    """A SQL call and its result, without `rows` only the call, as messages of `__state__`."""
    call = {"name": "serviceSqlApi", "id": call_id, "args": {"sqlQuery": sql}}
    asked = serialized("AIMessage", "", tool_calls=[call])
    if rows is None:
        return [asked]
    result = json.dumps({"data": rows, "schema": [], "totalRows": len(rows)})
    return [asked, serialized("ToolMessage", result, tool_call_id=call_id)]


def sql_tool(sql: str, rows: list[list[Any]] | None, record_id: str) -> Record:
    result = None if rows is None else {"sqlQuery": sql, "data": rows}
    return tool("serviceSqlApi", {"sqlQuery": sql}, result, record_id=record_id)


HUMAN = serialized("HumanMessage", PROMPT, MESSAGE_ID)
SAID = serialized("AIMessage", ANSWER)
EARLIER = [
    serialized("HumanMessage", "Before?", EARLIER_ID),
    *call_messages("SELECT 0", [[0]], "call-0"),
    serialized("AIMessage", "Before."),
]
BOTH = [*call_messages("SELECT 1", [[1]], "call-1"), *call_messages("SELECT 2", [[2]], "call-2")]


@pytest.mark.parametrize("known", [[], [sql_tool("SELECT 1", [[1]], "tool-1")]], ids=len)
def test_result_says_that_queries_may_be_missing_if_their_records_were_lost(
    known: list[Record],
) -> None:
    run = new_run(in_existing_thread=True, chat_id=CHAT_ID)
    assert feed(run, cutoff(), echo(), *known, clean=False) is Verdict.BROKEN
    messages = [*EARLIER, HUMAN, *BOTH, SAID]
    assert feed(run, cutoff(), state(messages), submits=False) is Verdict.OVER
    result = run.result()
    assert [query.sql for query in result.queries] == [sql for sql in ["SELECT 1"] if known]
    assert (result.answer, result.to_json()["truncated"]) == (ANSWER, True)


@pytest.mark.parametrize("lost", [[], [sql_tool("SELECT 2", [[2]], "tool-2")]], ids=len)
def test_queries_are_kept_that_a_replay_of_the_run_lacks(lost: list[Record]) -> None:
    run = new_run()
    known = sql_tool("SELECT 1", [[1]], "tool-1")
    feed(run, cutoff(), echo(), known, *lost, clean=False)
    feed(run, echo(), known, final(ANSWER), cutoff(), state(), submits=False)
    assert len(run.result().queries) == 1 + len(lost)
    assert run.result().truncated is bool(lost)
