"""Two random faults in one task: one answer, and no run is left.

A failure names its seed; `SEED=... ROUNDS=1 pytest ...` draws the same again.
"""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import TYPE_CHECKING

import psutil
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.state.journal import RunEntry, SandboxState
    from tests.airflow.conftest import StartTask
    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

pytestmark = pytest.mark.system

FIRST_SEED = int(os.environ.get("SEED", random.randrange(10**6)))
ROUNDS = int(os.environ.get("ROUNDS", "3"))


def active_runs(state: SandboxState) -> list[RunEntry]:
    return [run for run in state.runs if run.status in ("streaming", "suspended")]


class Scene:
    """One task under way, its run stopped by the sandbox, and what is done to them."""

    def __init__(
        self, task: TaskRun, sandbox: PatientControl, api: AirflowApi, connection_id: str
    ) -> None:
        self.task = task
        self.sandbox = sandbox
        self.api = api
        self.connection_id = connection_id
        self.asked_anew = 0
        """How many more questions than one the faults explain."""

    def kill_worker(self) -> None:
        if self.task.state == "running":
            with suppress(AssertionError, psutil.NoSuchProcess):  # it has ended meanwhile
                self.task.kill()

    def clear(self) -> None:
        self.asked_anew += 1
        self.task.clear()

    def stop_run(self) -> None:
        for run in active_runs(self.sandbox.state()):
            self.asked_anew += 1
            self.sandbox.abort_thread(run.chat_id)

    def cut_streams(self) -> None:
        self.sandbox.fault("cut", api="chat", has_input=False, after=2, count=2)

    def falter(self) -> None:
        self.sandbox.fault("status", api="chat", has_input=False, status=502, count=3)

    def rotate_key(self) -> None:
        self.sandbox.rotate_chat_key()
        self.api.put_connection(self.connection_id, self.sandbox.connection())

    def wait_under_way(self) -> None:
        """Until some try follows a run that is stopped at a breakpoint or over."""
        self.task.until(
            lambda now: (
                now["state"] in ("success", "failed")
                or (now["state"] in ("running", "deferred") and self._has_record())
            ),
            "a run under way",
        )

    def _has_record(self) -> bool:
        return self.task.record.get("phase") in ("running", "done")


FAULTS: dict[str, Callable[[Scene], None]] = {
    "kill_worker": Scene.kill_worker,
    "clear": Scene.clear,
    "stop_run": Scene.stop_run,
    "cut_streams": Scene.cut_streams,
    "falter": Scene.falter,
    "rotate_key": Scene.rotate_key,
}


@pytest.mark.parametrize("number", range(ROUNDS))
def test_two_faults_in_one_task_leave_one_answer(
    ask: StartTask, sandbox: PatientControl, api: AirflowApi, connection_id: str, number: int
) -> None:
    seed = FIRST_SEED + number
    draw = random.Random(seed)
    faults = draw.sample(sorted(FAULTS), 2)
    deferrable = draw.random() < 0.5
    at_once = draw.random() < 0.5
    stopped_thread = draw.choice(["state", "aborted", "close"])
    drawn = f"SEED={seed}: {faults}, deferrable={deferrable}, at_once={at_once}, {stopped_thread}"
    sandbox.set(stopped_thread=stopped_thread)
    sandbox.set_breakpoint("mid_stream", count=8)
    task = ask(deferrable=deferrable)
    scene = Scene(task, sandbox, api, connection_id)
    for fault in faults:
        if fault == faults[0] or not at_once:
            sandbox.wait_for_breakpoint("mid_stream")
            scene.wait_under_way()
        FAULTS[fault](scene)
    sandbox.release()
    try:
        task.wait("success", try_number=1, or_later=True)
    except AssertionError as error:
        raise AssertionError(drawn) from error
    state = sandbox.wait_until(lambda state: not active_runs(state))
    finished = [run.message_id for run in state.runs if run.status == "finished"]
    # A run that was cleared may finish before its stop.
    assert 1 <= len(finished) <= 1 + faults.count("clear"), drawn
    assert len(state.messages) <= 1 + scene.asked_anew, drawn
    assert task.result["message_id"] == finished[-1], drawn
