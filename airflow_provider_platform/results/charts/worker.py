"""The process that draws: confines itself, then draws one chart after another. A script, no module.

It runs with the standard library and vl-convert alone, in an empty environment. On Linux it draws
nothing unless the kernel confines it: see `confinement`. A specification is compiled, its
expressions are checked (see `expressions`), and only then is it run. What a specification does to
V8 ends here.

Standard input and output carry frames: four bytes of length, then JSON. The first one that it
sends is `{"ready": true}`, or `{"error": str}`. Requests, each with `seconds`
and with `fonts`, the folders of fonts that it shall know:

- `{"characters": str}`: which of these have no glyph in the library's own fonts, as
  `{"lacking": str, "reads_fonts": bool}`;
- `{"spec", "formats", "scale", "side", "pixels", "lacking"}`: a chart, as `{"pictures":
  {format: base64}, "bundle": str, "width": float, "height": float, "scale": float, "drawn": bool,
  "points": int, "lacking": str}`, or `{"width", "height", "too_large": true}`. `lacking` is the
  characters that no font has; the answer's are those of them that the picture shows.

The answer to each can be `{"error": str}`.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from io import BufferedReader

    from airflow_provider_platform.results.charts import confinement, expressions
else:  # the files beside this one: the package would bring all that it imports
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # noqa: PTH100, PTH120
    try:
        import confinement
        import expressions
    finally:
        del sys.path[0]

_SIZE = re.compile(r'<svg[^>]*? width="([0-9.eE+]+)" height="([0-9.eE+]+)"')
_MARKS = re.compile(r'<g class="mark-(?!group)(\w+) role-mark[^>]*[^/>]>(.*?)</g>', re.DOTALL)
"""The marks of one kind with their shapes; a container without any closes itself."""
_SHAPE = re.compile(r'\sd="[^"]|<line|<text|<image')
_POINT = re.compile(r'\sd="M[^A-Za-z"]*Z?"')
"""A line through one point: where it starts, it ends."""
_TEXT = re.compile(r">([^<]+)<")
_UNASSIGNED = "\u0378"
"""No font has a glyph for it, so that it shows what a missing glyph looks like."""
_MOST_CHARACTERS = 2_000

_WARM_UP = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}}
_LIMITS = {"side": 1000, "pixels": 1 << 20, "lacking": ""}


def main() -> None:
    """Serve requests until standard input ends."""
    settings = json.loads(sys.argv[1])
    frames = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.alarm(int(settings["seconds"]) + 5)
    for limit, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(limit, (most, most))
    sys.path.append(settings["packages"])
    try:
        import vl_convert

        on_linux = sys.platform == "linux"
        # No more can be opened later.
        status = open("/proc/self/status", "rb") if on_linux else None  # noqa: PTH123, SIM115
        readable = (*confinement.READABLE, settings["fonts"])
        landlocked = confinement.confine(readable) if on_linux else True
        # The library reads it when it first draws: none of the system's fonts, see `fonts`.
        os.environ["FONTCONFIG_FILE"] = os.path.join(settings["fonts"], "fonts.conf")  # noqa: PTH118
        version = newest_version(vl_convert.get_vegalite_versions())
        draw(vl_convert, version, {**_LIMITS, "spec": _WARM_UP, "formats": ["png"], "scale": 1})
        if not landlocked:
            confinement.seal()
        if status is not None:
            limit_data(status, int(settings["memory_bytes"]))
    except confinement.ConfinementError as error:
        send(frames, {"error": str(error)})
        return
    except Exception as error:  # noqa: BLE001
        send(frames, {"error": f"{type(error).__name__}: {error}"})
        return
    signal.alarm(0)
    send(frames, {"ready": True})
    glyphs = Glyphs(vl_convert, reads_fonts=landlocked)
    while (request := receive()) is not None:
        limit_time(float(request["seconds"]))
        send(frames, answer(vl_convert, version, request, glyphs))
        signal.alarm(0)


def answer(library: Any, version: str, request: dict[str, Any], glyphs: Glyphs) -> dict[str, Any]:
    """The answer to a request, or `{"error": str}`."""
    try:
        glyphs.register(request["fonts"])
        if "characters" in request:
            lacking = glyphs.lacking(request["characters"])
            return {"lacking": lacking, "reads_fonts": glyphs.reads_fonts}
        return draw(library, version, request)
    except Exception as error:  # noqa: BLE001
        return {"error": str(error)}


class Glyphs:
    """Which characters the library can draw with its own fonts, asked of the library itself, once
    for each character."""

    def __init__(self, library: Any, *, reads_fonts: bool) -> None:
        self._library = library
        self.reads_fonts = reads_fonts
        self._folders: set[str] = set()
        self._known: dict[str, bool] = {}

    def register(self, folders: list[str]) -> None:
        """Have the library know the fonts in these folders."""
        for folder in folders:
            if folder not in self._folders and self.reads_fonts:
                self._library.register_font_directory(folder)
                self._folders.add(folder)

    def lacking(self, characters: str) -> str:
        """The characters that look like one that no font has."""
        new = [
            character for character in characters[:_MOST_CHARACTERS] if character not in self._known
        ]
        missing = self._picture(_UNASSIGNED) if new else b""
        self._known.update((character, self._picture(character) != missing) for character in new)
        return "".join(
            character for character in characters if not self._known.get(character, True)
        )

    def _picture(self, character: str) -> bytes:
        picture: bytes = self._library.svg_to_png(
            '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="24"><text x="4" y="18" '
            f'font-size="16" font-family="sans-serif">{character}</text></svg>'
        )
        return picture


def draw(library: Any, version: str, request: dict[str, Any]) -> dict[str, Any]:
    """The pictures that are asked for; a page needs the bundle only, which the caller fills.

    Raises ExpressionError before anything of the specification runs, and what the library raises.
    """
    vega = library.vegalite_to_vega(request["spec"], vl_version=version)
    expressions.check_specification(vega)
    checked = json.dumps(vega)  # which the library reads faster than objects
    # Also where only a page is wanted: it says whether the specification can be drawn.
    svg = library.vega_to_svg(checked, allowed_base_urls=[])
    size = _SIZE.search(svg)
    width, height = (float(size[1]), float(size[2])) if size else (0.0, 0.0)
    answer: dict[str, Any] = {"pictures": {}, "width": width, "height": height}
    scale = fitting_scale(width, height, request)
    if scale is None:
        return {**answer, "too_large": True}
    shapes = [(mark, shape) for mark, shape in _MARKS.findall(svg)]
    answer["scale"] = scale
    answer["drawn"] = any(_SHAPE.search(shape) for _, shape in shapes)
    lines = [shape for mark, shape in shapes if mark in ("line", "area")]
    has_dots = any(mark == "symbol" for mark, _ in shapes)
    answer["points"] = 0 if has_dots else sum(len(_POINT.findall(shape)) for shape in lines)
    shown = set("".join(_TEXT.findall(svg)))
    answer["lacking"] = "".join(character for character in request["lacking"] if character in shown)
    for name in request["formats"]:
        if name == "svg":
            picture = svg.encode()
        elif name == "png":
            # Vega has run: its SVG needs no second run, unless it would load an image.
            picture = (
                library.vega_to_png(checked, scale=scale, allowed_base_urls=[])
                if "<image" in svg
                else library.svg_to_png(svg, scale=scale)
            )
        else:
            answer["bundle"] = bundle(library, version)
            continue
        answer["pictures"][name] = base64.b64encode(picture).decode()
    return answer


def fitting_scale(width: float, height: float, request: dict[str, Any]) -> float | None:
    """The scale that is asked for, or 1, or None where no picture is small enough."""
    for scale in (float(request["scale"]), 1.0):
        wide, high = width * scale, height * scale
        if max(wide, high) <= request["side"] and wide * high <= request["pixels"]:
            return scale
    return None


def bundle(library: Any, version: str) -> str:
    """The JavaScript of a page.

    The library asks where its stack ends. For the first thread the answer is in a file of `/proc`,
    which is closed; another thread knows it.
    """
    bundles: list[str] = []
    thread = threading.Thread(
        target=lambda: bundles.append(library.javascript_bundle(vl_version=version))
    )
    thread.start()
    thread.join()
    if not bundles:
        raise ValueError("the JavaScript of the HTML page cannot be built")
    return bundles[0]


def newest_version(versions: list[str]) -> str:
    """The newest Vega-Lite 5, which is what specifications are written for."""
    newest = [version for version in versions if version.lstrip("v").split(".")[0] == "5"]
    return max(
        newest or versions,
        key=lambda version: [int(part) for part in version.lstrip("v").split(".")],
    )


def limit_time(seconds: float) -> None:
    """Have the kernel end this process, with no hand of its own, if a chart takes longer."""
    signal.alarm(int(seconds) + 5)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    threads = min(os.cpu_count() or 1, 8)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + threads * seconds) + 5, most))


def limit_data(status: BufferedReader, memory_bytes: int) -> None:
    """Have allocations beyond the limit fail. `status` is the open file `/proc/self/status`.

    Not RLIMIT_AS: V8 reserves some 60 GB of addresses. What the threads of the machine's many
    cores have reserved by now is no memory of a chart, so that the limit counts from here.
    """
    try:
        with status:
            [line] = [line for line in status if line.startswith(b"VmData:")]
    except (OSError, ValueError):
        return
    most = int(line.split()[1]) * 1024 + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def receive() -> Any:
    head = sys.stdin.buffer.read(4)
    if len(head) < 4:
        return None
    return json.loads(sys.stdin.buffer.read(int.from_bytes(head, "big")))


def send(frames: Any, message: dict[str, Any]) -> None:
    body = json.dumps(message).encode()
    data = memoryview(len(body).to_bytes(4, "big") + body)
    while data:
        data = data[frames.write(data) :]


if __name__ == "__main__":
    main()
