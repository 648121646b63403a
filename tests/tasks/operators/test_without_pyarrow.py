"""Tasks that write no file work without pyarrow, which is an extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox

_SCRIPT = """
import json, sys
sys.modules["pyarrow"] = None
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from tests.support.task_context import TaskTries
task = {task}
print(json.dumps(task.execute(TaskTries().context())))
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("task", "rows"),
    [
        (
            'PlatformChatOperator(task_id="t", prompt="revenue by country", deferrable=False)',
            8,
        ),
        ('PlatformQueryOperator(task_id="t", sql="SELECT 1 AS a", deferrable=False)', 1),
    ],
    ids=["chat", "query"],
)
def test_task_without_a_file_needs_no_pyarrow(
    task: str, rows: int, platform_sandbox: Sandbox
) -> None:
    connection = {"AIRFLOW_CONN_PLATFORM_DEFAULT": platform_sandbox.connection_json()}
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT.format(task=task)],
        capture_output=True,
        text=True,
        env={**os.environ, **connection},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout.splitlines()[-1])
    (query,) = result.get("queries", [result])
    assert len(query["rows"]) == rows
