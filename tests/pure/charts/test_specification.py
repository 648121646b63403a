"""A specification loads nothing, and the rows are where it expects its data."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.charts import ChartError
from airflow_provider_platform.charts.specification import drawable

COLUMNS = [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Double"}]
ROWS = [["Spain", "12.5"], ["Italy", 7]]
RECORDS = [{"country": "Spain", "revenue": 12.5}, {"country": "Italy", "revenue": 7}]
BARS: dict[str, Any] = {
    "mark": "bar",
    "encoding": {"x": {"field": "country"}, "y": {"field": "revenue"}},
}
NOTHING_LOADED = "Charts load nothing and have no links, so {} was left out."

_KEYS = st.sampled_from(
    ["url", "href", "data", "from", "lookup", "layer", "hconcat", "spec", "mark", "value",
     "usermeta", "encoding", "config", "src", "$schema", "values", "name", "expr", "datasets"]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.just("file:///etc/passwd"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_KEYS | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=12,
)
_SPECS = st.dictionaries(_KEYS, _JSON, max_size=6).map(lambda spec: {"mark": "bar", **spec})


def pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list):
        return [pair for item in value for pair in pairs(item)]
    if isinstance(value, dict):
        return [*value.items(), *(pair for item in value.values() for pair in pairs(item))]
    return []


@given(_SPECS)
def test_everything_that_would_load_is_removed_at_every_depth(spec: dict[str, Any]) -> None:
    before = json.dumps(spec)
    drawn, _ = drawable(spec, COLUMNS, ROWS)
    assert json.dumps(spec) == before
    assert {"url", "href", "usermeta", "src"}.isdisjoint(key for key, _ in pairs(drawn))
    assert drawn["$schema"] == "https://vega.github.io/schema/vega-lite/v5.json"
    assert len(drawn["data"]["values"]) == len(ROWS)


@pytest.mark.parametrize(
    "data", [None, {}, {"url": "file:///etc/passwd"}, {"values": []}, {"values": [{"a": 1}]},
             {"name": "d"}, {"sequence": {"start": 0, "stop": 1e9}}, "x"]
)  # fmt: skip
def test_rows_are_the_data_of_the_chart(data: Any) -> None:
    drawn, _ = drawable({**BARS, "data": data}, COLUMNS, ROWS)
    assert drawn["data"] == {"values": RECORDS}
    assert {key: drawn[key] for key in BARS} == BARS


def test_specification_keeps_how_its_data_are_parsed() -> None:
    data = {"url": "x.csv", "format": {"type": "csv", "parse": {"d": "date:'%Y%m%d'"}}}
    drawn, _ = drawable({**BARS, "data": data}, COLUMNS, ROWS)
    assert drawn["data"] == {"values": RECORDS, "format": {"parse": {"d": "date:'%Y%m%d'"}}}


def test_inner_views_keep_their_own_values_and_else_use_the_rows() -> None:
    goal = {"mark": "rule", "data": {"values": [{"goal": 5}]}}
    named = {"mark": "rule", "data": {"name": "goals"}}
    views = [goal, named, {**BARS, "data": {"name": "rows"}}, {**BARS, "data": {"url": "x.csv"}}]
    spec = {"layer": views, "datasets": {"goals": [{"goal": 6}]}}
    drawn, notes = drawable(spec, COLUMNS, ROWS)
    assert drawn["layer"] == [goal, named, BARS, BARS]
    assert drawn["datasets"] == spec["datasets"]
    assert notes == [NOTHING_LOADED.format("url")]


@pytest.mark.parametrize(
    ("spec", "notes"),
    [
        ({**BARS, "usermeta": {"embedOptions": {"patch": "x.json"}}}, []),
        ({**BARS, "data": {"url": "https://x.example/a.csv"}}, [NOTHING_LOADED.format("url")]),
        ({**BARS, "data": {"values": [{"country": "Mars"}]}},
         ["The chart shows the rows of the query, not its own data."]),
        ({**BARS, "mark": {"type": "image", "url": "a.png", "href": "https://x.example"}},
         [NOTHING_LOADED.format("href, url")]),
    ],
)  # fmt: skip
def test_note_says_what_is_left_out(spec: dict[str, Any], notes: list[str]) -> None:
    assert drawable(spec, COLUMNS, ROWS)[1] == notes


def test_specification_for_a_result_without_rows_shows_a_notice() -> None:
    drawn, notes = drawable({**BARS, "title": "Revenue"}, COLUMNS, [])
    assert notes == ["The query returned no rows."]
    assert drawn["title"] == "Revenue"
    assert drawn["encoding"] == {"text": {"value": "No rows"}}


@pytest.mark.parametrize("spec", [None, [], "x", 3, {}, {"title": "x"}])
def test_anything_but_a_vega_lite_specification_is_refused(spec: Any) -> None:
    with pytest.raises(ChartError, match="not a Vega-Lite specification: it has none of"):
        drawable(spec, COLUMNS, ROWS)


def test_vega_specification_is_refused_without_quoting_rows() -> None:
    with pytest.raises(ChartError, match="but a Vega specification") as error:
        drawable({"marks": []}, COLUMNS, ROWS)
    assert "Spain" not in error.value.message


@pytest.mark.exhaustive
def test_specification_that_is_nested_too_deeply_or_is_not_json_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"hconcat": [deep]}
    for spec in (deep, {"mark": object()}):
        with pytest.raises(ChartError, match="nested too deeply or is not JSON"):
            drawable(spec, COLUMNS, ROWS)
