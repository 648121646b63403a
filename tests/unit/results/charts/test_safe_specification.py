"""A specification loads nothing, and the rows are where it expects its data."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartError, ChartLimits
from airflow_provider_platform.results.charts.records import plain, records_of
from airflow_provider_platform.results.charts.safe_specification import (
    drawable,
    with_rows,
    without_loading,
)

COLUMNS = [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Double"}]
ROWS = [["Spain", "12.5"], ["Italy", 7]]
RECORDS = [{"country": "Spain", "revenue": 12.5}, {"country": "Italy", "revenue": 7}]
BARS: dict[str, Any] = {
    "mark": "bar",
    "encoding": {"x": {"field": "country"}, "y": {"field": "revenue"}},
}

_ADDRESSES = st.sampled_from(
    ["file:///etc/passwd", "http://evil.example/x", "https://good.example/x", "javascript:x", ""]
)
_KEYS = st.sampled_from(
    ["url", "href", "data", "from", "lookup", "layer", "hconcat", "spec", "mark", "value",
     "usermeta",
     "encoding", "config", "src", "$schema", "values", "name", "key", "expr", "datasets", "image"]
)  # fmt: skip
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5) | _ADDRESSES,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_KEYS | st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=12,
)
_SPECS = st.dictionaries(_KEYS, _JSON, max_size=6)


def pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, list):
        return [pair for item in value for pair in pairs(item)]
    if isinstance(value, dict):
        return [*value.items(), *(pair for item in value.values() for pair in pairs(item))]
    return []


@given(_SPECS)
def test_everything_that_would_load_is_removed_from_a_specification(spec: dict[str, Any]) -> None:
    before = json.dumps(spec)
    cleaned = without_loading(spec)
    assert json.dumps(spec) == before
    for key, value in pairs(cleaned):
        assert key not in {"url", "usermeta", "src", "$schema"}
        if key == "href":
            link = value["value"] if isinstance(value, dict) else value
            assert link.startswith("https://")
            assert not isinstance(value, dict) or set(value) == {"value"}
    assert without_loading(cleaned) == cleaned


@given(_SPECS)
def test_rows_are_inserted_into_a_cleaned_specification(spec: dict[str, Any]) -> None:
    cleaned = without_loading(spec)
    before = json.dumps(cleaned)
    found = with_rows(cleaned, RECORDS)
    assert json.dumps(cleaned) == before
    assert "url" not in {key for key, _ in pairs(found)}
    assert found["$schema"].startswith("https://vega.github.io/schema/vega-lite/v5")
    data = found["data"]
    assert data.get("values") == RECORDS or {"sequence", "sphere", "graticule"} & set(data)


@given(
    _SPECS.filter(lambda spec: not {"url", "href", "usermeta", "src"} & {k for k, _ in pairs(spec)})
)
def test_specification_that_loads_nothing_is_not_changed(spec: dict[str, Any]) -> None:
    spec.pop("$schema", None)
    expected = json.loads(json.dumps(spec))
    if "$schema" not in {key for key, _ in pairs(spec)}:
        assert without_loading(spec) == expected


@pytest.mark.parametrize(
    "link",
    ["javascript:alert(1)", "http://x.example", "data:text/html,x", "//x.example", "HTTPS:/x",
     {"field": "link"}, {"expr": "datum.link"}, {"value": "file:///x"}, None, 5,
     "https://x.example/\"onload=", {"condition": {"value": "javascript:x"}}],
)  # fmt: skip
def test_links_other_than_https_are_removed(link: Any) -> None:
    spec = {"mark": {"type": "bar", "href": link}, "encoding": {"href": link}}
    assert without_loading(spec) == {"mark": {"type": "bar"}, "encoding": {}}


def test_links_to_https_stay() -> None:
    spec = {
        "mark": {"href": "https://x.example/a?b=1"},
        "encoding": {"href": {"value": "https://x"}},
    }
    assert without_loading(spec) == spec


def test_a_specification_nested_too_deeply_is_refused() -> None:
    spec: dict[str, Any] = {}
    for _ in range(100):
        spec = {"hconcat": [spec]}
    with pytest.raises(ChartError, match="nested too deeply"):
        without_loading(spec)


@pytest.mark.parametrize("spec", [None, [], "x", 3])
def test_specification_that_is_not_an_object_is_refused(spec: Any) -> None:
    with pytest.raises(ChartError, match="not a JSON object"):
        without_loading(spec)


@pytest.mark.parametrize(
    "data", [None, {}, {"url": "file:///etc/passwd"}, {"values": []}, {"values": [{"a": 1}]}, "x"]
)
def test_rows_are_the_data_of_the_chart(data: Any) -> None:
    found = with_rows(without_loading({**BARS, "data": data}), RECORDS)
    assert found["data"] == {"values": RECORDS}
    assert found["mark"] == "bar"


def test_rows_keep_the_name_that_the_chart_gives_them() -> None:
    spec = {**BARS, "data": {"name": "result", "format": {"type": "csv", "parse": {"d": "date"}}}}
    found = with_rows(spec, RECORDS)
    assert found["data"] == {
        "name": "result", "values": RECORDS, "format": {"parse": {"d": "date"}},
    }  # fmt: skip
    assert "datasets" not in found


def test_rows_are_every_dataset_that_is_used_and_not_defined() -> None:
    layers = [{**BARS, "data": {"name": "rows"}}, {**BARS, "data": {"name": "goal"}}]
    spec = {"layer": layers, "datasets": {"goal": [{"revenue": 5}]}}
    found = with_rows(spec, RECORDS)
    assert found["datasets"] == {"goal": [{"revenue": 5}], "rows": RECORDS}


def test_inner_views_whose_data_was_removed_use_the_charts_rows() -> None:
    spec = {"vconcat": [{**BARS, "data": {"url": "https://x.example/a.csv"}}, BARS]}
    found = with_rows(without_loading(spec), RECORDS)
    assert found["vconcat"] == [BARS, BARS]


def test_lookup_in_data_that_was_removed_finds_nothing() -> None:
    source = {"data": {"url": "https://x.example/a.csv"}, "key": "country", "fields": ["flag"]}
    spec = {**BARS, "transform": [{"lookup": "country", "from": source}]}
    [transform] = with_rows(without_loading(spec), RECORDS)["transform"]
    assert transform["from"] == {"data": {"values": []}, "key": "country", "fields": ["flag"]}


def test_data_that_the_chart_makes_itself_stays() -> None:
    spec = {"data": {"graticule": True}, "mark": "geoshape"}
    assert with_rows(spec, RECORDS)["data"] == {"graticule": True}


def test_a_column_with_a_dot_is_found_by_both_its_names() -> None:
    [record] = records_of([{"name": "orders.count", "type": "Int64"}], [["3"]])
    assert record == {"orders.count": 3.0, "orders": {"count": 3.0}}
    columns = [{"name": "orders.count"}, {"name": "orders"}]
    assert list(records_of(columns, [[1, 2]])) == [{"orders.count": 1, "orders": 2}]


def test_values_become_plain_json() -> None:
    values = [
        Decimal("1.5"),
        date(2025, 1, 2),
        datetime(2025, 1, 2, tzinfo=UTC),
        float("nan"),
        None,
    ]
    assert [plain(value) for value in values] == [
        1.5, "2025-01-02", "2025-01-02T00:00:00+00:00", None, None,
    ]  # fmt: skip
    assert plain("12") == "12"
    assert plain(True) is True


def test_large_specification_is_refused_before_it_is_read_completely() -> None:
    def endless() -> Any:
        yield from ({"a": "x" * 1000} for _ in range(10))
        raise AssertionError("read on")

    class Endless(list[Any]):
        def __iter__(self) -> Any:
            return endless()

    limits = ChartLimits(specification_characters=5_000)
    with pytest.raises(ChartError, match="longer than the limit of 5,000 characters"):
        without_loading({"data": {"values": Endless()}}, limits)
    assert without_loading({"title": "x" * 4_000}, limits)


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({**BARS, "data": {"url": "https://x.example/a.csv"}}, "'https://x.example/a.csv' are not"),
        ({**BARS, "data": {"values": [{"country": "Mars"}]}}, r"its own data \(1 rows\)"),
        ({**BARS, "data": {"name": "d"}, "datasets": {"d": [{}, {}]}}, r"its own data \(2 rows\)"),
        ({**BARS, "mark": {"type": "image", "url": "https://x.example/a.png"}}, "image 'https"),
        ({**BARS, "encoding": {**BARS["encoding"], "href": {"value": "http://x"}}}, "out links"),
        ({**BARS, "transform": [{"lookup": "country", "from": {
            "data": {"url": "f.csv"}, "key": "c", "fields": ["flag"]}}]}, "'f.csv' are not"),
    ],
)  # fmt: skip
def test_data_that_are_left_out_are_noted(spec: dict[str, Any], said: str) -> None:
    [note] = drawable(spec, COLUMNS, ROWS).notes
    assert re.search(said, note), note


def test_specification_whose_data_are_the_rows_has_no_notes() -> None:
    for data in ({}, {"name": "d"}, {"values": []}, {"sequence": {"start": 0, "stop": 1}}):
        assert drawable({**BARS, "data": data, "usermeta": {}}, COLUMNS, ROWS).notes == []


def test_specification_for_a_result_without_rows_shows_a_notice() -> None:
    found = drawable({**BARS, "title": "Revenue"}, COLUMNS, [])
    assert found.is_empty
    assert found.notes == ["The query returned no rows."]
    assert found.spec["title"] == "Revenue"
    assert found.spec["encoding"] == {"text": {"value": "No rows"}}
