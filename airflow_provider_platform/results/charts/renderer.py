"""`render_chart`: pictures of a chart, drawn in a process of its own."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, Self

from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.limits import ChartLimits
from airflow_provider_platform.results.charts.picture import check_svg, page
from airflow_provider_platform.results.charts.process import DrawingProcess
from airflow_provider_platform.results.charts.specification import drawable

FORMATS = ("png", "svg", "html")
SCALE = 2.0
"""Dots of a PNG for each unit of the chart: sharp on the screens of today."""


def render_chart(
    spec: Mapping[str, Any],
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    formats: Sequence[str] = ("png",),
    limits: ChartLimits | None = None,
) -> dict[str, bytes]:
    """Draw one chart; see `ChartRenderer.render`."""
    with ChartRenderer(limits) as renderer:
        return renderer.render(spec, columns, rows, formats)


class ChartRenderer:
    """Draws charts, one after the other, in one process, which the first chart starts.

    A context manager; not for several threads at once.
    """

    def __init__(self, limits: ChartLimits | None = None) -> None:
        self.limits = limits or ChartLimits()
        self._process = DrawingProcess(self.limits)

    def render(
        self,
        spec: Mapping[str, Any],
        columns: Sequence[Mapping[str, Any]],
        rows: Sequence[Sequence[Any]],
        formats: Sequence[str] = ("png",),
    ) -> dict[str, bytes]:
        """The chart in each format: PNG, SVG, or a page of HTML that needs nothing else.

        :param spec: a Vega-Lite 5 specification without data
        :param columns: `[{"name": str, "type": str}]`, as in the result of a chat
        :param rows: lists in the order of the columns
        :raises ChartError: it cannot be drawn, exceeds a limit, or the extra `charts` is missing
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
        ready = drawable(spec, columns, rows, depth=self.limits.depth)
        wanted = list(dict.fromkeys(formats))
        if not wanted:
            return {}
        answer = self._process.ask({"spec": ready, "formats": wanted, "scale": SCALE})
        found = {name: base64.b64decode(text) for name, text in answer["pictures"].items()}
        if "svg" in found:
            check_svg(found["svg"].decode())
        if "html" in wanted:
            found["html"] = page(ready, answer["bundle"], title=_title(ready)).encode()
        if sum(map(len, found.values())) > self.limits.output_bytes:
            raise ChartError(
                "The chart's pictures are larger than the limit of "
                f"{self.limits.output_bytes:,} bytes."
            )
        return {name: found[name] for name in wanted}

    def close(self) -> None:
        self._process.kill()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _title(spec: Mapping[str, Any]) -> str:
    title = spec.get("title")
    text = title.get("text") if isinstance(title, Mapping) else title
    if isinstance(text, list):
        text = " ".join(map(str, text))
    return str(text) if text else "Chart"
