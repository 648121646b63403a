"""The charts whose pictures are kept in `docs/pictures/charts`: typical ones and odd ones.

A person has looked at each picture. `make charts` draws them all and writes the contact sheet
`docs/chart_examples.md`; `test_pictures.py` draws them and compares. Rows are as the service sends
them.
"""

from __future__ import annotations

import html
import struct
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.charts import ChartLimits, ChartRenderer, Pictures

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).parents[2] / "docs" / "pictures" / "charts"
FONTS = Path(__file__).with_name("fonts")

Rows = list[list[Any]]


@dataclass(frozen=True)
class Chart:
    """A chart, and what a person shall see in its picture."""

    name: str
    shows: str
    columns: dict[str, str]
    rows: Rows
    spec: dict[str, Any]
    note: str = ""
    """How the note begins that comes with it."""
    same_names: dict[str, str] = field(default_factory=dict)
    """Columns that shall have the name of another one."""

    @property
    def described(self) -> list[dict[str, str]]:
        return [
            {"name": self.same_names.get(name, name), "type": kind}
            for name, kind in self.columns.items()
        ]


def drawing() -> ChartRenderer:
    """What draws the pictures: with the fonts of the tests, at single size."""
    return ChartRenderer(ChartLimits(seconds=120, scale=1), FONTS)


def draw(with_: ChartRenderer, chart: Chart) -> Pictures:
    return with_.render(chart.spec, chart.described, chart.rows, ["png"])


# Channels


def number(name: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": "quantitative", **more}


def label(name: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": "nominal", **more}


def moment(name: str, **more: Any) -> dict[str, Any]:
    return {"field": name, "type": "temporal", **more}


def unit(mark: Any, **encoding: Any) -> dict[str, Any]:
    return {"mark": mark, "encoding": encoding}


# Rows

COUNTRY = {"country": "String", "revenue": "Decimal"}
COUNTRIES: Rows = [["Spain", "1250.50"], ["Italy", "980.00"], ["Germany", "2310.75"],
                   ["France", "1890.20"], ["Portugal", "310.40"]]  # fmt: skip
MONTH = {"month": "Timestamp", "product": "String", "revenue": "Decimal", "orders": "Int64"}
PRODUCTS = ("Bikes", "Helmets", "Locks")
MONTHS: Rows = [
    [f"2025-{month:02}-01T00:00:00.000", product, f"{(7 * month * (at + 2)) % 40 + 20}.50",
     str((5 * month + 11 * at) % 30 + 3)]
    for month in range(1, 9)
    for at, product in enumerate(PRODUCTS)
]  # fmt: skip
POINT = {"price": "Double", "quantity": "Int64", "segment": "String"}
POINTS: Rows = [
    [f"{(at * 37) % 90 + 5}.25", str((at * 53) % 70 + (at * 37) % 90 // 2), "ABC"[at % 3]]
    for at in range(36)
]
BY_MONTH = {"x": moment("month", timeUnit="yearmonth"), "y": number("revenue", aggregate="sum")}
BY_COUNTRY = {"x": label("country"), "y": number("revenue")}

TYPICAL = [
    Chart("bars", "Five bars, alphabetical, Germany the highest", COUNTRY, COUNTRIES,
          {"title": "Revenue by country", **unit("bar", **BY_COUNTRY)}),
    Chart("bars-sorted", "Bars that grow shorter from Germany down to Portugal", COUNTRY, COUNTRIES,
          unit("bar", y=label("country", sort="-x"), x=number("revenue"))),
    Chart("bars-stacked", "Eight stacks of three colours", MONTH, MONTHS,
          unit("bar", **BY_MONTH, color=label("product"))),
    Chart("bars-grouped", "For each month three bars side by side", MONTH, MONTHS[:12],
          unit("bar", x={"field": "month", "timeUnit": "yearmonth", "type": "ordinal"},
               xOffset=label("product"), y=number("revenue"), color=label("product"))),
    Chart("bars-normalized", "Stacks that all reach 100 %", MONTH, MONTHS,
          unit("bar", y=label("product"), x=number("revenue", aggregate="sum", stack="normalize"),
               color={"field": "month", "timeUnit": "month", "type": "ordinal"})),
    Chart("bars-with-values", "The value at the end of each bar", COUNTRY, COUNTRIES,
          {"encoding": {"y": label("country"), "x": number("revenue")},
           "layer": [{"mark": "bar"},
                     {"mark": {"type": "text", "align": "left", "dx": 3},
                      "encoding": {"text": number("revenue", format=",.0f")}}]}),
    Chart("bars-diverging", "Losses to the left in red, gains to the right in blue",
          {"team": "String", "change": "Double"},
          [["North", "12.5"], ["South", "-8.25"], ["East", "-2"], ["West", "4"]],
          unit("bar", y=label("team"), x=number("change"),
               color={"condition": {"test": "datum.change < 0", "value": "#d62728"},
                      "value": "#1f77b4"})),
    Chart("line", "One line over eight months, months on the axis", MONTH, MONTHS[::3],
          unit("line", x=moment("month"), y=number("revenue"))),
    Chart("lines", "Three lines with points, a legend of products", MONTH, MONTHS,
          unit({"type": "line", "point": True}, x=moment("month"), y=number("revenue"),
               color=label("product"))),
    Chart("area", "Three areas one upon the other", MONTH, MONTHS,
          unit("area", **BY_MONTH, color=label("product"))),
    Chart("points", "36 points of three colours and shapes, of different sizes", POINT, POINTS,
          unit("point", x=number("price"), y=number("quantity"), color=label("segment"),
               shape=label("segment"), size=number("quantity"))),
    Chart("pie", "Five slices, the largest for Germany", COUNTRY, COUNTRIES,
          unit("arc", theta=number("revenue"), color=label("country"))),
    Chart("donut", "A ring with the values in it", COUNTRY, COUNTRIES,
          {"encoding": {"theta": number("revenue", stack=True), "color": label("country")},
           "layer": [{"mark": {"type": "arc", "innerRadius": 50, "outerRadius": 90}},
                     {"mark": {"type": "text", "radius": 70, "fill": "white"},
                      "encoding": {"text": number("revenue", format=".0f")}}]}),
    Chart("heatmap", "A grid of three products by eight months, darker where orders are many",
          MONTH, MONTHS,
          unit("rect", x={"field": "month", "timeUnit": "month", "type": "ordinal"},
               y=label("product"), color=number("orders"))),
    Chart("histogram", "Counts of prices in steps of ten", POINT, POINTS,
          unit("bar", x=number("price", bin=True), y={"aggregate": "count"})),
    Chart("boxes", "Three boxes with whiskers", POINT, POINTS,
          unit("boxplot", x=label("segment"), y=number("quantity"))),
    Chart("error-bars", "Three means with their spread", POINT, POINTS,
          {"encoding": {"y": label("segment")},
           "layer": [unit("errorbar", x=number("price", scale={"zero": False})),
                     unit({"type": "point", "filled": True},
                          x=number("price", aggregate="mean"))]}),
    Chart("two-axes", "Bars of revenue, a line of orders with an axis of its own", MONTH,
          MONTHS[::3],
          {"encoding": {"x": moment("month", timeUnit="yearmonth")},
           "layer": [unit({"type": "bar", "opacity": 0.5}, y=number("revenue")),
                     unit({"type": "line", "color": "red"}, y=number("orders"))],
           "resolve": {"scale": {"y": "independent"}}}),
    Chart("small-multiples", "One small chart for each product", MONTH, MONTHS,
          {"facet": {"column": label("product")},
           "spec": {"width": 110, "height": 110, **unit("line", x=moment("month", axis={
               "format": "%b"}), y=number("revenue"))}}),
    Chart("side-by-side", "Bars on the left, points on the right", MONTH, MONTHS,
          {"hconcat": [unit("bar", x=number("revenue", aggregate="sum"), y=label("product")),
                       unit("point", x=number("orders"), y=number("revenue"))]}),
    Chart("repeated", "The same bars for revenue and for orders", MONTH, MONTHS,
          {"repeat": {"column": ["revenue", "orders"]},
           "spec": {"width": 140, **unit("bar", y=label("product"), x={
               "field": {"repeat": "column"}, "type": "quantitative", "aggregate": "mean"})}}),
    Chart("goal", "Bars, and a dashed line at 1,500 from the chart's own data", COUNTRY, COUNTRIES,
          {"layer": [unit("bar", **BY_COUNTRY),
                     {"data": {"values": [{"goal": 1500}]},
                      **unit({"type": "rule", "strokeDash": [6, 4], "color": "red"},
                             y=number("goal"))}]}),
    Chart("trend", "Points with a straight line through them", POINT, POINTS,
          {"layer": [unit("point", x=number("price"), y=number("quantity")),
                     {"transform": [{"regression": "quantity", "on": "price"}],
                      **unit({"type": "line", "color": "red"}, x=number("price"),
                             y=number("quantity"))}]}),
    Chart("running-total", "A line that only rises, to about 310", MONTH, MONTHS[::3],
          {"transform": [{"window": [{"op": "sum", "field": "revenue", "as": "total"}],
                          "sort": [{"field": "month"}], "frame": [None, 0]}],
           **unit({"type": "line", "point": True}, x=moment("month"), y=number("total"))}),
    Chart("largest-three", "Germany, France and Spain only", COUNTRY, COUNTRIES,
          {"transform": [{"window": [{"op": "rank", "as": "rank"}],
                          "sort": [{"field": "revenue", "order": "descending"}]},
                         {"filter": "datum.rank <= 3"}],
           **unit("bar", y=label("country", sort="-x"), x=number("revenue"))}),
    Chart("folded", "Plan and actual of each quarter side by side",
          {"quarter": "String", "plan": "Int64", "actual": "Int64"},
          [["Q1", "100", "90"], ["Q2", "110", "125"], ["Q3", "120", "118"]],
          {"transform": [{"fold": ["plan", "actual"], "as": ["kind", "amount"]}],
           **unit("bar", x=label("quarter"), xOffset=label("kind"), y=number("amount"),
                  color=label("kind"))}),
    Chart("waterfall", "Steps from 100 up and down to 130",
          {"step": "String", "amount": "Int64", "position": "Int64"},
          [["Start", "100", "1"], ["Sales", "55", "2"], ["Returns", "-25", "3"]],
          {"transform": [{"window": [{"op": "sum", "field": "amount", "as": "end"}],
                          "sort": [{"field": "position"}]},
                         {"calculate": "datum.end - datum.amount", "as": "start"}],
           **unit("bar", x=label("step", sort={"field": "position"}), y=number("start"),
                  y2={"field": "end"}, color={"condition": {"test": "datum.amount < 0",
                                                            "value": "#d62728"},
                                              "value": "#2ca02c"})}),
    Chart("one-number", "A large 12,345", {"total": "Decimal"}, [["12345.00"]],
          unit({"type": "text", "fontSize": 40}, text=number("total", format=",.0f"))),
]  # fmt: skip

ODD = [
    Chart("weekdays", "Monday to Sunday in the order of the week",
          {"day": "String", "orders": "Int64"},
          [[day, str(9 - at)] for at, day in enumerate(
              ["Fri", "Mon", "Sat", "Sun", "Thu", "Tue", "Wed"])],
          unit("bar", x=label("day", sort=["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]),
               y=number("orders"))),
    Chart("logarithmic", "Points from 1 to a million on an axis of powers",
          {"rank": "Int64", "visits": "Int64"}, [[str(at), str(10**at)] for at in range(7)],
          unit({"type": "line", "point": True}, x=number("rank"),
               y=number("visits", scale={"type": "log"}))),
    Chart("large-ids", "Three bars: ids that differ in the last digit only",
          {"id": "Int64", "amount": "Int64"},
          [["9007199254740992", "3"], ["9007199254740993", "5"], ["9007199254740994", "4"]],
          unit("bar", y=label("id"), x=number("amount"))),
    Chart("dates-as-labels", "Days without zeros behind them",
          {"day": "Timestamp", "orders": "Int64"},
          [[f"2025-01-{day:02}T00:00:00.000", str(day % 5 + 1)] for day in range(1, 9)],
          unit("bar", x={"field": "day"}, y=number("orders"))),
    Chart("times-as-labels", "Days with hours and minutes",
          {"at": "Timestamp", "orders": "Int64"},
          [[f"2025-01-01T{hour:02}:30:00.000", str(hour)] for hour in range(6, 12)],
          unit("bar", y={"field": "at", "type": "ordinal"}, x=number("orders"))),
    Chart("years", "A line from 2019 to 2025, not one point in 1970",
          {"year": "Int64", "revenue": "Double"},
          [[str(year), str(year % 7 * 10 + 5)] for year in range(2019, 2026)],
          unit("line", x=moment("year"), y=number("revenue"))),
    Chart("decimals-calculated", "Margins of 50 %, 20 % and 10 %",
          {"product": "String", "price": "Decimal", "cost": "Decimal"},
          [["Bikes", "200.00", "100.00"], ["Helmets", "50.00", "40.00"], ["Locks", "9.99", "8.99"]],
          {"transform": [{"calculate": "(datum.price - datum.cost) / datum.price",
                          "as": "margin"}],
           **unit("bar", y=label("product"), x=number("margin", axis={"format": ".0%"}))}),
    Chart("dotted-columns", "Bars; titles orders.country and orders.revenue",
          {"orders.country": "String", "orders.revenue": "Double"}, COUNTRIES,
          unit("bar", y=label("orders.country"), x=number("orders.revenue"))),
    Chart("columns-of-one-name", "The first of two columns name: letters, not numbers",
          {"name": "String", "name 2": "String", "amount": "Int64"},
          [["a", "1", "3"], ["b", "2", "5"]], unit("bar", x=label("name"), y=number("amount")),
          same_names={"name 2": "name"}),
    Chart("gaps", "A line that breaks in March, where a value is missing", MONTH,
          [[row[0], row[1], None if row[0].startswith("2025-03") else row[2], row[3]]
           for row in MONTHS[::3]],
          unit({"type": "line", "point": True}, x=moment("month"), y=number("revenue"))),
    Chart("one-point", "A line of one month: a dot", MONTH, MONTHS[:1],
          unit({"type": "line", "point": True}, x=moment("month"), y=number("revenue"))),
    Chart("not-all-numbers", "Two bars; n/a has none", COUNTRY,
          [["Spain", "12.5"], ["Italy", "n/a"], ["France", "8"]], unit("bar", **BY_COUNTRY),
          note="The chart leaves out 1 of 3 values of 'revenue'"),
    Chart("zeros", "Axes, three names, no heights", COUNTRY,
          [["Spain", "0"], ["Italy", "0"], ["France", "0"]], unit("bar", **BY_COUNTRY)),
    Chart("no-rows", "The words No rows under the title", COUNTRY, [],
          {"title": "Revenue by country", **unit("bar", **BY_COUNTRY)},
          note="The query returned no rows"),
    Chart("own-data-replaced", "The countries of the rows, no Mars", COUNTRY, COUNTRIES,
          {"data": {"values": [{"country": "Mars", "revenue": 9}]}, **unit("bar", **BY_COUNTRY)},
          note="The chart shows the rows of the query, not its own data"),
    Chart("booleans", "Two colours: false and true",
          {"country": "String", "revenue": "Decimal", "member": "Boolean"},
          [[*row, at % 2 == 0] for at, row in enumerate(COUNTRIES)],
          unit("bar", **BY_COUNTRY, color=label("member"))),
    Chart("nulls-as-labels", "A bar named null", COUNTRY, [*COUNTRIES[:2], [None, "500"]],
          unit("bar", **BY_COUNTRY)),
    Chart("long-labels", "Names cut with …", COUNTRY,
          [["A company whose name goes on and on and does not end here either", "5"],
           ["Another company with a very, very long name indeed", "3"]],
          unit("bar", y=label("country"), x=number("revenue"))),
    Chart("many-bars", "Sixty thin bars with names turned", COUNTRY,
          [[f"shop {at:02}", str((at * 29) % 47 + 1)] for at in range(60)],
          {"width": {"step": 9}, **unit("bar", **BY_COUNTRY)}),
    Chart("labels-aslant", "Twelve names aslant, all of them", COUNTRY,
          [[f"Region number {at}", str((at * 29) % 47 + 1)] for at in range(12)],
          unit("bar", x=label("country", sort=None, axis={"labelAngle": -45}),
               y=number("revenue"))),
    Chart("short-months", "Twelve bars, each with the name of its month",
          {"month": "Timestamp", "orders": "Int64"},
          [[f"2025-{at:02}-01T00:00:00.000", str(at * 7 % 11 + 3)] for at in range(1, 13)],
          unit("bar", x={"field": "month", "timeUnit": "month", "type": "ordinal"},
               y=number("orders"))),
    Chart("scripts", "Labels in Japanese, Thai, Greek, Cyrillic and Hebrew; no boxes", COUNTRY,
          [["東京", "5"], ["กรุงเทพ", "4"], ["Αθήνα", "3"], ["Київ", "2"], ["ירושלים", "1"]],
          {"title": "売上", **unit("bar", y=label("country", sort="-x"), x=number("revenue"))}),
    Chart("markup-in-labels", "Labels with <b>, &amp; and quotes as they are", COUNTRY,
          [["<b>bold</b>", "3"], ["a &amp; b", "2"], ['"quoted" \\ back', "1"]],
          unit("bar", y=label("country"), x=number("revenue"))),
]  # fmt: skip

CHARTS = [*TYPICAL, *ODD]

PAGE = Path(__file__).parents[2] / "docs" / "chart_examples.md"
_HEAD = """# Examples of charts

These pictures show typical [charts](charts.md), and charts of unusual specifications or rows.
"""
_COLUMNS = 3


def page() -> str:
    """The contact sheet: all pictures, with what they show and the notes that come with them."""
    parts = [_HEAD]
    for title, charts in (("Typical charts", TYPICAL), ("Odd charts and odd rows", ODD)):
        parts.append(f"## {title}\n\n{'| ' * _COLUMNS}|\n{'| --- ' * _COLUMNS}|")
        cells = [_cell(chart) for chart in charts]
        cells += ["|"] * (-len(cells) % _COLUMNS)
        parts += [
            " ".join(cells[at : at + _COLUMNS]) + " |" for at in range(0, len(cells), _COLUMNS)
        ]
        parts.append("")
    return "\n".join(parts)


def _cell(chart: Chart) -> str:
    note = f"<br>Note: {chart.note} …" if chart.note else ""
    shows = html.escape(chart.shows, quote=False)
    return f"| ![{chart.name}](pictures/charts/{chart.name}.png)<br>{shows}.{note}"


def library() -> str:
    """The version of the library that draws here."""
    import vl_convert

    return str(vl_convert.__version__)


def main() -> None:
    """Draw all pictures, and write the page."""
    FOLDER.mkdir(exist_ok=True)
    for picture in FOLDER.glob("*.png"):
        picture.unlink()
    with drawing() as with_:
        for chart in CHARTS:
            png = draw(with_, chart)["png"]
            (FOLDER / f"{chart.name}.png").write_bytes(compact(png, library()))
    PAGE.write_text(page(), encoding="utf-8")


# What pictures look like


def pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of RGB of a PNG of 8 bits, not interlaced; white below what is not
    opaque."""
    chunks = list(_chunks(png))
    width, height, *form = struct.unpack(">IIBBBBB", chunks[0][1])
    if form not in ([8, 6, 0, 0, 0], [8, 2, 0, 0, 0]):
        raise ValueError(f"a PNG of another form: {form}")
    raw = zlib.decompress(b"".join(chunk for kind, chunk in chunks if kind == b"IDAT"))
    depth = 4 if form[1] == 6 else 3
    stride = depth * width
    rows: list[bytes] = []
    above = bytes(stride)
    for line in range(height):
        start = line * (stride + 1)
        above = _unfiltered(raw[start], raw[start + 1 : start + 1 + stride], above, depth)
        rows.append(above)
    return width, height, rows if depth == 3 else [_opaque(row) for row in rows]


def _chunks(png: bytes) -> Iterator[tuple[bytes, bytes]]:
    at = 8
    while at < len(png):
        size, kind = struct.unpack_from(">I4s", png, at)
        yield kind, png[at + 8 : at + 8 + size]
        at += 12 + size


def _unfiltered(kind: int, line: bytes, above: bytes, depth: int) -> bytes:
    if kind == 0:
        return line
    if kind == 2:
        return bytes((one + up) & 255 for one, up in zip(line, above, strict=True))
    found = bytearray(line)
    for at, one in enumerate(line):
        left = found[at - depth] if at >= depth else 0
        up, corner = above[at], above[at - depth] if at >= depth else 0
        if kind == 1:
            guess = left
        elif kind == 3:
            guess = (left + up) // 2
        else:
            estimate = left + up - corner
            distances = abs(estimate - left), abs(estimate - up), abs(estimate - corner)
            guess = (left, up, corner)[distances.index(min(distances))]
        found[at] = (one + guess) & 255
    return bytes(found)


def _opaque(row: bytes) -> bytes:
    found = bytearray(len(row) // 4 * 3)
    for at in range(3):
        found[at::3] = row[at::4]
    if any(alpha != 255 for alpha in row[3::4]):
        for place, alpha in enumerate(row[3::4]):
            for at in range(3 * place, 3 * place + 3):
                found[at] = (found[at] * alpha + 255 * (255 - alpha)) // 255
    return bytes(found)


def compact(png: bytes, drawn_by: str) -> bytes:
    """The same pixels in a smaller file, which also names what has drawn them."""
    width, height, rows = pixels(png)
    packed = zlib.compress(b"".join(b"\0" + row for row in rows), 9)
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"tEXt", f"Software\0vl-convert {drawn_by}".encode("latin-1")),
        (b"IDAT", packed),
        (b"IEND", b""),
    ]
    return png[:8] + b"".join(
        struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
        for kind, body in parts
    )


def drawn_by(png: bytes) -> str:
    """The version of the library that drew a compact picture."""
    [text] = [chunk for kind, chunk in _chunks(png) if kind == b"tEXt"]
    return text.decode("latin-1").rpartition(" ")[2]


TOLERANCE = 24.0
"""Of 255, for one cell: another smoothing of letters stays below it, a mark that moves does not."""
_CELL = 8


def difference(one: bytes, other: bytes) -> float:
    """How different two pictures look: the largest difference of the mean colours of two cells of
    8 by 8 pixels at the same place, of 255; 255 for pictures of different sizes."""
    mine, theirs = pixels(one), pixels(other)
    if mine[:2] != theirs[:2]:
        return 255.0
    return max(
        abs(a - b) for a, b in zip(_means(mine[0], mine[2]), _means(*theirs[::2]), strict=True)
    )


def _means(width: int, rows: list[bytes]) -> list[float]:
    """The mean red, green and blue of each cell."""
    found = []
    for top in range(0, len(rows), _CELL):
        inside = rows[top : top + _CELL]
        for first in range(0, 3 * width, 3 * _CELL):
            parts = [row[first : first + 3 * _CELL] for row in inside]
            count = sum(map(len, parts)) // 3
            found += [sum(sum(part[at::3]) for part in parts) / count for at in range(3)]
    return found


if __name__ == "__main__":
    main()
