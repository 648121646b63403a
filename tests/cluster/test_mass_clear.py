"""Several running tasks are cleared at once, by one request."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.cluster.dags.chats import QUESTIONS
from tests.support.cluster.outcomes import assert_stopped_and_asked_anew, wait_followed

if TYPE_CHECKING:
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.cluster


@pytest.mark.parametrize("deferrable", [False, True], ids=["running", "deferred"])
def test_each_of_four_cleared_chats_is_stopped_and_asked_again(
    start_task: StartTask, api: AirflowApi, sandbox: PatientControl, deferrable: bool
) -> None:
    numbers = list(range(len(QUESTIONS)))
    for text in QUESTIONS:
        sandbox.set_breakpoint("mid_stream", text=text)
    task = start_task("ask_four", "ask", deferrable=deferrable)
    sandbox.wait_until(lambda state: len(state.runs) == len(numbers))
    for number in numbers:
        wait_followed(task.mapped(number), deferrable=deferrable)
    api.clear_mapped(task.dag_id, task.run_id, task.task_id, numbers)
    for number in numbers:
        task.mapped(number).wait("success", try_number=2, or_later=True)
    assert_stopped_and_asked_anew(sandbox, len(numbers))
