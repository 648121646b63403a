"""No process outlives the demo."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from airflow_provider_platform.sandbox.demo import processes
from airflow_provider_platform.sandbox.demo.processes import DemoError, only_one, running

# Starts a child that ignores SIGTERM, says its process id, and waits.
PARENT = """
import signal, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
child += "; print('on', flush=True); time.sleep(600)"
process = subprocess.Popen([sys.executable, "-c", child], stdout=subprocess.PIPE)
process.stdout.readline()
print(process.pid, flush=True)
time.sleep(600)
"""


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that is only waiting to be reaped does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    state = subprocess.run(
        ["ps", "-o", "state=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return state.stdout.strip() not in {"", "Z"}


def wait_for_end(pid: int) -> None:
    deadline = time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < deadline, f"process {pid} is still running"
        time.sleep(0.02)


def test_a_process_and_its_children_are_gone_at_the_end():
    with running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert is_alive(child)

    assert process.returncode is not None
    wait_for_end(child)


def test_they_are_gone_after_an_interruption_too():
    with (
        pytest.raises(KeyboardInterrupt),
        running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process,
    ):
        raise KeyboardInterrupt

    assert process.returncode is not None


def test_a_sandbox_that_cannot_start_says_why(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    (tmp_path / "uvicorn.py").write_text("raise ImportError('no such server')\n")

    with (
        pytest.raises(DemoError, match=r"(?s)did not start.*no such server"),
        processes.running_sandbox(tmp_path),
    ):
        pass


def test_two_demos_do_not_run_in_one_folder(tmp_path):
    with only_one(tmp_path), pytest.raises(DemoError, match="Another demo"), only_one(tmp_path):
        pass
    with only_one(tmp_path):
        pass
