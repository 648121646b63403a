"""Deliveries and scheduled tasks that a task runs now: started once, followed to their end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformDeadlineError,
    PlatformInputError,
    PlatformServerError,
    PlatformTransportError,
    ReportDeliveryFailedError,
    ScheduledTaskFailedError,
)
from airflow_provider_platform.client.management.deliveries.deliveries import run_report_delivery
from airflow_provider_platform.client.management.scheduled_tasks.scheduled_tasks import (
    run_scheduled_task,
)
from airflow_provider_platform.client.management.shared import runs_now
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._submission.record import STORE_KEY
from airflow_provider_platform.operators.deliveries import (
    PlatformPauseDeliveryOperator,
    PlatformResumeDeliveryOperator,
    PlatformRunDeliveryOperator,
    PlatformRunScheduledTaskOperator,
)
from tests.unit.operators.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.unit.operators.captured_log import Capture

RUNS = {"method": "POST", "path": "/(runs|run)$"}
"""The requests that start a run."""
LISTS = {"method": "GET", "path": "/runs$"}
LONG = 1000.0
"""Seconds of a run by the sandbox's clock, which only a test moves that far."""


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs_now, "ATTEMPT_PAUSE", 0.02)
    monkeypatch.setattr(runs_now, "SUCCESS_GRACE", 0.3)


def deliver(**arguments: Any) -> PlatformRunDeliveryOperator:
    return PlatformRunDeliveryOperator(
        task_id="deliver",
        **{"delivery_id": 501, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def run_task(**arguments: Any) -> PlatformRunScheduledTaskOperator:
    return PlatformRunScheduledTaskOperator(
        task_id="run",
        **{"scheduled_task_id": 601, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


KINDS = {"delivery": deliver, "scheduled task": run_task}
BOTH = pytest.mark.parametrize("make", KINDS.values(), ids=KINDS.keys())


def slow(control: SandboxControl) -> None:
    """Runs take long from now on."""
    control.set(delivery_seconds=LONG, task_seconds=LONG)


def starts(control: SandboxControl) -> int:
    state = control.state()
    return len([*state.changed("report-delivery-runs"), *state.changed("scheduled-task-runs")])


def start_elsewhere(make: Any) -> str:
    """Start a run as somebody else would; its id."""
    result = make(wait_for_completion=False).execute(TaskTries().context())
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


def test_a_task_that_completes_is_returned_with_its_run(control: SandboxControl) -> None:
    control.set(task_seconds=0.2)
    result = run_task().execute(TaskTries().context())
    assert set(result) == {"scheduled_task_id", "run_id", "started", "status", "run"}
    assert (result["scheduled_task_id"], result["status"]) == (601, "complete")
    assert result["run"]["threadId"] == f"thread-{result['run_id']}"
    assert starts(control) == 1


@pytest.mark.parametrize("ends", ["states", "finished"])
def test_delivery_fails_if_it_ends_with_an_error_or_without_a_new_success(
    ends: str, control: SandboxControl
) -> None:
    control.set(delivery_ends=ends)
    assert deliver().execute(TaskTries().context())["last_success_at"]
    control.advance(5)
    control.set(delivery_outcome="failed")
    with pytest.raises(ReportDeliveryFailedError, match="overwrite filled cells") as caught:
        deliver().execute(TaskTries().context())
    assert "Clear these cells" in str(caught.value)


def test_delivery_that_ends_without_error_and_without_success_fails(
    control: SandboxControl,
) -> None:
    deliver().execute(TaskTries().context())
    control.advance(5)
    control.set(delivery_outcome="unreported")
    with pytest.raises(ReportDeliveryFailedError, match="no success since it started"):
        deliver().execute(TaskTries().context())


def test_a_success_that_is_reported_late_is_waited_for(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs_now, "SUCCESS_GRACE", 60)
    control.set(delivery_success_delay=0.4)
    assert deliver().execute(TaskTries().context())["status"] == "succeeded"


def test_a_task_that_fails_says_why(control: SandboxControl) -> None:
    control.set(task_outcome="failed")
    with pytest.raises(ScheduledTaskFailedError, match="time limit"):
        run_task().execute(TaskTries().context())


@BOTH
def test_a_run_that_is_not_waited_for_has_no_status(make: Any, control: SandboxControl) -> None:
    slow(control)
    result = make(wait_for_completion=False).execute(TaskTries().context())
    assert (result["started"], result["status"], result["run"]) == (True, None, None)
    assert result["run_id"]


@BOTH
def test_running_delivery_is_followed(make: Any, control: SandboxControl) -> None:
    control.set(delivery_seconds=0.5, task_seconds=0.5)
    run_id = start_elsewhere(make)
    result = make().execute(TaskTries().context())
    assert (result["run_id"], result["started"]) == (run_id, False)
    assert starts(control) == 1


@BOTH
def test_if_running_fail_fails_the_try_for_a_running_delivery(
    make: Any, control: SandboxControl
) -> None:
    slow(control)
    run_id = start_elsewhere(make)
    tries = TaskTries()
    with pytest.raises(AlreadyRunningError, match=run_id) as caught:
        make(if_running="fail").execute(tries.context())
    assert "Nothing was started" in str(caught.value)
    control.advance(LONG)
    control.set(delivery_seconds=0, task_seconds=0)
    assert make(if_running="fail").execute(tries.context())["started"] is True
    assert starts(control) == 2


@BOTH
def test_if_running_skip_skips_the_task_for_a_running_delivery(
    make: Any, control: SandboxControl
) -> None:
    slow(control)
    start_elsewhere(make)
    with pytest.raises(AirflowSkipException, match="The task is skipped"):
        make(if_running="skip").execute(TaskTries().context())
    assert starts(control) == 1


START = {
    "delivery": run_report_delivery(delivery_id=501),
    "scheduled task": run_scheduled_task(task_id=601),
}


@pytest.mark.parametrize("if_running", ["follow", "fail", "skip"])
@pytest.mark.parametrize("kind", KINDS)
def test_run_that_begins_after_the_check_is_treated_like_a_running_one(
    kind: str, if_running: str, control: SandboxControl, task: Any
) -> None:
    control.set(task_while_running="409", delivery_seconds=LONG, task_seconds=LONG)
    control.set_breakpoint("before_answer", **LISTS)
    running = task(KINDS[kind](if_running=if_running, timeout=0.5), TaskTries())
    control.wait_for_breakpoint("before_answer")
    PlatformHook().run(START[kind])
    control.release()
    error = running.end()
    if if_running == "follow":
        assert isinstance(error, PlatformDeadlineError)
    else:
        assert isinstance(
            error, {"fail": AlreadyRunningError, "skip": AirflowSkipException}[if_running]
        )
    assert starts(control) == 1


@BOTH
def test_run_is_found_and_followed_after_a_lost_response(
    make: Any, control: SandboxControl
) -> None:
    control.fault("lost_response", **RUNS)
    assert make().execute(TaskTries().context())["started"] is True
    assert starts(control) == 1


@BOTH
def test_retry_sends_a_start_that_never_arrived(make: Any, control: SandboxControl) -> None:
    tries = TaskTries()
    control.fault("status", **RUNS, status=500)
    with pytest.raises(PlatformTransportError, match=r"no new run\. A retry starts a run"):
        make().execute(tries.context())
    assert starts(control) == 0
    assert make().execute(tries.context())["started"] is True
    assert starts(control) == 1


@pytest.mark.exhaustive
@BOTH
def test_a_retry_finds_the_run_of_a_try_that_was_lost_at_the_start(
    make: Any, control: SandboxControl
) -> None:
    tries = TaskTries()
    control.fault("lost_response", **RUNS)
    control.fault("status", **LISTS, nth=2, status=502, body="html", count=20)
    with pytest.raises(PlatformTransportError, match="A retry reads the list of runs again"):
        make().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"
    control.clear_faults()
    assert make().execute(tries.context())["started"] is True
    assert starts(control) == 1


@BOTH
def test_lost_start_without_a_trace_has_an_unknown_outcome_and_is_not_repeated(
    make: Any, control: SandboxControl
) -> None:
    start_elsewhere(make)
    control.set(run_ids="none")
    control.fault("lost_response", **RUNS)
    tries = TaskTries()
    with pytest.raises(AirflowFailException, match="the list of its runs has no ids") as caught:
        make().execute(tries.context())
    assert "mark this task as successful" in str(caught.value)
    assert tries.store[STORE_KEY]["phase"] == "lost"
    assert starts(control) == 2


@BOTH
def test_a_retry_follows_the_run_that_outlived_the_deadline(
    make: Any, control: SandboxControl
) -> None:
    slow(control)
    tries = TaskTries()
    with pytest.raises(PlatformDeadlineError, match="a retry follows it"):
        make(timeout=0.3).execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    control.advance(LONG)
    assert make(timeout=30).execute(tries.context())["started"] is True
    assert starts(control) == 1


@BOTH
def test_a_retry_starts_a_failed_run_again(make: Any, control: SandboxControl) -> None:
    control.set(delivery_outcome="failed", task_outcome="failed")
    tries = TaskTries()
    with pytest.raises((ReportDeliveryFailedError, ScheduledTaskFailedError)):
        make().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "failed"
    control.set(delivery_outcome="succeeded", task_outcome="complete")
    assert make().execute(tries.context())["started"] is True
    assert starts(control) == 2


@BOTH
def test_cleared_task_delivers_again(make: Any, control: SandboxControl) -> None:
    tries = TaskTries()
    make().execute(tries.context())
    control.advance(5)
    tries.clear()
    make().execute(tries.context())
    assert starts(control) == 2


@BOTH
def test_short_outages_during_the_wait_are_tolerated(make: Any, control: SandboxControl) -> None:
    control.set(delivery_seconds=0.3, task_seconds=0.3)
    tries = TaskTries()
    control.fault("status", method="GET", nth=3, status=503, count=3)
    assert make().execute(tries.context())["status"]


@pytest.mark.exhaustive
@BOTH
def test_an_outage_during_the_wait_leaves_the_run_to_the_retry(
    make: Any, control: SandboxControl
) -> None:
    slow(control)
    tries = TaskTries()
    control.fault("status", method="GET", path="/runs(/[^/]*)?$", nth=3, status=502, count=9)
    with pytest.raises(PlatformServerError):
        make().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "running"
    control.clear_faults()
    control.advance(LONG)
    assert make().execute(tries.context())["status"]
    assert starts(control) == 1


def test_deliveries_that_are_not_activated_are_named(control: SandboxControl) -> None:
    control.set(deliveries_activated=False)
    for operator in (
        deliver(),
        PlatformPauseDeliveryOperator(task_id="pause", delivery_id=501),
        PlatformResumeDeliveryOperator(task_id="resume", delivery_id=501),
    ):
        with pytest.raises(AirflowFailException, match="not activated on this tenant") as caught:
            operator.execute(TaskTries().context())
        assert "v0.17.0 or later" in str(caught.value)


def test_tasks_that_are_not_activated_are_named(control: SandboxControl) -> None:
    control.set(tasks_enabled=False)
    with pytest.raises(AirflowFailException, match="not activated for this account"):
        run_task().execute(TaskTries().context())


@pytest.mark.parametrize("answer", ["html", "404", "405"])
def test_older_tenant_is_distinguished_from_a_wrong_id(
    answer: str, control: SandboxControl
) -> None:
    control.set(release="0.14.0", missing_operation=answer)
    with pytest.raises(AirflowFailException, match=r"need release v0\.17\.0 or later"):
        deliver().execute(TaskTries().context())
    with pytest.raises(AirflowFailException, match=r"need release v0\.15\.0 or later"):
        run_task().execute(TaskTries().context())


def test_error_names_a_wrong_delivery_id(control: SandboxControl) -> None:
    with pytest.raises(AirflowFailException, match="No report delivery has this id"):
        deliver(delivery_id=999).execute(TaskTries().context())
    with pytest.raises(AirflowFailException, match="No scheduled task has this id"):
        run_task(scheduled_task_id=999).execute(TaskTries().context())
    assert starts(control) == 0


def test_unknown_deployment_is_reported_with_the_error_of_the_service(
    control: SandboxControl,
) -> None:
    for make in KINDS.values():
        with pytest.raises(AirflowFailException, match="Deployment 9 not found"):
            make(deployment_id=9).execute(TaskTries().context())
    assert starts(control) == 0


def test_a_task_of_another_user_says_who_may_run_it(control: SandboxControl) -> None:
    control.set(token_lacks=["Admin"])
    with pytest.raises(AirflowFailException, match="creator"):
        run_task(scheduled_task_id=602).execute(TaskTries().context())


def test_a_tenant_that_reports_no_status_ends_the_task_after_the_start(
    control: SandboxControl, capture: Capture
) -> None:
    control.set(task_run_status="none")
    result = run_task().execute(TaskTries().context())
    assert (result["status"], result["started"]) == (None, True)
    assert "does not report the status of a run of a scheduled task" in "\n".join(capture.lines())
    with pytest.raises(AirflowFailException, match="was started, but this tenant does not report"):
        run_task(wait_for_completion=True).execute(TaskTries().context())


def test_a_start_without_an_id_is_found_in_the_list(control: SandboxControl) -> None:
    control.set(task_start_answer="empty")
    assert run_task().execute(TaskTries().context())["status"] == "complete"
    assert starts(control) == 1


@BOTH
def test_delivery_trigger_follows_the_run_and_starts_no_other(
    make: Any, control: SandboxControl
) -> None:
    slow(control)
    deferred = deferral(make(deferrable=True).execute, TaskTries().context())
    _, arguments = deferred.trigger.serialize()
    assert arguments["run"]["run_id"]
    assert "ids_before" not in arguments["run"]
    assert starts(control) == 1


def test_a_delivery_is_paused_and_resumed(control: SandboxControl) -> None:
    pause = PlatformPauseDeliveryOperator(task_id="pause", delivery_id=502)
    resume = PlatformResumeDeliveryOperator(task_id="resume", delivery_id=502)
    assert pause.execute(TaskTries().context())["status"] == "paused"
    assert deliver(delivery_id=502).execute(TaskTries().context())["status"] == "succeeded"
    assert resume.execute(TaskTries().context())["status"] == "active"


def test_a_pause_whose_answer_was_lost_is_sent_again(control: SandboxControl) -> None:
    control.fault("lost_response", path="/pause$")
    pause = PlatformPauseDeliveryOperator(task_id="pause", delivery_id=502)
    assert pause.execute(TaskTries().context())["status"] == "paused"


@pytest.mark.parametrize(
    ("make", "arguments", "field"),
    [
        (deliver, {"delivery_id": ""}, "delivery_id"),
        (deliver, {"delivery_id": None}, "delivery_id"),
        (deliver, {"if_running": "wait"}, "if_running"),
        (deliver, {"wait_for_completion": "if_supported"}, "wait_for_completion"),
        (deliver, {"timeout": 0}, "timeout"),
        (run_task, {"scheduled_task_id": ""}, "scheduled_task_id"),
        (run_task, {"if_running": "start"}, "if_running"),
        (run_task, {"wait_for_completion": "maybe"}, "wait_for_completion"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    make: Any, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        make(**arguments)
    assert caught.value.field == field


def test_slash_in_an_id_does_not_change_the_path(
    control: SandboxControl, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException):
        deliver(delivery_id="501/../502").execute(TaskTries().context())
    assert starts(control) == 0
    assert platform_sandbox.control.state().requests
