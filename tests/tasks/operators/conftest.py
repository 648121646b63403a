"""The sandbox's control, and tries that run while a test acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.captured_log import Capture
from tests.support.remote_tasks import Try

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.task_context import TaskTries


@pytest.fixture
def control(platform_sandbox: Sandbox) -> SandboxControl:
    return platform_sandbox.control


@pytest.fixture
def capture(capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Capture:
    return Capture(capfd, caplog)


class TaskState:
    """What Airflow answers to those who ask for the state of a task."""

    def __init__(self) -> None:
        self.state: str | None = "failed"
        self.asked = 0

    def get_task_states(self, **_: Any) -> dict[str, dict[str, str | None]]:
        self.asked += 1
        return {"run": {"task": self.state}}


@pytest.fixture
def task_state(monkeypatch: pytest.MonkeyPatch) -> TaskState:
    """The state of every task; "failed" until a test sets another."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    found = TaskState()
    monkeypatch.setattr(
        RuntimeTaskInstance, "get_task_states", staticmethod(found.get_task_states), raising=False
    )
    return found


@pytest.fixture
def task(control: SandboxControl) -> Iterator[Any]:
    """`task(operator, tries)`: its next try, running; no breakpoint is left set at the end."""
    running: list[Try] = []

    def start(operator: Any, tries: TaskTries) -> Try:
        running.append(Try(operator, tries))
        running[-1].start()
        return running[-1]

    yield start
    control.release()
    control.clear_faults()
    for one in running:
        one.end()
