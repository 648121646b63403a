"""`make demo`, then `make ui`, in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from airflow_provider_platform.sandbox.demo.airflow_ui import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEMO = [sys.executable, "-u", "-m", "airflow_provider_platform.sandbox.demo"]
DAG_ID = "nightly_pipeline"
WAIT_SECONDS = 120.0
RUN_SECONDS = 900.0
QUICK_SETTINGS = {
    # The files do not change. Airflow would read all of them again every 30 seconds.
    "AIRFLOW__DAG_PROCESSOR__MIN_FILE_PROCESS_INTERVAL": "3600",
    # The demo has just stored the DAGs. Airflow would keep them so for 30 seconds, without the
    # policy below, and then not read them again.
    "AIRFLOW__CORE__MIN_SERIALIZED_DAG_UPDATE_INTERVAL": "0",
    # When a task has finished, the next one starts after at most so many seconds, not after one.
    "AIRFLOW__SCHEDULER__SCHEDULER_IDLE_SLEEP_TIME": "0.3",
}
"""Settings of the UI's Airflow, which drops Airflow's variables of its caller."""
LOCAL_SETTINGS = f"""
import os
from datetime import timedelta

os.environ |= {QUICK_SETTINGS}
__all__ += ("task_policy",)


def task_policy(task):
    # On a busy machine, Airflow may count the end of a deferral as a failed try.
    if task.retry_delay > timedelta(seconds=10):
        task.retry_delay = timedelta(seconds=3)
"""
"""Python code that each process of the UI's Airflow runs when it starts."""


@dataclass(frozen=True)
class DemoUi:
    """Airflow's UI over the demo, and the sandbox behind it."""

    airflow: str
    sandbox: str
    printed: str
    """What the demo has printed; its folder is called as it is in a clone."""

    def get(self, path: str) -> Any:
        """What Airflow's REST API answers."""
        return self._answer(urllib.request.Request(f"{self.airflow}/api/v2/{path}"))

    def _answer(self, request: urllib.request.Request) -> Any:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=30) as response:
            return json.load(response)

    def start_run(self, dag_id: str = DAG_ID, /, **params: Any) -> str:
        """Start a DAG, the pipeline by default, as the button does; returns the run's id."""
        request = urllib.request.Request(
            f"{self.airflow}/api/v2/dags/{dag_id}/dagRuns",
            data=json.dumps({"logical_date": None, "conf": params}).encode(),
            headers={"Content-Type": "application/json"},
        )
        return str(self._answer(request)["dag_run_id"])

    def wait_for_task(self, run_id: str, task_id: str, *states: str) -> None:
        """Wait until a task of the run is in one of the states."""
        deadline = time.monotonic() + WAIT_SECONDS
        path = f"dags/{DAG_ID}/dagRuns/{quote(run_id)}/taskInstances/{task_id}"
        while (task := self.get(path))["state"] not in states:
            assert time.monotonic() < deadline, task
            time.sleep(0.5)

    def runs(self, dag_id: str) -> list[str]:
        """The ids of a DAG's runs."""
        found = self.get(f"dags/{dag_id}/dagRuns?limit=100")["dag_runs"]
        return [str(run["dag_run_id"]) for run in found]

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"dags/{dag_id}/dagRuns/{quote(run_id)}")
        return found

    def tasks(self, dag_id: str, run_id: str) -> list[dict[str, Any]]:
        """The task instances of a run."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances?limit=100"
        found: list[dict[str, Any]] = self.get(path)["task_instances"]
        return found

    def wait_for_new_run(self, dag_id: str, before: set[str]) -> str:
        """Wait for a run that was not there before; returns its id."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not (new := set(self.runs(dag_id)) - before):
            assert time.monotonic() < deadline, f"no run of {dag_id} was started"
            time.sleep(0.2)
        return new.pop()

    def wait_for_run(self, dag_id: str, run_id: str) -> str:
        """Wait until a run has ended; returns its state."""
        deadline = time.monotonic() + RUN_SECONDS
        while (state := str(self.run(dag_id, run_id)["state"])) not in ("success", "failed"):
            assert time.monotonic() < deadline, self.failures(dag_id, run_id)
            time.sleep(0.5)
        return state

    def failures(self, dag_id: str, run_id: str) -> dict[str, str]:
        """The tasks of a run that have not succeeded, with their states and what went wrong by
        their logs."""
        problems = {}
        for task in self.tasks(dag_id, run_id):
            if task["state"] != "success":
                path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task['task_id']}"
                query = f"{max(task['try_number'], 1)}?map_index={task['map_index']}"
                try:
                    lines = self.get(f"{path}/logs/{query}")["content"]
                except OSError:
                    lines = []
                wrong = [str(line) for line in lines if line.get("level") in ("error", "warning")]
                problems[task["task_id"]] = f"{task['state']}: {' '.join(wrong)[:2000]}"
        return problems

    def links(self, dag_id: str, run_id: str, task_id: str) -> list[str]:
        """The addresses of a task's links, those that are known."""
        path = f"dags/{dag_id}/dagRuns/{quote(run_id)}/taskInstances/{task_id}/links"
        found = self.get(path)["extra_links"]
        return [str(address) for address in found.values() if address]

    @property
    def demo_run_id(self) -> str:
        """The demo's run, which is the first. This UI's sandbox does not know it."""
        found = self.get(f"dags/{DAG_ID}/dagRuns?order_by=id")["dag_runs"]
        return str(found[0]["dag_run_id"])

    @cached_property
    def run_id(self) -> str:
        """A run of the demo's DAG in this UI that has succeeded."""
        run_id = self._run_id
        assert self.wait_for_run(DAG_ID, run_id) == "success", self.failures(DAG_ID, run_id)
        return run_id

    @cached_property
    def _run_id(self) -> str:
        return self.start_run()

    @cached_property
    def failing_run_id(self) -> str:
        """A run of the demo's DAG whose task `ask_agent` fails at each try."""
        return self.start_run(report_id=101, question="sql: SELECT missing FROM orders")

    def start_runs_to_look_at(self) -> None:
        """Start both, one after the other: while a branch is open, it answers every request."""
        self.wait_for_run(DAG_ID, self._run_id)
        assert self.failing_run_id

    def task_page(
        self, task_id: str, tab: str = "", run_id: str | None = None, dag_id: str = DAG_ID
    ) -> str:
        """The page of a task of a run, the demo's by default."""
        run = quote(run_id or self.run_id)
        return f"{self.airflow}/dags/{dag_id}/runs/{run}/tasks/{task_id}{tab}"


@contextmanager
def demo_and_ui(folder: Path) -> Iterator[DemoUi]:
    """Run the demo, then serve the UI over what it left."""
    env = {**os.environ, "PLATFORM_DEMO_FOLDER": str(folder), "COLUMNS": "110"}
    demo = subprocess.run(DEMO, env=env, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    write_settings(next(folder.glob("airflow-*")))
    command = [*DEMO[:-1], f"{DEMO[-1]}.airflow_ui"]
    stop = signal.SIGINT
    with running(command, env=env, stdout=subprocess.PIPE, stop_signal=stop) as process:
        assert process.stdout is not None
        said = ""
        while "Ctrl-C stops" not in said:
            line = process.stdout.readline()
            if not line:
                pytest.fail(f"make ui did not start:\n{said}")
            said += line
        addresses = re.findall(r"^(?:Airflow's UI|Sandbox) +(http://[\d.:]+)", said, re.MULTILINE)
        yield DemoUi(*addresses, printed=demo.stdout.replace(str(folder), ".demo"))


def write_settings(home: Path) -> None:
    """Add the settings of these tests to those of the demo."""
    file = home / "config" / "airflow_local_settings.py"
    file.write_text(file.read_text() + LOCAL_SETTINGS)
