"""When `poll_until` polls, which failures it tolerates, and when it gives up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    PlatformBadRequestError,
    PlatformError,
    PlatformNotFoundError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.polling import (
    NOT_FOUND_GRACE,
    PollFailed,
    PollInterval,
    Wait,
    poll_until,
)
from tests.support.fakes.effects import Sleep, api_with, play

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

NOON = 1_800_000_000.0
LATE = PlatformNotFoundError("unknown", status=404)
DOWN = PlatformServerError("down", status=503)
LOST = PlatformTransportError("lost")
WRONG = PlatformBadRequestError("wrong", status=400)


class ScriptedPolls:
    """Give the listed outcomes one after the other, and record the pauses."""

    def __init__(self, *polls: Any) -> None:
        self.now = NOON
        self.polls = list(polls)
        self.slept: list[float] = []
        self.least: list[float] = []  # the same, if chance makes each pause as short as it can
        self.events: list[object] = []

    async def condition(self, api: Api) -> Any:
        found = self.polls.pop(0) if self.polls else None
        if isinstance(found, PlatformError):
            raise found
        return found

    def sleep(self, effect: Sleep) -> None:
        self.slept.append(effect.seconds)
        self.least.append(effect.shortest)
        self.now += effect.seconds

    def poll_until(
        self, interval: PollInterval, *, seconds: float = 3600.0, grace: bool = False
    ) -> Any:
        program = poll_until(
            api_with(lambda: self.now),
            self.condition,
            Wait(
                NOON + seconds,
                interval,
                "after a pause",
                grace=grace,
                notify_failures=True,
                last_failure_counts=False,
            ),
        )
        return play(program, self.sleep, self.events)


def test_polls_every_interval_until_there_is_a_result() -> None:
    polls = ScriptedPolls(None, None, {"id": 1})
    assert polls.poll_until(PollInterval(30.0)) == {"id": 1}
    assert polls.slept == [30.0, 30.0, 30.0]


def test_polls_one_last_time_at_the_deadline() -> None:
    polls = ScriptedPolls(None, None, {"id": 1})
    assert polls.poll_until(PollInterval(30.0), seconds=70) == {"id": 1}
    assert polls.slept == [30.0, 30.0, 10.0]
    assert ScriptedPolls().poll_until(PollInterval(30.0), seconds=70) is None


def test_five_failures_in_a_row_are_tolerated_and_reported() -> None:
    polls = ScriptedPolls(DOWN, LOST, DOWN, LOST, DOWN, {"id": 1})
    assert polls.poll_until(PollInterval(1.0)) == {"id": 1}
    assert [type(event) for event in polls.events] == [PollFailed] * 5


def test_sixth_failure_in_a_row_is_raised() -> None:
    with pytest.raises(PlatformServerError):
        ScriptedPolls(*[DOWN] * 6).poll_until(PollInterval(1.0))


def test_successful_poll_resets_the_failure_count() -> None:
    assert ScriptedPolls(*[DOWN] * 5, None, *[DOWN] * 5, {"id": 1}).poll_until(
        PollInterval(1.0)
    ) == {"id": 1}


def test_pauses_grow_while_polls_fail() -> None:
    polls = ScriptedPolls(DOWN, DOWN, DOWN, None, {"id": 1})
    polls.poll_until(PollInterval(10.0))
    assert polls.least == pytest.approx([5.0, 10.0, 20.0, 40.0, 5.0])


@pytest.mark.parametrize("interval", [0.1, 5.0, 60.0])
def test_tolerated_failures_take_two_minutes_whatever_chance_does(interval: float) -> None:
    polls = ScriptedPolls(*[DOWN] * 5, {"id": 1})
    polls.poll_until(PollInterval(interval))
    assert sum(polls.least[1:]) >= 120.0


def test_poll_after_a_failure_does_not_come_before_the_time_that_the_service_asks() -> None:
    polls = ScriptedPolls(PlatformServerError("down", status=503, retry_after=90.0), {"id": 1})
    polls.poll_until(PollInterval(5.0))
    assert polls.least[1] >= 90.0


def test_non_retryable_error_ends_the_wait() -> None:
    with pytest.raises(PlatformBadRequestError):
        ScriptedPolls(None, WRONG).poll_until(PollInterval(1.0))
    with pytest.raises(PlatformNotFoundError):
        ScriptedPolls(LATE).poll_until(PollInterval(1.0))


def test_new_object_may_be_unknown_for_the_grace_time() -> None:
    polls = [LATE] * int(NOT_FOUND_GRACE / 10)
    assert ScriptedPolls(*polls, {"id": 1}).poll_until(PollInterval(10.0), grace=True) == {"id": 1}
    with pytest.raises(PlatformNotFoundError):
        ScriptedPolls(*polls, LATE).poll_until(PollInterval(10.0), grace=True)


@given(polls=st.integers(min_value=1, max_value=1000), interval=st.floats(0, 600))
def test_growing_pauses_stay_below_the_maximum(polls: int, interval: float) -> None:
    interval = PollInterval(interval, exponential_backoff=True, max_wait=900.0)
    assert 1.0 <= interval.pause(polls) <= 900.0
    assert PollInterval(interval).pause(polls) == interval


def test_pauses_double_until_the_maximum() -> None:
    interval = PollInterval(60.0, exponential_backoff=True)
    for polls, least in ((2, 60.0), (3, 120.0), (4, 240.0)):
        assert least <= interval.pause(polls) <= 2 * least
