"""A chat run in a given thread that was orphaned by the same task of an earlier DAG run.

If a task is stopped while no triggerer has its trigger, its run continues, because no code of this
package runs then. The thread is busy until the agent is done, and the next question waits. Two
facts together identify an orphaned run: the same task of an earlier DAG run recorded (as an XCom,
which outlives its DAG run) that the message is its own, and Airflow reports that this task has
ended. Any other run is not touched.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import get_task_states
from airflow_provider_platform.runs.stop_decision import ENDED_STATES

if TYPE_CHECKING:
    from airflow_provider_platform.runs.run_kind import Ids

log = logging.getLogger(__name__)

RECORD_KEY = "platform_chat_run"
_RECORDED = ("chat_id", "message_id", "in_existing_thread", "input_sha256", "identity")


def record_run(ti: Any, ids: Ids) -> None:
    """Record for later DAG runs which message of the thread is this task's. The record is only
    useful, so a failure is no more than logged."""
    try:
        recorded = {name: ids.get(name) for name in _RECORDED}
        ti.xcom_push(key=RECORD_KEY, value={**recorded, "run_id": ti.run_id})
    except Exception as error:  # noqa: BLE001 - whatever it was, the run goes on
        log.debug(
            "The task could not record its run, so a later DAG run cannot stop this run: %s", error
        )


def find_orphaned_run(ti: Any, chat_id: str | None) -> Ids | None:
    """Return the ids of the last run that this task began in the thread in an earlier DAG run, if
    that task has ended; None if it has not ended, or if its state is unknown."""
    try:
        recorded = ti.xcom_pull(
            task_ids=ti.task_id,
            key=RECORD_KEY,
            include_prior_dates=True,
            map_indexes=ti.map_index,
        )
        if not isinstance(recorded, dict) or recorded.get("chat_id") != chat_id:
            return None
        if not recorded.get("message_id") or recorded.get("run_id") in (None, ti.run_id):
            return None
        other = SimpleNamespace(
            dag_id=ti.dag_id, task_id=ti.task_id, run_id=recorded["run_id"], map_index=ti.map_index
        )
        return recorded if get_task_states(other) in ENDED_STATES else None
    except Exception as error:  # noqa: BLE001 - whatever it was, nobody can tell
        log.debug(
            "The task could not check whether an earlier DAG run left a run active: %s", error
        )
        return None
