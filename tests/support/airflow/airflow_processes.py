"""Finds the processes of the Airflow under test, each by its own pid.

Airflow renames its processes and with that wipes the environment they show; ours
differ from any other Airflow on the machine by the session that the keeper leads.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

API_SERVER = "api-server"
_API_SERVER_TITLE = "airflow api_server"
SCHEDULER = "scheduler"
TRIGGERER = "triggerer"


class AirflowProcesses:
    """The processes of one session."""

    def __init__(self, session: int) -> None:
        self._session = session

    def of_task(self, task_instance: dict[str, Any]) -> psutil.Process:
        """The process that runs the task's own code; its parent watches over it."""
        process = psutil.Process(task_instance["pid"])
        title = " ".join(process.cmdline()).strip()
        assert os.getsid(process.pid) == self._session, f"{title} is not ours"
        assert title == f"airflow worker -- {task_instance['id']}"
        return process

    def api_server(self) -> list[psutil.Process]:
        """All processes of the API server, which has a title of its own once it serves."""
        found = [
            process
            for process in in_session(self._session)
            if is_component(process, API_SERVER) or _title(process).startswith(_API_SERVER_TITLE)
        ]
        children = [child for process in found for child in process.children(recursive=True)]
        return list({process.pid: process for process in [*found, *children]}.values())

    def triggerers(self) -> list[psutil.Process]:
        """The triggerers, the oldest first; each has a child that runs the triggers."""
        found = [p for p in in_session(self._session) if is_component(p, TRIGGERER)]
        pids = {process.pid for process in found}
        tops = [process for process in found if process.ppid() not in pids]
        return sorted(tops, key=lambda process: process.create_time())


def kill(processes: Iterable[psutil.Process], timeout: float = 30.0) -> None:
    """Kill -9, and wait until all have ended. Raises TimeoutError."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    left = wait_ended(processes, timeout)
    if left:
        raise TimeoutError(f"still there after kill -9: {left}")


def wait_ended(processes: Iterable[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Wait until all have ended, at most so many seconds; returns those that have not. Some of
    them nobody reaps: they have ended too."""
    deadline = time.monotonic() + timeout
    left = list(processes)
    while True:
        left = [process for process in left if not has_ended(process)]
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.05)


def has_ended(process: psutil.Process) -> bool:
    """Whether a process has ended, also while its parent has not asked for its exit code yet."""
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def in_session(session: int) -> Iterator[psutil.Process]:
    """All processes of a session."""
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == session:
                yield process
        except (ProcessLookupError, PermissionError):
            continue


def _title(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except psutil.Error:
        return ""


def is_component(process: psutil.Process, component: str) -> bool:
    """Whether a process is this part of Airflow, as in `airflow triggerer`."""
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return line[-1:] == [component] and any("airflow" in part for part in line)
