"""The process that draws. A script, not a module: it imports vl-convert and the standard library.

Requests and answers are lines of JSON on standard input and output:

- `{"spec": ...}`: a Vega-Lite specification with its rows, answered by `{"svg": str}`;
- `{"svg": str, "scale": float}`, answered by `{"png": base64}`;
- `{}`: the JavaScript of Vega for a page, answered by `{"bundle": str}`.

Each answer can be `{"error": str}`. The kernel ends the process if an answer takes longer than the
time limit, or if an allocation exceeds the memory limit. The process also ends when its standard
input does: it does not outlive the process that started it by more than one time limit.
"""

from __future__ import annotations

import base64
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

WARM_UP = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}}


def main() -> None:
    """Answer requests until standard input ends. The settings are the first argument, as JSON."""
    settings = json.loads(sys.argv[1])
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # nothing that the library prints gets into an answer
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    library = None
    for line in sys.stdin.buffer:
        signal.setitimer(signal.ITIMER_REAL, settings["seconds"])
        try:
            library = library or load(settings)
            answer = draw(library, json.loads(line))
        except Exception as error:  # noqa: BLE001
            answer = {"error": str(error) or type(error).__name__}
        signal.setitimer(signal.ITIMER_REAL, 0)
        answers.write(json.dumps(answer).encode() + b"\n")
        answers.flush()


def load(settings: dict[str, Any]) -> Any:
    """vl-convert, ready to draw, with the fonts of the settings."""
    sys.path.append(settings["packages"])
    import vl_convert

    if settings["fonts"]:
        vl_convert.register_font_directory(settings["fonts"])
    draw(vl_convert, {"spec": WARM_UP})
    limit_memory(settings["memory_bytes"])
    return vl_convert


def draw(library: Any, request: dict[str, Any]) -> dict[str, Any]:
    """The answer to one request."""
    if "svg" in request:
        picture = library.svg_to_png(request["svg"], scale=request["scale"])
        return {"png": base64.b64encode(picture).decode()}
    version = newest_version(library.get_vegalite_versions())
    if "spec" not in request:
        return {"bundle": library.javascript_bundle(vl_version=version)}
    svg = library.vegalite_to_svg(request["spec"], vl_version=version, allowed_base_urls=[])
    return {"svg": svg}


def newest_version(versions: list[str]) -> str:
    """The newest Vega-Lite 5: specifications are written for it."""
    fives = [version for version in versions if version.lstrip("v").startswith("5.")]
    return max(fives, key=lambda version: [int(part) for part in version.lstrip("v").split(".")])


def limit_memory(memory_bytes: int) -> None:
    """Let allocations beyond the limit fail, on Linux.

    Not RLIMIT_AS: V8 reserves tens of gigabytes of addresses. The limit counts from here, because
    a machine of many cores has many threads, and their stacks are not memory of a chart.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return
    for line in status.splitlines():
        if line.startswith("VmData:"):
            most = int(line.split()[1]) * 1024 + memory_bytes
            resource.setrlimit(resource.RLIMIT_DATA, (most, most))


if __name__ == "__main__":
    main()
