"""What a DAG file pays for importing every operator and sensor, beside the dbt Cloud provider.

Each measurement is a new process that has imported `airflow.sdk` already, as the DAG processor has;
the best of several counts. `make bench` installs dbt Cloud's provider for this benchmark
(`.ci/dbt-cloud.txt`).
"""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from pathlib import Path

import airflow_provider_platform

ROUNDS = 7
ROOT = Path(__file__).parents[1]
PYTHONPATH = os.pathsep.join([str(ROOT), str(ROOT / ".cache" / "dbt-cloud")])
_SCRIPT = """
import importlib, sys, time
import airflow.sdk
from airflow.sdk import BaseOperator, BaseSensorOperator
began = time.perf_counter()
for name in sys.argv[1:]:
    importlib.import_module(name)
print(time.perf_counter() - began)
"""
DBT_CLOUD = [
    "airflow.providers.dbt.cloud.operators.dbt",
    "airflow.providers.dbt.cloud.sensors.dbt",
]


def ours() -> list[str]:
    """Every module of operators, sensors and decorators."""
    package = airflow_provider_platform
    rooms = tuple(f"{package.__name__}.{room}." for room in ("operators", "sensors", "decorators"))
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    return [module.name for module in found if module.name.startswith(rooms)]


def milliseconds(modules: list[str]) -> float | None:
    """The best of several imports; None where they fail."""
    times = []
    for _ in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", _SCRIPT, *modules],
            env={**os.environ, "PYTHONPATH": PYTHONPATH},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            return None
        times.append(float(done.stdout.splitlines()[-1]) * 1000)
    return min(times)


def main() -> None:
    """Print the cost in milliseconds."""
    own = milliseconds(ours())
    other = milliseconds(DBT_CLOUD)
    print(f"this provider, every operator and sensor: {own:.1f} ms")
    if other is None:
        print("dbt Cloud provider: not installed (apache-airflow-providers-dbt-cloud)")
    else:
        print(f"dbt Cloud provider, operators and sensor: {other:.1f} ms")
