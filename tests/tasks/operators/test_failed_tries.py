"""A failed try leaves the record that the next try needs, and no run that nobody follows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.resources.dbt_sync import DbtSyncRunKind
from tests.support.remote_tasks import sync
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


@pytest.mark.parametrize("answer", [{"status": 429}, {"status": 503, "retry_after": 0}], ids=str)
def test_retry_repeats_a_start_that_was_not_processed(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, answer: dict[str, Any]
) -> None:
    """On a tenant that has the start operation only, nothing could be looked up."""
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT", platform_sandbox.connection_json(max_attempts=1)
    )
    platform_sandbox.control.set(tenant="described")
    platform_sandbox.control.fault("status", method="POST", path="/dbt-sync$", **answer)
    tries = TaskTries(max_tries=2)
    with pytest.raises(Exception, match=str(answer["status"])):
        sync().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "failed"
    assert sync().execute(tries.context())["sync_job_id"]
    assert len(platform_sandbox.control.state().syncs) == 1


def test_wait_that_fails_for_good_stops_its_run(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(dbt_pace=60.0)
    platform_sandbox.control.fault("html", method="GET", path=r"/dbt-sync/\w+$")
    with pytest.raises(AirflowFailException, match="HTML"):
        sync().execute(TaskTries(max_tries=3).context())
    (started,) = platform_sandbox.control.state().syncs
    assert started.cancelled_at is not None


@pytest.mark.parametrize(("max_tries", "stopped"), [(0, True), (2, False)])
def test_unexpected_error_stops_a_run_that_no_retry_continues(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, max_tries: int, stopped: bool
) -> None:
    """The last try stops what it has started, an earlier one leaves it to the retry."""
    platform_sandbox.control.set(dbt_pace=60.0)

    def broken(*_: Any) -> None:
        raise RuntimeError("of a library")

    task = sync()
    monkeypatch.setattr(DbtSyncRunKind, "follow", broken)
    with pytest.raises(RuntimeError, match="of a library"):
        task.execute(TaskTries(max_tries=max_tries).context())
    (started,) = platform_sandbox.control.state().syncs
    assert (started.cancelled_at is not None) == stopped


def test_recovered_run_past_its_deadline_is_polled_before_it_is_stopped(
    platform_sandbox: Sandbox,
) -> None:
    tries = TaskTries(max_tries=2)
    first = sync(branch_name="b1").execute(tries.context())
    ids = {"deployment_id": 1, "ids_before": [], "submitted_at": time.time() - 60}
    tries.store[STORE_KEY].update(phase="intent", ids=ids)
    found = sync(branch_name="b1", timeout=30).execute(tries.context())
    assert found["sync_job_id"] == first["sync_job_id"]
    assert len(platform_sandbox.control.state().syncs) == 1
