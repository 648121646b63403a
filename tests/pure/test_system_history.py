"""The history check of the system tests accepts what the rules explain, and nothing else."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.sandbox.state.journal import (
    AbortEntry,
    MessageEntry,
    RequestEntry,
    RunEntry,
    SandboxState,
    SubscriptionEntry,
    SyncEntry,
)
from tests.support.airflow.history import Happened, Task, history_of
from tests.support.airflow.history_rules import Rule, violations_of

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 300.0
TEXT = "revenue by country"


class Played:
    """A journal and tasks, written down as a sandbox and Airflow would."""

    def __init__(self) -> None:
        self.state = SandboxState(0, [], [], [], [], [], [])
        self.tasks: list[Task] = []
        self._now = 1_000_000.0
        self._numbers = Counter[str]()

    def wait(self, seconds: float) -> None:
        self._now += seconds

    def ask(self, text: str = TEXT, status: str = "finished", **sent: Any) -> RunEntry:
        """A message starts a run, in a thread of its own, which ends so; `streaming` for not yet,
        `stopped` for aborted by the provider."""
        message_id = sent.get("message_id") or self._name("message")
        chat_id = sent.get("chat_id") or self._name("chat")
        self.send(text, message_id, chat_id, "started")
        run = RunEntry(
            len(self.state.runs) + 1, chat_id, message_id, text, "me", "agents/1", None, self._now
        )
        self.state.runs.append(run)
        self.state.subscriptions.append(SubscriptionEntry(self._now, chat_id, message_id, "submit"))
        if status != "streaming":
            self.end(run, status)
        return run

    def end(self, run: RunEntry, status: str = "finished") -> None:
        self.wait(1)
        if status == "stopped":
            abort = AbortEntry(self._now, run.chat_id, "me", "aborted", run.message_id)
            self.state.aborts.append(abort)
        run.status = "aborted" if status == "stopped" else status
        run.ended_at = self._now

    def send(self, text: str, message_id: str, chat_id: str, outcome: str) -> None:
        self.invoke(message_id)
        message = MessageEntry(self._now, chat_id, message_id, text, "me", outcome)
        self.state.messages.append(message)

    def invoke(self, message_id: str) -> None:
        """A request arrives; nobody knows what becomes of it."""
        self.wait(1)
        request = RequestEntry(1, self._now, "chat", "POST", "/stream-chat-state", "", [])
        request.message_id, request.has_input = message_id, True
        self.state.requests.append(request)

    def sync(self, status: str = "COMPLETED", seconds: float = 1) -> None:
        self.wait(1)
        sync = SyncEntry(self._name("sync"), 1, "branch", self._now, status)
        self.wait(seconds)
        sync.ended_at = self._now
        sync.cancelled_at = self._now if status == "CANCELLED" else None
        self.state.syncs.append(sync)

    def task(self, run: RunEntry | None = None, **options: Any) -> Task:
        """A task that succeeded with the answer of this run, unless `options` differ."""
        result = (run.chat_id, run.message_id) if run else None
        facts: dict[str, Any] = {
            "name": self._name("task"),
            "kind": "chat",
            "state": "success",
            "tries": 1,
            "prompts": frozenset({run.text if run else TEXT}),
            "timeout": TIMEOUT,
            "result": result,
        }
        task = Task(**{**facts, **options})
        self.tasks.append(task)
        return task

    def broken(self) -> set[Rule]:
        return {one.rule for one in violations_of(history_of(self.state, self.tasks))}

    def _name(self, kind: str) -> str:
        self._numbers[kind] += 1
        return f"{kind}-{self._numbers[kind]}"


@pytest.fixture
def played() -> Played:
    return Played()


def test_events_of_a_message_are_in_order_of_time(played: Played) -> None:
    run = played.ask(status="stopped")
    played.invoke("unseen")
    asked, unseen = history_of(played.state, []).messages
    assert [event.what for event in asked.events] == ["invoked", "accepted", "aborted"]
    assert asked.threads(Happened.ABORTED) == [run.chat_id]
    assert [event.what for event in unseen.events] == ["invoked"]
    assert unseen.text is None
    assert "invoked 0.0, accepted 0.0, aborted 1.0" in str(asked)


@pytest.mark.parametrize(
    ("seconds", "end", "broken"),
    [
        (TIMEOUT, "stopped", set()),
        (10, "stopped", {Rule.ASKED_AGAIN}),
        (TIMEOUT, "finished", {Rule.ASKED_AGAIN}),
    ],
)
def test_run_that_is_stopped_at_its_deadline_may_be_asked_again(
    played: Played, seconds: float, end: str, broken: set[Rule]
) -> None:
    late = played.ask(status="streaming")
    played.wait(seconds)
    played.end(late, end)
    played.task(played.ask(), tries=2)
    assert played.broken() == broken


def test_every_question_needs_a_task(played: Played) -> None:
    played.task(played.ask())
    played.ask("of somebody else")
    assert played.broken() == {Rule.ASKED_BY_NO_TASK}


def test_a_suspended_run_is_resumed_once(played: Played) -> None:
    run = played.ask(status="streaming")
    played.send(TEXT, run.message_id, run.chat_id, "resumed")
    played.end(run)
    played.task(run)
    assert played.broken() == set()
    played.send(TEXT, run.message_id, run.chat_id, "resumed")
    assert played.broken() == {Rule.SENT_AGAIN}


@pytest.mark.parametrize("state", ["success", "failed", "skipped", "removed"])
@pytest.mark.parametrize("status", ["streaming", "suspended"])
def test_run_without_a_following_try_must_not_be_left_running(
    played: Played, state: str, status: str
) -> None:
    run = played.ask(status="streaming")
    run.status = status
    played.task(state=state)
    assert played.broken() == {Rule.LEFT_RUNNING}


def test_result_needs_the_turn_of_the_task(played: Played) -> None:
    run, other = played.ask(), played.ask("orders by status")
    played.task(run, result=None)
    played.task(run, prompts=frozenset({other.text}))
    assert played.broken() == {Rule.RESULT_OF_NO_FINISHED_RUN}


@pytest.mark.parametrize(
    ("first", "options", "broken"),
    [
        ("COMPLETED", {"clears": 1}, set()),
        ("FAILED", {}, set()),
        ("COMPLETED", {}, {Rule.SYNC_STARTED_AGAIN}),
        ("CANCELLED", {}, {Rule.SYNC_STARTED_AGAIN}),
        ("CANCELLED", {"timeout": 1.0}, set()),
        ("FAILED", {"tries": 1}, {Rule.SYNC_STARTED_AGAIN}),
    ],
)
def test_a_sync_is_started_again_for_a_reason_only(
    played: Played, first: str, options: dict[str, Any], broken: set[Rule]
) -> None:
    played.sync(first)
    played.sync()
    played.task(**{"kind": "sync", "tries": 2, **options})
    assert played.broken() == broken


def _asked_once_more(played: Played, task: Task, run: RunEntry) -> None:
    played.ask(run.text)


def _sent_once_more(played: Played, task: Task, run: RunEntry) -> None:
    played.send(run.text, run.message_id, run.chat_id, "resubscribed")


def _left(played: Played, task: Task, run: RunEntry) -> None:
    run.status, run.ended_at = "streaming", None
    played.tasks = [replace(one, result=None) if one is task else one for one in played.tasks]


def _stopped(played: Played, task: Task, run: RunEntry) -> None:
    played.end(run, "stopped")


def _failed(played: Played, task: Task, run: RunEntry) -> None:
    run.status = "failed"


SPOILERS: dict[Rule, Callable[[Played, Task, RunEntry], None]] = {
    Rule.ASKED_AGAIN: _asked_once_more,
    Rule.SENT_AGAIN: _sent_once_more,
    Rule.LEFT_RUNNING: _left,
    Rule.TAKEN_FROM_ABORTED: _stopped,
    Rule.RESULT_OF_NO_FINISHED_RUN: _failed,
}
STEPS = ["killed", "failed", "stopped outside", "too late", "cleared", "cleared after", "unseen"]


def play(played: Played, number: int, steps: list[str]) -> tuple[Task, RunEntry]:
    """A task to which these things happen one after the other, until it succeeds."""
    text = f"question {number}"
    unseen: str | None = None
    for step in steps:
        if step == "killed":
            continue
        if step == "unseen":
            unseen = played.ask(text, message_id=unseen).message_id
            continue
        run = played.ask(text, "streaming", message_id=unseen)
        unseen = None
        if step == "too late":
            played.wait(TIMEOUT)
        ends = {"failed": "failed", "stopped outside": "aborted", "cleared after": "finished"}
        played.end(run, ends.get(step, "stopped"))
    last = played.ask(text, message_id=unseen)
    clears = sum(step.startswith("cleared") for step in steps)
    return played.task(last, tries=len(steps) + 1, clears=clears), last


SCRIPTS = st.lists(st.lists(st.sampled_from(STEPS), max_size=5), min_size=1, max_size=4)


@given(SCRIPTS)
def test_history_that_keeps_the_rules_is_accepted(scripts: list[list[str]]) -> None:
    played = Played()
    for number, steps in enumerate(scripts):
        play(played, number, steps)
    assert played.broken() == set()


@given(SCRIPTS, st.data())
def test_one_broken_rule_is_found_in_any_history(
    scripts: list[list[str]], data: st.DataObject
) -> None:
    played = Played()
    done = [play(played, number, steps) for number, steps in enumerate(scripts)]
    rule = data.draw(st.sampled_from(sorted(SPOILERS)))
    SPOILERS[rule](played, *data.draw(st.sampled_from(done)))
    assert played.broken() == {rule}
