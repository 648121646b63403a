"""One task instance of a running Airflow: what a user does to it and sees of it."""

from __future__ import annotations

import re
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from tests.support.airflow.airflow_processes import kill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import psutil

    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.airflow_processes import AirflowProcesses

_POLL = 0.5
_ENDED = ("success", "failed", "skipped", "upstream_failed", "removed")
PATIENCE = 240.0
"""Seconds until a condition that should come soon counts as one that does not come."""


@dataclass(frozen=True)
class TaskRun:
    """A task instance, and everything that is needed to act on it."""

    api: AirflowApi
    processes: AirflowProcesses
    dag_id: str
    run_id: str
    task_id: str
    map_index: int = -1

    def mapped(self, map_index: int) -> TaskRun:
        """Another instance of the same mapped task."""
        return TaskRun(self.api, self.processes, self.dag_id, self.run_id, self.task_id, map_index)

    def now(self) -> dict[str, Any]:
        """The instance as the API shows it."""
        return self.api.task(self._path)

    @property
    def state(self) -> str | None:
        state: str | None = self.now()["state"]
        return state

    def wait(
        self,
        *states: str,
        try_number: int | None = None,
        or_later: bool = False,
        timeout: float = PATIENCE,
    ) -> dict[str, Any]:
        """Wait for one of the states, in this try (or a later one) if one is given. Raises
        AssertionError at once, with what the task logged, when it has ended otherwise or is past
        that try."""

        def there(task: dict[str, Any]) -> bool:
            number = task["try_number"]
            if try_number is not None:
                past = number > try_number and not or_later
                assert not past, f"try {number}, not {try_number}\n{self.logs()}"
                if number < try_number:
                    return False
            if task["state"] in states:
                return True
            assert task["state"] not in _ENDED, f"{task['state']}, not {states}\n{self.logs()}"
            return False

        return self.until(there, f"state {' or '.join(states)}", timeout)

    def until(
        self,
        condition: Callable[[dict[str, Any]], bool],
        what: str,
        timeout: float = PATIENCE,
    ) -> dict[str, Any]:
        """Wait until the condition holds for the instance. Raises AssertionError."""
        deadline = time.monotonic() + timeout
        while True:
            task = self.now()
            if condition(task):
                return task
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{self} did not reach {what}; it is {task['state']} in try "
                    f"{task['try_number']}\n{self.logs()}"
                )
            time.sleep(_POLL)

    @property
    def record(self) -> dict[str, Any]:
        """What the task has written down of its submission, {} for nothing."""
        return self.api.stored(*self._record_place) or {}

    def date_back(self, seconds: float) -> None:
        """Have the record say that the submission was so much earlier."""
        record = self.record
        record["ids"]["submitted_at"] -= seconds
        self.api.replace_stored(*self._record_place, record)

    def wait_record(self, **wanted: Any) -> None:
        """Wait until the record, or the ids in it, say so. A value of `...` is any but None."""

        def there(_: dict[str, Any]) -> bool:
            record = self.record
            known = {**record.get("ids", {}), **record}
            return all(
                known.get(name) is not None if value is ... else known.get(name) == value
                for name, value in wanted.items()
            )

        self.until(there, f"the record {wanted}")

    def wait_trigger(self, try_number: int = 1) -> None:
        """Wait until the triggerer runs the trigger of a deferred try, this or a later one."""

        def there(task: dict[str, Any]) -> bool:
            tries = range(try_number, task["try_number"] + 1)
            return any(self.starts_of_trigger(number) > 0 for number in tries)

        self.until(there, "the start of its trigger")

    def starts_of_trigger(self, try_number: int) -> int:
        """How often a triggerer has begun to run the trigger of this try."""
        return len(re.findall(r"trigger \S+ \(ID \d+\) starting", self.log(try_number)))

    def kill(self) -> None:
        """Kill -9 the process that runs the task's code now; wait until it is gone."""
        kill([self.processes.of_task(self.now())])

    def kill_with_supervisor(self) -> None:
        """Kill -9 the process and its supervisor: nobody reports this to Airflow."""
        kill(self._with_supervisor())

    def send_sigterm(self, *who: Literal["supervisor", "task"]) -> None:
        """Send SIGTERM, as a machine does that is drained, to these of the two processes."""
        supervisor, process = self._with_supervisor()
        for name in who:
            (supervisor if name == "supervisor" else process).terminate()

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Both processes stand still for the length of a `with`."""
        processes = self._with_supervisor()
        for process in processes:
            process.suspend()
        try:
            yield
        finally:
            for process in processes:
                process.resume()

    def _with_supervisor(self) -> tuple[psutil.Process, psutil.Process]:
        process = self.processes.of_task(self.now())
        supervisor = process.parent()
        assert supervisor is not None
        return supervisor, process

    def mark(self, state: str) -> None:
        """Mark the instance `failed` or `success`, as the button does."""
        self.api.set_task_state(self._path, state)

    def clear(self, *, with_downstream: bool = False, with_upstream: bool = False) -> None:
        """Clear the instance; one that has ended, after its DAG run has (Airflow forgets a task
        that is cleared while the scheduler ends its run)."""
        if self.state in _ENDED:
            self.until(lambda _: self._run_state in ("success", "failed"), "its run's end")
        self.api.clear(
            self.dag_id,
            self.run_id,
            self.task_id,
            self.map_index,
            with_downstream=with_downstream,
            with_upstream=with_upstream,
        )

    def clear_mapped(self, count: int) -> None:
        """Clear so many instances of this mapped task at once."""
        self.api.clear_mapped(self.dag_id, self.run_id, self.task_id, list(range(count)))

    @property
    def clears(self) -> int:
        """How often the tests have cleared it."""
        return self.api.clears[self.dag_id, self.run_id, self.task_id, self.map_index]

    def wait_run(self, state: str, timeout: float = PATIENCE) -> None:
        """Wait until the whole DAG run has ended so. Raises AssertionError."""
        self.until(lambda _: self._run_state in ("success", "failed"), "its run's end", timeout)
        assert self._run_state == state

    def fail_run(self) -> None:
        """Mark the whole DAG run failed."""
        self.api.set_run_state(self.dag_id, self.run_id, "failed")

    def xcoms(self) -> dict[str, Any]:
        return self.api.xcoms(self.dag_id, self.run_id, self.task_id, self.map_index)

    def xcom(self, key: str) -> Any:
        return self.api.xcom(self.dag_id, self.run_id, self.task_id, self.map_index, key)

    @property
    def result(self) -> Any:
        """What the task returned."""
        return self.xcom("return_value")

    def logs(self) -> str:
        """The logs of all tries."""
        latest = self.now()["try_number"]
        return "\n".join(f"--- try {number}\n{self.log(number)}" for number in range(1, latest + 1))

    def log(self, try_number: int) -> str:
        try:
            return self.api.log(self.dag_id, self.run_id, self.task_id, self.map_index, try_number)
        except RuntimeError as error:
            return str(error)

    def end(self) -> None:
        """Leave nothing of it behind for the next test."""
        if self._run_state in ("running", "queued"):
            self.fail_run()

    @property
    def _run_state(self) -> str:
        state: str = self.api.run(self.dag_id, self.run_id)["state"]
        return state

    @property
    def _record_place(self) -> tuple[str, str, str, int, str]:
        return self.dag_id, self.run_id, self.task_id, self.map_index, "platform_submission"

    @property
    def _path(self) -> str:
        base = f"dags/{self.dag_id}/dagRuns/{self.run_id}/taskInstances/{self.task_id}"
        return base if self.map_index < 0 else f"{base}/{self.map_index}"

    def __str__(self) -> str:
        return f"{self.dag_id} {self.run_id} {self.task_id}[{self.map_index}]"
