"""What was asked, stopped and left at the service, held against what the rules allow.

Every run beyond the one that each wish of a user (the DAG run, a clear) accounts for, every stop
and every run that is left must be explained by a rule; the ledger counts which. What no rule
explains is a violation.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import AirflowFailException

if TYPE_CHECKING:
    from tests.unit.machine.platform import Run
    from tests.unit.machine.played_airflow import PlayedTask
    from tests.unit.machine.world import Actor, World

ENDED_STATES = {"success", "failed", "skipped", "removed"}


class Asked(Enum):
    """Why a question was asked once more."""

    ENDED_WITHOUT_ANSWER = "the run before it ended without an answer"
    ONE_WINDOW = "the thread of the message was never written down: asked again under its id"
    LATE_SEND = "a try that was given up sent what it had announced"
    TOO_LATE = "the time of the run before it was over"
    STORE_LOST = "the record was lost"
    NOT_STOPPED = "the run before it was given up, and could not be stopped"
    SUSPENDED = "the run before it stays suspended"


class Stopped(Enum):
    """Why a run was stopped."""

    TASK_ENDED = "the task had ended"
    CLEARED = "the task was cleared"
    LAST_TRY = "no try was left to take it up"
    TOO_LATE = "its time was over"
    GIVEN_UP = "its try failed for good"
    OVERTAKEN = "it began between the look at its thread, which showed ours, and the abort"
    NO_NAME = "its try was told to end, and could not store its name for the retry"


class Left(Enum):
    """Why a run goes on that no try follows."""

    LOGGED = "a warning says so"
    NOBODY_THERE = "no process of the task was there when it ended"
    ONE_WINDOW = "nobody knows its thread"
    STORE_LOST = "the record was lost"
    LATE = "a try that was given up began it, and ended before it was told"


class Ledger:
    """The book of one task."""

    def __init__(self, world: World, task: PlayedTask) -> None:
        self._world = world
        self._task = task
        self.explained: Counter[Enum] = Counter()
        self.violations: list[str] = []
        self.runs: list[Run] = []
        """The runs that the task has started."""
        self._owners: dict[int, Actor] = {}
        self._left: set[int] = set()
        self._giving_up: list[tuple[Actor, Run]] = []
        """The tries that have stopped their run, which only those may do that fail for good."""
        self._unknown: dict[int, Asked] = {}
        """The runs that no later try knows of, and why."""

    def asked(self, body: dict[str, Any], started: Run | None, actor: Actor) -> None:
        """A request was processed."""
        if actor.kind == "other":
            return
        if "input" in body and actor.kind != "worker":
            self._violate(f"{actor} sends a prompt")
        if "input" in body and started is None:
            self._check_repeat(body, actor)
        if started is None:
            return
        epoch = started.epoch = actor.known.ti.epoch
        started.late = actor.known.ti is not self._task.ti
        for run in self.runs:
            if run.epoch == epoch:
                why = self._why_asked_again(run, started, actor)
                if why is None:
                    self._violate(f"{actor} asks again ({started}) although there is {run}")
                    continue
                self.explained[why] += 1
                if why in (Asked.ONE_WINDOW, Asked.LATE_SEND):
                    self._unknown[run.number] = why
        self.runs.append(started)
        self._owners[started.number] = actor

    def stopped(self, run: Run, actor: Actor) -> None:
        """A run that was going on was stopped by somebody of the task."""
        if actor.kind == "other":
            return
        if run not in self.runs and actor.saw_last in self.runs:
            self.explained[Stopped.OVERTAKEN] += 1
            return
        if run not in self.runs:
            self._violate(f"{actor} stops the {run} of somebody else")
            return
        why = self._why_stopped_by_kill(actor) if actor.stopping else None
        why = why or self._why_stopped(run, actor)
        if why is None and actor.told_to_stop and not self._is_named(run):
            why = Stopped.NO_NAME
        if why is not None:
            self.explained[why] += 1
        elif actor.stopping:
            self._violate(f"{actor} stops {run}, which a try follows: the task is {actor.states}")
        else:
            self._giving_up.append((actor, run))

    def succeeded(self, actor: Actor) -> None:
        """A try has returned its result: that of one run of its own that has ended."""
        result = dict(actor.result)
        usage = result.pop("usage", None)
        told = (result.get("chat_id"), result.get("message_id"))
        for run in self.runs:
            if (run.chat_id, run.message_id) == told and run.status == "finished":
                break
        else:
            self._violate(f"{actor} returns {actor.result}, of no finished run: {self.runs}")
            return
        if result != run.expected:
            self._violate(f"{actor} returns {result} and not {run.expected}")
        if usage not in (None, {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1000}):
            self._violate(f"{actor} returns the usage {usage}")
        if run.epoch != actor.known.ti.epoch and not self._task.lost_max_tries:
            self._violate(f"{actor} returns the result of {run}, before the clear")

    def check(self) -> None:
        """What holds at any time. Raises AssertionError."""
        self._check_given_up()
        if self._task.state in ENDED_STATES and not self._task.actors:
            for run in self.runs:
                if run.status == "streaming" and run.number not in self._left:
                    self._left.add(run.number)
                    why = self._why_left(run)
                    if why is None:
                        self._violate(f"{run} is left, and the task is {self._task.state}")
                    else:
                        self.explained[why] += 1
        for where, text in self._world.written:
            if "canary-" in text:
                self._violate(f"a secret stands in {where}: {text}")
        self._world.written.clear()
        for actor in self._world.processes:
            for _, line in actor.log.lines[actor.log.checked :]:
                if "canary-" in line:
                    self._violate(f"a secret stands in the log of {actor}: {line}")
            actor.log.checked = len(actor.log.lines)
        assert not self.violations, "\n".join([*self.violations, *self._story()])

    def _violate(self, what: str) -> None:
        self.violations.append(what)

    def _check_given_up(self) -> None:
        for actor, run in [known for known in self._giving_up if not known[0].alive]:
            self._giving_up.remove((actor, run))
            if actor.killed or isinstance(actor.error, AirflowFailException):
                self.explained[Stopped.GIVEN_UP] += 1
            else:
                self._violate(f"{actor} has stopped {run}, which a try follows: {actor.error!r}")

    def _story(self) -> list[str]:
        logs = [
            f"log of {actor.name}, {level}: {text}"
            for actor in self._world.processes
            for level, text in actor.log.lines
        ]
        return ["--- what happened", *self._world.history, "--- what was logged", *logs]

    def _check_repeat(self, body: dict[str, Any], actor: Actor) -> None:
        """A prompt went to a run that there is: only to resume it, or where it was not known."""
        run = self._world.platform.threads[body["chatId"]].runs[-1]
        if run.message_id != body["messageId"]:
            return  # refused: another message is being answered
        if run.habits.resume == "input" or run.was_suspended:
            return
        if actor.known.ti is not self._task.ti or self._owners[run.number] is not actor:
            self.explained[Asked.LATE_SEND] += 1
            return
        self._violate(f"{actor} sends a prompt again that is being answered: {run}")

    def _why_asked_again(self, run: Run, started: Run, actor: Actor) -> Asked | None:
        if run.status in ("aborted", "failed"):
            return Asked.ENDED_WITHOUT_ANSWER
        if run.number in self._unknown:
            return self._unknown[run.number]
        if self._is_overdue(run):
            return Asked.TOO_LATE
        if run.status == "suspended" or run.was_suspended:
            return Asked.SUSPENDED
        store = actor.known.store
        known = (store.read or {}).get("ids", {})
        if run.message_id == started.message_id:
            if started.late or run.late:
                return Asked.LATE_SEND
            if not run.thread_given and known.get("chat_id") != run.chat_id:
                return Asked.ONE_WINDOW
        if run.message_id in self._task.forgotten:
            return Asked.STORE_LOST
        # What an old try started late is in no record.
        if started.late or run.late:
            return Asked.LATE_SEND
        if self._said_not_stopped(run):
            return Asked.NOT_STOPPED
        return None

    def _why_stopped_by_kill(self, actor: Actor) -> Stopped | None:
        ti = actor.known.ti
        if actor.states & ENDED_STATES:
            return Stopped.TASK_ENDED
        if "restarting" in actor.states or ti.epoch != self._task.epoch:
            return Stopped.CLEARED
        may_run = bool(actor.states & {"running", "unknown"})
        if may_run and ti.try_number > ti.max_tries:
            return Stopped.LAST_TRY
        return None

    def _why_stopped(self, run: Run, actor: Actor) -> Stopped | None:
        ti = actor.known.ti
        if run.epoch != self._task.epoch:
            return Stopped.CLEARED
        if self._is_overdue(run):
            return Stopped.TOO_LATE
        if not actor.stopping and ti.try_number > ti.max_tries:
            return Stopped.LAST_TRY
        if not actor.stopping and self._task.state in ENDED_STATES:
            return Stopped.TASK_ENDED
        return None

    def _is_overdue(self, run: Run) -> bool:
        """Whether its time is over, which counts from its submission."""
        told = [record["ids"] for record in self._task.records]
        since = [ids["submitted_at"] for ids in told if ids.get("message_id") == run.message_id]
        began = min([run.started_at, *since])
        return bool(self._world.time.now >= began + self._task.timeout)

    def _why_left(self, run: Run) -> Left | None:
        if self._said_not_stopped(run):
            return Left.LOGGED
        if self._task.unseen_end:
            return Left.NOBODY_THERE
        if run.late or self._unknown.get(run.number) is Asked.LATE_SEND:
            return Left.LATE
        if not run.thread_given and all(
            record["ids"].get("chat_id") != run.chat_id for record in self._task.records
        ):
            return Left.ONE_WINDOW
        if run.message_id in self._task.forgotten:
            return Left.STORE_LOST
        return None

    def _is_named(self, run: Run) -> bool:
        """Whether a record has ever named the thread and the message of the run."""
        named = (run.chat_id, run.message_id)
        records = [record["ids"] for record in self._task.records]
        return any((ids.get("chat_id"), ids["message_id"]) == named for ids in records)

    def _said_not_stopped(self, run: Run) -> bool:
        """Whether a log or an error tells of a run that could not be stopped."""
        said = "\n".join(
            actor.log.warnings + "\n" + str(actor.error or "") for actor in self._world.processes
        )
        return any(words in said for words in NOT_STOPPED)


NOT_STOPPED = (
    "could not be stopped",
    "cannot be stopped",
    "could not be looked up",
    "may be running unseen",
    "may go on at the service",
)
