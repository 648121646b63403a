"""What is checked of a drawn picture, and the HTML page around a chart."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from typing import Any
from xml.etree import ElementTree as ET

from airflow_provider_platform.charts.errors import ChartError

_SVG = "{http://www.w3.org/2000/svg}"
_HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
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
    :raises ChartError: it would load an image
    """
    try:
        root = ET.fromstring(svg)  # noqa: S314 - Vega writes no declarations, so no entities
    except ET.ParseError as error:
        raise ChartError(f"The picture is not well-formed: {error}.") from error
    for image in root.iter(f"{_SVG}image"):
        if not _source(image).startswith(("data:", "#")) and _source(image):
            raise ChartError("The picture would load an image.")
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
