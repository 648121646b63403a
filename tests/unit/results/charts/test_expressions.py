"""Chart expressions compute with the chart's data and reach nothing else."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartError, ChartLimits, ChartRenderer
from airflow_provider_platform.results.charts.expressions import (
    INHERITED,
    ExpressionError,
    check_expression,
    check_specification,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = [{"name": "a", "type": "Double"}, {"name": "b", "type": "Double"},
           {"name": "c", "type": "String"}, {"name": "d", "type": "Date"}]  # fmt: skip
ROWS: list[list[Any]] = [[1, 2, "u", "2020-01-02"], [3, 1, "w", "2021-05-02"]]
TWICE = [*ROWS, [1, 5, "u", "2020-01-02"], [3, 4, "w", "2021-05-02"]]
XY: dict[str, Any] = {
    "x": {"field": "a", "type": "quantitative"},
    "y": {"field": "b", "type": "quantitative"},
}
DOTS: dict[str, Any] = {"mark": "point", "encoding": XY}


@pytest.fixture(scope="module")
def renderer() -> Iterator[ChartRenderer]:
    pytest.importorskip("vl_convert", reason="the extra charts is not installed")
    with ChartRenderer(ChartLimits(seconds=120)) as one:
        yield one


@pytest.mark.parametrize(
    "text",
    [
        "datum.a * 2 + 1",
        "datum['order count'] > 5 && !isValid(datum.b)",
        "datum.a > 1 ? 'x' : datum.a > 0 ? 'y' : 'z'",
        "['Jan', 'Feb'][month(datum.d)]",
        "split(datum.c, '-')[length(datum.c) - 1]",
        "{label: datum.c, \"value of a\": datum['a']}",
        "test(/[/\"a-z]+\\//i, datum.c) || regexp('a')",
        "replace(datum.c, /a/g, 'constructor')",
        "datum.title === 'constructor'",
        "toString(datum.a) + format(datum.b, '.2f')",
        "pluck(data('source_0'), 'a')",
        "-+~-datum.a / 3 / 2",
        "datum.größe + 0x1F + 1e-3 + .5",
        "event.shiftKey",
        "'\\u0041\\n' + \"it's\"",
        "datum.process + datum['window'] + datum.call",
        '!length(data("p_store")) || vlSelectionTest("p_store", datum)',
        " ? ".join(f'datum.a === "{n}" ? {n}' for n in range(1)) + " : 1",
        " : ".join(f'datum.a === "{n}" ? {n}' for n in range(500)) + " : -1",
        " + ".join(["datum.a"] * 500),
    ],
)
def test_an_expression_that_computes_with_data_is_allowed(text: str) -> None:
    check_expression(text)


@pytest.mark.parametrize(
    "text",
    [
        # Members that every object inherits, in every way to write them.
        "datum.constructor",
        "datum['constructor']",
        "datum['con\\u0073tructor']",
        "datum['con\\x73tructor']",
        "datum['\\143onstructor']",
        "datum[('constructor')]",
        "datum['con' + 'structor']",
        "datum[datum.key]",
        "datum[signal_of_the_author]",
        "datum[[ 'constructor' ]]",
        "datum[lower('CONSTRUCTOR')]",
        "datum[true ? 'constructor' : 1]",
        "datum[if(1, 'constructor', 1)]",
        "datum[max('constructor')]",
        "datum[1 + 'x']",
        "datum.__proto__",
        "datum . constructor",
        "datum.con\\u0073tructor",
        "{toString: datum.a}",
        "{'valueOf': datum.a}",
        '{"__proto__": datum}',
        "{toJSON: 1}",
        "constructor",
        "[].map",
        "[1, 2].constructor",
        "''.sub",
        "/a/.exec",
        "({}).hasOwnProperty",
        "pluck([datum], 'constructor')",
        "pluck([datum], 'a.constructor')",
        "pluck([datum], 'a[\\'constructor\\']')",
        "pluck([datum], datum.key)",
        "replace('alert(1)', /.+/, datum.f)",
        # Calls.
        "datum.f()",
        "datum.constructor('alert(1)')()",
        "(datum)()",
        "[1][0]()",
        "alert(1)",
        "eval('1')",
        "Function('1')",
        "setdata('x', [])",
        "warn(1)",
        "import('fs')",
        "new Date()",
        "new(Date)",
        "function() {}",
        "() => 1",
        "`${1}`",
        "a = 1",
        "a, b",
        "a; b",
        "datum.a++",
        "typeof a",
        "delete datum.a",
        "this",
        "'a' in datum",
        "a instanceof b",
        "1 /* hidden */ + 1",
        "1 // hidden",
        "1 + /* a */ 1",
        # What is outside.
        "window",
        "window.location",
        "self",
        "globalThis",
        "document.cookie",
        "event",
        "event.view",
        "event['view']",
        "event.item",
        "event.item.mark.group",
        "[event]",
        "item()",
        "item().context",
        "item().mark.group",
        "item().items[0].mark",
        "item().items[datum.a].items[0].datum.value",
        "group()",
        "group().context.dataflow",
        "isTuple(group()) ? group() : unit",
        "unit",
        "unit.context.dataflow",
        "scale('x', 1, group())",
        "scale('x', 1, datum)",
        "scale(datum.name, 1)",
        "data(datum.name)",
        # Functions of selections with arguments of the author's.
        "vlSelectionTest('p_store', {a: 1})",
        "vlSelectionTest('p_store', datum.x)",
        "vlSelectionTest(datum.store, datum)",
        "vlSelectionTest('source_0', datum)",
        "vlSelectionTest()",
        "vlSelectionIdTest('p_store', [datum])",
        "vlSelectionResolve('p_store', datum.op)",
        "vlSelectionResolve()",
        "vlSelectionTuples([datum.a], {})",
        "vlSelectionTuples([{getter: datum.a}], {fields: x})",
        "modify('p_store', {fields: [{getter: 1}]})",
        "modify('source_0', p_tuple)",
        "modify(datum.a, datum.b)",
        # Nothing, half of something, too much.
        "",
        "(",
        "datum.",
        "datum[",
        "'a",
        "'a\nb'",
        "/a",
        "1a",
        "{a}",
        "{a: 1",
        "f(1,",
        "(" * 100 + "1" + ")" * 100,
        "!" * 1000 + "a",
        "a" + ".b" * 1000,
        "a" * 300_000,
    ],
)
def test_an_expression_that_may_reach_more_is_refused(text: str) -> None:
    with pytest.raises(ExpressionError, match=r"^the expression '|^the expression \""):
        check_expression(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f(1 2", r"has '2' where ',' should be"),
        ("(1", r"ends where '\)' should be"),
        ("datum[", "ends where a value should be"),
        ("datum.", "ends where the name of a member should be"),
        ("{a: 1,", "ends where a key should be"),
    ],
)
def test_error_shows_what_is_in_place_of_the_missing_part(text: str, problem: str) -> None:
    with pytest.raises(ExpressionError, match=problem):
        check_expression(text)


_PIECES = st.sampled_from(
    ["datum", ".", "[", "]", "(", ")", "'a'", '"constructor"', "constructor", "__proto__", "+", "?",
     ":", ",", "{", "}", "1", "length", "data", " ", "'", "x", "!", "=", '["constructor"]']
)  # fmt: skip


@given(st.lists(_PIECES, max_size=14).map("".join))
def test_allowed_expression_never_names_an_inherited_property(text: str) -> None:
    try:
        check_expression(text)
    except ExpressionError:
        return
    unquoted = re.sub(r"'[^']*'|\"[^\"]*\"", "''", text)
    assert INHERITED.isdisjoint(re.findall(r"\w+", unquoted))
    assert re.search(r"""[\w)\]}'"]\["constructor"\]""", text.replace(" ", "")) is None


@pytest.mark.parametrize(
    ("vega", "reason"),
    [
        ({"signals": [{"name": "__proto__", "value": 1}]}, "a parameter may not be called"),
        ({"signals": [{"name": "s", "update": "alert(1)"}]}, "calls 'alert'"),
        ({"signals": [{"name": "s", "on": [{"events": "click[alert(1)]", "update": "1"}]}]},
         "contains an expression"),
        ({"signals": [{"name": "s", "on": [{"events": {"filter": ["alert(1)"]}}]}]},
         "calls 'alert'"),
        ({"signals": [{"name": "s", "on": [{"update": "isTuple(group()) ? group() : unit"}]}]},
         "calls 'group'"),
        ({"data": [{"name": "d", "values": {"signal": "alert(1)"}}]}, "calls 'alert'"),
        ({"data": [{"name": "d", "transform": [{"type": "filter", "expr": "alert(1)"}]}]},
         "calls 'alert'"),
        ({"data": [{"name": "d", "on": [{"trigger": "1", "values": "alert(1)"}]}]},
         "calls 'alert'"),
        ({"marks": [{"encode": {"update": {"x": [{"test": "alert(1)", "value": 1}]}}}]},
         "calls 'alert'"),
        ({"marks": [{"marks": [{"data": [{"values": [], "transform": [{"expr": "alert(1)"}]}]}]}]},
         "calls 'alert'"),
        ({"title": {"text": {"signal": "alert(1)"}}}, "calls 'alert'"),
        ({"scales": [{"domain": {"constructor": 1}}]}, "a property may not be called"),
    ],
)  # fmt: skip
def test_expressions_are_found_wherever_vega_reads_them(vega: dict[str, Any], reason: str) -> None:
    with pytest.raises(ExpressionError, match=reason):
        check_specification(vega)


def test_rows_are_not_read_as_expressions() -> None:
    check_specification({"data": [{"values": [{"signal": "alert(1)", "constructor": 5}]}]})
    own = {"name": "unit", "on": [{"update": "isTuple(group()) ? group() : unit"}]}
    check_specification({"signals": [own]})


ESCAPES: list[dict[str, Any]] = [
    {**DOTS, "transform": [{"calculate": text, "as": "k"}]}
    for text in (
        "datum.constructor.constructor('return 1')()",
        "datum.constructor.constructor",
        "datum['__proto__']['constructor']",
        "datum['con'+'structor']",
        "vlSelectionTest('x_store', {fields: [{getter: datum.constructor}]})",
        "vlSelectionResolve('x_store', 'union')",
        "vlSelect\\u0069onTest('x_store', datum)",
        "modify('x_store', {a: 1})",
        "window.fetch('https://evil.example')",
        "import('node:fs')",
        "replace('alert(1)', /.*/, datum.constructor.constructor)",
        "{toString: datum.constructor}",
        "Deno.readTextFileSync('/etc/passwd')",
    )
]
ESCAPES += [
    {**DOTS, "transform": [{"filter": "datum.constructor"}]},
    {**DOTS, "transform": [{"filter": {"not": {"and": ["datum.constructor", "1"]}}}]},
    {**DOTS, "params": [{"name": "p", "expr": "[].constructor"}]},
    {**DOTS, "params": [{"name": "p", "value": 1, "on": [{"events": "x", "update": "eval(1)"}]}]},
    {**DOTS, "params": [{"name": "constructor", "value": 1}]},
    {**DOTS, "mark": {"type": "point", "size": {"expr": "datum.constructor"}}},
    {**DOTS, "mark": {"type": "point", "tooltip": {"signal": "event.view"}}},
    {**DOTS, "title": {"text": {"expr": "window"}}},
    {**DOTS, "encoding": {**XY, "color": {"condition": {"test": "window", "value": "red"}}}},
    {**DOTS, "encoding": {**XY, "x": {**XY["x"], "axis": {"labelExpr": "datum.constructor"}}}},
    {**DOTS, "encoding": {**XY, "x": {**XY["x"], "axis": {"values": {"signal": "eval(1)"}}}}},
    {**DOTS, "encoding": {**XY, "x": {**XY["x"], "axis": {"formatType": "eval", "format": "1"}}},
     "config": {"customFormatTypes": True}},
    {**DOTS, "params": [{"name": "p", "select": {"type": "point", "on": "click[alert(1)]"}}]},
    {**DOTS, "params": [{"name": "p", "select": {"type": "point", "toggle": "event.view.alert"}}]},
    {"hconcat": [{"layer": [{**DOTS, "transform": [{"calculate": "eval(1)", "as": "k"}]}]}]},
]  # fmt: skip


REFUSED = (
    r"the expression '|the expression \"|internal function of Vega|may not be called|: Disabled"
)
"""The last one is Vega-Lite's own word for `import`."""


@pytest.mark.parametrize("spec", ESCAPES, ids=str)
def test_specification_that_reaches_beyond_its_data_is_not_drawn(
    renderer: ChartRenderer, spec: dict[str, Any]
) -> None:
    with pytest.raises(ChartError, match=REFUSED):
        renderer.render(spec, COLUMNS, ROWS, ["svg"])


BRUSH = {"name": "brush", "select": "interval"}
SHADES = {"condition": {"param": "brush", "field": "c"}, "value": "grey"}
FEATURES: list[dict[str, Any]] = [
    *({"mark": {"type": mark, "tooltip": True}, "encoding": XY}
      for mark in ("bar", "line", "area", "tick", "rect", "rule", "text", "arc", "trail", "boxplot",
                   "errorbar", "errorband")),
    {"mark": "bar", "encoding": {"x": {"field": "a", "bin": True}, "y": {"aggregate": "count"}}},
    {"mark": "line", "encoding": {"x": {"field": "d", "timeUnit": "yearmonth"}, "y": XY["y"],
                                  "tooltip": [{"field": "d", "type": "temporal", "format": "%Y"}]}},
    {**DOTS, "params": [BRUSH], "encoding": {**XY, "color": SHADES}},
    {**DOTS, "params": [{**BRUSH, "bind": "scales"}]},
    {**DOTS, "params": [{**BRUSH, "value": {"x": [0, 2]}}], "encoding": {**XY, "color": SHADES}},
    {**DOTS, "params": [{"name": "p", "select": {"type": "point", "fields": ["c"], "nearest": True,
                                                 "toggle": "event.shiftKey"},
                         "value": [{"c": "u"}]}],
     "transform": [{"filter": {"param": "p"}}]},
    {**DOTS, "params": [{"name": "p", "select": {"type": "point", "fields": ["c"]},
                         "bind": "legend"}],
     "encoding": {**XY, "color": {"field": "c"}}},
    {**DOTS, "params": [{"name": "p", "select": "point"}],
     "encoding": {**XY, "size": {"condition": {"param": "p", "value": 9, "empty": False}}}},
    {**DOTS, "params": [{"name": "w", "value": 3, "bind": {"input": "range"}},
                        {"name": "q", "expr": "w * 2"}],
     "transform": [{"calculate": "datum.a * q", "as": "k"}]},
    {**DOTS, "transform": [{"filter": {"field": "c", "oneOf": ["u", "w"]}},
                           {"filter": {"timeUnit": "year", "field": "d", "equal": 2020}},
                           {"filter": {"and": ["datum.a > 0", {"not": {"field": "a", "lt": 0}}]}},
                           {"window": [{"op": "rank", "as": "r"}]}]},
    {"facet": {"row": {"field": "c"}}, "spec": {**DOTS, "params": [BRUSH]},
     "resolve": {"scale": {"x": "independent"}}},
    {**DOTS, "encoding": {**XY, "facet": {"field": "c", "columns": 2}}},
    {"hconcat": [{**DOTS, "params": [BRUSH]},
                 {"mark": "line", "encoding": {**XY, "x": {
                     **XY["x"], "scale": {"domain": {"param": "brush", "encoding": "x"}}}}}]},
    {"repeat": {"column": ["a", "b"]},
     "spec": {"mark": "bar", "encoding": {"x": {"field": {"repeat": "column"}, "bin": True}}}},
    {"mark": "bar", "encoding": {**XY, "x": {"field": "c", "sort": ["w", "u"],
                                             "axis": {"labelExpr": "upper(datum.label)"}}}},
    {"mark": "bar", "width": "container", "encoding": {
        **XY, "x": {"field": "d", "timeUnit": "month", "type": "ordinal"}}},
]  # fmt: skip


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize("spec", FEATURES, ids=str)
def test_specification_with_every_vega_lite_feature_is_drawn(
    renderer: ChartRenderer, spec: dict[str, Any]
) -> None:
    assert renderer.render(spec, COLUMNS, TWICE, ["svg"])["svg"].startswith(b"<svg")
