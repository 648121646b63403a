"""A worker that is killed while writing leaves no file. The retry leaves one complete file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

pq = pytest.importorskip("pyarrow.parquet")

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox

WORKER = """
import json, os, signal, sys
from airflow_provider_platform.operators.query import PlatformQueryOperator
path, options, holds = sys.argv[1:]
if holds == "holds":  # with all rows written, and the file not yet in its place
    os.fsync = lambda descriptor: signal.pause()
PlatformQueryOperator(
    task_id="query",
    sql="SELECT * FROM events LIMIT 30000",
    output_path=path,
    output_options=json.loads(options),
    deferrable=False,
).execute({})
"""


def worker(path: Path, options: dict[str, Any], *, holds: bool = False) -> subprocess.Popen[bytes]:
    """A process that runs the task, as a worker's would. `holds`: it stops before it is done."""
    arguments = [str(path), json.dumps(options), "holds" if holds else "ends"]
    return subprocess.Popen([sys.executable, "-c", WORKER, *arguments], env=os.environ.copy())


def files_in(folder: Path) -> list[Path]:
    return [path.relative_to(folder) for path in sorted(folder.rglob("*")) if path.is_file()]


def kill_while_it_writes(path: Path, options: dict[str, Any], folder: Path) -> None:
    killed = worker(path, options, holds=True)
    while not any(one.name.endswith(".part") for one in files_in(folder)):
        assert killed.poll() is None
        time.sleep(0.05)
    killed.send_signal(signal.SIGKILL)
    killed.wait()


@pytest.mark.exhaustive
def test_killed_worker_and_its_retry_leave_one_complete_file(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "events.parquet"
    platform_sandbox.control.set(data_chunk_rows=1000)
    kill_while_it_writes(path, {}, tmp_path)
    assert [one.suffix for one in tmp_path.iterdir()] == [".part"]
    assert worker(path, {}).wait() == 0
    assert [one.name for one in tmp_path.iterdir()] == [path.name]
    assert pq.read_table(path)["id"].to_pylist() == list(range(1, 30_001))
