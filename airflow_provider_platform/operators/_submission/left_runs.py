"""A chat run that an earlier DAG run's task has left in a thread that it was given.

A task that is ended while no triggerer has its trigger leaves its run behind: no code of this
package runs then. The thread is busy with it until the agent is done, and whoever asks there next
waits. Two things together tell a run that was left: the same task of an earlier DAG run has noted
(as an XCom, which outlives its DAG run) that the message is its own, and Airflow says that it has
ended. What neither tells is left alone.
"""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import get_task_states
from airflow_provider_platform.triggers._killed_tasks import ENDED_STATES

if TYPE_CHECKING:
    from airflow_provider_platform.operators._submission.attempt import Ids

log = logging.getLogger(__name__)

NOTE_KEY = "platform_chat_run"
LOOK_AGAIN_SECONDS = 60.0
_NOTED = ("chat_id", "message_id", "in_existing_thread", "input_sha256", "identity")


def note_run(ti: Any, ids: Ids) -> None:
    """Note for later DAG runs which message of the thread is this task's. Only useful, so that a
    failure is no more than logged."""
    try:
        noted = {name: ids.get(name) for name in _NOTED}
        ti.xcom_push(key=NOTE_KEY, value={**noted, "run_id": ti.run_id})
    except Exception as error:  # noqa: BLE001 - whatever it was, the run goes on
        log.debug("The run could not be noted for later DAG runs: %s", error)


def find_left_run(ti: Any, chat_id: str | None) -> Ids | None:
    """The ids of the last run that an earlier DAG run's task began in the thread, where that task
    has ended; None where it has not, or nobody can tell."""
    try:
        found = ti.xcom_pull(
            task_ids=ti.task_id,
            key=NOTE_KEY,
            include_prior_dates=True,
            map_indexes=ti.map_index,
        )
        if not isinstance(found, dict) or found.get("chat_id") != chat_id:
            return None
        if not found.get("message_id") or found.get("run_id") in (None, ti.run_id):
            return None
        other = SimpleNamespace(
            dag_id=ti.dag_id, task_id=ti.task_id, run_id=found["run_id"], map_index=ti.map_index
        )
        return found if get_task_states(other) in ENDED_STATES else None
    except Exception as error:  # noqa: BLE001 - whatever it was, nobody can tell
        log.debug("Earlier runs of this task could not be looked up: %s", error)
        return None
