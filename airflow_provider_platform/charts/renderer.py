"""`ChartRenderer`: draws charts in one child process, within limits, and checks each picture.

A picture in which no mark has a shape is an error, because Vega reports none if the rows lack a
field of the chart. `page` puts a chart into an HTML page that loads nothing.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import html
import json
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, get_args
from xml.etree import ElementTree as ET

from airflow_provider_platform.charts.specification import ChartError, drawable
from airflow_provider_platform.client.choices import ChartFormat
from airflow_provider_platform.client.redaction import quote_service

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence


_SVG = "{http://www.w3.org/2000/svg}"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
_LOADS = re.compile(r"\\|url\((?!#)|image\(|image-set\(|src\(", re.IGNORECASE)
"""What CSS loads with in an attribute; a backslash writes the same in another way."""
_STYLE_OF_VEGA = re.compile(r"((mix-blend-mode|image-rendering): [a-z-]+; ?)*", re.IGNORECASE)
_SHAPE = re.compile(r"M[^A-Za-z]*[A-Ya-y]")
"""A path that goes on after its first point: a line of one point does not."""

_START = """
const spec = JSON.parse(document.getElementById("spec").textContent);
vegaEmbed("#chart", spec, {
  mode: "vega-lite", renderer: "svg", ast: true,
  actions: {export: true, source: false, compiled: false, editor: false},
}).catch(console.error);
"""
_STYLE = """
html, body { margin: 0; height: 100%; }
body { box-sizing: border-box; padding: 12px; }
#chart, #chart .chart-wrapper { box-sizing: border-box; width: 100%; height: 100%; }
#chart.enlarged svg.marks { display: block; width: 100%; height: 100%; }
"""
_FACETS = frozenset({"facet", "row", "column"})


class EmptyPictureError(ChartError):
    """No mark of the picture has a shape, or a label stands for a field that no row has."""


def check_svg(svg: str, *, undefined_is_data: bool = False) -> tuple[float, float]:
    """Return width and height of a picture.

    :param undefined_is_data: whether the rows contain the text `undefined`, which is otherwise the
        label of a field that the rows lack
    :raises EmptyPictureError: the picture shows nothing of the rows
    :raises ChartError: it would load something
    """
    try:
        root = ET.fromstring(svg)  # noqa: S314 - Vega writes no declarations, so no entities
    except ET.ParseError as error:
        raise ChartError(f"The picture is not well-formed: {error}.") from error
    for image in root.iter(f"{_SVG}image"):
        if not _source(image).startswith(("data:", "#")) and _source(image):
            raise ChartError("The picture would load an image.")
    for element in root.iter():
        for name, value in element.items():
            # Words for a screen reader may have any text.
            if not name.startswith("aria-") and _reaches_out(name, value):
                raise ChartError(
                    f"The chart's attribute `{name}` holds a style that could send its rows to a "
                    f"server when the picture is opened: '{quote_service(value)}'. Ask for the "
                    "chart again, with plain colors and fonts."
                )
    marks = [
        mark
        for group in root.iter(f"{_SVG}g")
        if "role-mark" in (names := group.get("class", "")) and "mark-group" not in names
        for mark in group.iter()
    ]
    if not any(map(_has_shape, marks)):
        raise EmptyPictureError("no mark has a shape")
    if not undefined_is_data and any(text.text == "undefined" for text in root.iter(f"{_SVG}text")):
        raise EmptyPictureError("a label is undefined")
    return float(root.get("width", 0)), float(root.get("height", 0))


def _reaches_out(name: str, value: str) -> bool:
    """Whether a browser might load something for an attribute. An expression of the specification
    can write the rows into the address."""
    if name == "style":
        return _STYLE_OF_VEGA.fullmatch(value) is None
    return _LOADS.search(value) is not None


def _source(image: ET.Element) -> str:
    return next((value for name in _HREFS if (value := image.get(name))), "")


def _has_shape(mark: ET.Element) -> bool:
    kind = mark.tag.removeprefix(_SVG)
    if kind == "path":
        return _SHAPE.match(mark.get("d", "")) is not None
    if kind == "image":
        return bool(_source(mark))
    return kind == "line" or (kind in ("text", "tspan") and bool(mark.text))


def page(spec: dict[str, Any], bundle: str, *, size: tuple[float, float]) -> str:
    """A page of HTML that draws the chart and loads nothing.

    The chart is as large as the window, but not smaller than `size`, the pixels of its width and
    height as a picture. A chart of several views is enlarged as a whole: Vega-Lite cannot fit it.
    A policy lets the browser run only the two scripts that are meant, by their digests.

    :param bundle: the JavaScript of Vega, which defines `vegaEmbed`
    :raises ChartError: the JavaScript would end its own script element
    """
    if re.search(r"</script|<!--", bundle, re.IGNORECASE):
        raise ChartError(
            "The HTML page was not written: the installed JavaScript of Vega contains </script> or "
            "<!--, which a browser would read as the end of the script or as a comment. Install "
            "another release of vl-convert-python."
        )
    encoding = spec.get("encoding")
    is_faceted = isinstance(encoding, dict) and not _FACETS.isdisjoint(encoding)
    is_one_view = ("mark" in spec or "layer" in spec) and not is_faceted
    if is_one_view:
        fit = {"type": "fit", "contains": "padding"}
        spec = {**spec, "width": "container", "height": "container", "autosize": fit}
    enlarged = "" if is_one_view else ' class="enlarged"'
    least = "min-width:{:.0f}px;min-height:{:.0f}px;".format(*size)
    policy = (
        f"default-src 'none'; script-src {_digest(bundle)} {_digest(_START)}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(_title(spec))}</title>\n"
        f"<style>{_STYLE} #chart {{{least}}}</style>\n</head>\n<body>\n"
        f'<div id="chart"{enlarged}></div>\n'
        f'<script type="application/json" id="spec">{embedded_json(spec)}</script>\n'
        f"<script>{bundle}</script>\n<script>{_START}</script>\n</body>\n</html>\n"
    )


def embedded_json(value: Any) -> str:
    """JSON for an element `script`: nothing in it ends or begins one."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _title(spec: dict[str, Any]) -> str:
    title = spec.get("title")
    text = title.get("text") if isinstance(title, dict) else title
    return (" ".join(map(str, text)) if isinstance(text, list) else str(text or "")) or "Chart"


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


FORMATS: tuple[str, ...] = get_args(ChartFormat)
EXTRA = "airflow-provider-platform[charts]"

_MEMORY_SIGNALS = (signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS)
"""How V8 and the library end when an allocation fails."""


@dataclass(frozen=True)
class ChartLimits:
    """What one chart may take. Beyond any of these it is not drawn."""

    seconds: float = 30.0
    """Of each step: drawing the chart, making a PNG of it."""
    memory_bytes: int = 1 << 30
    """Of the process that draws, on Linux."""
    rows: int = 50_000
    """Rows of data. A chart of fewer rows than there are would show something else."""
    input_bytes: int = 64 << 20
    """The specification with its rows, as JSON."""
    scale: float = 2.0
    """Pixels of a PNG for each unit of the chart: two are sharp on the screens of today. A picture
    that is too large with them has one."""
    side: int = 16_384
    """Pixels of a picture's longer side: beyond it browsers and mail programs show nothing."""
    pixels: int = 1 << 26
    """Of a whole picture, four bytes each in memory."""


class Pictures(dict[str, bytes]):
    """The pictures of a chart by their formats."""

    notes: tuple[str, ...] = ()
    """What the picture leaves out: data of the specification, values that are not numbers."""


def render_chart(
    spec: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    formats: Sequence[str] = ("png",),
    limits: ChartLimits | None = None,
    fonts: str | os.PathLike[str] | None = None,
) -> Pictures:
    """Draw one chart; see `ChartRenderer.render`."""
    with ChartRenderer(limits, fonts) as renderer:
        return renderer.render(spec, columns, rows, formats)


class ChartRenderer:
    """Draws charts, one after the other, in one process, which the first chart starts.

    A context manager; not for several threads at once.

    :param fonts: a folder of font files (ttf, otf, ttc), used besides those of the system
    """

    def __init__(
        self, limits: ChartLimits | None = None, fonts: str | os.PathLike[str] | None = None
    ) -> None:
        self.limits = limits or ChartLimits()
        self._fonts = fonts
        self._process: subprocess.Popen[bytes] | None = None

    def render(
        self,
        spec: Mapping[str, Any],
        columns: Sequence[Mapping[str, Any]],
        rows: Sequence[Sequence[Any]],
        formats: Sequence[str] = ("png",),
    ) -> Pictures:
        """The chart in each format: PNG, SVG, or a page of HTML that needs nothing else.

        The picture of a result without rows says that there are none.

        :param spec: a Vega-Lite 5 specification without data
        :param columns: `[{"name": str, "type": str}]`, as in the result of a chat
        :param rows: lists in the order of the columns
        :raises ChartError: it cannot be drawn, shows nothing, exceeds a limit, or the extra
            `charts` is missing
        """
        unknown = [name for name in formats if name not in FORMATS]
        if unknown:
            raise ChartError(
                f"Charts are drawn as {', '.join(FORMATS)}, not as {', '.join(map(str, unknown))}."
            )
        if len(rows) > self.limits.rows:
            raise ChartError(
                f"The chart has {len(rows):,} rows, more than the limit of {self.limits.rows:,}."
            )
        drawn, notes = drawable(spec, columns, rows)
        svg = self._ask({"spec": drawn})["svg"]
        try:
            size = check_svg(svg, undefined_is_data='"undefined"' in json.dumps(drawn["data"]))
        except EmptyPictureError as error:
            raise ChartError(
                "The chart would be empty or wrong: a name of a field is not that of a column, the "
                "values have another type, its filters remove all rows, or a line has one point "
                f"({error.message}; {len(rows):,} rows, columns: {_columns(columns)})."
                + "".join(f" {note}" for note in notes)
            ) from error
        scale = self._scale(*size)
        pictures = Pictures()
        pictures.notes = tuple(notes)
        for name in formats:
            if name == "svg":
                pictures[name] = svg.encode()
            elif name == "png":
                answer = self._ask({"svg": svg, "scale": scale})
                pictures[name] = base64.b64decode(answer["png"])
            else:
                pictures[name] = page(drawn, self._ask({})["bundle"], size=size).encode()
        return pictures

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scale(self, width: float, height: float) -> float:
        """The scale of the limits, or 1 if the picture is too large with it."""
        limits = self.limits
        for scale in (limits.scale, 1.0):
            wide, high = width * scale, height * scale
            if max(wide, high) <= limits.side and wide * high <= limits.pixels:
                return scale
        raise ChartError(
            f"The picture would be {width:,.0f} × {height:,.0f} pixels large; the limit is "
            f"{limits.side:,} for a side and {limits.pixels:,} in all. Ask for fewer categories, "
            "for example the 20 largest, or for a fixed width and height."
        )

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The child's answer to a request. A child that ends is not asked again: the next request
        starts another."""
        line = json.dumps(request).encode() + b"\n"
        if "spec" in request and len(line) > self.limits.input_bytes:
            raise ChartError(
                f"The chart's specification and rows have {len(line):,} bytes, more than the "
                f"limit of {self.limits.input_bytes:,}."
            )
        process = self._process = self._process or self._start()
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process was started without pipes")
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(line)
                process.stdin.flush()
            reply = process.stdout.readline()
            code = None if reply.endswith(b"\n") else process.wait()
        except BaseException:
            self.close()
            raise
        if code is not None:
            self.close()
            raise ChartError(self._ending(code))
        answer: dict[str, Any] = json.loads(reply)
        if "error" in answer:
            raise ChartError(f"The chart cannot be drawn: {_reason(answer['error'])}.")
        return answer

    def _start(self) -> subprocess.Popen[bytes]:
        installed = find_spec("vl_convert")
        if installed is None or installed.origin is None:
            raise ChartError(f"Charts need vl-convert-python: install {EXTRA}.")
        settings = {
            "packages": str(Path(installed.origin).parent.parent),
            "fonts": None if self._fonts is None else str(Path(self._fonts).absolute()),
            "seconds": self.limits.seconds,
            "memory_bytes": self.limits.memory_bytes,
        }
        script = str(Path(__file__).with_name("drawing_process.py"))
        return subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-B", script, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env={"TZ": "UTC"},  # nothing of the worker's; the same hours on every machine
        )

    def _ending(self, code: int) -> str:
        if -code == signal.SIGALRM:
            return f"The chart was not drawn within the limit of {self.limits.seconds:g} seconds."
        if -code in _MEMORY_SIGNALS:
            return (
                "The chart needs more memory than the limit of "
                f"{self.limits.memory_bytes:,} bytes, or the drawing library failed (the process "
                f"ended by {signal.Signals(-code).name})."
            )
        return f"The drawing process ended unexpectedly (exit status {code})."


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    names = [f"'{quote_service(column.get('name') or '')}'" for column in columns]
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


def _reason(text: str) -> str:
    """What the library says, without the frames of its JavaScript."""
    lines = [line.strip() for line in str(text).splitlines()]
    reasons = [line for line in lines if line and not line.startswith("at ")]
    return quote_service(" ".join(reasons) or "no reason is given").rstrip(".")
