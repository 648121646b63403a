"""Deliveries that a task runs now: started once, followed to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformDeadlineError,
    PlatformInputError,
    PlatformTransportError,
    ReportDeliveryFailedError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.resources import deliveries as delivery_runs
from airflow_provider_platform.resources.deliveries import run_report_delivery
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

RUNS = {"method": "POST", "path": "/runs$"}
"""The requests that start a run."""
LISTS = {"method": "GET", "path": "/runs$"}
LONG = 1000.0
"""Seconds of a run by the sandbox's clock, which only a test moves that far."""


@pytest.fixture(autouse=True)
def _short_pauses_of_deliveries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_runs, "ATTEMPT_PAUSE", 0.02)
    monkeypatch.setattr(delivery_runs, "SUCCESS_GRACE", 0.3)


def deliver(**arguments: Any) -> PlatformRunDeliveryOperator:
    return PlatformRunDeliveryOperator(
        task_id="deliver",
        **{"delivery_id": 501, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def slow(control: SandboxControl) -> None:
    """Runs take long from now on."""
    control.set(delivery_seconds=LONG)


def starts(control: SandboxControl) -> int:
    return len(control.state().changed("report-delivery-runs"))


def start_elsewhere() -> str:
    """Start a run as somebody else would; its id."""
    result = deliver(wait_for_completion=False).execute(TaskTries().context())
    run_id: str = result["run_id"]
    return run_id


def test_a_delivery_that_succeeds_is_returned_with_its_run(control: SandboxControl) -> None:
    control.set(delivery_seconds=0.2)
    result = deliver().execute(TaskTries().context())
    fields = {"delivery_id", "run_id", "started", "status", "run", "last_success_at"}
    assert set(result) == fields
    assert (result["delivery_id"], result["started"], result["status"]) == (
        501,
        True,
        "succeeded",
    )
    assert result["run"]["runId"] == result["run_id"]
    assert result["last_success_at"].startswith("20")
    assert starts(control) == 1


@pytest.mark.parametrize("ends", ["states", "finished"])
def test_delivery_fails_if_it_ends_with_an_error_or_without_a_new_success(
    ends: str, control: SandboxControl
) -> None:
    if ends == "finished":
        ended = {"method": "GET", "path": "/runs/[0-9a-f]+$", "count": None}
        control.fault("odd_field", field="status", value="finished", **ended)
    assert deliver().execute(TaskTries().context())["last_success_at"]
    control.advance(5)
    control.set(delivery_outcome="failed")
    with pytest.raises(ReportDeliveryFailedError, match="overwrite filled cells") as caught:
        deliver().execute(TaskTries().context())
    assert "Clear these cells" in str(caught.value)


def test_running_delivery_is_followed(control: SandboxControl) -> None:
    control.set(delivery_seconds=0.5)
    run_id = start_elsewhere()
    result = deliver().execute(TaskTries().context())
    assert (result["run_id"], result["started"]) == (run_id, False)
    assert starts(control) == 1


def test_if_running_fail_fails_the_try_for_a_running_delivery(control: SandboxControl) -> None:
    slow(control)
    run_id = start_elsewhere()
    tries = TaskTries()
    with pytest.raises(AlreadyRunningError, match=run_id) as caught:
        deliver(if_running="fail").execute(tries.context())
    assert "Nothing was started" in str(caught.value)
    control.advance(LONG)
    control.set(delivery_seconds=0)
    assert deliver(if_running="fail").execute(tries.context())["started"] is True
    assert starts(control) == 2


def test_if_running_skip_skips_the_task_for_a_running_delivery(control: SandboxControl) -> None:
    slow(control)
    start_elsewhere()
    with pytest.raises(AirflowSkipException, match="The task is skipped"):
        deliver(if_running="skip").execute(TaskTries().context())
    assert starts(control) == 1


@pytest.mark.parametrize("if_running", ["follow", "fail", "skip"])
def test_run_that_begins_after_the_check_is_treated_like_a_running_one(
    if_running: str, control: SandboxControl, task: Any
) -> None:
    control.set(delivery_seconds=LONG)
    control.set_breakpoint("before_answer", **LISTS)
    running = task(deliver(if_running=if_running, timeout=0.5), TaskTries())
    control.wait_for_breakpoint("before_answer")
    PlatformHook().run(run_report_delivery(id=501))
    control.release()
    error = running.end()
    if if_running == "follow":
        assert isinstance(error, PlatformDeadlineError)
    else:
        assert isinstance(
            error, {"fail": AlreadyRunningError, "skip": AirflowSkipException}[if_running]
        )
    assert starts(control) == 1


def test_retry_sends_a_start_that_never_arrived(control: SandboxControl) -> None:
    tries = TaskTries()
    control.fault("status", **RUNS, status=500)
    with pytest.raises(PlatformTransportError, match=r"no new run\. A retry starts a run"):
        deliver().execute(tries.context())
    assert starts(control) == 0
    assert deliver().execute(tries.context())["started"] is True
    assert starts(control) == 1


def test_a_retry_follows_the_run_that_outlived_the_deadline(control: SandboxControl) -> None:
    slow(control)
    tries = TaskTries()
    with pytest.raises(PlatformDeadlineError, match="a retry follows it"):
        deliver(timeout=0.3).execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    control.advance(LONG)
    assert deliver(timeout=30).execute(tries.context())["started"] is True
    assert starts(control) == 1


def test_a_retry_starts_a_failed_run_again(control: SandboxControl) -> None:
    control.set(delivery_outcome="failed")
    tries = TaskTries()
    with pytest.raises(ReportDeliveryFailedError):
        deliver().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "failed"
    control.set(delivery_outcome="succeeded")
    assert deliver().execute(tries.context())["started"] is True
    assert starts(control) == 2


def not_activated(control: SandboxControl) -> None:
    control.fault("status", path="/report-deliveries", status=404, message="Not Found", count=None)


def test_deliveries_that_are_not_activated_are_named(control: SandboxControl) -> None:
    not_activated(control)
    with pytest.raises(AirflowFailException, match="not activated on this tenant"):
        deliver().execute(TaskTries().context())


@pytest.mark.parametrize("lacks", ["account", "operation"])
def test_on_not_activated_skip_skips_the_task(control: SandboxControl, lacks: str) -> None:
    if lacks == "account":
        not_activated(control)
    else:
        control.set(tenant="described")
    with pytest.raises(AirflowSkipException, match="not activated on this tenant"):
        deliver(on_not_activated="skip").execute(TaskTries().context())


def test_on_not_activated_skip_does_not_skip_a_wrong_id(control: SandboxControl) -> None:
    with pytest.raises(AirflowFailException, match="No report delivery has this id"):
        deliver(delivery_id=999, on_not_activated="skip").execute(TaskTries().context())


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"delivery_id": ""}, "delivery_id"),
        ({"delivery_id": None}, "delivery_id"),
        ({"if_running": "wait"}, "if_running"),
        ({"wait_for_completion": "if_supported"}, "wait_for_completion"),
        ({"timeout": 0}, "timeout"),
        ({"on_not_activated": "wait"}, "on_not_activated"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        deliver(**arguments)
    assert caught.value.field == field
