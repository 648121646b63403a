"""An outage of the service of two minutes ends no wait, on the worker and in the triggerer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.support.machine.platform import Habits, SimulatedPlatform
from tests.support.machine.task_machine import HAS_STATE_STORE, TIMEOUT, TaskMachine
from tests.support.machine.tenant import SimulatedTenant, TenantHabits

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.machine.simulation import Platform

OUTAGE = 120.0

KINDS: dict[str, tuple[Callable[[], Platform], type[Any], dict[str, Any]]] = {
    "chat": (
        lambda: SimulatedPlatform(Habits()),
        PlatformChatOperator,
        {"prompt": "What is our revenue?"},
    ),
    "dbt sync": (lambda: SimulatedTenant(TenantHabits()), PlatformDbtSyncOperator, {}),
}


@pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later")
@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "deferred"])
@pytest.mark.parametrize("kind", KINDS)
def test_wait_survives_an_outage_of_two_minutes(kind: str, deferrable: bool) -> None:
    platform, operator, arguments = KINDS[kind]
    machine = TaskMachine()
    machine.begin_with(platform(), drops_state=False)
    try:
        machine.begin_task(
            lambda: operator(task_id="task", deferrable=deferrable, timeout=TIMEOUT, **arguments)
        )
        machine._go_on_until(lambda: bool(machine._going_on))
        machine._run_steps(6)
        simulation = machine.simulation
        simulation.service_down_until = simulation.time.now + OUTAGE
        machine._go_on_until(lambda: machine.task.state in ("success", "failed"))
        assert machine.task.state == "success", machine.task.failures
        assert machine.task.failures == []
    finally:
        machine.teardown()
