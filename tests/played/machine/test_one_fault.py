"""Each kind of run with one fault alone: an outage of the service of two minutes ends no wait, and
a try for which an argument has no value sends nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from tests.support.machine.branches import BRANCH, BranchHabits, SimulatedBranches
from tests.support.machine.build_jobs import JobsHabits, SimulatedJobs
from tests.support.machine.merge_ledger import MergeLedger
from tests.support.machine.platform import USER, Habits, SimulatedPlatform
from tests.support.machine.task_machine import HAS_STATE_STORE, OUTAGE, TaskMachine, output
from tests.support.machine.tenant import DEPLOYMENT, SimulatedTenant, TenantHabits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.machine.simulation import Platform

pytestmark = pytest.mark.skipif(
    not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later"
)


class MergingMachine(TaskMachine):
    ledger_class = MergeLedger


class Kind(NamedTuple):
    """A kind of run, and a task that names everything with outputs of other tasks."""

    platform: Callable[[], Platform]
    operator: type[Any]
    outputs: dict[str, Any]
    options: dict[str, Any]
    machine: type[TaskMachine] = TaskMachine


KINDS = {
    "chat": Kind(
        lambda: SimulatedPlatform(Habits()),
        PlatformChatOperator,
        {"prompt": "What is our revenue?", "user": USER, "branch": "main"},
        {
            "prompt": output("prompt"),
            "session_settings": {"externalId": output("user")},
            "active_branch_name": output("branch"),
        },
    ),
    "dbt sync": Kind(
        lambda: SimulatedTenant(TenantHabits()),
        PlatformDbtSyncOperator,
        {"branch": "airflow", "ref": "main", "deployment": DEPLOYMENT},
        {
            "branch_name": output("branch"),
            "ref": output("ref"),
            "deployment_id": output("deployment"),
        },
    ),
    "builds": Kind(
        lambda: SimulatedJobs(JobsHabits()),
        PlatformBuildPreAggregationsOperator,
        {"cube": "orders", "deployment": DEPLOYMENT},
        {"cubes": [output("cube")], "deployment_id": output("deployment")},
    ),
    "merge": Kind(
        lambda: SimulatedBranches(BranchHabits()),
        PlatformMergeBranchOperator,
        {"branch": BRANCH, "commit": "b1", "target": "default", "deployment": DEPLOYMENT},
        {
            "branch_name": output("branch"),
            "hash": output("commit"),
            "into": output("target"),
            "deployment_id": output("deployment"),
        },
        MergingMachine,
    ),
}
NAMED = [(kind, name) for kind in KINDS for name in [*KINDS[kind].outputs][-1:]]
NAMED.append(("chat", "connection"))


@pytest.fixture
def begin() -> Iterator[Callable[..., TaskMachine]]:
    machines: list[TaskMachine] = []

    def begin(kind: str, *, deferrable: bool) -> TaskMachine:
        platform, operator, outputs, options, machine_class = KINDS[kind]
        machines.append(machine_class())
        machines[-1].begin_with(platform(), drops_state=False)
        machines[-1].begin_task(operator, outputs, deferrable=deferrable, **options)
        return machines[-1]

    yield begin
    for machine in machines:
        machine.teardown()


@pytest.mark.parametrize("deferrable", [False, True], ids=["worker", "deferred"])
@pytest.mark.parametrize("kind", KINDS)
def test_wait_survives_an_outage_of_two_minutes(
    kind: str, deferrable: bool, begin: Callable[..., TaskMachine]
) -> None:
    machine = begin(kind, deferrable=deferrable)
    machine._go_on_until(lambda: bool(machine._going_on))
    machine._run_steps(6)
    simulation = machine.simulation
    simulation.service_down_until = simulation.time.now + OUTAGE
    machine._go_on_until(lambda: machine.task.state in ("success", "failed"))
    assert machine.task.state == "success", machine.task.failures
    assert machine.task.failures == []


@pytest.mark.parametrize("when", ["first try", "retry", "cleared", "after the wait"])
@pytest.mark.parametrize(("kind", "name"), NAMED)
def test_try_sends_nothing_if_the_value_of_an_argument_has_vanished(
    kind: str, name: str, when: str, begin: Callable[..., TaskMachine]
) -> None:
    machine = begin(kind, deferrable=when == "after the wait")
    task = machine.task
    if when == "first try":
        task.vanishing = name
    else:
        machine._go_on_until(lambda: bool(machine._going_on))
        machine._run_steps(6)
        task.vanishing = name
    if when in ("retry", "cleared"):
        task.kill(task.workers[0])
        if when == "cleared":
            task.clear(lose_max_tries=False)
        task.miss()
    started = len(machine.simulation.ledger.runs)
    machine._go_on_until(lambda: task.state in ("success", "failed"))
    assert task.state == "failed"
    assert isinstance(task.failures[-1], AirflowFailException)
    assert "has no value after rendering" in str(task.failures[-1])
    assert len(machine.simulation.ledger.runs) == started
    if when in ("retry", "cleared"):
        lines = [line.text for line in machine.simulation.processes[-1].log.lines]
        assert any("the run of an earlier try, which may continue" in line for line in lines)
