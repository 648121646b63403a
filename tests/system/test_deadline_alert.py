"""A deadline that is missed, on a whole Airflow: the triggerer sends the answer."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.system.airflow_server import RunningAirflow
    from tests.system.conftest import StartTask

pytestmark = pytest.mark.system


def test_the_triggerer_tells_the_answer_of_a_run_that_is_late(
    ask: StartTask, airflow: RunningAirflow
) -> None:
    task = ask(dag_id="ask_late")
    task.wait("success")
    task.wait_run("success")  # its last task waits for the message
    told = json.loads((airflow.home / f"{task.run_id}.json").read_text())
    assert told["title"] == "Late: ask_late"
    assert told["text"].startswith("Late: ask_late\n")
    assert "The deadline was missed: 2" in told["text"]
    assert task.result["answer"] in told["text"]
