"""The sandbox's control, and tries that run while a test acts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.operators.remote_tasks import Try

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.control import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.unit.operators.task_context import TaskTries


@pytest.fixture
def control(platform_sandbox: Sandbox) -> SandboxControl:
    return platform_sandbox.control


@pytest.fixture
def task(control: SandboxControl) -> Iterator[Any]:
    """`task(operator, tries)`: its next try, running; the sandbox holds nothing at the end."""
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
