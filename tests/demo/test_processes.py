"""No process outlives the demo."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import pytest

from airflow_provider_platform.sandbox.demo import processes
from airflow_provider_platform.sandbox.demo.processes import DemoError, only_one, running

# Starts a child that ignores SIGTERM, says so on the standard output that both have, and waits.
PARENT = """
import subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
child += "; print('on', flush=True); time.sleep(600)"
subprocess.Popen([sys.executable, "-c", child])
time.sleep(600)
"""


def have_ended(output: int, patience: float) -> bool:
    """Whether all processes that could write this output are gone, or go in time."""
    readable, _, _ = select.select([output], [], [], patience)
    return bool(readable) and os.read(output, 100) == b""


def test_end_of_a_demo_ends_processes_and_their_children():
    with running([sys.executable, "-c", PARENT], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "on\n"
        output = os.dup(process.stdout.fileno())
        assert not have_ended(output, 0)

    assert process.returncode is not None
    assert have_ended(output, 60)
    os.close(output)


def test_interruption_ends_all_processes_of_a_demo():
    with (
        pytest.raises(KeyboardInterrupt),
        running([sys.executable, "-c", "import time; time.sleep(600)"]) as process,
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
    with only_one(tmp_path), pytest.raises(DemoError, match="already"), only_one(tmp_path):
        pass
    with only_one(tmp_path):
        pass


KILLED = """
import os, signal, sys
from airflow_provider_platform.sandbox.demo.processes import running
with running([sys.executable, "-c", sys.argv[1]], stdout=int(sys.argv[2])):
    sys.stdin.readline()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.exhaustive
def test_killed_demo_leaves_no_processes():
    reading, writing = os.pipe()
    demo = subprocess.Popen(
        [sys.executable, "-c", KILLED, PARENT, str(writing)],
        stdin=subprocess.PIPE,
        pass_fds=(writing,),
    )
    os.close(writing)
    output = os.fdopen(reading, "rb", buffering=0)
    assert output.readline() == b"on\n"
    assert not have_ended(reading, 0)

    demo.communicate(b"\n", timeout=60)

    assert demo.returncode == -9
    assert have_ended(reading, 60)
    output.close()
