"""Workers cannot reach the API server for longer than Airflow retries."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.support.cluster.cluster_server import API_SERVER
from tests.support.cluster.outcomes import assert_asked_once, wait_followed

if TYPE_CHECKING:
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.cluster.cluster_server import Cluster

pytestmark = pytest.mark.cluster

OUTAGE = 100.0
_LONG = 300.0


def test_chats_survive_an_outage_of_the_api_server(
    ask: StartTask, sandbox: PatientControl, cluster: Cluster
) -> None:
    """Two on workers, the run of one ends meanwhile, and two in the triggerer."""
    outlasting = {"revenue by country": False, "revenue by month": True}
    ending = {"orders by status": False, "revenue by segment": True}
    questions = outlasting | ending
    for text in questions:
        sandbox.set_breakpoint("mid_stream" if text in outlasting else "before_final", text=text)
    tasks = {
        text: ask(text, dag_id="ask_patiently", deferrable=deferrable)
        for text, deferrable in questions.items()
    }
    for text, task in tasks.items():
        sandbox.wait_until(lambda state, text=text: any(run.text == text for run in state.runs))
        wait_followed(task, deferrable=questions[text])
    with cluster.without(API_SERVER):
        back_at = time.monotonic() + OUTAGE
        # Workers end their tries after three heartbeats that failed.
        time.sleep(OUTAGE / 2)
        sandbox.release("before_final")
        time.sleep(max(0.0, back_at - time.monotonic()))
    cluster.wait_api()
    sandbox.release()
    for text, task in tasks.items():
        ended = task.wait("success", timeout=_LONG)
        if outlasting.get(text):
            assert ended["try_number"] == 1, task.logs()
    assert_asked_once(sandbox, len(questions))
