"""A task context to execute an operator in, outside of Airflow: what a try sees of its task."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

try:
    from airflow.sdk.exceptions import TaskDeferred
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import TaskDeferred  # type: ignore[assignment, no-redef]


class StateStore(dict[str, Any]):
    """Stands for the task state store, which survives retries."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


class TaskInstance:
    """Stands for the task instance of one try."""

    start_date = None
    dag_id, run_id, task_id, map_index = "dag", "run", "task", -1

    def __init__(self, try_number: int, max_tries: int, retries: int = 2) -> None:
        self.try_number = try_number
        self.max_tries = max_tries
        self.task = SimpleNamespace(retries=retries)
        self.xcoms: dict[str, Any] = {}

    def xcom_push(self, key: str, value: Any) -> None:
        self.xcoms[key] = value

    def get_first_reschedule_date(self, context: Any) -> None:
        """The task was not rescheduled."""

    def xcom_pull(self, **_: Any) -> Any:
        """No earlier DAG run has left anything."""


class TaskTries:
    """The tries of one task: each `context()` is the next one's, with the same store."""

    def __init__(self, max_tries: int = 2, *, store: bool = True) -> None:
        self.store = StateStore()
        self._has_store = store
        self._max_tries = self.retries = max_tries
        self._tries = self._clears = 0

    def context(self) -> Any:
        """The context of the next try."""
        self._tries += 1
        found: dict[str, Any] = {
            "ti": TaskInstance(self._tries, self._max_tries, self.retries),
            "dag_run": SimpleNamespace(clear_number=self._clears),
        }
        if self._has_store:
            found["task_state_store"] = self.store
        return found

    def clear(self) -> None:
        """What clearing the task does to its counters."""
        self._max_tries = self._tries + self.retries
        self._clears += 1


def deferral(function: Any, *args: Any, **kwargs: Any) -> TaskDeferred:
    """What a task that defers in this call hands to Airflow: trigger, method, arguments."""
    with pytest.raises(TaskDeferred) as caught:
        function(*args, **kwargs)
    return caught.value
