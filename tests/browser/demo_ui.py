"""`make demo`, then `make ui`, in a folder of their own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from airflow_provider_platform.sandbox.demo.processes import running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEMO = [sys.executable, "-u", "-m", "airflow_provider_platform.sandbox.demo"]
DAG_ID = "nightly_pipeline"


@dataclass(frozen=True)
class DemoUi:
    """Airflow's UI over the demo, and the sandbox behind it."""

    airflow: str
    sandbox: str

    def get(self, path: str) -> Any:
        """What Airflow's REST API answers."""
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"{self.airflow}/api/v2/{path}", timeout=30) as response:
            return json.load(response)

    @property
    def run_id(self) -> str:
        """The demo's run."""
        [run] = self.get(f"dags/{DAG_ID}/dagRuns")["dag_runs"]
        return str(run["dag_run_id"])

    def task_page(self, task_id: str, tab: str = "") -> str:
        """The page of a task of the demo's run."""
        return f"{self.airflow}/dags/{DAG_ID}/runs/{quote(self.run_id)}/tasks/{task_id}{tab}"


@contextmanager
def demo_and_ui(folder: Path) -> Iterator[DemoUi]:
    """Run the demo, then serve the UI over what it left."""
    env = {**os.environ, "PLATFORM_DEMO_FOLDER": str(folder)}
    demo = subprocess.run(DEMO, env=env, capture_output=True, text=True, check=False)
    assert demo.returncode == 0, demo.stdout[-3000:] + demo.stderr[-3000:]
    command = [*DEMO[:-1], f"{DEMO[-1]}.ui"]
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
        yield DemoUi(*addresses)
