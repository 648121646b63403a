"""A tool call's result is read the same as a text and as a value."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.json_text import read_json
from airflow_provider_platform.client.redaction import MAX_CHART_CHARACTERS
from airflow_provider_platform.resources.chat.tool_calls import ToolCall, read_tool_call

ODD_NUMBERS = ("1e999", "-1e999", "NaN", "18446744073709551616", "9" * 400, "1" * 4301)
NUMBERS = ("0", "-7", "12.5", "1E2", "9007199254740993", *ODD_NUMBERS)
numbers = st.sampled_from(NUMBERS)
words = st.one_of(
    numbers,
    st.sampled_from(['"text"', '""', '"\\ud83d"', "null", "true", "[]"]),
    st.builds('{{"message": {}}}'.format, numbers),
    st.builds("[{}]".format, numbers),
)
rows = st.lists(st.builds('[{}, "x"]'.format, numbers), max_size=4)
results = st.fixed_dictionaries(
    {},
    optional={
        "queryTitle": words,
        "searchQuery": words,
        "error": words,
        "totalRows": words,
        "data": st.one_of(words, st.builds(lambda each: f"[{', '.join(each)}]", rows)),
        "metadata": st.sampled_from(['"short"', json.dumps("long" * 20_000)]),
    },
).map(lambda fields: "{" + ", ".join(f'"{k}": {v}' for k, v in fields.items()) + "}")


@given(text=results)
def test_result_as_text_and_as_value_gives_the_same_record(text: str) -> None:
    noted = _noted(_read(text))
    try:
        value = read_json(text)
    except ValueError:
        assert noted["error"].startswith("The result is not a JSON object")
    else:
        assert noted == _noted(_read(value))


@pytest.mark.parametrize("number", ODD_NUMBERS[:-1])
@pytest.mark.parametrize("name", ["queryTitle", "error"])
def test_odd_number_as_text_and_as_value_gives_the_same_record(name: str, number: str) -> None:
    text = f'{{"{name}": {number}}}'
    assert _noted(_read(text)) == _noted(_read(read_json(text)))


def _read(result: Any) -> ToolCall:
    return read_tool_call({"name": "serviceSqlApi", "input": "{}", "result": result}, None, 2)


def _noted(call: ToolCall) -> dict[str, Any]:
    """Everything that the records say about a call."""
    return {
        "title": call.title,
        "error": call.error,
        "rows": call.rows,
        "total": call.total_rows,
        "query": repr(call.query()),
    }


@pytest.mark.parametrize("as_text", [True, False], ids=["as a text", "as an object"])
def test_chart_specification_beyond_the_limit_is_left_out_with_a_reason(as_text: bool) -> None:
    def query_with(title: str) -> Any:
        chart: Any = {"mark": "bar", "title": title}
        result = {"data": [[1]], "vegaSpec": json.dumps(chart) if as_text else chart}
        read = read_tool_call({"name": "cubeSqlApi", "result": result}, None, 10)
        return read.query(), chart

    query, chart = query_with("é" * (MAX_CHART_CHARACTERS // 8))
    assert (query.chart, query.chart_error) == (chart, None)
    query, _ = query_with("é" * MAX_CHART_CHARACTERS)
    assert query.chart is None
    assert query.chart_error is not None
    assert "and the limit is 4,194,304" in query.chart_error


@pytest.mark.parametrize("sent", ["{'mark': 'bar'}", "a bar chart", '["bar"]'])
def test_chart_specification_that_is_no_json_object_is_left_out_with_a_reason(sent: str) -> None:
    result = {"data": [[1]], "vegaSpec": sent}
    query = read_tool_call({"name": "cubeSqlApi", "result": result}, None, 10).query()
    assert query.chart is None
    assert query.chart_error is not None
    assert "is not a JSON object" in query.chart_error


def test_tool_call_with_a_lone_surrogate_is_parsed() -> None:
    call = read_tool_call(
        {"name": "cubeSqlApi", "input": {"a": "\ud800"}, "result": {"vegaSpec": {"a": "\ud800"}}},
        None,
        10,
    )
    assert call.cost > 0
    assert call.query().chart == {"a": "\ud800"}
