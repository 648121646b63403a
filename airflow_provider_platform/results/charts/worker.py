"""The process that draws: limits itself, then draws one chart after another. A script, no module.

It runs with the standard library and vl-convert alone, in an empty environment, and it cannot open
connections, start programs or write files. What a specification does to V8 ends here.

Standard input and output carry frames: four bytes of length, then JSON. The first one that it
sends is `{"ready": true}`, or `{"error": str}`. A request is `{"spec", "formats", "seconds",
"scale"}`, its answer `{"pictures": {format: base64}, "bundle": str}` or `{"error": str}`.
"""

from __future__ import annotations

import base64
import ctypes
import json
import os
import platform
import resource
import signal
import struct
import sys
from typing import Any

_WARM_UP = {"data": {"values": [{"a": 1}]}, "mark": "bar", "encoding": {"x": {"field": "a"}}}

# What is refused by the kernel, by machine: socket, io_uring_setup, execve, execveat, ptrace.
_REFUSED = {
    "x86_64": (0xC000003E, (41, 425, 59, 322, 101)),
    "aarch64": (0xC00000B7, (198, 425, 221, 281, 117)),
}


def main() -> None:
    """Serve requests until standard input ends."""
    settings = json.loads(sys.argv[1])
    frames = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    signal.alarm(int(settings["seconds"]) + 5)
    for kind, most in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        resource.setrlimit(kind, (most, most))
    sys.path.append(settings["packages"])
    try:
        refuse_system_calls()
        import vl_convert

        version = newest_version(vl_convert.get_vegalite_versions())
        vl_convert.vegalite_to_svg(_WARM_UP, vl_version=version, allowed_base_urls=[])
        limit_data(int(settings["memory_bytes"]))
    except Exception as error:  # noqa: BLE001
        send(frames, {"error": f"{type(error).__name__}: {error}"})
        return
    signal.alarm(0)
    send(frames, {"ready": True})
    while (request := receive()) is not None:
        limit_time(float(request["seconds"]))
        send(frames, draw(vl_convert, version, request))
        signal.alarm(0)


def draw(library: Any, version: str, request: dict[str, Any]) -> dict[str, Any]:
    """The pictures that are asked for; a page needs the bundle only, which the caller fills."""
    found: dict[str, Any] = {"pictures": {}}
    common = {"vl_version": version, "allowed_base_urls": []}
    try:
        # Also where only a page is wanted: it says whether the specification can be drawn.
        svg = library.vegalite_to_svg(request["spec"], **common)
        for name in request["formats"]:
            if name == "svg":
                picture = svg.encode()
            elif name == "png":
                picture = library.vegalite_to_png(request["spec"], scale=request["scale"], **common)
            else:
                found["bundle"] = library.javascript_bundle(vl_version=version)
                continue
            found["pictures"][name] = base64.b64encode(picture).decode()
    except Exception as error:  # noqa: BLE001
        return {"error": str(error)}
    return found


def newest_version(versions: list[str]) -> str:
    """The newest Vega-Lite 5, which is what specifications are written for."""
    fives = [one for one in versions if one.lstrip("v").split(".")[0] == "5"]
    return max(
        fives or versions, key=lambda one: [int(part) for part in one.lstrip("v").split(".")]
    )


def limit_time(seconds: float) -> None:
    """Have the kernel end this process, with no hand of its own, if a chart takes longer."""
    signal.alarm(int(seconds) + 5)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    used = usage.ru_utime + usage.ru_stime
    most = resource.getrlimit(resource.RLIMIT_CPU)[1]
    threads = min(os.cpu_count() or 1, 8)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used + threads * seconds) + 5, most))


def limit_data(memory_bytes: int) -> None:
    """Have allocations beyond the limit fail.

    Not RLIMIT_AS: V8 reserves some 60 GB of addresses. What the threads of the machine's many
    cores have reserved by now is no memory of a chart, so that the limit counts from here.
    """
    try:
        with open("/proc/self/status") as status:  # noqa: PTH123
            [line] = [line for line in status if line.startswith("VmData:")]
    except (OSError, ValueError):
        return
    most = int(line.split()[1]) * 1024 + memory_bytes
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def refuse_system_calls() -> None:
    """Have the kernel refuse connections and programs (seccomp), where it can do that.

    Where it cannot (another system, another machine), what the specification was freed of and
    what the library refuses have to do.
    """
    known = _REFUSED.get(platform.machine()) if sys.platform == "linux" else None
    if known is None:
        return
    machine, calls = known
    load_machine, load_number = (0x20, 0, 0, 4), (0x20, 0, 0, 0)
    allow, refuse = (0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050000 | 13)  # EACCES
    # Each line of tests jumps over what is left of them to `refuse`, which stands last.
    tests = [(0x15, len(calls) - position, 0, call) for position, call in enumerate(calls)]
    program = [
        load_machine,
        (0x15, 0, len(tests) + 3, machine),  # another machine's calls
        load_number,
        (0x35, len(tests) + 1, 0, 0x40000000),  # x32's calls
        *tests,
        allow,
        refuse,
    ]
    code = b"".join(struct.pack("=HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))

    loaded = Program(len(program), ctypes.addressof(buffer))
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    if prctl(38, 1, 0, 0, 0) == 0:  # PR_SET_NO_NEW_PRIVS
        prctl(22, 2, ctypes.addressof(loaded), 0, 0)  # PR_SET_SECCOMP, SECCOMP_MODE_FILTER


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
