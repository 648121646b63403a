"""SIGTERM to a worker under Airflow's own supervisor: real signals, a real task process and a real
log. Only Airflow's execution API is simulated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from tests.support.releases import needs_forwarding
from tests.support.remote_tasks import wait_for

supervisor = pytest.importorskip("airflow.sdk.execution_time.supervisor")
if not hasattr(supervisor, "supervise_task"):
    pytest.skip("needs the task state store of Airflow 3.3", allow_module_level=True)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox

ROOT = Path(__file__).parents[3]
WAIT = 240.0


class Worker:
    """The supervisor of one try."""

    def __init__(self, process: subprocess.Popen[bytes], folder: Path) -> None:
        self.process = process
        self._folder = folder

    @property
    def task(self) -> psutil.Process:
        return psutil.Process(int((self._folder / "pid").read_text()))

    @property
    def record(self) -> dict[str, Any]:
        store = self._folder / "store"
        return dict(json.loads(store.read_text() or "{}")) if store.exists() else {}

    def end(self) -> str:
        """Wait for its end; return the last state that it reported to Airflow."""
        self.process.wait(WAIT)
        return (self._folder / "states").read_text().split()[-1]

    def failure(self) -> list[dict[str, Any]]:
        """The errors, causes included, that the log's line of the failure shows."""
        lines = map(json.loads, (self._folder / "log").read_text().splitlines())
        (failed,) = [line for line in lines if line["event"] == "Task failed with exception"]
        return list(failed["error_detail"])


@pytest.fixture
def control(platform_sandbox: Sandbox) -> SandboxControl:
    return platform_sandbox.control


@contextmanager
def working(
    control: SandboxControl, folder: Path, *, try_number: int = 1, dag_id: str = "ask"
) -> Iterator[Worker]:
    """A worker on a try of a chat; its state at Airflow is in the folder."""
    conf = {"prompt": "revenue by country", "platform_conn_id": "platform", "deferrable": False}
    max_tries = 0 if dag_id == "ask_once" else 3
    arguments = [str(folder), str(try_number), str(max_tries), dag_id, json.dumps(conf)]
    for name in ("log", "states", "pid"):
        (folder / name).unlink(missing_ok=True)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.support.airflow.supervised_task", *arguments],
        cwd=ROOT,
        env={
            **os.environ,
            "AIRFLOW_HOME": str(folder / "home"),
            "AIRFLOW__CORE__DAGS_FOLDER": str(ROOT / "tests" / "airflow" / "dags"),
            "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
            "AIRFLOW_CONN_PLATFORM": json.dumps(control.connection()),
        },
    )
    try:
        yield Worker(process, folder)
    finally:
        if process.poll() is None:
            for child in psutil.Process(process.pid).children(recursive=True):
                child.kill()
            process.kill()
        process.wait(WAIT)


def under_way(control: SandboxControl, worker: Worker) -> None:
    control.wait_for_breakpoint("mid_stream", WAIT)
    wait_for(lambda: worker.record.get("phase") == "running", WAIT)


@pytest.mark.parametrize(
    "who", [pytest.param("supervisor", marks=needs_forwarding), "task", "both"]
)
def test_sigterm_leaves_the_run_to_the_retry(
    control: SandboxControl, tmp_path: Path, who: str
) -> None:
    (tmp_path / "state").write_text("running")
    control.set_breakpoint("mid_stream")
    with working(control, tmp_path) as worker:
        under_way(control, worker)
        if who != "supervisor":
            worker.task.terminate()
        if who != "task":
            worker.process.terminate()
        assert worker.end() == "up_for_retry"
        (error,) = worker.failure()
    assert error["exc_type"] == "PlatformInterruptedError"
    assert [f["filename"] for f in error["frames"] if "/airflow/" not in f["filename"]] == []
    assert control.state().aborts == []
    control.release()
    with working(control, tmp_path, try_number=2) as worker:
        assert worker.end() == "success"
    assert [run.status for run in control.state().runs] == ["finished"]
    assert len(control.state().messages) == 1


@pytest.mark.parametrize(
    ("state", "dag_id"), [("running", "ask_once"), ("failed", "ask"), ("restarting", "ask")]
)
def test_sigterm_stops_the_run_in_the_last_try_and_when_the_task_was_ended(
    control: SandboxControl, tmp_path: Path, state: str, dag_id: str
) -> None:
    (tmp_path / "state").write_text(state)
    control.set_breakpoint("mid_stream")
    with working(control, tmp_path, dag_id=dag_id) as worker:
        under_way(control, worker)
        worker.task.terminate()
        control.wait_until(lambda found: [run.status for run in found.runs] == ["aborted"], WAIT)
        worker.end()
    assert len(control.state().aborts) == 1


def test_run_is_left_to_the_retry_if_airflow_does_not_report_the_state(
    control: SandboxControl, tmp_path: Path
) -> None:
    control.set_breakpoint("mid_stream")
    with working(control, tmp_path) as worker:
        under_way(control, worker)
        worker.task.terminate()
        assert worker.end() == "up_for_retry"
    assert control.state().aborts == []


@pytest.mark.parametrize(("state", "aborts"), [("running", 0), ("deferred", 0), ("failed", 1)])
def test_frozen_worker_that_wakes_after_its_try_stops_the_run_only_if_the_task_was_ended(
    control: SandboxControl, tmp_path: Path, state: str, aborts: int
) -> None:
    """Airflow has missed it: it started the retry, unless somebody ended the task meanwhile."""
    (tmp_path / "state").write_text("running")
    control.set_breakpoint("mid_stream")
    with working(control, tmp_path) as worker:
        under_way(control, worker)
        processes = [psutil.Process(worker.process.pid), worker.task]
        for process in processes:
            process.suspend()
        (tmp_path / "state").write_text(state)
        (tmp_path / "gone").touch()
        for process in processes:
            process.resume()
        worker.process.wait(WAIT)
        log = (tmp_path / "log").read_text()
    assert "The task was asked to stop. Its state in Airflow is" in log, log
    assert len(control.state().aborts) == aborts
    (tmp_path / "gone").unlink()
    control.release()
    if not aborts:
        with working(control, tmp_path, try_number=2) as retry:
            assert retry.end() == "success"
        assert len(control.state().messages) == 1
