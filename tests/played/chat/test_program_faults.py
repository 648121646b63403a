"""Any faults in any order: one run, asked once, with its own answer or a fitting error."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    ChatEndUnknownError,
    ChatSuspendedError,
    PlatformDeadlineError,
    PlatformOutcomeUnknownError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.polling import TOLERATED_FAILURES
from tests.support.fakes.chat_calls import EARLIER, Call, new_call
from tests.support.fakes.effects import api_with
from tests.support.fakes.played_service import NOON, Fault, PlayedService, drive
from tests.support.fakes.streams import EXPECTED, LATE, Turn, cutoff, encode
from tests.support.hypothesis_profiles import examples

SIZE = len(encode(*EARLIER.records(), *Turn().stream()))
CUTS = st.builds(
    Fault,
    kind=st.sampled_from(["reset", "close", "silence", "blank"]),
    after=st.integers(0, SIZE) | st.sampled_from([0, len(encode(cutoff()))]),
)
REFUSALS = st.builds(
    Fault,
    kind=st.just("refuse"),
    status=st.sampled_from([408, 429, 500, 502, 503]),
    retry_after=st.sampled_from([None, "0", "3", "Fri, 15 Jan 2027 08:00:09 GMT", "soon"]),
)
OTHERS = st.sampled_from([Fault("none"), Fault("unreachable"), Fault("lose")])
FAULTS = st.lists(CUTS | REFUSALS | OTHERS, max_size=TOLERATED_FAILURES - 1)
TURNS = st.builds(Turn, one_sort=st.booleans(), closing=st.booleans())
HISTORIES = st.sampled_from([(), (EARLIER,)])


def service_of(**options: Any) -> st.SearchStrategy[PlayedService]:
    return st.builds(
        PlayedService,
        turn=TURNS,
        faults=FAULTS,
        raw=st.booleans(),
        **{
            "replay": st.sampled_from(["before", "after"]),
            "follow_up": st.sampled_from(["subscribe", "state"]),
            "pace": st.sampled_from([0.125, 1.0, 32.0]),
            **options,
        },
    )


def unseen(service: PlayedService, call: Call) -> bool:
    """Whether the question was lost before anyone knew its thread: the one loss that the protocol
    cannot exclude."""
    return call.run.chat_id is None and len(service.prompts) > len(service.bodies) - 1


def sent_twice_in_vain(service: PlayedService) -> bool:
    """Whether the question was sent twice, and never reached its thread."""
    return len(service.prompts) >= 2 and not service.starts


def check_asked_once(service: PlayedService) -> None:
    assert len(service.starts) <= 1
    if service.accepted_at is not None:
        later = service.bodies[service.accepted_at :]
        assert not [body for body in later if "input" in body]
    assert len({body["messageId"] for body in service.bodies}) == 1


@settings(max_examples=examples(80))
@given(service=service_of(), thread=st.booleans(), busy=st.sampled_from([0, 0, 8]), data=st.data())
def test_question_is_asked_once_and_answered_under_any_faults(
    service: PlayedService, thread: bool, busy: int, data: st.DataObject
) -> None:
    if thread:
        service.earlier = data.draw(HISTORIES)
        service.ends = service.turn.end(service.earlier)
        service.busy_until = NOON + busy
    call = new_call(service, thread=thread, deadline=NOON + 10**6, idle_timeout=100.0)
    try:
        assert call.ask() is True
    except (PlatformTransportError, PlatformServerError):
        assert unseen(service, call)
    except PlatformOutcomeUnknownError:
        assert sent_twice_in_vain(service)
    else:
        assert call.result() in (EXPECTED, LATE)
        assert len(service.starts) == 1
    check_asked_once(service)


@settings(max_examples=examples(40))
@given(service=service_of(replay=st.just("none")))
def test_live_stream_without_a_replay_has_the_answer(service: PlayedService) -> None:
    """What is lost between two connections is read once more; where that breaks too, the answer
    is still the run's own."""
    call = new_call(service, thread=True, deadline=NOON + 10**6)
    try:
        assert call.ask() is True
    except PlatformOutcomeUnknownError:
        assert sent_twice_in_vain(service)
        return
    assert call.result()["answer"] == EXPECTED["answer"]
    if not service.faults:
        check_asked_once(service)


@settings(max_examples=examples(40))
@given(service=service_of(history=st.just(False), follow_up=st.just("state")), thread=st.booleans())
def test_answer_comes_from_the_state_if_the_thread_is_not_replayed(
    service: PlayedService, thread: bool
) -> None:
    """What was streamed until the connection broke may be half an answer: it is not taken for
    the whole."""
    call = new_call(service, thread=thread, deadline=NOON + 10**6)
    try:
        assert call.ask() is True
    except (PlatformTransportError, PlatformServerError):
        assert unseen(service, call)
    except PlatformOutcomeUnknownError:
        assert thread
        assert service.accepted_at is None
    else:
        assert call.result()["answer"] == EXPECTED["answer"]
    check_asked_once(service)


@settings(max_examples=examples(40))
@given(
    service=service_of(
        suspends_at=st.integers(1, 12), resume=st.sampled_from(["follow_up", "input"])
    ),
    thread=st.booleans(),
)
def test_a_suspended_run_continues(service: PlayedService, thread: bool) -> None:
    call = new_call(service, thread=thread, deadline=NOON + 10**6)
    try:
        assert call.ask() is True
    except ChatSuspendedError:
        assert service.resume == "input"
        program = call.chat.follow_or_resume(api_with(service.clock))
        assert drive(program, service) is True
    except (PlatformTransportError, PlatformServerError):
        assert unseen(service, call)
        return
    except PlatformOutcomeUnknownError:
        assert sent_twice_in_vain(service)
        return
    assert call.result() in (EXPECTED, LATE)
    assert len(service.starts) == 1
    assert len({body["messageId"] for body in service.bodies}) == 1


@settings(max_examples=examples(40))
@given(
    service=service_of(pace=st.sampled_from([32.0, 2.0**20])),
    faults=st.lists(CUTS | REFUSALS | OTHERS, min_size=5, max_size=40),
    limits=st.tuples(st.integers(1, 300), st.integers(1, 100)),
    thread=st.booleans(),
)
def test_no_wait_exceeds_its_deadline(
    service: PlayedService, faults: list[Fault], limits: tuple[int, int], thread: bool
) -> None:
    """By one silence at most, whatever happens; and no run is ever asked for twice."""
    seconds, idle = limits
    service.faults = faults
    call = new_call(service, thread=thread, deadline=NOON + seconds, idle_timeout=float(idle))
    with suppress(
        ChatEndUnknownError,
        PlatformDeadlineError,
        PlatformOutcomeUnknownError,
        PlatformRateLimitError,
        PlatformServerError,
        PlatformTransportError,
    ):
        call.ask()
    assert service.now <= NOON + seconds + idle
    check_asked_once(service)
