"""Loops of Airflow 3.4 and later: every pass has the same DAG, run, task and map index."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import DAG, task_group

from airflow_provider_platform.operators.chat import PlatformChatOperator

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

PASSES = 3

pytestmark = pytest.mark.skipif(
    not hasattr(task_group(lambda: None), "loop"), reason="Airflow 3.4 and later have loops"
)


def test_each_pass_of_a_loop_keeps_its_own_files(
    run_dag: RunDag, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with DAG(dag_id="looped") as dag:

        @task_group
        def again() -> None:
            PlatformChatOperator(
                task_id="ask",
                prompt="revenue by country, pass {{ loop.index }}",
                output_path=str(tmp_path),
                output_format="csv",
                deferrable=False,
            )

        again.loop(max_iterations=PASSES)  # type: ignore[attr-defined]
    run = run_dag(dag)
    assert run.state == "success", {task.name: task.error for task in run.tasks}
    manifests = [json.loads(found.read_text()) for found in tmp_path.rglob("manifest.json")]
    asked = {f"revenue by country, pass {number}" for number in range(PASSES)}
    assert {manifest["question"] for manifest in manifests} == asked
    assert len({manifest["loop_pass"] for manifest in manifests}) == PASSES
