"""A try that ends at any write of its record, before or after it, has the next one do no harm.

What ends it is a crash (nothing of the try's own code runs on) or a store that cannot be reached.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import pytest

from airflow_provider_platform.operators.notifications import PlatformCreateNotificationOperator
from tests.unit.operators.remote_tasks import chat, sync
from tests.unit.operators.task_context import StateStore, TaskTries

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
def slow_enough(control: SandboxControl) -> None:
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
@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_chat_has_one_answer(
    control: SandboxControl, number: int, when: When, error: type[BaseException]
) -> None:
    """Writes: the intent, the thread's name, the acceptance, the end."""
    result = carry_through(chat, number, when, error)
    state = control.state()
    # Sent, and the thread's name not written down: the one window.
    asked = 2 if (error, number, when) == (Crash, 2, "before") else 1
    assert len(state.messages) == len(state.runs) == asked
    assert {message.message_id for message in state.messages} == {result["message_id"]}
    assert result["answer"].startswith("Revenue by country")


@TIMES
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_chat_in_a_given_thread_is_asked_once(
    control: SandboxControl, number: int, when: When, error: type[BaseException]
) -> None:
    """Writes: the intent with the thread's name, the acceptance, the end."""
    chat_id = chat().execute(TaskTries().context())["chat_id"]
    result = carry_through(lambda: chat(chat_id=chat_id), number, when, error)
    state = control.state()
    assert [message.outcome for message in state.messages] == ["started", "started"]
    assert result["message_id"] == state.runs[-1].message_id


@TIMES
@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_dbt_sync_is_started_once(
    control: SandboxControl, number: int, when: When, error: type[BaseException]
) -> None:
    result = carry_through(
        sync,
        number,
        when,
        error,
    )
    (one,) = control.state().syncs
    assert (result["sync_job_id"], result["status"]) == (one.sync_job_id, "COMPLETED")


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
