"""Following: how a run ends, how long the program waits, and what one poll returns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from airflow_provider_platform.client.choices import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    ChatEndUnknownError,
    ChatSuspendedError,
    PlatformApiError,
    PlatformDeadlineError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.polling import TOLERATED_FAILURES
from airflow_provider_platform.resources.chat.call import (
    IDLE_POLLS,
    READINGS,
    USAGE_WAIT,
)
from tests.support.fakes.chat_calls import (
    AFTER_ECHO,
    AFTER_MARK,
    DEADLINE,
    EARLIER,
    Call,
    accepted_call,
    new_call,
)
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import BUSY, NOON, Fault, PlayedService, drive
from tests.support.fakes.streams import (
    CHAT_ID,
    EXPECTED,
    LATE,
    Record,
    Turn,
    aborted,
    cutoff,
    encode,
    folded,
    state,
    suspended,
)


@pytest.mark.parametrize("follow_up", ["subscribe", "state"])
@pytest.mark.parametrize("replay", ["before", "after"])
def test_following_from_any_moment_returns_the_complete_result(follow_up: Any, replay: Any) -> None:
    for waited in range(0, 30, 4):
        service = PlayedService(earlier=(EARLIER,), follow_up=follow_up, replay=replay)
        call = accepted_call(service, thread=True)
        service.now += waited
        assert call.follow() is True
        assert call.result() in (EXPECTED, LATE)
        assert service.prompts == []


def test_a_thread_that_only_sends_its_state_is_polled_every_interval() -> None:
    service = PlayedService(follow_up="state")
    call = accepted_call(service, poll_interval=7.0)
    assert call.follow() is True
    assert service.sleeps == [7.0] * 3
    assert call.result()["answer"] == EXPECTED["answer"]


def test_thread_is_read_again_if_the_beginning_of_a_run_is_missing() -> None:
    service = PlayedService(replay="none")
    call = accepted_call(service)
    service.now += 10
    assert call.follow() is True
    assert call.result() == EXPECTED
    assert len(service.bodies) == 2


def test_result_is_kept_if_the_second_read_of_the_thread_fails() -> None:
    service = PlayedService(replay="none", faults=[Fault("none"), Fault("refuse", status=404)])
    call = accepted_call(service)
    service.now += 10
    assert call.follow() is True
    assert call.result()["answer"] == EXPECTED["answer"]


def test_thread_that_still_streams_after_the_end_is_read_again() -> None:
    """The usage comes late: an earlier reader is subscribed, and receives nothing of the run."""
    service = PlayedService(replay="none", pace=10.0)
    call = accepted_call(service)
    service.now += 120
    assert call.follow() is True
    assert call.result()["queries"] == EXPECTED["queries"]
    assert len(service.bodies) == 3


def test_thread_that_never_stops_streaming_after_the_end_is_read_only_a_few_times() -> None:
    """What is known already is a result too."""
    ended = [cutoff(streaming=True), *Turn().records()[1:], *Turn().end()]
    service = PlayedService(scripted=[ended, *[[cutoff(streaming=True)]] * 9])
    call = accepted_call(service)
    assert call.follow() is True
    assert call.result()["answer"] == EXPECTED["answer"]
    assert len(service.bodies) == 1 + READINGS


def test_a_thread_is_read_for_lost_records_as_long_as_an_outage_is_tolerated() -> None:
    service = PlayedService(replay="none", faults=[Fault("none"), *[Fault("unreachable")] * 9])
    call = accepted_call(service)
    service.now += 10
    assert call.follow() is True
    assert call.result()["answer"] == EXPECTED["answer"]
    assert len(service.bodies) == 2 + TOLERATED_FAILURES


OUTAGES = [
    Fault("refuse", status=502),
    Fault("unreachable"),
    Fault("close"),
    Fault("reset"),
    Fault("close", AFTER_MARK // 2),
]


@pytest.mark.parametrize("fault", OUTAGES)
@pytest.mark.parametrize("poll", [False, True], ids=["follow", "look once"])
def test_outage_of_two_minutes_ends_no_wait(fault: Fault, poll: bool) -> None:
    """The same budget as in every other wait, in both modes."""
    service = PlayedService(faults=[fault] * 99)
    call = accepted_call(service)
    program = call.chat.poll_final_state if poll else call.chat.follow
    with pytest.raises((PlatformServerError, PlatformTransportError)):
        drive(program(api_with(service.clock)), service)
    assert len(service.bodies) == TOLERATED_FAILURES + 1
    assert service.now >= NOON + 120
    survived = PlayedService(faults=[fault] * TOLERATED_FAILURES)
    assert accepted_call(survived).follow() is True


def test_progress_resets_the_count() -> None:
    """Five failures before each new record are borne; six are not."""
    bad = [Fault("refuse", status=502)]
    ends = [len(encode(*folded(Turn().records())[:n])) for n in range(2, 6)]
    for failures, borne in ((5, True), (6, False)):
        faults = [fault for end in ends for fault in (*bad * failures, Fault("close", end))]
        service = PlayedService(faults=faults)
        call = accepted_call(service)
        service.now += 60
        if borne:
            assert call.follow() is True
            assert call.result() == LATE
        else:
            with pytest.raises(PlatformServerError):
                call.follow()


def test_reported_streaming_resets_the_count_and_the_deadline_ends_the_wait() -> None:
    """The run stays silent, but the service says that it streams."""
    sent = len(encode(Turn().records()[0], cutoff(streaming=True)))
    service = PlayedService(faults=[Fault("close", sent)] * 999, pace=10**6)
    call = accepted_call(service)
    with pytest.raises(PlatformDeadlineError, match="did not end before its deadline") as late:
        call.follow()
    assert "raise timeout, or the task's execution_timeout if that is shorter" in str(late.value)
    assert service.now == DEADLINE
    assert len(service.bodies) > TOLERATED_FAILURES
    assert service.sleeps[10] > 10 * service.sleeps[0]


@pytest.mark.parametrize("kind", ["blank", "silence"])
def test_blank_lines_count_as_silence(kind: Any) -> None:
    service = PlayedService(faults=[Fault(kind, AFTER_ECHO)])
    call = new_call(service, idle_timeout=120.0)
    assert call.ask() is True
    assert call.result() == LATE
    assert NOON + 120 <= service.now <= NOON + 122


@pytest.mark.parametrize(
    ("value", "least"), [("9", 9), ("Fri, 15 Jan 2027 08:00:30 GMT", 30)], ids=["seconds", "date"]
)
@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_honoured_on_reconnect(value: str, least: float, status: int) -> None:
    service = PlayedService(faults=[Fault("refuse", status=status, retry_after=value)])
    call = accepted_call(service)
    assert call.follow() is True
    assert least <= service.sleeps[0] <= least * 1.25 + 5  # longer at random, never shorter
    assert call.result() in (EXPECTED, LATE)


@pytest.mark.parametrize("status", [429, 500, 503])
def test_retry_after_beyond_the_deadline_ends_a_follow_up_at_once(status: int) -> None:
    service = PlayedService(faults=[Fault("refuse", status=status, retry_after="86400")])
    with pytest.raises(PlatformApiError, match="Try later") as caught:
        accepted_call(service).follow()
    assert caught.value.status == status
    assert service.sleeps == []
    assert service.now == NOON


def test_search_of_a_lost_message_ends_at_a_retry_after_beyond_the_deadline() -> None:
    refused = Fault("refuse", status=429, retry_after="86400")
    service = PlayedService(earlier=(EARLIER,), faults=[Fault("lose"), refused])
    call = new_call(service, thread=True)
    with pytest.raises(PlatformTransportError, match="could not be read") as caught:
        call.ask()
    assert "429" in caught.value.message
    assert sum(service.sleeps) < 60


def test_refusal_of_a_busy_thread_while_following_counts_as_streaming() -> None:
    busy = Fault("refuse", status=400, body=b'{"message": "Streaming for thread is in progress"}')
    service = PlayedService(faults=[busy] * 8)
    assert accepted_call(service).follow() is True
    assert service.sleeps == [5.0] * 8


def test_stream_is_read_for_five_more_seconds_for_the_usage() -> None:
    until_end = encode(cutoff(), *Turn().records(), Turn().end()[0])
    service = PlayedService(faults=[Fault("silence", len(until_end))])
    call = new_call(service)
    assert call.ask() is True
    assert call.result() == {**EXPECTED, "usage": None}
    ended = NOON + len(Turn().records())
    assert service.now == ended + USAGE_WAIT == ended + 5
    assert len(service.bodies) == 1


def test_a_run_that_stays_suspended_gets_its_input_once_more() -> None:
    service = PlayedService(suspends_at=6, resume="input")
    call = new_call(service)
    with pytest.raises(ChatSuspendedError):
        call.ask()
    assert len(service.prompts) == 1
    assert POLL_INTERVAL in service.sleeps  # the run had time to continue by itself
    program = call.chat.follow_or_resume(api_with(service.clock))
    assert drive(program, service) is True
    assert call.result() == EXPECTED
    assert service.prompts[1:] == [{**service.prompts[0], "chatId": CHAT_ID}]
    assert len(service.starts) == 1


class AbortedTurn(Turn):
    """A turn that was stopped after its query, as the history of its thread replays it."""

    def records(self) -> list[Record]:
        return [*folded(super().records()[:-1]), aborted()]


@pytest.mark.parametrize("until_end", [True, False])
@pytest.mark.parametrize("follow_up", ["subscribe", "state"])
@pytest.mark.parametrize("replay", ["before", "after"])
def test_message_sent_again_after_an_abort_is_asked_once_and_followed(
    replay: Any, follow_up: Any, until_end: bool
) -> None:
    """An abort can reach a suspended run just before its message is sent again to resume it. The
    service then starts another run under the same message id, and replays the abort."""
    service = PlayedService(
        earlier=(AbortedTurn(name="first-"),), replay=replay, follow_up=follow_up, by_lines=True
    )
    call = accepted_call(service)
    service.starts.clear()
    call.request = new_call(service, thread=True).request
    assert call.ask(until_end=until_end) is until_end
    assert len(service.bodies) == len(service.prompts) == 1
    assert until_end or call.follow() is True
    assert call.result() in (EXPECTED, LATE)
    assert len(service.prompts) == len(service.starts) == 1


def test_run_that_never_resumes_raises_suspended_error() -> None:
    service = PlayedService(suspends_at=6, resume="never")
    call = accepted_call(service)
    call.request = new_call(service).request
    with pytest.raises(ChatSuspendedError, match="24 hours"):
        drive(call.chat.follow_or_resume(api_with(service.clock)), service)
    assert len(service.prompts) == 1
    assert service.now < NOON + 60


def test_wait_for_a_suspended_thread_that_reports_streaming_ends() -> None:
    sent = [Turn().records()[0], cutoff(streaming=True), suspended()]
    service = PlayedService(scripted=[sent] * 9)
    with pytest.raises(ChatSuspendedError):
        accepted_call(service).follow()


def test_poll_says_whether_the_run_is_over() -> None:
    running, done = PlayedService(follow_up="state"), PlayedService()
    call = accepted_call(running)
    program = call.chat.poll_final_state(api_with(running.clock))
    assert drive(program, running) is False
    call = accepted_call(done)
    done.now += 100
    assert drive(call.chat.poll_final_state(api_with(done.clock)), done) is True
    assert call.result()["answer"] == EXPECTED["answer"]


def test_poll_of_a_thread_that_answers_another_message_says_that_the_run_is_not_over() -> None:
    busy = Fault("refuse", status=400, body=b'{"message": "Streaming for thread is in progress"}')
    service = PlayedService(faults=[busy])
    call = accepted_call(service)
    assert drive(call.chat.poll_final_state(api_with(service.clock)), service) is False


def test_poll_of_a_service_that_cannot_be_reached_raises_its_error_at_the_deadline() -> None:
    service = PlayedService(faults=[Fault("refuse", status=503)] * 99)
    with pytest.raises(PlatformServerError):
        look(service, accepted_call(service), deadline=NOON + 20)


def test_pause_after_a_failed_connection_is_never_shorter_than_the_budget_says() -> None:
    service = PlayedService(faults=[Fault("refuse", status=503)])
    assert accepted_call(service, poll_interval=8.0).follow() is True
    assert service.sleeps[0] == 8.0 * (1 + 1.5) / 2  # the average of such pauses


def look(service: PlayedService, call: Call, **limits: Any) -> bool:
    chat = replace(call.chat, limits=replace(call.limits, **limits))
    return drive(chat.poll_final_state(api_with(service.clock)), service)


@pytest.mark.parametrize(
    ("sent", "over"),
    [
        ([cutoff(streaming=True)], False),
        ([cutoff()], False),
        ([cutoff(streaming=None)], False),
        ([cutoff(streaming=True), state()], False),
        ([cutoff(), BUSY], False),
    ],
)
def test_poll_that_shows_no_end_says_that_the_run_is_not_over(
    sent: list[Record], over: bool
) -> None:
    service = PlayedService(scripted=[sent] * 9)
    assert look(service, accepted_call(service, thread=True)) is over


@pytest.mark.parametrize("kind", ["silence", "blank"])
def test_poll_of_a_silent_stream_takes_no_longer_than_its_seconds(kind: Any) -> None:
    service = PlayedService(replay="none", faults=[Fault(kind, after=AFTER_MARK)])
    call = accepted_call(service)
    began = service.now
    program = call.chat.poll_final_state(api_with(service.clock))
    assert drive(program, service) is False
    assert service.now - began <= 15.0


IDLE: dict[str, list[Record]] = {
    "the mark": [cutoff()],
    "a mark that does not say": [cutoff(streaming=None)],
    "its beginning": [*Turn().records()[:4], cutoff()],
    "the whole answer": [*Turn().records(), cutoff()],
    "a later turn, which streams": [
        *Turn().records()[:4],
        *replace(EARLIER, message_id="1732519999999-message").records()[:2],
        cutoff(streaming=True),
    ],
}


@pytest.mark.parametrize("sent", IDLE.values(), ids=IDLE)
def test_run_is_lost_if_its_idle_thread_shows_no_end(
    sent: list[Record],
) -> None:
    service = PlayedService(scripted=[sent] * 9)
    with pytest.raises(ChatEndUnknownError, match="stopped streaming"):
        accepted_call(service, thread=True).follow()
    assert len(service.bodies) <= TOLERATED_FAILURES + 1


SILENT_MARK = cutoff(streaming=None)


@pytest.mark.parametrize(
    "fault",
    [Fault("close"), Fault("reset", len(encode(SILENT_MARK))), Fault("refuse", status=502)],
    ids=lambda fault: fault.kind,
)
def test_failed_reads_do_not_count_as_polls_of_an_idle_thread(fault: Fault) -> None:
    """An outage after two looks at a thread that did not stream leaves the run alone."""
    marks = [[SILENT_MARK]] * 9
    service = PlayedService(scripted=marks, faults=[Fault("none")] * 2 + [fault] * 9)
    with pytest.raises((PlatformTransportError, PlatformServerError)):
        accepted_call(service, thread=True).follow()


@pytest.mark.parametrize(
    "alive",
    [
        [cutoff(streaming=True), state()],
        [cutoff(streaming=True)],
        [*Turn().records()[:4], cutoff()],
    ],
    ids=["streaming to others", "streaming", "new records"],
)
def test_only_polls_in_a_row_of_an_idle_thread_mean_that_its_run_is_lost(
    alive: list[Record],
) -> None:
    idle = [[cutoff()]] * (IDLE_POLLS - 1)
    service = PlayedService(scripted=[*idle, alive, *idle])
    assert accepted_call(service, thread=True).follow() is True


@pytest.mark.parametrize("held", [True, False])
def test_find_message_says_whether_the_thread_holds_it(held: bool) -> None:
    service = PlayedService(earlier=(EARLIER,), faults=[Fault("unreachable")] * 4)
    if held:
        service.starts.append(NOON)
    call = new_call(service, thread=True)
    program = call.chat.find_message(api_with(service.clock))
    assert drive(program, service) is held
    assert service.prompts == []


def test_find_message_does_not_wait_for_the_end_of_a_run_that_it_has_found() -> None:
    service = PlayedService(follow_up="state")
    call = accepted_call(service)
    call.run.accepted = False
    assert drive(call.chat.find_message(api_with(service.clock)), service) is True
    assert len(service.bodies) == 1


@pytest.mark.parametrize("kind", ["reset", "refuse"])
def test_a_message_is_found_within_seconds_although_two_reads_fail(kind: Any) -> None:
    """A try past the deadline of its run has so long to find it."""
    service = PlayedService(faults=[Fault(kind)] * 2)
    call = accepted_call(service, deadline=NOON + 15)
    call.run.accepted = False
    assert drive(call.chat.find_message(api_with(service.clock)), service) is True


@pytest.mark.parametrize("streams", [[cutoff(streaming=True), state()], [cutoff(), BUSY]])
def test_find_message_waits_while_the_thread_streams(streams: list[Record]) -> None:
    service = PlayedService(scripted=[streams] * 7)
    call = new_call(service, thread=True)
    program = call.chat.find_message(api_with(service.clock))
    assert drive(program, service) is False
    assert service.sleeps == [5.0] * 7


def test_find_message_in_an_idle_thread_that_shows_nothing_raises_end_unknown() -> None:
    service = PlayedService(scripted=[[cutoff()]] * 9)
    call = new_call(service, thread=True)
    with pytest.raises(ChatEndUnknownError):
        drive(call.chat.find_message(api_with(service.clock)), service)
    assert len(service.bodies) == IDLE_POLLS
