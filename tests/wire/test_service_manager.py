"""The service manager of the cluster tests leaves no process, however the tests end."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.support.airflow.airflow_processes import in_session
from tests.support.airflow.airflow_server import ROOT
from tests.support.cluster.service_manager import Service, start_command

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_SECONDS = 30.0
STUBBORN = "trap '' TERM INT; setsid sleep 300 & echo $! > '{}'; sleep 300"
"""Ignores what asks it to end, and has a child in a session of its own."""

STARTER = """
import subprocess, sys, time
manager = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE, start_new_session=True)
manager.stdin.write(sys.stdin.buffer.readline())
manager.stdin.flush()
print(manager.pid, flush=True)
time.sleep(300)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of the manager's own, in one with a space in its name."""
    folder = tmp_path / "a cluster"
    folder.mkdir()
    return folder


@pytest.fixture
def command(folder: Path) -> list[str]:
    return [sys.executable, "-m", "tests.support.cluster.service_manager", str(folder)]


@pytest.fixture
def stubborn(folder: Path, tmp_path: Path) -> Service:
    return Service("stubborn", ["sh", "-c", STUBBORN.format(tmp_path / "child.pid")])


def wait(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + _SECONDS
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def wait_child(tmp_path: Path) -> psutil.Process:
    file = tmp_path / "child.pid"
    wait(lambda: file.exists() and file.read_text().strip(), "the service has not started")
    return psutil.Process(int(file.read_text()))


def test_death_of_the_starter_ends_all_services(
    command: list[str], folder: Path, tmp_path: Path, stubborn: Service
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", STARTER, *command],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as starter:
        assert starter.stdin is not None
        assert starter.stdout is not None
        starter.stdin.write(json.dumps(start_command(stubborn)).encode() + b"\n")
        starter.stdin.flush()
        session = int(starter.stdout.readline())
        child = wait_child(tmp_path)
        starter.send_signal(signal.SIGKILL)

    wait(lambda: not child.is_running(), "the child of the service is still there")
    wait(lambda: not list(in_session(session)), "some of the session are still there")
    assert not folder.exists()
