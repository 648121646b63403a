"""`render_chart`: pictures of a chart, drawn in a process of its own."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self, get_args

from airflow_provider_platform.client.choices import ChartFormat
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.fonts import FontFolder, unusual
from airflow_provider_platform.results.charts.limits import ChartLimits
from airflow_provider_platform.results.charts.process import DrawingProcess
from airflow_provider_platform.results.charts.records import unique_names
from airflow_provider_platform.results.charts.safe_picture import check_svg, page
from airflow_provider_platform.results.charts.safe_specification import Drawable, drawable

if TYPE_CHECKING:
    import os

FORMATS: tuple[str, ...] = get_args(ChartFormat)


class Pictures(dict[str, bytes]):
    """The pictures of a chart by their formats, and what a person has to know of them."""

    notes: tuple[str, ...] = ()
    """What is not as the specification has it: data that were left out, values that are no
    numbers, characters that no font has."""


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

    :param fonts: a folder of font files (ttf, otf, ttc) for characters that the library's own fonts
        and those of the system lack, and for fonts that a specification names
    """

    def __init__(
        self, limits: ChartLimits | None = None, fonts: str | os.PathLike[str] | None = None
    ) -> None:
        self.limits = limits or ChartLimits()
        self._fonts = FontFolder(fonts)
        self._process = DrawingProcess(self.limits, self._fonts)
        self._reads_fonts = True
        """Whether the drawing process may read copied fonts, as far as is known."""

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
        :raises ChartError: it cannot be drawn, shows nothing, reads fields that the rows lack,
            exceeds a limit, or the extra `charts` is missing
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
        ready = drawable(spec, columns, rows, self.limits)
        wanted = list(dict.fromkeys(formats))
        if not wanted:
            return Pictures()
        lacking = self._find_fonts(ready.spec)
        answer = self._process.ask(
            {
                "spec": ready.spec,
                "formats": wanted,
                "scale": self.limits.scale,
                "side": self.limits.side,
                "pixels": self.limits.pixels,
                "lacking": lacking if "png" in wanted else "",
            }
        )
        if answer.get("too_large"):
            raise ChartError(_too_large(answer, ready, columns, rows, self.limits))
        if not answer["drawn"]:
            raise ChartError(
                "The chart would be empty: none of its rows can be drawn. Its filters remove all "
                f"rows, or the values to draw are missing or have another type ({len(rows):,} "
                f"rows, columns: {_columns(columns)})."
                + "".join(f" {note}" for note in ready.notes)
            )
        drawn_forms = Pictures(
            (name, base64.b64decode(text)) for name, text in answer["pictures"].items()
        )
        if "svg" in drawn_forms:
            check_svg(drawn_forms["svg"].decode())
        if "html" in wanted:
            size = (answer["width"], answer["height"])
            drawn = page(ready.spec, answer["bundle"], title=_title(ready.spec), size=size)
            drawn_forms["html"] = drawn.encode()
        if sum(map(len, drawn_forms.values())) > self.limits.output_bytes:
            raise ChartError(
                "The chart's pictures are larger than the limit of "
                f"{self.limits.output_bytes:,} bytes."
            )
        pictures = Pictures((name, drawn_forms[name]) for name in wanted)
        pictures.notes = (
            *ready.notes,
            *_notes(answer, wanted, self.limits, reads_fonts=self._reads_fonts),
        )
        return pictures

    def _find_fonts(self, spec: Mapping[str, Any]) -> str:
        """Give the process the fonts that the chart needs; return the characters that no font
        has."""
        families = set(_families(spec))
        characters = self._fonts.lacking(unusual(json.dumps(spec, ensure_ascii=False)))
        lacking = self._lacking(characters) if characters else ""
        if not lacking and not families:
            return ""
        if not self._reads_fonts:
            return lacking
        try:
            self._fonts.add(lacking, families)
        except OSError as error:
            raise ChartError(f"The fonts of the chart cannot be copied: {error}.") from error
        return self._fonts.lacking(lacking)

    def _lacking(self, characters: str) -> str:
        """The characters that the library's own fonts lack."""
        answer = self._process.ask({"characters": characters})
        self._reads_fonts = answer["reads_fonts"]
        lacking: str = answer["lacking"]
        return lacking

    def close(self) -> None:
        self._process.kill()
        self._fonts.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _notes(
    answer: Mapping[str, Any], wanted: Sequence[str], limits: ChartLimits, *, reads_fonts: bool
) -> list[str]:
    """What the drawing process says of the picture."""
    notes = []
    if answer["lacking"]:
        shown = answer["lacking"][:20]
        more = len(answer["lacking"]) - len(shown)
        advice = (
            "Install fonts for this script (for example the package fonts-noto), or set "
            "chart_fonts to a folder with fonts."
            if reads_fonts
            else "Charts on this worker can use only the built-in fonts of the drawing library. "
            "For other fonts (also those in chart_fonts), the worker needs Linux 5.13 or newer "
            "with Landlock."
        )
        notes.append(
            "No font has a glyph for "
            f"{quote_service(shown)}{f' and {more} more' if more else ''}, so the picture shows "
            f"boxes instead. {advice}"
        )
    if answer["points"]:
        notes.append(
            "A line or an area has only one point, so the picture shows a dot or nothing for it."
        )
    if "png" in wanted and answer["scale"] < limits.scale:
        notes.append(
            f"The chart is {answer['width']:,.0f} × {answer['height']:,.0f} units large, so the "
            "PNG is drawn at single instead of double resolution."
        )
    return notes


def _too_large(
    answer: Mapping[str, Any],
    ready: Drawable,
    columns: Sequence[Mapping[str, Any]],
    rows: Sequence[Sequence[Any]],
    limits: ChartLimits,
) -> str:
    """Why a chart is too large to be a picture, and which columns make it so."""
    counts = {
        name: len({str(row[at]) for row in rows if at < len(row)})
        for at, name in enumerate(unique_names(columns))
        if name in ready.labels
    }
    many = [
        f"'{quote_service(name)}' has {count:,} different values"
        for name, count in sorted(counts.items(), key=lambda item: -item[1])
        if count > 50
    ]
    because = f" ({'; '.join(many[:3])})" if many else ""
    return (
        f"The picture would be {answer['width']:,.0f} × {answer['height']:,.0f} pixels large"
        f"{because}; the limit is {limits.side:,} for a side and {limits.pixels:,} in all. Ask for "
        "fewer categories, for example the 20 largest, or for a fixed width and height."
    )


def _columns(columns: Sequence[Mapping[str, Any]]) -> str:
    names = [f"'{quote_service(name)}'" for name in unique_names(columns)]
    return ", ".join(names[:20]) + (", …" if len(names) > 20 else "")


def _families(value: Any) -> Iterator[str]:
    """The fonts that a specification names, without its rows."""
    if isinstance(value, list):
        for item in value:
            yield from _families(item)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if isinstance(item, str) and key.lower().endswith("font"):
                yield from (name.strip(" '\"") for name in item.split(","))
            elif key not in ("values", "datasets"):
                yield from _families(item)


def _title(spec: Mapping[str, Any]) -> str:
    title = spec.get("title")
    text = title.get("text") if isinstance(title, Mapping) else title
    if isinstance(text, list):
        text = " ".join(map(str, text))
    return str(text) if text else "Chart"
