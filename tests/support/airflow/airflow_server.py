"""A whole Airflow (scheduler, API server, DAG processor, triggerer) for the length of a `with`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from airflow_provider_platform.sandbox.demo.dag_runs import isolated
from tests.support.airflow.airflow_keeper import API_SERVER_WANTED
from tests.support.airflow.airflow_processes import AirflowProcesses, kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

ROOT = Path(__file__).parents[3]
DAGS = ROOT / "tests" / "airflow" / "dags"
CONFIG = ROOT / "tests" / "airflow" / "config"
_HEALTHY_SECONDS = 400
_STOP_SECONDS = 120

COMMON_SETTINGS = {
    "AIRFLOW__API__HOST": "127.0.0.1",
    "AIRFLOW__API__WORKERS": "1",
    # A file that takes longer to import is read again only after the interval below.
    "AIRFLOW__CORE__DAGBAG_IMPORT_TIMEOUT": "240",
    # On 3.4 a supervisor that misses the end of the process it stops waits for so many seconds
    # without a heartbeat. The scheduler must not miss this task meanwhile: 3.4.0b2's ends of it.
    "AIRFLOW__CORE__KILLED_TASK_CLEANUP_TIME": "5",
    "AIRFLOW__CORE__MAX_ACTIVE_RUNS_PER_DAG": "100",
    "AIRFLOW__CORE__MAX_ACTIVE_TASKS_PER_DAG": "100",
    "AIRFLOW__CORE__PARALLELISM": "8",
    "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
    "AIRFLOW__DAG_PROCESSOR__DAG_FILE_PROCESSOR_TIMEOUT": "300",
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    "AIRFLOW__DAG_PROCESSOR__REFRESH_INTERVAL": "3600",
    "AIRFLOW__SCHEDULER__SCHEDULER_HEARTBEAT_SEC": "1",
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.2",
    # A worker that is gone with its supervisor is missed after so many seconds.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "20",
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT_DETECTION_INTERVAL": "2",
    "AIRFLOW__SCHEDULER__TRIGGER_TIMEOUT_CHECK_INTERVAL": "2",
    "AIRFLOW__TRIGGERER__JOB_HEARTBEAT_SEC": "1",
    "AIRFLOW__TRIGGERER__TRIGGERER_HEALTH_CHECK_THRESHOLD": "15",
    "AIRFLOW__WORKERS__MIN_HEARTBEAT_INTERVAL": "1",
}
"""What every Airflow under test is set to: small, and quick to miss who is gone."""

SETTINGS = {
    **COMMON_SETTINGS,
    "AIRFLOW__CORE__EXECUTOR": "LocalExecutor",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": "sqlite_patience.CONNECT_ARGS",
    "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": "sqlite_patience.CONNECT_ARGS",
    # The heartbeats of all workers wait for the one write lock of SQLite.
    "AIRFLOW__SCHEDULER__TASK_INSTANCE_HEARTBEAT_TIMEOUT": "40",
}


@dataclass(frozen=True)
class RunningAirflow:
    """How to reach a running Airflow: its API, its home, and the session of its processes."""

    url: str
    home: Path
    session: int

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "home": str(self.home)}

    @contextmanager
    def without_api_server(self) -> Iterator[None]:
        """End the API server for the length of a `with`; at its end another one answers."""
        kill(AirflowProcesses(self.session).api_server())
        try:
            yield
        finally:
            (self.home / API_SERVER_WANTED).touch()
            deadline = time.monotonic() + _HEALTHY_SECONDS
            with httpx.Client(trust_env=False) as client:
                while not _answers(client, self.url):
                    assert time.monotonic() < deadline, "no API server answers again"
                    time.sleep(0.3)

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> RunningAirflow:
        return cls(**{**document, "home": Path(document["home"])})


@contextmanager
def running_airflow() -> Iterator[RunningAirflow]:
    """Start Airflow with a home of its own; stop it and remove the home at the end.

    Raises RuntimeError with the end of its log when it does not start.
    """
    home = Path(tempfile.mkdtemp(prefix="airflow-system-"))
    try:
        shutil.copytree(DAGS, home / "dags")
        shutil.copytree(ROOT / "example_dags" / "with_others", home / "dags" / "with_others")
        shutil.copytree(CONFIG, home / "config")
        port = free_port()
        log_file = home / "standalone.log"
        with log_file.open("w") as log:
            keeper = subprocess.Popen(
                [sys.executable, "-m", "tests.support.airflow.airflow_keeper"],
                cwd=ROOT,
                env=_environment(home, port),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                airflow = RunningAirflow(f"http://127.0.0.1:{port}", home, keeper.pid)
                wait_until_healthy(airflow.url, lambda: _why_not(keeper, log_file))
                yield airflow
            finally:
                _stop(keeper)
    finally:
        if "KEEP_AIRFLOW_HOME" not in os.environ:
            shutil.rmtree(home, ignore_errors=True)


def _why_not(keeper: subprocess.Popen[bytes], log_file: Path) -> tuple[bool, str]:
    return keeper.poll() is not None, log_file.read_text()[-3000:]


def _environment(home: Path, port: int) -> Mapping[str, str]:
    return environment(home, port) | SETTINGS


def environment(home: Path, port: int) -> dict[str, str]:
    """The variables of an Airflow whose API server listens on this port, without its settings."""
    # Airflow starts its parts as plain `airflow`.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    return isolated(os.environ, home, home / "dags") | {
        "PATH": path,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__OPENLINEAGE__SELECTIVE_ENABLE": "True",
        "AIRFLOW__OPENLINEAGE__EXECUTION_TIMEOUT": "60",  # events are lost after it
        "AIRFLOW__OPENLINEAGE__TRANSPORT": json.dumps(
            {"type": "file", "log_file_path": str(home / "lineage.jsonl"), "append": True}
        ),
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
    }


def wait_until_healthy(
    url: str, why_not: Callable[[], tuple[bool, str]], timeout: float = _HEALTHY_SECONDS
) -> None:
    """Wait until all parts of an Airflow say that they work. `why_not` says whether that is
    hopeless, and what the log says. Raises RuntimeError with it."""
    deadline = time.monotonic() + timeout
    parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    with httpx.Client(trust_env=False) as client:
        while True:
            try:
                health = client.get(f"{url}/api/v2/monitor/health", timeout=5).json()
                if all(health[part]["status"] == "healthy" for part in parts):
                    return
            except (httpx.HTTPError, ValueError, KeyError, TypeError):
                pass
            hopeless, log = why_not()
            if hopeless or time.monotonic() > deadline:
                raise RuntimeError(f"Airflow is not healthy:\n{log}")
            time.sleep(0.3)


def _answers(client: httpx.Client, url: str) -> bool:
    try:
        return client.get(f"{url}/api/v2/monitor/health", timeout=5).status_code == 200
    except httpx.HTTPError:
        return False


def _stop(keeper: subprocess.Popen[bytes]) -> None:
    """Close the keeper's input, which is its order to stop; kill its session if it does not."""
    assert keeper.stdin is not None
    keeper.stdin.close()
    try:
        keeper.wait(_STOP_SECONDS)
    except BaseException:
        os.killpg(keeper.pid, 9)
        keeper.wait()
        raise


def free_port() -> int:
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
