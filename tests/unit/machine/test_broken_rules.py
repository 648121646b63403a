"""The machines see: with a rule of the package taken out, each finds what comes of it.

Slow, so only with `make test-machine`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.operators._submission import kills, remote_run
from airflow_provider_platform.operators._submission.record import Step, Submission
from airflow_provider_platform.operators._submission.remote_run import RemoteRunOperator
from airflow_provider_platform.runs.chat import ChatRunKind
from airflow_provider_platform.runs.dbt_sync import DbtSyncRunKind
from airflow_provider_platform.triggers import _remote_run as remote_trigger
from tests.unit.machine.task_machine import (
    EXAMPLES,
    HAS_STATE_STORE,
    PASTS,
    TaskMachine,
    check_machine,
)
from tests.unit.machine.test_chat_machine import ChatMachine
from tests.unit.machine.test_dbt_sync_machine import DbtSyncMachine

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later"),
    pytest.mark.skipif("MACHINE_EXAMPLES" not in os.environ, reason="only with make test-machine"),
]

BREAKS: dict[str, Any] = {}


def breaks(what: str) -> Callable[[Any], Any]:
    """Registers a way to break a rule."""

    def register(function: Any) -> Any:
        BREAKS[what] = function
        return function

    return register


@breaks("a clear does not stop the earlier run")
def _forget_to_stop(patch: pytest.MonkeyPatch) -> None:
    first_step = Submission.first_step
    patch.setattr(
        Submission, "first_step", lambda self, record: (first_step(self, record)[0], False)
    )


@breaks("an event of another run is accepted")
def _take_any_event(patch: pytest.MonkeyPatch) -> None:
    for kind in (ChatRunKind, DbtSyncRunKind):
        patch.setattr(kind, "id_field", "nothing of that name")


@breaks("a dead run is not asked anew")
def _stay_with_the_dead(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remote_run, "run_is_dead", lambda _: False)


@breaks("a retry looks nothing up")
def _look_nothing_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        RemoteRunOperator, "_recover", lambda self, attempt, _: self._submit(attempt, None)
    )


@breaks("a retry does not re-attach")
def _start_anew(patch: pytest.MonkeyPatch) -> None:
    first_step = Submission.first_step

    def step(self: Submission, record: Any) -> Any:
        first, stop = first_step(self, record)
        return (Step.START if first is Step.REATTACH else first), stop

    patch.setattr(Submission, "first_step", step)


@breaks("a result that was seen is not taken again")
def _ask_for_the_result(patch: pytest.MonkeyPatch) -> None:
    first_step = Submission.first_step

    def step(self: Submission, record: Any) -> Any:
        first, stop = first_step(self, record)
        return (Step.START if first is Step.RELOAD else first), stop

    patch.setattr(Submission, "first_step", step)


@breaks("a worker that is told to end always stops its run")
def _stop_at_every_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kills, "stops_run", lambda *_, **__: True)


@breaks("a worker that is told to end never stops its run")
def _stop_at_no_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(kills, "stops_run", lambda *_, **__: False)


@breaks("a trigger that is killed always stops its run")
def _stop_with_every_trigger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remote_trigger, "stops_run", lambda *_, **__: True)


@breaks("a trigger that is killed never stops its run")
def _stop_with_no_trigger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remote_trigger, "stops_run", lambda *_, **__: False)


@pytest.mark.parametrize("machine", [ChatMachine, DbtSyncMachine])
@pytest.mark.parametrize("what", BREAKS)
def test_is_found(machine: type[TaskMachine], what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    BREAKS[what](monkeypatch)
    with pytest.raises(AssertionError) as found:
        _check_all(machine)
    sys.stdout.write(f"{str(found.value).splitlines()[0]}\n")


def _check_all(machine: type[TaskMachine]) -> None:
    for past in PASTS:
        check_machine(machine, past, examples=EXAMPLES, shrink=False)
