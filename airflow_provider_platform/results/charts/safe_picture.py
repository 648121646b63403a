"""What is checked of a finished picture, and the page around a chart.

Values of the data reach a picture too, as a colour or a link, so that a clean specification is not
enough. An SVG that would load or run something is refused. A page holds its data where no text ends
a script, and a policy that lets the browser load nothing and run only the two scripts that are
meant, which it names by their digests. A chart fills its page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
import re
from typing import Any
from xml.etree import ElementTree as ET

from airflow_provider_platform.results.charts.errors import ChartError

_ELEMENTS = {
    "svg", "g", "path", "text", "tspan", "rect", "line", "circle", "title", "desc", "defs",
    "clipPath", "linearGradient", "radialGradient", "stop", "a", "style", "image",
}  # fmt: skip
_EXTERNAL = re.compile(r"url\s*\(\s*(?!['\"]?#)|@import|expression\s*\(|\\", re.IGNORECASE)

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


def check_svg(text: str) -> None:
    """Raise ChartError for an SVG in which something is loaded or run."""
    if "<!" in text:
        raise ChartError("The SVG has a declaration or a comment (<!), which a chart never needs.")
    try:
        # No declaration, so no entities: nothing that an XML bomb could be made of.
        root = ET.fromstring(text)  # noqa: S314
    except ET.ParseError as error:
        raise ChartError(f"The SVG is not well-formed: {error}.") from error
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        if tag not in _ELEMENTS or (tag == "style" and element.text):
            raise ChartError(f"The SVG has an element <{tag}>, which a chart never needs.")
        for name, value in element.attrib.items():
            local = name.rpartition("}")[2].lower()
            if local.startswith("on"):
                raise ChartError(f"The SVG has a script in its attribute {local!r}.")
            if tag == "image" and local == "href" and value:
                raise ChartError("The SVG would load an image.")
            if local == "href" and not re.match(r"https://|#|$", value):
                raise ChartError("The SVG has a link that is not an https address.")
            if not local.startswith("aria-") and _EXTERNAL.search(value):
                raise ChartError(
                    f"The SVG would load an external resource for its attribute {local!r}."
                )


def page(
    spec: dict[str, Any],
    bundle: str,
    *,
    title: str,
    size: tuple[float, float] = (0, 0),
) -> str:
    """A page of HTML that draws the chart and needs nothing else.

    The chart is as large as the window, but not smaller than `size`, the pixels of its width and
    height as a picture. One of several views is enlarged as a whole.

    `bundle` is the JavaScript of Vega, which defines `vegaEmbed`.
    """
    filled = filling(spec)
    enlarged = ' class="enlarged"' if filled == spec else ""
    least = "".join(
        f"min-{name}:{math.ceil(pixels)}px;"
        for name, pixels in zip(("width", "height"), size, strict=True)
    )
    if re.search(r"</script|<!--", bundle, re.IGNORECASE):
        raise ChartError(
            "The HTML page was not written: the installed JavaScript of Vega contains </script> or "
            "<!--, which a browser would read as the end of the script or as a comment. Install "
            "another release of vl-convert-python."
        )
    scripts = f"{_digest(bundle)} {_digest(_START)}"
    policy = (
        f"default-src 'none'; script-src {scripts}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html.escape(title)}</title>\n"
        f"<style>{_STYLE} #chart {{{least}}}</style>\n</head>\n<body>\n"
        f'<div id="chart"{enlarged}></div>\n'
        f'<script type="application/json" id="spec">{embedded_json(filled)}</script>\n'
        f"<script>{bundle}</script>\n<script>{_START}</script>\n</body>\n</html>\n"
    )


def filling(spec: dict[str, Any]) -> dict[str, Any]:
    """The specification with the size of its page. One of several views keeps its own, since
    Vega-Lite cannot fit those: the page enlarges their picture."""
    encoding = spec.get("encoding")
    is_faceted = isinstance(encoding, dict) and not _FACETS.isdisjoint(encoding)
    if is_faceted or not ("mark" in spec or "layer" in spec):
        return spec
    fit = {"type": "fit", "contains": "padding"}
    return {**spec, "width": "container", "height": "container", "autosize": fit}


def embedded_json(value: Any) -> str:
    """JSON that can stand in an element `script`: nothing in it ends or begins one."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _digest(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"
