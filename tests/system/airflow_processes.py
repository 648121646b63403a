"""Finds the processes of the Airflow under test, each by its own pid.

Airflow renames its processes and with that wipes the environment they show; what tells ours from
any other Airflow on the machine is the session that the keeper leads.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

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

    def triggerers(self) -> list[psutil.Process]:
        """The triggerers, the oldest first; each has a child that runs the triggers."""
        found = [p for p in in_session(self._session) if is_component(p, TRIGGERER)]
        pids = {process.pid for process in found}
        tops = [process for process in found if process.ppid() not in pids]
        return sorted(tops, key=lambda process: process.create_time())


def kill(processes: Iterable[psutil.Process], timeout: float = 30.0) -> None:
    """Kill -9, and wait until all have ended; some of them nobody reaps. Raises TimeoutError."""
    processes = list(processes)
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    deadline = time.monotonic() + timeout
    while not all(_has_ended(process) for process in processes):
        if time.monotonic() > deadline:
            raise TimeoutError(f"still there after kill -9: {processes}")
        time.sleep(0.05)


def _has_ended(process: psutil.Process) -> bool:
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


def is_component(process: psutil.Process, component: str) -> bool:
    """Whether a process is this part of Airflow, as in `airflow triggerer`."""
    try:
        line = process.cmdline()
    except psutil.Error:
        return False
    return line[-1:] == [component] and any("airflow" in part for part in line)
