"""A cluster for the length of a `with`: PostgreSQL, Redis, a scheduler, a DAG processor, an API
server, two triggerers and two Celery workers, each a process of its own."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import psutil

from tests.support.airflow.airflow_processes import has_ended, in_session, kill, wait_ended
from tests.support.airflow.airflow_server import (
    COMMON_SETTINGS,
    ROOT,
    RunningAirflow,
    environment,
    free_port,
    wait_until_healthy,
)
from tests.support.airflow.task_run import PATIENCE
from tests.support.cluster.servers import Postgres, Redis
from tests.support.cluster.service_manager import STATE_FILE, Service, start_command

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DAGS = Path(__file__).parents[2] / "cluster" / "dags"
WORKERS = ("worker-1", "worker-2")
TRIGGERERS = ("triggerer-1", "triggerer-2")
API_SERVER = "api-server"
VISIBILITY_TIMEOUT = 30
"""Seconds after which Redis gives what a worker has not acknowledged to another one."""
_HEALTHY_SECONDS = 600
_END_SECONDS = 60

SETTINGS = {
    **COMMON_SETTINGS,
    "AIRFLOW__CELERY__SYNC_PARALLELISM": "1",
    "AIRFLOW__CELERY__WORKER_CONCURRENCY": "4",
    "AIRFLOW__CELERY__WORKER_PREFETCH_MULTIPLIER": "1",
    "AIRFLOW__CELERY_BROKER_TRANSPORT_OPTIONS__VISIBILITY_TIMEOUT": str(VISIBILITY_TIMEOUT),
    "AIRFLOW__CORE__EXECUTOR": "CeleryExecutor",
    "AIRFLOW__CORE__PARALLELISM": "32",
    # A task that is queued and never begun is queued again, or fails, after so many seconds.
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT": "60",
    "AIRFLOW__SCHEDULER__TASK_QUEUED_TIMEOUT_CHECK_INTERVAL": "10",
    # Three heartbeats that do not get through, within about ten seconds, end a task's try.
    "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "3",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MAX": "2",
    "AIRFLOW__WORKERS__EXECUTION_API_RETRY_WAIT_MIN": "0.5",
    "AIRFLOW__WORKERS__MAX_FAILED_HEARTBEATS": "3",
}


class Cluster:
    """What there is of a running cluster, and everything that is done to it."""

    def __init__(
        self,
        airflow: RunningAirflow,
        postgres: Postgres,
        redis: Redis,
        manager: subprocess.Popen[bytes],
    ) -> None:
        self.airflow = airflow
        self.postgres = postgres
        self.redis = redis
        self._manager = manager
        self._log_starts: dict[str, int] = {}
        self._services = {
            postgres.service.name: postgres.service,
            redis.service.name: redis.service,
        }

    def add(self, service: Service) -> None:
        """Start a service that is not there yet."""
        self._services[service.name] = service
        self.start(service.name)

    def start(self, name: str) -> None:
        """Start a service, again if it has been stopped; wait until it has a process."""
        before = self.starts(name)
        self._log_starts[name] = len(self.log(name))
        self._command(start_command(self._services[name]))
        self._until(lambda: self.starts(name) > before, f"start {name}")

    def stop(self, name: str, signal_number: int = signal.SIGKILL) -> None:
        """Send the main process a signal and do not start the service again; wait for its end."""
        self._command({"stop": name, "signal": signal_number})
        self._until(lambda: self._state()[name]["exit"] is not None, f"end of {name}")

    def kill(self, name: str) -> None:
        """Kill -9 all processes of a service at once, as the end of its machine does. Nobody starts
        it again."""
        processes = self.tree(name)
        # Frozen first: what is killed last would see the others end.
        for process in processes:
            with suppress(psutil.NoSuchProcess):  # it ended by itself
                process.suspend()
        self._command({"stop": name, "signal": signal.SIGKILL})
        kill(processes)

    @contextmanager
    def without(self, name: str, signal_number: int = signal.SIGKILL) -> Iterator[None]:
        """A service is stopped for the length of a `with`."""
        self.stop(name, signal_number)
        try:
            yield
        finally:
            self.start(name)

    def process(self, name: str) -> psutil.Process:
        """The main process of a service."""
        return psutil.Process(self._state()[name]["pid"])

    def tree(self, name: str) -> list[psutil.Process]:
        """All processes of a service, none when it has ended."""
        try:
            process = self.process(name)
            return [process, *process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def worker_of(self, process: psutil.Process) -> str:
        """The worker that a process belongs to."""
        above = {parent.pid for parent in process.parents()}
        (worker,) = (name for name in WORKERS if self._state()[name]["pid"] in above)
        return worker

    def triggerers_with_connections_to(self, url: str) -> list[str]:
        """The triggerers that follow something at this address."""
        port = urlsplit(url).port
        return [name for name in TRIGGERERS if port in _peers(self.tree(name))]

    def exit_code(self, name: str) -> int | None:
        """How a service has ended, None while it runs."""
        code: int | None = self._state()[name]["exit"]
        return code

    def wait_started(self, name: str, starts: int) -> None:
        """Wait until the service manager has started a service so often."""
        self._until(lambda: self.starts(name) >= starts, f"start of {name}")

    def starts(self, name: str) -> int:
        """How often a service has been started, 0 for one that was not."""
        count: int = self._state().get(name, {"starts": 0})["starts"]
        return count

    def wait_healthy(self, timeout: float = _HEALTHY_SECONDS) -> None:
        wait_until_healthy(self.airflow.url, self._why_not, timeout)

    def wait_workers(self) -> None:
        """Wait until both workers take tasks, which no health check of Airflow says."""
        for name in WORKERS:
            self._until(lambda name=name: self._is_ready(name), f"ready {name}", _HEALTHY_SECONDS)

    def wait_api(self) -> None:
        """Wait until the API server answers, whatever it says of the others."""

        def answers() -> bool:
            try:
                url = f"{self.airflow.url}/api/v2/version"
                return httpx.get(url, timeout=5, trust_env=False).is_success
            except httpx.HTTPError:
                return False

        self._until(answers, "an answer of the API server")

    def log(self, name: str) -> str:
        """What a service has written, nothing before its first start."""
        try:
            return (self.airflow.home / f"{name}.log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def mend(self) -> None:
        """Start again what a test has ended, so that the next one finds all there."""
        for name, service in self._state().items():
            if name == "migrate" or service["comes_back"]:
                continue
            if service["exit"] is None and not self._lives(name):
                # The service ended by itself, and the manager has yet to notice.
                self._until(lambda name=name: self.exit_code(name) is not None, f"end of {name}")
            if self.exit_code(name) is not None:
                self.start(name)
        self.wait_healthy()
        self.wait_workers()

    def _lives(self, name: str) -> bool:
        try:
            return not has_ended(self.process(name))
        except psutil.NoSuchProcess:
            return False

    def _is_ready(self, worker: str) -> bool:
        """Whether a worker has written, since its last start, that it takes tasks."""
        return f"celery@{worker} ready." in self.log(worker)[self._log_starts[worker] :]

    def _why_not(self) -> tuple[bool, str]:
        state = self._state()
        logs = [f"--- {name}: {state.get(name)}\n{self.log(name)[-1500:]}" for name in state]
        return self._manager.poll() is not None, "\n".join(logs)

    def _state(self) -> dict[str, dict[str, Any]]:
        try:
            state: dict[str, dict[str, Any]] = json.loads(
                (self.airflow.home / STATE_FILE).read_text()
            )
        except FileNotFoundError:
            return {}
        return state

    def _command(self, command: dict[str, Any]) -> None:
        assert self._manager.stdin is not None
        self._manager.stdin.write(json.dumps(command).encode() + b"\n")
        self._manager.stdin.flush()

    def _until(self, condition: Callable[[], bool], what: str, timeout: float = PATIENCE) -> None:
        deadline = time.monotonic() + timeout
        while not condition():
            if time.monotonic() > deadline or self._manager.poll() is not None:
                raise AssertionError(f"no {what}:\n{self._why_not()[1]}")
            time.sleep(0.1)


def _peers(processes: list[psutil.Process]) -> set[int]:
    """The ports that these processes are connected to."""
    peers = (one.raddr for process in processes for one in process.net_connections("tcp"))
    return {address.port for address in peers if address}


@contextmanager
def running_cluster() -> Iterator[Cluster]:
    """Start a cluster; end it and remove what it wrote at the end.

    Raises RuntimeError with the ends of the logs when it does not start, `MissingServers` when it
    cannot.
    """
    home = Path(tempfile.mkdtemp(prefix="airflow-cluster-"))
    data = Path(tempfile.mkdtemp(prefix="airflow-cluster-data-"))
    try:
        postgres, redis = Postgres.prepare(data), Redis.prepare(home)
        shutil.copytree(DAGS, home / "dags")
        (home / "tmp").mkdir()
        port = free_port()
        variables = environment(home, port) | SETTINGS | _addresses(postgres, redis)
        variables["TMPDIR"] = str(home / "tmp")
        with (home / "manager.log").open("w") as log:
            manager = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "tests.support.cluster.service_manager",
                    str(home),
                    str(data),
                ],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            airflow = RunningAirflow(f"http://127.0.0.1:{port}", home, manager.pid)
            cluster = Cluster(airflow, postgres, redis, manager)
            _start_all(cluster)
            yield cluster
        finally:
            _end(manager)
    finally:
        if "KEEP_AIRFLOW_HOME" not in os.environ:
            shutil.rmtree(home, ignore_errors=True)
            shutil.rmtree(data, ignore_errors=True)


def _addresses(postgres: Postgres, redis: Redis) -> dict[str, str]:
    secret = secrets.token_urlsafe(32)
    return {
        "AIRFLOW__API__SECRET_KEY": secret,
        "AIRFLOW__API_AUTH__JWT_SECRET": secret,
        "AIRFLOW__CELERY__BROKER_URL": redis.url,
        "AIRFLOW__CELERY__RESULT_BACKEND": f"db+postgresql+psycopg2://{postgres.url}",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{postgres.url}",
    }


def _start_all(cluster: Cluster) -> None:
    for service, server in (
        (cluster.postgres.service, cluster.postgres),
        (cluster.redis.service, cluster.redis),
    ):
        cluster.add(service)
        server.wait()
    cluster.add(Service("migrate", ["airflow", "db", "migrate"]))
    while cluster.exit_code("migrate") is None:
        time.sleep(0.2)
    if cluster.exit_code("migrate") != 0:
        raise RuntimeError(f"airflow db migrate failed:\n{cluster.log('migrate')[-3000:]}")
    cluster.add(Service(API_SERVER, ["airflow", "api-server"]))
    cluster.add(Service("scheduler", ["airflow", "scheduler"], restart=True))
    cluster.add(Service("dag-processor", ["airflow", "dag-processor"], restart=True))
    for name in TRIGGERERS:
        command = ["airflow", "triggerer", "--skip-serve-logs"]
        cluster.add(Service(name, command, restart=True))
    for name in WORKERS:
        command = ["airflow", "celery", "worker", "--skip-serve-logs", "--celery-hostname", name]
        pid_file = str(cluster.airflow.home / f"{name}.pid")
        cluster.add(Service(name, [*command, "--pid", pid_file]))
    cluster.wait_healthy()
    cluster.wait_workers()


def _end(manager: subprocess.Popen[bytes]) -> None:
    """Close the manager's input, which is its order to end everything. Raises RuntimeError when
    something is left."""
    assert manager.stdin is not None
    started = _tree(manager.pid)
    manager.stdin.close()
    try:
        manager.wait(_END_SECONDS)
    except BaseException:
        os.killpg(manager.pid, signal.SIGKILL)
        manager.wait()
        raise
    left = wait_ended([*started, *in_session(manager.pid)], timeout=10)
    if left:
        raise RuntimeError(f"the cluster has ended, and these are left: {left}")


def _tree(pid: int) -> list[psutil.Process]:
    try:
        return psutil.Process(pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
