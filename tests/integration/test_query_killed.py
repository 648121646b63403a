"""A worker that is killed while it writes leaves no file; the retry leaves one, which is whole."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pq = pytest.importorskip("pyarrow.parquet")

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox

WORKER = """
import sys
from airflow_provider_platform.operators.query import PlatformQueryOperator
PlatformQueryOperator(
    task_id="query",
    sql="SELECT * FROM events LIMIT 30000",
    output_path=sys.argv[1],
    deferrable=False,
).execute({})
"""


def worker(path: Path) -> subprocess.Popen[bytes]:
    """A process that runs the task, as a worker's would."""
    command = [sys.executable, "-c", WORKER, str(path)]
    return subprocess.Popen(command, env=os.environ.copy())


def test_a_killed_worker_and_its_retry_leave_one_whole_file(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "events.parquet"
    platform_sandbox.control.set(data_chunk_rows=1000)
    platform_sandbox.control.fault("silence", api="data", after=20)
    killed = worker(path)
    platform_sandbox.control.wait_until(
        lambda state: any("silence" in one.faults for one in state.requests), timeout=60
    )
    while not list(tmp_path.iterdir()):
        assert killed.poll() is None
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert [one.suffix for one in tmp_path.iterdir()] == [".part"]
    assert worker(path).wait() == 0
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert pq.read_table(path)["id"].to_pylist() == list(range(1, 30_001))
