"""Runs `airflow standalone` until its own input ends; replaces a triggerer that is gone, and an
API server on request.

`python -m tests.support.airflow.airflow_keeper`, started in a session of its own with a pipe as
its input. The pipe closes when whoever started it is gone, however that came about, so
Airflow never outlives the tests: the keeper stops it in order, and kills what is left of the
session.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import psutil

from tests.support.airflow.airflow_processes import (
    API_SERVER,
    SCHEDULER,
    TRIGGERER,
    in_session,
    is_component,
)

API_SERVER_WANTED = "api-server.wanted"
"""A file in Airflow's home: whoever has ended the API server makes it, to have another one."""

_LOOK_SECONDS = 1.0
_STOP_SECONDS = 20


def main() -> int:
    """Keep until the input ends; the exit code is 1 when Airflow ended before that."""
    # Handlers, not SIG_IGN: a child would inherit that, and standalone stops on SIGINT only.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os.close(0))
    standalone = _start("standalone")
    started: list[subprocess.Popen[bytes]] = []
    wanted = Path(os.environ["AIRFLOW_HOME"]) / API_SERVER_WANTED
    seen: set[str] = set()
    try:
        while not _input_ended(_LOOK_SECONDS):
            there = _working_components()
            if standalone.poll() is not None or SCHEDULER in seen - there:
                _say("the scheduler has ended; so do all")
                return 1
            for process in started:
                process.poll()
            if TRIGGERER in seen - there:
                _say("no triggerer works; starting one")
                started.append(_start(TRIGGERER))
                seen.remove(TRIGGERER)
            if wanted.exists():
                _say("an API server is wanted; starting one")
                started.append(_start(API_SERVER))
                wanted.unlink()
            seen |= there
        return 0
    finally:
        _stop(standalone)


def _say(text: str) -> None:
    sys.stdout.write(f"keeper     | {text}\n")
    sys.stdout.flush()


def _start(component: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["airflow", component], stdin=subprocess.DEVNULL)


def _input_ended(seconds: float) -> bool:
    try:
        readable, _, _ = select.select([0], [], [], seconds)
        return bool(readable) and not os.read(0, 1024)
    except (OSError, ValueError):
        return True


def _working_components() -> set[str]:
    """Those of the watched components that there are. A stopped triggerer (SIGSTOP) counts as
    gone: another one takes over, as in a cluster."""
    found = set()
    for process in in_session(os.getpid()):
        with suppress(psutil.Error):
            if process.status() not in (psutil.STATUS_STOPPED, psutil.STATUS_ZOMBIE):
                found |= {name for name in (SCHEDULER, TRIGGERER) if is_component(process, name)}
    return found


def _stop(standalone: subprocess.Popen[bytes]) -> None:
    # SIGTERM would leave its parts running.
    standalone.send_signal(signal.SIGINT)
    try:
        standalone.wait(_STOP_SECONDS)
    except subprocess.TimeoutExpired:
        _say("standalone does not stop; killing it")
    for process in in_session(os.getpid()):
        if process.pid != os.getpid():
            process.kill()


if __name__ == "__main__":
    sys.exit(main())
