"""A real triggerer handles a missed deadline: it reads the answer and sends it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.sandbox.demo.airflow_ui import running
from tests.support.airflow.task_run import PATIENCE

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

sdk = pytest.importorskip("airflow.sdk.definitions.callback", reason="needs Airflow 3.3")
pytestmark = pytest.mark.system

SEND_WITH = [{"class": "message_file.MessageFile", "name": "{{ dag_run.dag_run_id }}"}]


def miss_deadline(dag_id: str, run_id: str, callback: Any) -> None:
    """What the scheduler does when the time has come."""
    from airflow.models import DagRun
    from airflow.models.deadline import Deadline
    from airflow.utils.session import create_session

    with create_session() as session:
        run = session.query(DagRun).filter_by(dag_id=dag_id, run_id=run_id).one()
        deadline = Deadline(datetime.now(UTC), callback, run.id, None, dag_id=dag_id)
        session.add(deadline)
        session.flush()
        deadline.handle_miss(session)


def test_triggerer_sends_the_answer_of_a_late_dag_run(
    platform_sandbox: Sandbox, run_dag: RunDag, airflow_home: Path
) -> None:
    (airflow_home / "config").mkdir(exist_ok=True)
    shutil.copy(
        Path(__file__).parents[1] / "support" / "airflow" / "message_file.py",
        airflow_home / "config",
    )
    with DAG("late", schedule=None) as dag:
        PlatformChatOperator(task_id="ask", prompt="revenue by country")
    run = run_dag(dag)
    given = {"send_with": SEND_WITH, "task_id": "ask", "title": "Late: {{ dag_run.dag_id }}"}
    miss_deadline("late", run.run_id, sdk.AsyncCallback(PlatformAnswerNotifier, given))

    message, log = airflow_home / f"{run.run_id}.json", airflow_home / "triggerer.log"
    env = {**os.environ, "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": "0"}
    command = [sys.executable, "-m", "airflow", "triggerer", "--skip-serve-logs"]
    deadline = time.monotonic() + PATIENCE
    with (
        log.open("w") as output,
        running(command, env=env, stdout=output) as triggerer,
    ):
        while not message.exists():
            assert triggerer.poll() is None, log.read_text()[-3000:]
            assert time.monotonic() < deadline, log.read_text()[-3000:]
            time.sleep(0.2)
    content = json.loads(message.read_text())
    assert content["title"] == "Late: late"
    assert "The deadline was missed: 2" in content["text"]
    assert run.xcom("ask", "answer") in content["text"]
    assert content["pid"] != os.getpid()
