"""dbt syncs: what a later try does with a start that an earlier one has made, or has lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    PlatformNotFoundError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.management.dbt_sync.run import SyncLimits, wait
from airflow_provider_platform.client.management.dbt_sync.start import start
from airflow_provider_platform.client.management.dbt_sync.syncs import (
    StartDbtSyncInput,
    start_dbt_sync,
)
from airflow_provider_platform.client.operations.program import Call, Sleep
from airflow_provider_platform.operators._submission.record import STORE_KEY
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.unit.operators.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


def sync(**arguments: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(
        task_id="sync",
        **{"branch_name": "b1", "poll_interval": 0.05, "deferrable": False, **arguments},
    )


@pytest.mark.parametrize("phase", ["done", "running"])
@pytest.mark.parametrize("dbt", ["start-only", "full"])
def test_a_sync_that_is_not_waited_for_is_taken_as_it_was_started(
    platform_sandbox: Sandbox, phase: str, dbt: str
) -> None:
    platform_sandbox.control.set(dbt=dbt, dbt_pace=60.0)
    waiting = {"wait_for_completion": "if_supported" if dbt == "start-only" else False}
    tries = TaskTries()
    first = sync(**waiting).execute(tries.context())
    tries.store[STORE_KEY]["phase"] = phase
    assert sync(**waiting).execute(tries.context()) == first
    assert len(platform_sandbox.control.state().syncs) == 1


def test_the_last_try_says_why_the_lost_start_could_not_be_looked_up(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT", platform_sandbox.connection_json(max_attempts=1)
    )
    failing = {"method": "GET", "path": "/dbt-sync", "status": 500, "nth": 2, "count": 50}
    platform_sandbox.control.fault("status", **failing)
    platform_sandbox.control.fault("drop", method="POST", path="/dbt-sync$")
    tries = TaskTries(max_tries=1)
    with pytest.raises(PlatformTransportError, match=r"could not be looked up .* 500"):
        sync().execute(tries.context())
    with pytest.raises(PlatformServerError):
        sync().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"


def test_a_start_whose_answer_cannot_be_read_is_not_made_again() -> None:
    program = start(1, StartDbtSyncInput.build(branch_name="b1"), known=None)
    effect = next(program)
    assert isinstance(effect, Call)
    assert effect.operation.operation_id == start_dbt_sync.operation_id
    with pytest.raises(PlatformOutcomeUnknownError):
        program.throw(PlatformProtocolError("the answer does not have the described shape"))


def test_a_look_at_a_sync_that_is_gone_ends_without_a_hot_loop() -> None:
    now, calls = 0.0, 0

    def play() -> None:
        nonlocal now, calls
        patience = SyncLimits(deadline=15.0, poll_interval=5.0)
        program = wait(1, "gone", patience, lambda: now, poll_once=True)
        effect = next(program)
        while True:
            if isinstance(effect, Call):
                calls += 1
                effect = program.throw(PlatformNotFoundError("not found", status=404))
            else:
                now += effect.seconds if isinstance(effect, Sleep) else 0.0
                effect = program.send(None)

    with pytest.raises(PlatformNotFoundError):
        play()
    assert calls < 10
