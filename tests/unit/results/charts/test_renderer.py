"""Charts are drawn in a process that has limits and contains no secret."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from airflow_provider_platform.results.charts import (
    ChartError,
    ChartLimits,
    ChartRenderer,
    render_chart,
)
from airflow_provider_platform.results.charts import process as drawing
from airflow_provider_platform.results.charts.safe_specification import drawable

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("vl_convert", reason="the extra charts is not installed")

COLUMNS = [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Double"}]
ROWS: list[list[Any]] = [["Spain", "12.5"], ["</script><script>x<!--&", 7]]
BARS: dict[str, Any] = {
    "title": "Revenue </title>",
    "mark": "bar",
    "encoding": {
        "x": {"field": "country", "type": "nominal"},
        "y": {"field": "revenue", "type": "quantitative"},
    },
}


@pytest.fixture(scope="module")
def renderer() -> Iterator[ChartRenderer]:
    with ChartRenderer(ChartLimits(seconds=120)) as one:
        yield one


def pid_of(renderer: ChartRenderer) -> int | None:
    process = renderer._process._process
    return process.pid if process else None


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.text]


def test_a_chart_is_drawn_in_every_format(renderer: ChartRenderer) -> None:
    found = renderer.render(BARS, COLUMNS, ROWS, ["html", "png", "svg"])
    assert list(found) == ["html", "png", "svg"]
    assert found["png"].startswith(b"\x89PNG")
    assert ROWS[1][0] in texts(found["svg"])
    html = found["html"].decode()
    assert html.count("<script") == html.count("</script>") == 3
    assert ROWS[1][0] not in html
    assert "https://cdn" not in html


def test_rows_are_in_the_picture(renderer: ChartRenderer) -> None:
    one = renderer.render(BARS, COLUMNS, ROWS[:1], ["svg"])["svg"]
    both = renderer.render(BARS, COLUMNS, ROWS, ["svg"])["svg"]
    assert "Spain" in texts(one)
    assert one.count(b'aria-roledescription="bar"') == 1
    assert both.count(b'aria-roledescription="bar"') == 2


def test_one_process_draws_many_charts_and_the_same_twice(renderer: ChartRenderer) -> None:
    first = renderer.render(BARS, COLUMNS, ROWS, ["png", "svg"])
    pid = pid_of(renderer)
    assert renderer.render(BARS, COLUMNS, ROWS, ["png", "svg"]) == first
    assert pid_of(renderer) == pid


def test_a_chart_that_cannot_be_drawn_says_why_and_leaves_the_process(
    renderer: ChartRenderer,
) -> None:
    renderer.render(BARS, COLUMNS, ROWS, ["svg"])
    pid = pid_of(renderer)
    with pytest.raises(ChartError, match=r"cannot be drawn: .*hconcat\.map is not a function"):
        renderer.render({"mark": "bar", "hconcat": 5}, COLUMNS, ROWS, ["svg"])
    with pytest.raises(ChartError, match="cannot be drawn"):
        renderer.render({"mark": "nonsense"}, COLUMNS, ROWS, ["html"])
    assert pid_of(renderer) == pid


def test_local_files_and_addresses_are_not_read(renderer: ChartRenderer, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("country,revenue\nSECRETLAND,5\n")
    source = {"url": secret.as_uri(), "format": {"type": "csv"}}
    layer = {**BARS, "data": source}
    for spec in ({**BARS, "data": source}, {"layer": [layer]}, {"hconcat": [layer]}):
        assert b"SECRETLAND" not in renderer.render(spec, COLUMNS, ROWS, ["svg"])["svg"]
    image = {"mark": {"type": "image", "url": secret.as_uri()}, "encoding": BARS["encoding"]}
    drawn = renderer.render({"layer": [BARS, image]}, COLUMNS, ROWS, ["svg"])
    assert b"secret.csv" not in drawn["svg"]


def test_data_that_would_load_something_is_refused(renderer: ChartRenderer) -> None:
    encoding = {**BARS["encoding"], "color": {"field": "country", "scale": None}}
    rows = [["url(https://evil.example/x.svg#y)", 5]]
    with pytest.raises(
        ChartError, match="would load an external resource for its attribute 'fill'"
    ):
        renderer.render({**BARS, "encoding": encoding}, COLUMNS, rows, ["svg"])


def test_too_many_rows_and_unknown_formats_are_refused_before_anything_starts() -> None:
    with ChartRenderer(ChartLimits(rows=1, input_bytes=2000)) as renderer:
        with pytest.raises(ChartError, match="2 rows, more than the limit of 1"):
            renderer.render(BARS, COLUMNS, ROWS)
        with pytest.raises(ChartError, match="not as gif"):
            renderer.render(BARS, COLUMNS, ROWS, ["png", "gif"])
        with pytest.raises(ChartError, match="more than the limit of 2,000"):
            renderer.render({**BARS, "description": "x" * 3000}, COLUMNS, ROWS[:1])
        assert pid_of(renderer) is None


@pytest.mark.exhaustive
def test_chart_that_takes_too_long_is_killed_and_the_next_one_is_drawn() -> None:
    endless = {**BARS, "data": {"sequence": {"start": 0, "stop": 3e7, "as": "country"}}}
    with ChartRenderer(ChartLimits(seconds=120, memory_bytes=1 << 40)) as renderer:
        renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        pid = pid_of(renderer)
        assert pid is not None
        renderer._process._limits = ChartLimits(seconds=0.2, memory_bytes=1 << 40)
        with pytest.raises(ChartError, match=r"within the limit of 0\.2 seconds"):
            renderer.render(endless, COLUMNS, ROWS, ["svg"])
        assert not Path(f"/proc/{pid}").exists()
        renderer._process._limits = ChartLimits(seconds=120)
        assert renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        assert pid_of(renderer) != pid


@pytest.mark.skipif(sys.platform != "linux", reason="memory is watched on Linux")
def test_chart_that_needs_too_much_memory_is_killed() -> None:
    spec = {**BARS, "transform": [{"calculate": "pad('x', 536870000, 'y')", "as": "z"}]}
    with pytest.raises(ChartError, match="needs more memory than the limit of 300,000,000"):
        render_chart(spec, COLUMNS, ROWS, ["svg"], ChartLimits(120, memory_bytes=300_000_000))


def test_a_picture_that_is_too_large_is_refused() -> None:
    with pytest.raises(ChartError, match="larger than the limit of 1,000 bytes"):
        render_chart(BARS, COLUMNS, ROWS, ["png"], ChartLimits(120, output_bytes=1000))


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_process_has_no_secret_of_ours_in_its_environment(
    renderer: ChartRenderer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", "secret")
    with ChartRenderer(ChartLimits(seconds=120)) as fresh:
        fresh.render(BARS, COLUMNS, ROWS, ["svg"])
        environment = Path(f"/proc/{pid_of(fresh)}/environ").read_bytes()
        names = {entry.partition(b"=")[0] for entry in environment.split(b"\0") if entry}
        assert names == {b"LANG", b"PATH", b"TZ"}


@pytest.mark.exhaustive
def test_a_process_that_dies_is_an_error_and_the_next_chart_is_drawn() -> None:
    with ChartRenderer(ChartLimits(seconds=120)) as renderer:
        renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        pid = pid_of(renderer)
        assert pid is not None
        os.kill(pid, 9)
        with pytest.raises(ChartError, match=r"ended unexpectedly \(exit status -9\)"):
            renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        assert renderer.render(BARS, COLUMNS, ROWS, ["svg"])


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)
    with pytest.raises(ChartError, match=r"airflow-provider-platform\[charts\]"):
        render_chart(BARS, COLUMNS, ROWS)


def test_columns_with_dots_are_drawn(renderer: ChartRenderer) -> None:
    encoding = {
        "y": {"field": "orders.country"},
        "x": {"field": "orders.revenue", "type": "quantitative"},
    }
    columns = [{"name": "orders.country"}, {"name": "orders.revenue", "type": "Int64"}]
    found = renderer.render({"mark": "bar", "encoding": encoding}, columns, ROWS, ["svg"])
    assert "Spain" in texts(found["svg"])


def test_picture_of_a_result_without_rows_shows_a_notice(renderer: ChartRenderer) -> None:
    found = renderer.render(BARS, COLUMNS, [], ["svg", "png", "html"])
    assert texts(found["svg"]) == ["No rows", BARS["title"]]
    assert found.notes == ("The query returned no rows.",)


@pytest.mark.parametrize(
    "spec",
    [
        {**BARS, "transform": [{"filter": "datum.revenue > 1000"}]},
        {**BARS, "mark": "line", "transform": [{"filter": "datum.revenue > 1000"}]},
        {**BARS, "encoding": {**BARS["encoding"], "x": {"field": "country", "type": "temporal"}}},
    ],
)
def test_chart_that_would_show_nothing_is_refused(
    renderer: ChartRenderer, spec: dict[str, Any]
) -> None:
    with pytest.raises(ChartError, match=r"would be empty.*2 rows.*'country', 'revenue'"):
        renderer.render(spec, COLUMNS, ROWS, ["svg"])


def test_field_that_the_result_lacks_is_refused_before_anything_starts() -> None:
    with ChartRenderer() as renderer:
        spec = {**BARS, "encoding": {"x": {"field": "Country"}, "y": BARS["encoding"]["y"]}}
        with pytest.raises(ChartError, match=r"'Country' .*'country', 'revenue'"):
            renderer.render(spec, COLUMNS, ROWS)
        assert pid_of(renderer) is None


NAMES = ["orders.country", "a.b.c", "a[0]", "it's", 'say "x"', "back\\slash", "net [€]", "['x']"]


@pytest.mark.parametrize("name", NAMES)
def test_column_with_any_name_is_drawn_with_its_title(renderer: ChartRenderer, name: str) -> None:
    columns = [{"name": name, "type": "String"}, {"name": f"{name} sum", "type": "Int64"}]
    encoding = {
        "y": {"field": name, "sort": {"field": f"{name} sum"}},
        "x": {"field": f"{name} sum", "aggregate": "sum"},
    }
    rows = [["Spain", "9"], ["Italy", "10"]]
    drawn = renderer.render({"mark": "bar", "encoding": encoding}, columns, rows, ["svg"])["svg"]
    shown = texts(drawn)
    assert {"Spain", "Italy", name, f"Sum of {name} sum"} <= set(shown)
    assert drawn.count(b'aria-roledescription="bar"') == 2


def test_ids_beyond_two_to_the_53_have_a_bar_each(renderer: ChartRenderer) -> None:
    columns = [{"name": "country", "type": "Int64"}, COLUMNS[1]]
    rows = [["9007199254740993", 1], ["9007199254740992", 2]]
    shown = texts(renderer.render(BARS, columns, rows, ["svg"])["svg"])
    assert {"9007199254740993", "9007199254740992"} <= set(shown)


def test_texts_that_are_numbers_are_sorted_and_calculated_as_numbers(
    renderer: ChartRenderer,
) -> None:
    columns = [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Decimal"}]
    spec = {
        **BARS,
        "transform": [
            {"calculate": "datum.revenue + 1", "as": "more"},
            {"window": [{"op": "rank", "as": "rank"}], "sort": [{"field": "revenue"}]},
        ],
        "encoding": {
            "x": {"field": "country", "sort": {"field": "revenue"}},
            "y": {"field": "more", "type": "quantitative"},
            "text": {"field": "rank"},
        },
        "mark": "text",
    }
    drawn = renderer.render(spec, columns, [["b", "10.50"], ["a", "9.25"]], ["svg"])["svg"]
    said = [one.get("aria-label") for one in ET.fromstring(drawn).iter() if one.get("aria-label")]
    assert [one for one in said if one.startswith("country")] == [
        "country: b; more: 11.5; rank: 2",
        "country: a; more: 10.25; rank: 1",
    ]
    shown = [text for text in texts(drawn) if text in "ab"]
    assert shown == ["a", "b"]


def test_dates_on_a_nominal_axis_are_dates(renderer: ChartRenderer) -> None:
    columns = [{"name": "country", "type": "Timestamp"}, COLUMNS[1]]
    rows = [["2025-01-01T00:00:00.000", 1], ["2025-02-01T00:00:00.000", 2]]
    shown = texts(renderer.render(BARS, columns, rows, ["svg"])["svg"])
    assert {"2025-01-01", "2025-02-01"} <= set(shown)


def test_years_on_a_scale_of_time_are_years(renderer: ChartRenderer) -> None:
    columns = [{"name": "country", "type": "Int64"}, COLUMNS[1]]
    encoding = {**BARS["encoding"], "x": {"field": "country", "type": "temporal"}}
    spec = {"mark": "line", "encoding": encoding}
    shown = texts(renderer.render(spec, columns, [["2020", 1], ["2025", 2]], ["svg"])["svg"])
    assert "2020" in shown
    assert "2025" in shown


@pytest.mark.exhaustive
def test_picture_with_too_many_categories_is_refused_with_their_number(
    renderer: ChartRenderer,
) -> None:
    rows = [[f"customer {number}", number] for number in range(3_000)]
    with pytest.raises(
        ChartError, match=r"60,\d+ × \d+ pixels large \('country' has 3,000 different values\)"
    ):
        renderer.render(BARS, COLUMNS, rows, ["png"])
    [note] = renderer.render(BARS, COLUMNS, rows[:500], ["png"]).notes
    assert "the PNG is drawn at single instead of double resolution" in note


def test_line_through_one_point_is_noted(renderer: ChartRenderer) -> None:
    spec = {**BARS, "mark": "line"}
    [note] = renderer.render(spec, COLUMNS, ROWS[:1], ["svg"]).notes
    assert "only one point" in note
    assert renderer.render(spec, COLUMNS, ROWS, ["svg"]).notes == ()


@pytest.mark.parametrize(
    "steps",
    [
        [{"filter": "datum.country >= 2020"}],
        [{"aggregate": [{"op": "sum", "field": "revenue", "as": "revenue"}],
          "groupby": ["country"]}],
    ],
)  # fmt: skip
def test_years_stay_years_if_transforms_read_them(
    renderer: ChartRenderer, steps: list[dict[str, Any]]
) -> None:
    columns = [{"name": "country", "type": "Int64"}, COLUMNS[1]]
    encoding = {**BARS["encoding"], "x": {"field": "country", "timeUnit": "year"}}
    spec = {"mark": "bar", "encoding": encoding, "transform": steps}
    shown = texts(renderer.render(spec, columns, [["2020", 1], ["2025", 2]], ["svg"])["svg"])
    assert {"2020", "2025", "country (year)"} <= set(shown)


def test_large_ids_are_sorted_as_numbers(renderer: ChartRenderer) -> None:
    columns = [{"name": "country", "type": "Int64"}, COLUMNS[1]]
    rows = [["9007199254740993", 1], ["12", 2], ["10071992547409930", 3]]
    drawn = texts(renderer.render(BARS, columns, rows, ["svg"])["svg"])
    ids = {row[0] for row in rows}
    assert [text for text in drawn if text in ids] == [
        "12", "9007199254740993", "10071992547409930"
    ]  # fmt: skip


def test_error_of_an_invalid_specification_contains_no_rows(renderer: ChartRenderer) -> None:
    with pytest.raises(
        ChartError, match=r"not a Vega-Lite specification \(but a Vega specification\)"
    ) as error:
        renderer.render({"marks": []}, COLUMNS, ROWS)
    assert "Spain" not in error.value.message


def test_dates_that_the_specification_parses_stay_as_the_service_sends_them(
    renderer: ChartRenderer,
) -> None:
    columns = [{"name": "country", "type": "Int64"}, COLUMNS[1]]
    parse = {"format": {"parse": {"country": "date:'%Y%m%d'"}}}
    encoding = {**BARS["encoding"], "x": {"field": "country", "timeUnit": "yearmonthdate"}}
    spec = {"data": parse, "mark": "bar", "encoding": encoding}
    drawn = renderer.render(spec, columns, [["20240103", 1], ["20240104", 2]], ["svg"])["svg"]
    assert "Jan 03, 2024" in drawn.decode()


@pytest.mark.exhaustive
def test_chart_of_two_columns_of_many_takes_the_memory_of_two() -> None:
    columns = [*COLUMNS, *({"name": f"unread {at}"} for at in range(20))]
    ready = drawable(BARS, columns, [["Spain", 1, *["x"] * 20]]).spec
    assert ready["data"]["values"] == [{"country": "Spain", "revenue": 1}]
