"""Each field of a specification names a column, or the chart is refused with both names."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartError
from airflow_provider_platform.results.charts.fields import resolve_fields, split_path

COLUMNS = ["country", "revenue", "day"]


def bars(x: str = "country", y: str = "revenue", **more: Any) -> dict[str, Any]:
    encoding = {"x": {"field": x}, "y": {"field": y, "type": "quantitative"}}
    return {"mark": "bar", "encoding": encoding, **more}


@pytest.mark.parametrize("field", ["Country", "COUNTRY", "counrty", "nation", "country.name",
                                   "country[0]", "orders.country", "", " country"])  # fmt: skip
def test_field_that_no_column_has_is_refused_with_the_columns(field: str) -> None:
    with pytest.raises(ChartError) as error:
        resolve_fields(bars(field), COLUMNS)
    said = error.value.message
    assert f"'{field.strip()}'" in said
    assert "'country', 'revenue', 'day'" in said


def test_similar_column_is_named() -> None:
    with pytest.raises(ChartError, match=r"'Country' \(did you mean 'country'\?\)"):
        resolve_fields(bars("Country"), COLUMNS)


@pytest.mark.parametrize(
    "spec",
    [
        bars(transform=[{"calculate": "datum.Revenue * 2", "as": "twice"}]),
        bars(transform=[{"filter": "datum['Revenue'] > 2"}]),
        bars(transform=[{"filter": {"field": "Revenue", "gt": 2}}]),
        bars(transform=[{"filter": {"not": {"and": [{"field": "Revenue", "gt": 2}]}}}]),
        bars(transform=[{"fold": ["revenue", "Revenue"]}]),
        bars(transform=[{"window": [{"op": "sum", "field": "Revenue", "as": "s"}]}]),
        bars(transform=[{"window": [{"op": "rank", "as": "r"}], "sort": [{"field": "Revenue"}]}]),
        bars(transform=[{"joinaggregate": [{"op": "max", "field": "Revenue", "as": "m"}]}]),
        bars(transform=[{"lookup": "Revenue", "from": {"data": {"values": []}, "key": "k",
                                                       "fields": ["v"]}}]),
        bars(transform=[{"impute": "Revenue", "key": "country"}]),
        bars(transform=[{"stack": "Revenue", "groupby": [], "as": "s"}]),
        bars(transform=[{"timeUnit": "year", "field": "Revenue", "as": "s"}]),
        {"layer": [bars(), bars(y="Revenue")]},
        {"hconcat": [bars(), {"vconcat": [bars(y="Revenue")]}]},
        {"facet": {"field": "Revenue"}, "spec": bars()},
        {"facet": {"row": {"field": "Revenue"}}, "spec": bars()},
        {"repeat": ["revenue", "Revenue"], "spec": bars()},
        {"encoding": {"color": {"field": "Revenue"}}, "layer": [bars(), bars()]},
        {"mark": "bar", "encoding": {"x": {"field": "country", "sort": {"field": "Revenue"}}}},
        {"mark": "bar", "encoding": {"x": {"aggregate": {"argmax": "Revenue"}, "field": "day"}}},
        {"mark": "bar", "encoding": {"detail": [{"field": "day"}, {"field": "Revenue"}]}},
        {"mark": "bar", "encoding": {"color": {"condition": {"test": {"field": "country",
                                     "equal": 1}, "field": "Revenue"}, "value": "red"}}},
    ],
)  # fmt: skip
def test_missing_field_is_found_wherever_a_specification_reads_it(spec: dict[str, Any]) -> None:
    with pytest.raises(ChartError, match=r"'Revenue' \(did you mean 'revenue'"):
        resolve_fields(spec, COLUMNS)


@pytest.mark.parametrize(
    "spec",
    [
        bars("label", transform=[{"calculate": "upper(datum.country)", "as": "label"}]),
        bars("k", "v", transform=[{"fold": ["revenue", "day"], "as": ["k", "v"]}]),
        bars("key", "value", transform=[{"fold": ["revenue", "day"]}]),
        bars(y="sum", transform=[{"aggregate": [{"op": "sum", "field": "revenue", "as": "sum"}],
                                  "groupby": ["country"]}]),
        bars("Germany", "Italy", transform=[{"pivot": "country", "value": "revenue"}]),
        bars("value", "density", transform=[{"density": "revenue"}]),
        bars("day", "revenue", transform=[{"regression": "revenue", "on": "day"}]),
        bars("prob", "value", transform=[{"quantile": "revenue"}]),
        bars("bin", transform=[{"bin": True, "field": "revenue", "as": "bin"}]),
        bars("bin_end", transform=[{"bin": True, "field": "revenue", "as": "bin"}]),
        bars("from", "to", transform=[{"stack": "revenue", "groupby": [], "as": ["from", "to"]}]),
        bars("flag", transform=[{"lookup": "country", "from": {"data": {"values": [{}]},
                                 "key": "k", "fields": ["flag"]}}]),
        {"encoding": {"x": {"field": "label"}}, "layer": [
            {"transform": [{"calculate": "1", "as": "label"}], "mark": "bar"}]},
        {"layer": [bars(), {"data": {"values": [{"goal": 5}]}, "mark": "rule",
                            "encoding": {"y": {"field": "goal"}}}]},
        {"layer": [bars(), {"data": {"sequence": {"start": 0, "stop": 3}}, "mark": "rule",
                            "encoding": {"y": {"field": "data"}}}]},
        {"datasets": {"goals": [{"goal": 1}]}, "layer": [
            {"data": {"name": "goals"}, "mark": "bar", "encoding": {"y": {"field": "goal"}}}]},
        {"mark": "bar", "encoding": {"y": {"aggregate": "count"}, "x": {"field": "day"},
                                     "color": {"condition": {"test": "datum.__count > 3",
                                               "value": "red"}, "value": "grey"}}},
        bars(transform=[{"sample": 500}]),
        {"repeat": {"layer": ["revenue", "day"]}, "spec": {
            "mark": "line", "encoding": {"y": {"field": {"repeat": "layer"}}}}},
    ],
)  # fmt: skip
def test_fields_that_transforms_and_other_data_make_are_known(spec: dict[str, Any]) -> None:
    resolve_fields(spec, COLUMNS)


def test_field_that_an_aggregate_drops_is_refused() -> None:
    step = {"aggregate": [{"op": "sum", "field": "revenue", "as": "sum"}], "groupby": ["country"]}
    with pytest.raises(ChartError, match=r"'revenue' .the result has this column, but a tr"):
        resolve_fields(bars(transform=[step]), COLUMNS)


def test_missing_field_of_a_tooltip_is_a_note() -> None:
    spec = bars()
    spec["encoding"]["tooltip"] = [{"field": "Revenue"}, {"field": "day"}]
    [note] = resolve_fields(spec, COLUMNS).notes
    assert "'Revenue'" in note


@pytest.mark.parametrize("written", ["orders.count", r"orders\.count", "['orders.count']"])
def test_dotted_column_is_found_however_a_specification_writes_it(written: str) -> None:
    found = resolve_fields(bars(y=written), ["country", "orders.count"])
    assert split_path(found.spec["encoding"]["y"]["field"]) == ["orders.count"]
    assert found.uses.numbers == {"orders.count"}


@pytest.mark.parametrize("name", ["a[0]", "revenue (€) [net]", "a.b.c", "it's", 'a"b', "a\\b"])
def test_column_whose_name_vega_cannot_write_gets_a_key_and_its_name_as_title(name: str) -> None:
    found = resolve_fields(bars(y=name), ["country", name])
    assert found.keys == {name: "column_2"}
    assert found.spec["encoding"]["y"]["field"] == "column_2"
    assert found.spec["encoding"]["y"]["title"] == name


def test_path_into_an_object_is_not_changed() -> None:
    found = resolve_fields(bars(y="country.size"), COLUMNS, structured={"country"})
    assert found.spec == bars(y="country.size")


def test_resolved_fields_say_how_each_column_is_read() -> None:
    spec = bars(transform=[{"calculate": "datum.revenue", "as": "r"}])
    spec["encoding"]["color"] = {"field": "day", "timeUnit": "month"}
    spec["encoding"]["text"] = {"aggregate": "distinct", "field": "country"}
    uses = resolve_fields(spec, COLUMNS).uses
    assert (uses.numbers, uses.times, uses.labels) == ({"revenue"}, {"day"}, {"country"})
    assert uses.compared == {"revenue", "country"}


@given(st.lists(st.text(min_size=1).filter(lambda part: part.strip(".[]'\"\\")), min_size=1))
def test_escaped_path_has_the_parts_it_was_made_of(parts: list[str]) -> None:
    escaped = ["".join(f"\\{one}" if one in ".[]'\"\\" else one for one in p) for p in parts]
    assert split_path(".".join(escaped)) == parts


_FIELDS = st.sampled_from(["country", "revenue", "x", "a.b", "a[", "", None, 5, {"repeat": "row"}])
_SPECS = st.recursive(
    _FIELDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["encoding", "x", "y", "field", "transform", "fold", "aggregate", "groupby", "as",
                 "op", "sort", "layer", "hconcat", "spec", "facet", "repeat", "condition", "test",
                 "filter", "not", "and", "lookup", "from", "data", "values", "name", "window",
                 "calculate", "type", "stack", "pivot", "bin", "timeUnit", "scale", "regression"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=15,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(["encoding", "transform", "layer", "spec"]), _SPECS))
def test_any_specification_is_resolved_or_refused_and_never_changed(spec: dict[str, Any]) -> None:
    before = repr(spec)
    with suppress(ChartError):
        resolve_fields(spec, COLUMNS)
    assert repr(spec) == before
