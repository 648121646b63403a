"""The machines see: with a rule of the package taken out, each finds what comes of it.

Slow, so only with `make test-machine`.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform import triggers as remote_trigger
from airflow_provider_platform.client.errors import ChatError, PlatformError
from airflow_provider_platform.operators import _base, _run_stop
from airflow_provider_platform.operators._remote_run import RemoteRunOperator
from airflow_provider_platform.operators._run_record import RecordKeeper, Step
from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator
from airflow_provider_platform.resources import merges
from airflow_provider_platform.resources.chat.run import ChatRunKind
from airflow_provider_platform.resources.dbt_sync import DbtSyncRunKind
from airflow_provider_platform.resources.merges import MergeRunKind
from airflow_provider_platform.resources.pre_aggregations import PreAggregationsRunKind
from tests.played.machine.test_build_jobs_machine import BuildJobsMachine
from tests.played.machine.test_chat_machine import ChatMachine
from tests.played.machine.test_dbt_sync_machine import DbtSyncMachine
from tests.played.machine.test_merge_machine import MergeMachine
from tests.support.machine.task_machine import (
    EXAMPLES,
    HAS_STATE_STORE,
    PASTS,
    PASTS_OF_ONE_REQUEST,
    TaskMachine,
    check_machine,
)

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = [
    pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later"),
    pytest.mark.skipif("MACHINE_EXAMPLES" not in os.environ, reason="only with make test-machine"),
]

BREAKS: list[Any] = []
STOPPABLE = (ChatMachine, DbtSyncMachine)
STARTED_ONCE = (*STOPPABLE, BuildJobsMachine)
"""The machines of runs of which none may be started beside another."""


def breaks(what: str, machines: tuple[type[TaskMachine], ...] = STOPPABLE) -> Callable[[Any], Any]:
    """Registers a way to break a rule, and the machines that must find it."""

    def register(function: Any) -> Any:
        for machine in machines:
            name = f"{what}-{machine.__name__}"
            BREAKS.append(pytest.param(function, machine, id=name))
        return function

    return register


@breaks("a clear does not stop the earlier run")
def _forget_to_stop(patch: pytest.MonkeyPatch) -> None:
    first_step = RecordKeeper.first_step
    patch.setattr(
        RecordKeeper, "first_step", lambda self, record: (first_step(self, record)[0], False)
    )


@breaks("an event of another run is accepted", STARTED_ONCE)
def _take_any_event(patch: pytest.MonkeyPatch) -> None:
    for kind in (ChatRunKind, DbtSyncRunKind, PreAggregationsRunKind):
        patch.setattr(kind, "id_field", "nothing of that name")


@breaks("a dead run is not asked anew", STARTED_ONCE)
def _stay_with_the_dead(patch: pytest.MonkeyPatch) -> None:
    for error in PlatformError.__subclasses__() + ChatError.__subclasses__():
        patch.setattr(error, "is_dead_run", False)


@breaks("a retry looks nothing up", STARTED_ONCE)
def _look_nothing_up(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        RemoteRunOperator, "_recover", lambda self, attempt, _: self._submit(attempt, None)
    )


@breaks("a retry does not re-attach", STARTED_ONCE)
def _start_anew(patch: pytest.MonkeyPatch) -> None:
    first_step = RecordKeeper.first_step

    def step(self: RecordKeeper, record: Any) -> Any:
        first, stop = first_step(self, record)
        return (Step.START if first is Step.REATTACH else first), stop

    patch.setattr(RecordKeeper, "first_step", step)


@breaks("a result that was seen is not taken again", STARTED_ONCE)
def _ask_for_the_result(patch: pytest.MonkeyPatch) -> None:
    first_step = RecordKeeper.first_step

    def step(self: RecordKeeper, record: Any) -> Any:
        first, stop = first_step(self, record)
        return (Step.START if first is Step.RELOAD else first), stop

    patch.setattr(RecordKeeper, "first_step", step)


@breaks("a worker that gets SIGTERM always stops its run")
def _stop_at_every_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_run_stop, "stops_run", lambda *_, **__: True)


@breaks("a worker that gets SIGTERM never stops its run")
def _stop_at_no_signal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_run_stop, "stops_run", lambda *_, **__: False)


@breaks("a trigger that is killed always stops its run")
def _stop_with_every_trigger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remote_trigger, "trigger_stops_run", lambda *_, **__: True)


@breaks("a trigger that is killed never stops its run")
def _stop_with_no_trigger(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(remote_trigger, "trigger_stops_run", lambda *_, **__: False)


@breaks("an argument without a value means its default", (*STARTED_ONCE, MergeMachine))
def _take_the_default(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(_base, "vanished", lambda *_: None)
    patch.setattr(_base.PlatformOperator, "_refuse_vanished", lambda *_: None)


@breaks("builds that are too late are started again", (BuildJobsMachine,))
def _stop_builds(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(PreAggregationsRunKind, "can_stop", True)
    patch.setattr(PreAggregationsRunKind, "poll_past_deadline", lambda *_: _answer(None))


@breaks("a merge that is too late is planned again", (MergeMachine,))
def _stop_merges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MergeRunKind, "can_stop", True)
    patch.setattr(PlatformMergeBranchOperator, "cancel_on_kill", True)
    patch.setattr(MergeRunKind, "poll_past_deadline", lambda *_: _answer(None))


@breaks("a lost merge is sent again without a look", (MergeMachine,))
def _send_blindly(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merges, "find_merge", lambda *_, **__: _answer(merges.UNSURE))


@breaks("a lost merge is never found by its commits", (MergeMachine,))
def _find_no_merge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(merges, "judge_lost", lambda *_, **__: merges.UNSURE)


@breaks("a clear forgets what was merged", (MergeMachine,))
def _forget_the_merge(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(MergeRunKind, "carried_over", lambda *_: None)


@breaks("the build of the model before a merge counts", (MergeMachine,))
def _take_any_build(patch: pytest.MonkeyPatch) -> None:
    poll = merges.poll_merged_build

    class AnyCommit(set[Any]):
        def __contains__(self, commit: object) -> bool:
            return True

    patch.setattr(
        merges,
        "poll_merged_build",
        lambda api, merge, _: poll(api, merge, AnyCommit()),
    )


@breaks("on a tenant that names no commit, the first build counts", (MergeMachine,))
def _take_the_first_build(patch: pytest.MonkeyPatch) -> None:
    commits = merges._commits_with_merge

    def commits_with_merge(api: Any, merge: Any, answer: Any) -> Any:
        return commits(api, merge, answer) if answer.last_hash else _answer({None})

    patch.setattr(merges, "_commits_with_merge", commits_with_merge)


@breaks("a commit that nobody checked is merged", (MergeMachine,))
def _merge_unchecked(patch: pytest.MonkeyPatch) -> None:
    plan = merges.plan_merge
    patch.setattr(merges, "plan_merge", lambda *args, **_: plan(*args))


async def _answer(value: Any) -> Any:
    return value


@pytest.mark.parametrize(("break_rule", "machine"), BREAKS)
def test_broken_rule_is_found(
    break_rule: Any, machine: type[TaskMachine], monkeypatch: pytest.MonkeyPatch
) -> None:
    break_rule(monkeypatch)
    with pytest.raises(AssertionError) as found:
        _check_all(machine)
    sys.stdout.write(f"{str(found.value).splitlines()[0]}\n")


def _check_all(machine: type[TaskMachine]) -> None:
    for past in PASTS_OF_ONE_REQUEST if machine.answered_at else PASTS:
        check_machine(machine, past, examples=EXAMPLES, shrink=False)
