"""The drawing process as its user sees it: started, asked, watched, killed whole."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.fonts import FontFolder

if TYPE_CHECKING:
    from airflow_provider_platform.results.charts.limits import ChartLimits

EXTRA = "airflow-provider-platform[charts]"
_WATCH_SECONDS = 0.05
_MEMORY_SIGNALS = {signal.SIGABRT, signal.SIGTRAP, signal.SIGILL, signal.SIGSEGV, signal.SIGBUS}
_PAGE = os.sysconf("SC_PAGE_SIZE")


def packages_folder() -> str:
    """Where vl-convert is installed. Raises ChartError, naming the extra, where it is not."""
    spec = find_spec("vl_convert")
    if spec is None or spec.origin is None:
        raise ChartError(f"Charts need vl-convert-python: install {EXTRA}.")
    return str(Path(spec.origin).parent.parent)


class DrawingProcess:
    """One process; after an overrun or a crash it is gone, and the next request starts another."""

    def __init__(self, limits: ChartLimits, fonts: FontFolder | None = None) -> None:
        self._limits = limits
        self._fonts = fonts or FontFolder()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request. Raises ChartError, also for what the library says."""
        frame = _frame({**request, "fonts": self._fonts.folders, "seconds": self._limits.seconds})
        if len(frame) > self._limits.input_bytes:
            raise ChartError(
                f"The chart's specification and rows have {len(frame):,} bytes, more than the "
                f"limit of {self._limits.input_bytes:,}."
            )
        process = self._process or self._start()
        try:
            answer = self._exchange(process, frame)
        except BaseException:
            self.kill()
            raise
        if "error" in answer:
            raise ChartError(f"The chart cannot be drawn: {_reason(answer['error'])}.")
        return answer

    def kill(self) -> None:
        """End the process with all that belongs to it."""
        process, self._process = self._process, None
        if process is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):
                    pipe.close()

    def _start(self) -> subprocess.Popen[bytes]:
        try:
            fonts = self._fonts.path
        except OSError as error:
            raise ChartError(
                "Charts cannot be drawn on this worker: no temporary folder can be created "
                f"({error})."
            ) from error
        settings = {
            "packages": packages_folder(),
            "fonts": fonts,
            "seconds": self._limits.seconds,
            "memory_bytes": self._limits.memory_bytes,
        }
        script = str(Path(__file__).with_name("worker.py"))
        self._process = process = subprocess.Popen(  # noqa: S603
            [sys.executable, "-I", "-S", "-B", script, json.dumps(settings)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            cwd="/",
            env={"LANG": "C.UTF-8", "PATH": "/usr/bin:/bin", "TZ": "UTC"},
            start_new_session=True,
        )
        try:
            ready = self._exchange(process, b"")
            if "error" in ready:
                raise ChartError(
                    f"Charts cannot be drawn on this worker: {_reason(ready['error'])}."
                )
        except BaseException:
            self.kill()
            raise
        return process

    def _exchange(self, process: subprocess.Popen[bytes], frame: bytes) -> dict[str, Any]:
        """Send a frame and receive one, watching clock and memory."""
        if process.stdin is None or process.stdout is None:
            raise ValueError("the process was started without pipes")
        deadline = time.monotonic() + self._limits.seconds
        received, unsent = bytearray(), memoryview(frame)
        needed: int | None = None
        # Base64 and JSON around it.
        most = self._limits.output_bytes * 4 // 3 + (4 << 20)
        with selectors.DefaultSelector() as selector:
            for pipe, event in (
                (process.stdin, selectors.EVENT_WRITE),
                (process.stdout, selectors.EVENT_READ),
            ):
                os.set_blocking(pipe.fileno(), False)
                if event == selectors.EVENT_READ or unsent:
                    selector.register(pipe, event)
            while needed is None or len(received) < 4 + needed:
                for key, _ in selector.select(_WATCH_SECONDS):
                    if key.fileobj is process.stdin:
                        try:
                            unsent = unsent[os.write(process.stdin.fileno(), unsent[: 1 << 16]) :]
                        except BrokenPipeError:
                            unsent = unsent[:0]
                        if not unsent:
                            selector.unregister(process.stdin)
                        continue
                    piece = os.read(process.stdout.fileno(), 1 << 20)
                    if not piece:
                        raise ChartError(self._ending(process))
                    received += piece
                if needed is None and len(received) >= 4:
                    needed = int.from_bytes(received[:4], "big")
                    if needed > most:
                        raise ChartError(
                            "The chart's pictures are larger than the limit of "
                            f"{self._limits.output_bytes:,} bytes."
                        )
                self._watch(process, deadline)
        reply: dict[str, Any] = json.loads(received[4:])
        return reply

    def _watch(self, process: subprocess.Popen[bytes], deadline: float) -> None:
        if time.monotonic() > deadline:
            raise ChartError(
                f"The chart was not drawn within the limit of {self._limits.seconds:g} seconds."
            )
        if _resident(process.pid) > self._limits.memory_bytes:
            raise ChartError(self._memory())

    def _memory(self) -> str:
        return f"The chart needs more memory than the limit of {self._limits.memory_bytes:,} bytes."

    def _ending(self, process: subprocess.Popen[bytes]) -> str:
        code = process.wait()
        if -code in _MEMORY_SIGNALS:  # how V8 and the library end when an allocation fails
            return f"{self._memory()} (The drawing process ended by {signal.Signals(-code).name}.)"
        if code in (-signal.SIGXCPU, -signal.SIGALRM):
            return f"The chart was not drawn within the limit of {self._limits.seconds:g} seconds."
        return f"The drawing process ended unexpectedly (exit status {code})."


def _resident(pid: int) -> int:
    """Bytes of resident memory, 0 where it cannot be told."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
    except (OSError, ValueError, IndexError):
        return 0


def _frame(message: dict[str, Any]) -> bytes:
    body = json.dumps(message, ensure_ascii=True).encode()
    return len(body).to_bytes(4, "big") + body


def _reason(text: str) -> str:
    """What the library says, without the frames of its JavaScript."""
    lines = [line.strip() for line in str(text).splitlines()]
    reasons = [line for line in lines if line and not line.startswith("at ")]
    return quote_service(" ".join(reasons) or "no reason is given").rstrip(".")
