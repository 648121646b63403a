"""The verdict at the end of a connection: over, failed, refused, busy, suspended, broken."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import ChatStreamError, PlatformError, from_payload
from airflow_provider_platform.resources.chat.errors import (
    answer_unconfirmed,
    deadline_passed,
    end_unknown,
    interrupted,
    nothing_new,
    run_ended,
)
from airflow_provider_platform.resources.chat.run_state import ChatRun, Verdict
from tests.support.fakes.streams import (
    ANSWER,
    CHAT_ID,
    EARLIER_ID,
    EARLIER_TURN,
    USAGE,
    Record,
    aborted,
    cutoff,
    echo,
    encode,
    feed,
    final,
    given_thread,
    new_run,
    state,
    suspended,
    tool,
    usage,
)

if TYPE_CHECKING:
    from collections.abc import Callable

BUSY = {"error": "Streaming for thread is in progress"}
RPC = {"jsonrpc": "2.0", "id": None, "error": {"code": -32001, "message": "Unauthorized"}}


SERVERS_ECHO = echo("made-by-the-service")


def test_equal_text_under_another_id_identifies_the_question_in_a_new_thread() -> None:
    run = new_run()
    sent = [cutoff(), SERVERS_ECHO, final(ANSWER), state()]
    assert feed(run, *sent) is Verdict.OVER
    assert run.result().answer == ANSWER
    read_later = new_run(chat_id=CHAT_ID)
    replayed = [SERVERS_ECHO, final(ANSWER), cutoff(), state()]
    assert feed(read_later, *replayed, submits=False) is Verdict.OVER
    assert read_later.result().answer == ANSWER


@pytest.mark.parametrize("first_echo", [echo(EARLIER_ID), echo("made-by-the-service", "Rewritten")])
def test_first_message_of_a_new_thread_is_the_question(
    first_echo: Record,
) -> None:
    """Nobody else can have written there; its id identifies it in a replay."""
    run = new_run()
    assert feed(run, cutoff(), first_echo) is Verdict.BROKEN
    assert run.accepted
    replayed = [first_echo, final(ANSWER), *EARLIER_TURN[1:], cutoff(), state()]
    assert feed(run, first_echo, final(ANSWER), cutoff(), state(), submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER
    with_another = [*replayed[:2], echo("1732519999999-message", "Else?"), final("No.", sort=99)]
    assert feed(run, *with_another, cutoff(), state(), submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER


def test_our_own_id_takes_precedence_over_the_first_message() -> None:
    run = new_run()
    other = [echo(EARLIER_ID, "Old?"), final("Old.", record_id="old")]
    assert feed(run, cutoff(), *other, echo(), final(ANSWER, sort=9), state()) is Verdict.OVER
    assert run.result().answer == ANSWER
    sent = [echo(), final(ANSWER, sort=9), *other]
    assert feed(run, *sent, cutoff(), state(), submits=False) is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    "records",
    [
        [],
        [cutoff()],
        [cutoff(), echo()],
        [cutoff(), echo(), final(ANSWER)],
        [cutoff(), echo(), final(ANSWER), {"id": "__usage__"}],
        [b"\n\n \n"],
    ],
)
def test_connection_without_an_end_record_is_broken(records: list[Any], clean: bool) -> None:
    assert feed(new_run(), *records, clean=clean) is Verdict.BROKEN


@pytest.mark.parametrize("clean", [True, False])
def test_complete_state_record_without_line_end_ends_the_stream(clean: bool) -> None:
    data = encode(cutoff(), echo(), final(ANSWER), state())
    for missing in range(2, len(encode(state()))):
        assert feed(new_run(), data[:-missing], clean=clean) is Verdict.BROKEN
    run = new_run()
    assert feed(run, data[:-1], clean=clean) is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize("clean", [True, False])
@pytest.mark.parametrize(
    ("rest", "verdict"),
    [
        (b'{"error": "Out of memory"}', Verdict.FAILED),
        (json.dumps(RPC).encode(), Verdict.REFUSED),
        (json.dumps(BUSY).encode(), Verdict.BUSY),
        (b'{"error": "Out of mem', Verdict.BROKEN),
        (b'{"id": "a", "role": "assistant", "error": "odd"}', Verdict.BROKEN),
        (b'{"error": null}', Verdict.BROKEN),
        (b"7", Verdict.BROKEN),
    ],
)
def test_a_last_line_without_line_end_counts_if_it_is_an_error(
    rest: bytes, verdict: Verdict, clean: bool
) -> None:
    assert feed(new_run(), encode(cutoff()), rest, clean=clean) is verdict


@pytest.mark.parametrize(
    ("record", "verdict", "said"),
    [
        ({"error": "Failed: Bad branch"}, Verdict.FAILED, "Failed: Bad branch"),
        ({"error": {"message": "Bad branch"}}, Verdict.FAILED, {"message": "Bad branch"}),
        ({"error": ""}, Verdict.FAILED, ""),
        ({"id": "x", "error": "no role"}, Verdict.FAILED, "no role"),
        (RPC, Verdict.REFUSED, RPC["error"]),
        ({**RPC, "id": "a text"}, Verdict.REFUSED, RPC["error"]),
        ({**RPC, "id": 7, "error": "Unauthorized"}, Verdict.REFUSED, "Unauthorized"),
        ({"error": RPC["error"]}, Verdict.REFUSED, RPC["error"]),
        (BUSY, Verdict.BUSY, BUSY["error"]),
        ({**RPC, "error": {"code": 1, "message": BUSY["error"]}}, Verdict.BUSY, None),
        ({"error": f"Error: {BUSY['error']}!"}, Verdict.BUSY, None),
    ],
)
def test_error_objects_end_a_run(record: Record, verdict: Verdict, said: Any) -> None:
    for before in ([], [cutoff()], [cutoff(), echo(), tool("SqlApi")]):
        run = new_run()
        run.connect(submits=True)
        for one in (*before, record):
            run.feed(encode(one), 0.0)
        assert run.connection.ended
        assert run.connection.complete == (verdict is not Verdict.FAILED)
        assert run.disconnect(clean=False) is verdict
        assert said is None or run.connection.error == said


@pytest.mark.parametrize("of_run", [[echo()], [echo(), final("Half")]])
def test_json_rpc_error_within_a_run_is_an_error_of_the_run(of_run: list[Record]) -> None:
    error = {"jsonrpc": "2.0", "error": {"code": -32603, "message": "Internal error"}}
    run = new_run()
    verdict = feed(run, cutoff(), *of_run, error, usage())
    assert verdict is Verdict.FAILED
    failed = run_ended(run, verdict)
    assert isinstance(failed, ChatStreamError)
    assert "on the service: Internal error." in str(failed)
    assert failed.usage == USAGE


@pytest.mark.parametrize("end", [{"error": "Out of memory"}, aborted()])
def test_usage_that_follows_the_end_of_a_failed_run_is_read(end: Record) -> None:
    run = new_run()
    run.connect(submits=True)
    run.feed(encode(cutoff(), echo(), tool("SqlApi"), end), 0.0)
    assert not run.connection.complete
    run.feed(encode(usage()), 0.0)
    assert run.connection.complete
    error = run_ended(run, run.disconnect(clean=False))
    assert from_payload(error.to_payload()).details["usage"] == USAGE


@pytest.mark.parametrize(
    "error_of",
    [
        deadline_passed,
        nothing_new,
        interrupted,
        lambda run: end_unknown(run, 5),
        lambda run: answer_unconfirmed(run, None),
        *[partial(run_ended, verdict=one) for one in (Verdict.ABORTED, Verdict.SUSPENDED)],
    ],
)
def test_error_of_a_run_that_was_not_seen_to_end_has_the_tokens_that_are_known(
    error_of: Callable[[ChatRun], PlatformError],
) -> None:
    run = new_run()
    run.connect(submits=True)
    run.feed(encode(cutoff(), echo(), usage()), 0.0)
    run.disconnect(clean=False)
    assert from_payload(error_of(run).to_payload()).details["usage"] == USAGE


def test_records_after_the_state_record_do_not_change_the_result() -> None:
    run = new_run()
    late = final("Too late.", record_id="late")
    sent = [cutoff(), echo(), final(ANSWER), state(), late, {"error": "late"}, aborted()]
    assert feed(run, *sent, b"no JSON\n") is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize(
    "unknown",
    [
        {"id": "__heartbeat__", "role": "assistant", "graphPath": ["final"], "content": "No."},
        {"id": "n", "role": "system", "graphPath": ["final"], "content": "No."},
        {"kind": "telemetry"},
        {"role": "assistant", "graphPath": ["final"], "content": "No id."},
        {"id": 7, "role": "assistant", "graphPath": ["final"], "content": "No."},
        ["a", "list"],
        "a text",
        7,
        None,
    ],
)
def test_unknown_kinds_of_records_are_ignored(unknown: Any) -> None:
    run = new_run()
    feed(run, cutoff(), unknown)
    assert not run.accepted
    sent = [cutoff(), unknown, echo(), unknown, final(ANSWER), unknown, state(), unknown]
    assert feed(run, *sent) is Verdict.OVER
    assert run.result().answer == ANSWER


@pytest.mark.parametrize(
    ("records", "accepted"),
    [
        ([cutoff()], False),
        ([cutoff(streaming=True)], False),
        ([*EARLIER_TURN, cutoff()], False),
        ([cutoff(), echo()], True),
        ([echo()], True),
        ([cutoff(), final("Hm.", graphPath=["agent"])], True),
        ([cutoff(), suspended()], True),
        ([final("Hm.", graphPath=["agent"])], False),
        ([cutoff(), echo(EARLIER_ID)], False),
        ([cutoff(), echo(EARLIER_ID), final("Hm.")], False),
    ],
)
def test_only_records_of_our_turn_accept_a_prompt(records: list[Record], accepted: bool) -> None:
    run = given_thread()
    feed(run, *records)
    assert run.accepted is accepted


def test_acceptance_without_echo_counts_only_for_our_own_prompt_or_thread() -> None:
    sent = [cutoff(streaming=True), final("Hm.", graphPath=["agent"])]
    looking = given_thread()
    feed(looking, *sent, submits=False)
    assert not looking.accepted
    own = new_run(chat_id=CHAT_ID)
    feed(own, *sent, submits=False)
    assert own.accepted


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        ([cutoff(), echo(), aborted()], Verdict.ABORTED),
        ([cutoff(), aborted()], Verdict.ABORTED),
        ([echo(), aborted(), cutoff(), state()], Verdict.ABORTED),
        ([aborted()], Verdict.ABORTED),
        ([*EARLIER_TURN, aborted(), cutoff(), echo(), final(ANSWER), state()], Verdict.OVER),
        ([aborted(), cutoff(), echo(), final(ANSWER), state()], Verdict.OVER),
        ([*EARLIER_TURN, aborted(), echo(), final(ANSWER), cutoff(), state()], Verdict.OVER),
        ([echo(), final(ANSWER), echo("1732512999999-message"), aborted(), state()], Verdict.OVER),
        ([*EARLIER_TURN, aborted()], Verdict.BROKEN),
        ([echo(), aborted(), cutoff(), echo(), final(ANSWER), state()], Verdict.OVER),
        ([echo(), aborted(), cutoff(), echo(), aborted()], Verdict.ABORTED),
        ([echo(), aborted(), cutoff(), echo()], Verdict.BROKEN),
        ([echo(), aborted(), cutoff(streaming=True)], Verdict.ABORTED),
        (
            [echo(), aborted(), echo("1732519999999-message"), cutoff(streaming=True)],
            Verdict.ABORTED,
        ),
    ],
)
def test_only_the_abort_of_our_latest_run_counts(records: list[Record], verdict: Verdict) -> None:
    assert feed(given_thread(), *records) is verdict


@pytest.mark.parametrize(
    ("records", "verdict"),
    [
        ([cutoff(), echo(), suspended()], Verdict.SUSPENDED),
        ([cutoff(), echo(), suspended(), state()], Verdict.SUSPENDED),
        ([echo(), tool("SqlApi"), cutoff(), suspended()], Verdict.SUSPENDED),
        ([cutoff(), suspended()], Verdict.SUSPENDED),
        ([suspended()], Verdict.SUSPENDED),
        ([cutoff(), echo(), suspended(), final(ANSWER), state()], Verdict.OVER),
        ([echo(), suspended(), cutoff(), final(ANSWER), state()], Verdict.OVER),
        ([*EARLIER_TURN, suspended(), cutoff(), echo(), final(ANSWER), state()], Verdict.OVER),
        ([*EARLIER_TURN, suspended()], Verdict.BROKEN),
        ([*EARLIER_TURN, suspended(), cutoff(), echo()], Verdict.BROKEN),
        ([cutoff(), echo(), suspended(), BUSY], Verdict.BUSY),
    ],
)
def test_suspended_run_may_continue(records: list[Record], verdict: Verdict) -> None:
    assert feed(given_thread(), *records) is verdict


def test_only_new_records_count_as_progress() -> None:
    run = given_thread(accepted=True)
    grew = []
    for records in (
        [cutoff()],
        [cutoff(), echo()],
        [cutoff(), echo(), tool("SqlApi")],
        [cutoff(), echo(), tool("SqlApi")],
        [cutoff(), echo(), tool("SqlApi", result={"data": []})],
        [cutoff(), echo(), tool("SqlApi", result={"data": []}), final("A", isInProcess=True)],
        [cutoff(), echo(), tool("SqlApi", result={"data": []}), final("A", isInProcess=False)],
        [cutoff(), echo(), tool("SqlApi")],
    ):
        feed(run, *records, submits=False)
        grew.append(run.connection.grew)
    assert grew == [False, False, True, False, True, True, True, False]
