"""Rules for every history: each question, stop and orphaned run needs a reason.

A journal does not say which task has sent a message. The tasks that may have sent it, those with
its text, answer for it together.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tests.support.airflow.history import Happened

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from tests.support.airflow.history import History, Message, Task

_SLACK = 3.0
"""Seconds between the time that a deadline counts from and the arrival of the message."""


class Rule(StrEnum):
    """What a history can break."""

    ASKED_BY_NO_TASK = "asked_by_no_task"
    """Every message has the text of a task."""
    ASKED_AGAIN = "asked_again"
    """A task asks once, and once more for: a clear, another input, a run that failed or that
    somebody else stopped, a run stopped at its deadline. One try asks at most once."""
    SENT_AGAIN = "sent_again"
    """A message is sent once, and again only to resume its suspended run (once), or by a later try
    that does not know its thread."""
    LEFT_RUNNING = "left_running"
    """A run is going on only while a task is that may follow it."""
    RESULT_OF_NO_FINISHED_RUN = "result_of_no_finished_run"
    """A task returns what a finished run of its own has answered, and no other task does."""
    TAKEN_FROM_ABORTED = "taken_from_aborted"
    """What a try takes its result from, no try has stopped."""
    SYNC_STARTED_AGAIN = "sync_started_again"
    """A task starts one dbt sync, and another one for a clear, for a sync that failed, and for one
    that was cancelled at its deadline."""


@dataclass(frozen=True)
class Violation:
    rule: Rule
    what: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.what}"


@dataclass
class _Askers:
    """Tasks that may have sent the same messages, with these."""

    prompts: set[str]
    tasks: list[Task]
    messages: list[Message]


def violations_of(history: History) -> list[Violation]:
    """What no rule explains."""
    return [*_chat_violations(history), *_sync_violations(history)]


def _chat_violations(history: History) -> Iterator[Violation]:
    chats = [task for task in history.tasks if task.kind == "chat"]
    groups = list(_groups(chats))
    known = {text for group in groups for text in group.prompts}
    for message in history.messages:
        if message.text is not None and message.text not in known:
            yield Violation(Rule.ASKED_BY_NO_TASK, str(message))
    for group in groups:
        group.messages = [message for message in history.messages if message.text in group.prompts]
        yield from _asked_again(group)
        for message in group.messages:
            yield from _sent_again(message, group)
        yield from _left(group)
    yield from _results(chats, history.messages)


def _groups(tasks: Iterable[Task]) -> Iterator[_Askers]:
    groups: list[_Askers] = []
    for task in tasks:
        new = _Askers(set(task.prompts), [task], [])
        for other in [group for group in groups if group.prompts & new.prompts]:
            groups.remove(other)
            new.prompts |= other.prompts
            new.tasks = [*other.tasks, *new.tasks]
        groups.append(new)
    yield from groups


def _asked_again(group: _Askers) -> Iterator[Violation]:
    asked = [message for message in group.messages if message.threads(Happened.ACCEPTED)]
    texts = {message.text for message in asked}
    wanted = sum(1 + task.clears for task in group.tasks)
    changed = sum(max(0, len(task.prompts & texts) - 1) for task in group.tasks)
    dead = sum(_is_dead(message, group.tasks) for message in asked)
    tries = sum(task.tries for task in group.tasks)
    if len(asked) > wanted + changed + dead:
        yield Violation(
            Rule.ASKED_AGAIN,
            f"{len(asked)} messages of {_names(group)}; wanted {wanted}, for changed inputs "
            f"{changed}, after dead runs {dead}",
        )
    elif len(asked) > tries:
        yield Violation(
            Rule.ASKED_AGAIN, f"{len(asked)} messages in {tries} tries of {_names(group)}"
        )


def _is_dead(message: Message, tasks: list[Task]) -> bool:
    """Whether its run has ended so that a try may ask anew."""
    if message.ends & {Happened.FAILED, Happened.ABORTED_OUTSIDE}:
        return True
    timeouts = [task.timeout for task in tasks if task.timeout is not None]
    return any(
        event.what is Happened.ABORTED
        and event.at >= message.first_at + min(timeouts, default=float("inf")) - _SLACK
        for event in message.events
    )


def _sent_again(message: Message, group: _Askers) -> Iterator[Violation]:
    threads = message.threads(Happened.ACCEPTED)
    later_tries = sum(task.tries - 1 for task in group.tasks)
    if message.threads(Happened.REPEATED):
        yield Violation(Rule.SENT_AGAIN, f"while it is being answered: {message}")
    if len(message.threads(Happened.RESUMED)) > len(threads):
        yield Violation(Rule.SENT_AGAIN, f"resumed twice: {message}")
    if len(threads) > len(set(threads)):
        yield Violation(Rule.SENT_AGAIN, f"to the thread that has it: {message}")
    if len(threads) - 1 > later_tries:
        yield Violation(Rule.SENT_AGAIN, f"by a try that has sent it: {message}")


def _left(group: _Askers) -> Iterator[Violation]:
    followers = sum(not task.has_ended for task in group.tasks)
    running = [message for message in group.messages if _can_be_followed(message)]
    if len(running) > followers:
        described = "; ".join(map(str, running))
        yield Violation(Rule.LEFT_RUNNING, f"and {followers} tasks that may follow: {described}")


def _can_be_followed(message: Message) -> bool:
    """Whether it is being answered in a thread that a task can know of: where it was sent again,
    the thread of the one before is unknown to all."""
    threads = message.threads(Happened.ACCEPTED)
    return bool(threads) and threads[-1] in message.running


def _results(tasks: list[Task], messages: list[Message]) -> Iterator[Violation]:
    by_id = {message.message_id: message for message in messages}
    taken: dict[str, str] = {}
    for task in tasks:
        if task.result is None:
            continue
        chat_id, message_id = task.result
        message = by_id.get(message_id or "")
        if message is None or message.text not in task.prompts:
            yield Violation(Rule.RESULT_OF_NO_FINISHED_RUN, f"{task} did not ask {message}")
            continue
        if chat_id in message.threads(Happened.ABORTED):
            yield Violation(Rule.TAKEN_FROM_ABORTED, f"{task} has its result of {message}")
        elif chat_id not in message.threads(Happened.FINISHED):
            yield Violation(Rule.RESULT_OF_NO_FINISHED_RUN, f"{task} has its result of {message}")
        other = taken.setdefault(message.message_id, task.name)
        if other != task.name:
            yield Violation(Rule.RESULT_OF_NO_FINISHED_RUN, f"{other} has that of {task} too")


def _sync_violations(history: History) -> Iterator[Violation]:
    tasks = [task for task in history.tasks if task.kind == "sync"]
    wanted = sum(1 + task.clears for task in tasks)
    timeouts = [task.timeout for task in tasks if task.timeout is not None]
    too_late = min(timeouts, default=float("inf")) - _SLACK
    dead = sum(
        sync.status == "FAILED"
        or (sync.cancelled_at is not None and sync.cancelled_at >= sync.started_at + too_late)
        for sync in history.syncs
    )
    tries = sum(task.tries for task in tasks)
    if len(history.syncs) > min(wanted + dead, tries):
        yield Violation(
            Rule.SYNC_STARTED_AGAIN,
            f"{len(history.syncs)} syncs in {tries} tries; wanted {wanted}, after dead ones {dead}",
        )


def _names(group: _Askers) -> str:
    return ", ".join(f"{task.name} ({task.state}, {task.tries} tries)" for task in group.tasks)
