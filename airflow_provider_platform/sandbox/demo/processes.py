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
_STOP_SECONDS = 15
_WATCH = """
read -r _
kill -s "$2" "$1" 2>/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do
  kill -s 0 -- "-$1" 2>/dev/null || exit 0
  sleep 0.5
done
kill -s KILL -- "-$1" 2>/dev/null
"""
"""Waits until its standard input ends, as it does when the demo's process is gone, then stops the
process group `$1` with the signal `$2`."""


class DemoError(Exception):
    """The demo cannot go on; the text says why and what to look at."""


def stop_on_signals() -> None:
    """Have the usual signals raise `KeyboardInterrupt`, so that processes are stopped on the way.

    SIGINT by name too: what a shell starts in the background ignores it, and its children as well.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)


def _interrupt(*_: object) -> NoReturn:
    # Said here: what is stopped may take its seconds.
    os.write(2, b"\nStopping ... (once more kills what still runs)\n")
    raise KeyboardInterrupt


@contextmanager
def only_one(folder: Path) -> Iterator[None]:
    """Hold the demo's lock. Raises `DemoError` when another demo runs."""
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                "The demo or its UI runs in this folder already; wait for its end or stop it."
            ) from None
        yield


@contextmanager
def running_sandbox(folder: Path) -> Iterator[dict[str, Any]]:
    """Serve the sandbox from a process of its own; gives its addresses and its connection.

    It goes on where the last one in this folder has ended. Raises `DemoError` when it does not
    start.
    """
    ready_file = folder / "sandbox.json"
    log_file = folder / "sandbox.log"
    ready_file.unlink(missing_ok=True)
    command = [sys.executable, "-m", "airflow_provider_platform.sandbox"]
    command += ["--keep", str(folder / "sandbox"), "--dbt-pace", "0.2", "--jobs"]
    command += ["--ready-file", str(ready_file)]
    with log_file.open("w") as log, running(command, stdout=log) as process:
        deadline = time.monotonic() + _READY_SECONDS
        while not ready_file.exists():
            if process.poll() is not None or time.monotonic() > deadline:
                raise DemoError(f"The sandbox did not start:\n{log_file.read_text()[-2000:]}")
            time.sleep(0.05)
        details: dict[str, Any] = json.loads(ready_file.read_text())
        yield details


def write_connection(home: Path, connection: dict[str, Any]) -> Path:
    """The file that `stored_settings` reads."""
    home.mkdir(parents=True, exist_ok=True)
    file = home / "connection.json"
    file.touch(mode=0o600)
    file.write_text(json.dumps(connection))
    return file


@contextmanager
def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a session of its own, so that Ctrl-C reaches the demo alone, which stops it.

    What is left of the session when the command has ended is killed, and all of it when this
    process itself is killed.
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
        with _watched(process.pid, stop_signal):
            try:
                yield process
            finally:
                _stop(process, stop_signal)
    finally:
        _kill_group(process.pid)
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


@contextmanager
def _watched(group: int, stop_signal: signal.Signals) -> Iterator[None]:
    """Have the group stopped when this process does not live to do so."""
    watch = subprocess.Popen(
        ["/bin/sh", "-c", _WATCH, "watch", str(group), stop_signal.name.removeprefix("SIG")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        watch.kill()
        watch.wait()
        if watch.stdin is not None:
            watch.stdin.close()


def _stop(process: subprocess.Popen[str], stop_signal: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(stop_signal)
    try:
        process.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _kill_group(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return
