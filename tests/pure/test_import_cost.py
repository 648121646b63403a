"""A DAG file that imports every operator and sensor loads neither models nor client nor sandbox."""

from __future__ import annotations

import json
import pkgutil
import subprocess
import sys

import pytest

import airflow_provider_platform

_SCRIPT = """
import importlib, json, sys
import airflow.sdk
from airflow.sdk import BaseOperator, BaseSensorOperator, BaseOperatorLink
before = set(sys.modules)
for name in {modules!r}:
    importlib.import_module(name)
print(json.dumps(sorted(set(sys.modules) - before)))
"""


NOTIFIER = "airflow_provider_platform.notifications.answer"


def modules(*packages: str) -> list[str]:
    found = pkgutil.walk_packages(
        airflow_provider_platform.__path__, f"{airflow_provider_platform.__name__}."
    )
    wanted = tuple(f"{airflow_provider_platform.__name__}.{package}." for package in packages)
    return [module.name for module in found if module.name.startswith(wanted)]


def test_importing_all_operators_sensors_and_decorators_is_cheap() -> None:
    names = [*modules("operators", "sensors", "decorators"), NOTIFIER]
    assert "airflow_provider_platform.operators.chat" in names
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(modules=names)],
        capture_output=True,
        text=True,
        check=True,
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    ours = [name for name in loaded if name.startswith("airflow_provider_platform.")]
    light = (
        "client.choices",
        "client.errors",
        "client.redaction",
        "client.argument_rules",
    )
    allowed = (
        "notifications.answer",
        "operators",
        "sensors",
        "decorators",
        "_airflow",
        "resources.run_kind",
        "resources.run_log",
        "resources.stop_decision",
        "links",
        *light,
    )
    empty = (
        "notifications",
        "resources",
        "client",
    )  # packages with a docstring only
    heavy = [
        name
        for name in ours
        if not name.removeprefix("airflow_provider_platform.").startswith((*allowed,))
        and name.removeprefix("airflow_provider_platform.") not in empty
    ]
    assert heavy == []
    for package in ("httpx", "tenacity", "starlette", "uvicorn"):
        assert package not in {name.split(".")[0] for name in loaded}


@pytest.mark.exhaustive
def test_the_hook_of_the_operators_loads_no_sql_provider() -> None:
    """`PlatformSqlHook` is for those who ask the connection for its hook."""
    script = _SCRIPT.format(modules=["airflow_provider_platform.hooks.platform"])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout.splitlines()[-1])
    assert "airflow_provider_platform.hooks.platform" in loaded
    heavy = ("airflow.providers.common.sql", "sqlparse", "pandas", "polars", "pyarrow", "sqlite3")
    assert [name for name in loaded if name.startswith(heavy)] == []
    assert "airflow_provider_platform.files" not in loaded
