"""Starts and stops the processes of the demo; none of them outlives it."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

_READY_SECONDS = 30
_STOP_SECONDS = 30


class DemoError(Exception):
    """The demo cannot go on; the text says why and what to look at."""


def stop_on_signals() -> None:
    """Have the usual signals raise `KeyboardInterrupt`, so that processes are stopped on the way.

    SIGINT by name too: what a shell starts in the background ignores it, and its children as well.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    raise KeyboardInterrupt


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the demo's lock. Raises `DemoError` when another demo runs."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError("Another demo runs in this folder; wait for its end.") from None
        yield


@contextmanager
def running_sandbox(folder: Path) -> Iterator[dict[str, Any]]:
    """Serve the sandbox from a process of its own; gives its addresses and its connection.

    Raises `DemoError` when it does not start.
    """
    ready_file = folder / "sandbox.json"
    log_file = folder / "sandbox.log"
    ready_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "airflow_provider_platform.sandbox"]
    command += ["--port", "0", "--dbt-pace", "0.2", "--ready-file", str(ready_file)]
    with log_file.open("w") as log, running(command, stdout=log) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"The sandbox did not start:\n{log_file.read_text()[-2000:]}")
            time.sleep(0.05)
        details: dict[str, Any] = json.loads(ready_file.read_text())
        yield details


@contextmanager
def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a session of its own, so that Ctrl-C reaches the demo alone, which stops it.

    What is left of the session when the command has ended is killed.
    """
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        yield process
    finally:
        _stop(process, stop_signal)
        if process.stdout is not None:
            process.stdout.close()


def _stop(process: subprocess.Popen[str], stop_signal: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(stop_signal)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    finally:
        _kill_group(process.pid)


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
