"""What a drawn chart says: its marks with their numbers, and its axes. Nothing of how it looks.

Vega describes each mark and axis of an SVG in words. Fonts, which every machine has others of, move
pixels and not these words.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from airflow_provider_platform.charts import ChartLimits, ChartRenderer

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("vl_convert", reason="the extra charts is not installed")

Rows = list[list[Any]]


@dataclass(frozen=True)
class Chart:
    """A chart, and what it shall say."""

    name: str
    columns: dict[str, str]
    rows: Rows
    spec: dict[str, Any]
    marks: list[str]
    """What each mark shows, in the order of the picture."""
    axes: list[str] = field(default_factory=list)
    """What the descriptions of axes and legends contain, in the order of the picture."""
    note: str = ""


def number(name: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", **more}


def label(name: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": "nominal", **more}


def unit(mark: Any, **encoding: Any) -> dict[str, Any]:
    return {"mark": mark, "encoding": encoding}


COUNTRY = {"country": "String", "revenue": "Decimal"}
COUNTRIES: Rows = [["Spain", "1250.50"], ["Italy", "980.00"], ["Germany", "2310.75"]]
BARS = unit("bar", x=label("country"), y=number("revenue"))
COUNTRY_MARKS = ["Spain; revenue: 1250.5", "Italy; revenue: 980", "Germany; revenue: 2310.75"]
MONTH = {"month": "Timestamp", "product": "String", "orders": "Int64"}
MONTHS: Rows = [
    [f"2025-{month:02}-01T00:00:00.000", product, str(month * 10 + at)]
    for month in (1, 2)
    for at, product in enumerate(("Bikes", "Locks"))
]
BY_MONTH = {"field": "month", "type": "temporal", "timeUnit": "yearmonth"}

CHARTS = [
    Chart("sorted-bars", COUNTRY, COUNTRIES,
          unit("bar", y=label("country", sort="-x"), x=number("revenue")),
          ["revenue: 1250.5; country: Spain", "revenue: 980; country: Italy",
           "revenue: 2310.75; country: Germany"],
          ["titled 'revenue'", "Germany, Spain, Italy"]),
    Chart("stacked-bars", MONTH, MONTHS,
          unit("bar", x=BY_MONTH, y=number("orders", aggregate="sum"), color=label("product")),
          ["Jan 2025; Sum of orders: 10; product: Bikes",
           "Jan 2025; Sum of orders: 11; product: Locks",
           "Feb 2025; Sum of orders: 20; product: Bikes",
           "Feb 2025; Sum of orders: 21; product: Locks"],
          ["time scale", "from 0 to 45", "Bikes, Locks"]),
    Chart("line-and-its-own-goal", COUNTRY, COUNTRIES,
          {"layer": [BARS, {"data": {"values": [{"goal": 1500}]},
                            **unit("rule", y=number("goal"))}]},
          [*COUNTRY_MARKS, "goal: 1500"], ["Germany, Italy, Spain", "revenue, goal"]),
    Chart("largest-two", COUNTRY, COUNTRIES,
          {"transform": [{"window": [{"op": "rank", "as": "rank"}],
                          "sort": [{"field": "revenue", "order": "descending"}]},
                         {"filter": "datum.rank <= 2"}], **BARS},
          ["Spain; revenue: 1250.5", "Germany; revenue: 2310.75"]),
    Chart("side-by-side", COUNTRY, COUNTRIES[:1],
          {"hconcat": [BARS, unit("point", x=number("revenue"), y=label("country"))]},
          ["Spain; revenue: 1250.5", "revenue: 1250.5; country: Spain"]),
    Chart("ids-that-differ-in-the-last-digit", {"id": "Int64", "amount": "Int64"},
          [["9007199254740992", "3"], ["9007199254740993", "5"]],
          unit("bar", y=label("id"), x=number("amount")),
          ["amount: 3; id: 9007199254740992", "amount: 5; id: 9007199254740993"]),
    Chart("days-as-labels", {"at": "Timestamp", "n": "Int64"},
          [[f"2025-01-0{day}T00:00:00.000", "1"] for day in (1, 2)],
          unit("bar", y=label("at"), x=number("n")),
          ["n: 1; at: 2025-01-01", "n: 1; at: 2025-01-02"]),
    Chart("times-as-labels", {"at": "Timestamp", "n": "Int64"},
          [["2025-01-01T06:30:00.000", "1"]],
          unit("bar", y=label("at"), x=number("n")), ["n: 1; at: 2025-01-01 06:30"]),
    Chart("years-are-not-milliseconds", {"year": "Int64", "n": "Double"},
          [["2019", "35"], ["2025", "15"]],
          unit("point", x={"field": "year", "type": "temporal"}, y=number("n")),
          ["year: Jan 01, 2019; n: 35", "year: Jan 01, 2025; n: 15"],
          ["01 January 2019, 12:00:00 AM to Wednesday, 01 January 2025"]),
    Chart("decimals-are-calculated", {"price": "Decimal", "cost": "Decimal"},
          [["200.00", "100.00"], ["9.00", "8.10"]],
          {"transform": [{"calculate": "(datum.price - datum.cost) / datum.price", "as": "margin"}],
           **unit("bar", y=label("price"), x=number("margin", axis={"format": ".0%"}))},
          ["margin: 50%; price: 200", "margin: 10%; price: 9"]),
    Chart("null-as-a-label-and-as-a-number", COUNTRY, [["Spain", None], [None, "500"]], BARS,
          ["null; revenue: 500"], ["null"]),
    Chart("booleans", {"country": "String", "revenue": "Decimal", "member": "Boolean"},
          [["Spain", "1", True], ["Italy", "2", False]],
          unit("bar", x=label("country"), y=number("revenue"), color=label("member")),
          ["revenue: 1; member: true", "revenue: 2; member: false"], ["", "", "false, true"]),
    Chart("not-all-are-numbers", COUNTRY, [["Spain", "12.5"], ["Italy", "n/a"]], BARS,
          ["Spain; revenue: 12.5"], note="The chart leaves out 1 of 2 values of 'revenue'"),
    Chart("own-data-is-replaced", COUNTRY, COUNTRIES,
          {"data": {"values": [{"country": "Mars", "revenue": 9}]}, **BARS}, COUNTRY_MARKS,
          note="The chart shows the rows of the query, not its own data"),
    Chart("markup-and-scripts-are-text", COUNTRY,
          [["<b>a &amp; b</b>", "2"], ['"quoted" \\ back', "1"], ["東京", "3"], ["ירושלים", "4"]],
          BARS, ["<b>a &amp; b</b>; revenue: 2", '"quoted" \\ back; revenue: 1', "東京; revenue: 3",
                 "ירושלים; revenue: 4"]),
]  # fmt: skip


@pytest.fixture(scope="module")
def renderer() -> Iterator[ChartRenderer]:
    with ChartRenderer(ChartLimits(seconds=120)) as one:
        yield one


def described(svg: bytes) -> tuple[list[str], list[str]]:
    """How the picture describes its marks, and its axes and legends. A title is neither."""
    marks: list[str] = []
    guides: list[str] = []
    for element in ET.fromstring(svg).iter():
        kind, text = element.get("aria-roledescription"), element.get("aria-label", "")
        if element.get("role") == "graphics-symbol" and kind not in (None, "title"):
            (guides if kind in ("axis", "legend") else marks).append(text)
    return marks, guides


@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_chart_shows_the_numbers_of_its_rows(renderer: ChartRenderer, chart: Chart) -> None:
    columns = [{"name": name, "type": kind} for name, kind in chart.columns.items()]
    drawn = renderer.render(chart.spec, columns, chart.rows, ["svg"])
    marks, axes = described(drawn["svg"])
    assert len(marks) == len(chart.marks), marks
    assert [mark[-len(says) :] for mark, says in zip(marks, chart.marks, strict=True)] == (
        chart.marks
    )
    assert [says for says, axis in zip(chart.axes, axes, strict=False) if says not in axis] == []
    assert [note[: len(chart.note)] for note in drawn.notes] == ([chart.note] if chart.note else [])
