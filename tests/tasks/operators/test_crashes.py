"""A try that crashes at any write of its record: the next try does no harm.

What ends it is a crash (nothing of the try's own code runs on) or a store that cannot be reached.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.operators.notifications import PlatformCreateNotificationOperator
from airflow_provider_platform.operators.workbooks import PlatformDuplicateWorkbookOperator
from airflow_provider_platform.resources import deliveries
from tests.support.remote_tasks import chat
from tests.support.task_context import StateStore, TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl

When = Literal["before", "after"]
TIMES = pytest.mark.parametrize("when", ["before", "after"])


class Crash(BaseException):
    """Nothing handles it, as nothing handles kill -9."""


class Unreachable(Exception):
    """Airflow's API server does not answer."""


class FailingStore(StateStore):
    """Raises at the write of this number, before it or after it, and never again."""

    def __init__(self, number: int, when: When, error: type[BaseException]) -> None:
        super().__init__()
        self._left = number
        self._when = when
        self._error = error

    def set(self, key: str, value: Any) -> None:
        self._left -= 1
        if self._left == 0 and self._when == "before":
            raise self._error
        super().set(key, value)
        if self._left == 0:
            raise self._error

    @property
    def has_failed(self) -> bool:
        return self._left <= 0


@pytest.fixture(params=[Crash, Unreachable], ids=["crash", "no store"])
def error(request: pytest.FixtureRequest) -> type[BaseException]:
    found: type[BaseException] = request.param
    return found


@pytest.fixture(autouse=True)
def slow_pace(control: SandboxControl) -> None:
    """So that each piece of an answer comes by itself."""
    control.set(pace=0.02)


def carry_through(make: Any, number: int, when: When, error: type[BaseException]) -> Any:
    """The result of a task whose first try meets the failure."""
    tries = TaskTries()
    tries.store = store = FailingStore(number, when, error)
    try:
        result = make().execute(tries.context())
    except (Crash, Unreachable):
        result = make().execute(tries.context())
    assert store.has_failed, "the record was written less often"
    return result


@TIMES
@pytest.mark.parametrize("number", [1, 2])
def test_a_notification_is_created_once(
    control: SandboxControl, number: int, when: When, error: type[BaseException]
) -> None:
    result = carry_through(
        lambda: PlatformCreateNotificationOperator(
            task_id="create", schedule_type="HOURLY", minute=5, dashboard_id=501
        ),
        number,
        when,
        error,
    )
    (created,) = control.state().changed("notifications")
    assert created.id == result["id"]


@pytest.mark.parametrize(("number", "when"), [(1, "after"), (2, "before")], ids=["unsent", "sent"])
def test_a_delivery_is_run_once(
    control: SandboxControl, number: int, when: When, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "ATTEMPT_PAUSE", 0.02)
    given: dict[str, Any] = {"delivery_id": 501, "poll_interval": 0.05, "deferrable": False}
    result = carry_through(
        lambda: PlatformRunDeliveryOperator(task_id="deliver", **given), number, when, Crash
    )
    assert (result["started"], result["status"]) == (True, "succeeded")
    assert len(control.state().changed("report-delivery-runs")) == 1


def crash_between_intent_and_answer(operator: Any) -> TaskTries:
    """The tries of a task whose first one crashed after it wrote its intent."""
    tries = TaskTries()
    tries.store = FailingStore(1, "after", Crash)
    with pytest.raises(Crash):
        operator.execute(tries.context())
    return tries


def duplicate(workbook_id: int) -> PlatformDuplicateWorkbookOperator:
    return PlatformDuplicateWorkbookOperator(task_id="duplicate", workbook_id=workbook_id)


def test_lost_single_call_with_changed_input_fails_until_the_task_is_cleared(
    control: SandboxControl,
) -> None:
    tries = crash_between_intent_and_answer(duplicate(301))
    with pytest.raises(
        AirflowFailException, match=r"with different input .* Check in the platform"
    ):
        duplicate(302).execute(tries.context())
    assert control.state().changed("workbooks") == []
    tries.clear()
    duplicate(302).execute(tries.context())
    assert len(control.state().changed("workbooks")) == 1


def test_lost_chat_with_changed_input_is_reported_before_the_new_question(
    control: SandboxControl, capfd: pytest.CaptureFixture[str]
) -> None:
    tries = crash_between_intent_and_answer(chat(prompt="revenue by month"))
    assert chat().execute(tries.context())["answer"]
    assert "different input, so that run may be active" in capfd.readouterr().out
    assert len(control.state().runs) == 1


def test_lost_chat_with_changed_input_is_stopped_if_its_thread_is_known(
    control: SandboxControl,
) -> None:
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    tries.store = FailingStore(2, "after", Crash)
    with pytest.raises(Crash):
        chat(prompt="revenue by month").execute(tries.context())
    control.wait_for_breakpoint("mid_stream")
    thread = threading.Thread(target=chat().execute, args=(tries.context(),))
    thread.start()
    control.wait_until(lambda state: len(state.runs) == 2)
    control.release()
    thread.join(30)
    assert [run.status for run in control.state().runs] == ["aborted", "finished"]
