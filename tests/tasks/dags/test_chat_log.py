"""The log of a chat task, compared with a stored example."""

from __future__ import annotations

import re
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.operators.chat import PlatformChatOperator
from tests.support.remote_tasks import stopped_until_followed

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

THREAD = "The agent's thread: chat ID"
EXAMPLE = Path(__file__).with_name("chat_log.txt")


_LINE = re.compile(r"\[info +\] (?P<text>.*?) +\[[\w.]*airflow_provider_platform[\w.]*\]")


@pytest.mark.parametrize("deferrable", [False, True])
def test_log_shows_the_steps_of_a_chat_in_order(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    deferrable: bool,
) -> None:
    # Records that arrive together are logged together: no line for an already accepted prompt.
    platform_sandbox.control.set(pace=0.1)
    with DAG(f"chat_log_{deferrable}", schedule=None) as dag:
        PlatformChatOperator(
            task_id="ask", prompt="chart revenue by category", deferrable=deferrable
        )
    with stopped_until_followed(platform_sandbox.control) if deferrable else nullcontext():
        run_dag(dag)
    # Before 3.1 a task logs with the standard library alone.
    said = _LINE.findall(capfd.readouterr().out) or [
        record.getMessage()
        for record in caplog.records
        if "airflow_provider_platform" in record.name
        and "no task state store" not in record.getMessage()
    ]
    lines = [
        re.sub(r"\d+\.\d s", "N s", re.sub(r"\d{13,}-message|[0-9a-f-]{36}", "ID", line)).replace(
            platform_sandbox.url, "https://platform"
        )
        for line in said
    ]
    expected = EXAMPLE.read_text().splitlines()
    if THREAD not in lines:
        expected.remove(THREAD)
    assert lines == expected
