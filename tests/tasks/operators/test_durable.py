"""`durable`: whether a run is recorded for a retry, and what tries with a record are counted as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.operators._run_record import STORE_KEY
from tests.support.remote_tasks import chat, deferral_while_stopped, sync
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

stats = pytest.importorskip("airflow.sdk.observability.stats", reason="Airflow 3.3 counts tries")

Counts = list[tuple[str, dict[str, Any]]]


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> Counts:
    """What Airflow counts."""
    if not hasattr(stats, "incr"):
        pytest.skip("Airflow 3.3 counts tries")
    found: Counts = []
    monkeypatch.setattr(stats, "incr", lambda name, *, tags: found.append((name, tags)))
    return found


def names(counts: Counts) -> list[str]:
    found = [name.removeprefix("resumable_job.") for name, _ in counts]
    counts.clear()
    return found


def begin(control: SandboxControl, tries: TaskTries, *, deferrable: bool) -> None:
    """A try that leaves an active run to the next one."""
    if deferrable:
        deferral_while_stopped(control, chat(deferrable=True).execute, tries.context())
        return
    control.fault("drop", api="chat", has_input=False, count=None)
    control.fault("cut", api="chat", has_input=True, after=6)
    with pytest.raises(Exception, match=r"connection|outage"):
        chat().execute(tries.context())
    control.clear_faults()


def test_run_that_is_not_durable_leaves_no_record_and_a_retry_asks_again(
    control: SandboxControl, counts: Counts
) -> None:
    tries = TaskTries()
    for _ in range(2):
        chat(durable=False).execute(tries.context())
    assert STORE_KEY not in tries.store
    assert len(control.state().messages) == 2
    assert counts == []


def test_failed_try_stops_a_run_that_is_not_durable(control: SandboxControl) -> None:
    """A retry could not find it."""
    control.set(dbt_pace=60)
    control.fault("html", method="GET", path=r"/dbt-sync/\w+$")
    with pytest.raises(AirflowFailException, match="HTML"):
        sync(durable=False).execute(TaskTries().context())
    assert [one.status for one in control.state().syncs] == ["CANCELLED"]


def test_durable_is_taken_from_default_args() -> None:
    assert chat(default_args={"durable": False}).durable is False
    assert chat().durable is None


@pytest.mark.parametrize("deferrable", [False, True])
def test_tries_are_counted_as_airflows_own_operators_count_them(
    control: SandboxControl, counts: Counts, deferrable: bool
) -> None:
    tries = TaskTries()
    begin(control, tries, deferrable=deferrable)
    assert counts == [("resumable_job.fresh_submit", {"operator": "PlatformChatOperator"})]
    counts.clear()
    chat().execute(tries.context())
    assert names(counts) == ["reconnect_attempt", "reconnect_success"]
    chat().execute(tries.context())
    assert names(counts) == ["reconnect_attempt", "already_succeeded"]
    tries.clear()
    chat().execute(tries.context())
    assert names(counts) == ["fresh_submit"]
    assert len(control.state().messages) == 2


def test_run_that_ended_without_a_result_is_counted_as_submitted_again(
    control: SandboxControl, counts: Counts
) -> None:
    tries = TaskTries()
    begin(control, tries, deferrable=True)
    control.wait_until(lambda state: state.runs[0].status == "finished")
    record = tries.store[STORE_KEY]
    tries.store[STORE_KEY] = {**record, "phase": "failed"}
    counts.clear()
    chat().execute(tries.context())
    assert names(counts) == ["reconnect_attempt", "terminal_resubmit"]
    assert len(control.state().messages) == 2


def test_counters_name_the_team(control: SandboxControl, counts: Counts) -> None:
    context = TaskTries().context()
    context["ti"].stats_tags = {"dag_id": "dag", "team_name": "sales"}
    chat().execute(context)
    assert counts[0][1] == {"operator": "PlatformChatOperator", "team_name": "sales"}
