"""Compare what was asked, stopped and left running on the service with the rules.

Every run beyond the one that each wish of a user (the DAG run, a clear) accounts for, every stop
and every run that is left must be explained by a rule; the ledger counts which. What no rule
explains is a violation.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    ChatAbortedError,
    ChatEndUnknownError,
    ChatNoAnswerError,
    DbtSyncCancelledError,
    PreAggregationJobsLostError,
)
from tests.support.machine.build_jobs import Builds
from tests.support.machine.platform import Run
from tests.support.machine.tenant import SimulatedTenant

if TYPE_CHECKING:
    from tests.support.machine.played_airflow import PlayedTask
    from tests.support.machine.simulation import Actor, AnyRun, Simulation

ENDED_STATES = {"success", "failed", "skipped", "removed"}
DEAD_RUN = (
    ChatAbortedError,
    ChatNoAnswerError,
    ChatEndUnknownError,
    DbtSyncCancelledError,
    PreAggregationJobsLostError,
)
"""The errors which say that a run has no result. The package says so too, with `is_dead_run`: a
ledger that believed it would not see that it is wrong."""


class Asked(Enum):
    """Why a question was asked once more."""

    ENDED_WITHOUT_ANSWER = "the run before it ended without an answer"
    ONE_WINDOW = "the thread of the message was never written down: asked again under its id"
    LATE_SEND = "a try that was given up sent what it had announced"
    TOO_LATE = "the time of the run before it was over"
    STORE_LOST = "the record was lost"
    DROPPED = "a clear dropped the record before the try, which it ends, could read it"
    NOT_STOPPED = "the run before it was given up, and its stop failed, as a warning says of it"
    SUSPENDED = "the run before it stays suspended, as an error says of it"
    OUTCOME_UNKNOWN = "whether the one before it was processed nobody can tell, as an error says"
    REPEATED = "the answer that named the one before it was lost, and its author has it repeated"


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

    LOGGED = "a warning or an error says so of it"
    NOBODY_THERE = "it went on when the task ended, and nobody was there who knew of it"
    ONE_WINDOW = "no record names it"
    STORE_LOST = "the record was lost"
    LATE = "a try that was given up began it, and ended before it was told"
    NOT_WAITED = "the tenant tells nothing of it, so that the task did not wait"
    CANNOT_STOP = "the service has no operation that stops it"
    STATE_UNKNOWN = "who was told to end could not learn that the task had ended"
    NO_RETRY_CAME = (
        "its try was told to end and left it to the retry; the task was ended before one"
    )


class Beside(Enum):
    """Why a run from before a clear goes on while the task, done again, asks."""

    LOGGED = "a warning or an error says so of it"
    NOT_RUNNING = "no record has called it running: a clear stops no other"
    STORE_LOST = "the record was lost"
    LATE = "a try that was given up began it"
    NOT_WAITED = "the tenant tells nothing of it, so that the task did not wait"
    CANNOT_STOP = "the service has no operation that stops it"
    NOBODY_THERE = "the clear dropped its record, and no process was there to stop it"
    STOP_UNDER_WAY = "the clear dropped its record, and the trigger that it killed is stopping it"


class Ledger:
    """The book of one task."""

    def __init__(self, simulation: Simulation, task: PlayedTask) -> None:
        self._world = simulation
        self._task = task
        self.explained: Counter[Enum] = Counter()
        self.violations: list[str] = []
        self.runs: list[Any] = []
        """The runs that the task has started."""
        self._owners: dict[int, Actor] = {}
        self._left: set[int] = set()
        self._beside: set[int] = set()
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
        if started is not None:
            self.started(started, actor)

    def owner_of(self, run: AnyRun) -> Actor | None:
        """Who has started a run."""
        return self._owners.get(run.number)

    def started(self, started: AnyRun, actor: Actor) -> None:
        """A process of the task has started a run."""
        if actor.kind != "worker":
            self._violate(f"{actor} starts {started}")
        self._check_outputs(started, actor)
        epoch = started.epoch = actor.known.ti.epoch
        started.late = actor.known.ti is not self._task.ti
        for run in self.runs:
            if run.epoch < epoch and run.status == "streaming" and run.number not in self._beside:
                beside = self._why_beside(run)
                if beside is not Beside.STOP_UNDER_WAY:  # which must have ended it some time
                    self._beside.add(run.number)
                if beside is None:
                    self._violate(
                        f"{actor} asks ({started}), and {run} of before the clear goes on"
                    )
                else:
                    self.explained[beside] += 1
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

    def stopped(self, run: AnyRun, actor: Actor) -> None:
        """A run that was going on was stopped by somebody of the task."""
        if actor.kind == "other":
            return
        if run not in self.runs or run.epoch > actor.known.ti.epoch:
            if actor.saw_last in self.runs and actor.saw_last is not run:
                self.explained[Stopped.OVERTAKEN] += 1
                return
            self._violate(f"{actor} stops the {run} of somebody else, or of a later try")
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
        self._check_outputs(actor.result, actor)
        result = dict(actor.result)
        usage = result.pop("usage", None)
        # Two runs have one message id where a try that was given up sent its prompt late.
        runs = [run for run in self.runs if self._is_over(run) and run.is_known_to(result)]
        if not runs:
            self._violate(f"{actor} returns {actor.result}, of no finished run: {self.runs}")
            return
        expected = [self._expected(run, result) for run in runs]
        if len(runs) > 1 and "queries" in result:
            # A try that follows both has the queries of both, and says that it is not sure of them.
            every = [query for one in expected for query in one["queries"]]
            expected.append({**expected[-1], "queries": every, "truncated": True})
            runs.append(runs[-1])
        if result not in expected:
            self._violate(f"{actor} returns {result} and none of {expected}")
            return
        run = runs[expected.index(result)]
        if usage not in (None, {"inputTokens": 900, "outputTokens": 100, "totalTokens": 1000}):
            self._violate(f"{actor} returns the usage {usage}")
        if run.epoch != actor.known.ti.epoch and not self._task.lost_max_tries:
            self._violate(f"{actor} returns the result of {run}, before the clear")

    def _is_over(self, run: AnyRun) -> bool:
        done = isinstance(run, Builds) and run.reported_done
        return run.status == "finished" or done or self._is_not_waited_for(run)

    def _expected(self, run: AnyRun, result: dict[str, Any]) -> dict[str, Any]:
        """What a try that followed the run has to return."""
        expected = dict(run.expected)
        if self._is_not_waited_for(run):
            expected |= {"status": None, "result": None}
        if result.get("result", 0) is None and self._is_said_of(run, NO_RESULT):
            expected["result"] = None
        if "workflow_id" in expected and result["workflow_id"] is None:
            expected["workflow_id"] = None  # only the answer to the start tells it
        if result.get("truncated") and self._is_cut_off(run):
            kept = [query for query in expected["queries"] if query in result["queries"]]
            expected |= {"queries": kept, "truncated": True}
        return expected

    def _is_cut_off(self, run: AnyRun) -> bool:
        """Whether the records that the service did not repeat may be missing from the result: no
        time was left to read the thread for them, and a warning says so."""
        repeats_nothing = isinstance(run, Run) and run.habits.replay == "none"
        return repeats_nothing and self._is_overdue(run) and self._is_said_of(run, TRUNCATED)

    def failed(self, actor: Actor, error: BaseException) -> None:
        """A try has failed: not by a run that was dead when it took it up, but by its own."""
        own = [one for one in self._owners.values() if one.known.ti is actor.known.ti]
        dead = isinstance(error, DEAD_RUN)
        if dead and not own and not actor.told_to_stop:
            self._violate(f"{actor} took a dead run up and asks nothing: {error}")

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
            for line in actor.log.lines[actor.log.checked :]:
                if "canary-" in line.text:
                    self._violate(f"a secret stands in the log of {actor}: {line.text}")
            actor.log.checked = len(actor.log.lines)
        assert not self.violations, "\n".join([*self.violations, *self._story()])

    def _check_outputs(self, done: Any, actor: Actor) -> None:
        """A try for which an argument has no value asks nothing, and returns nothing."""
        if actor.kind == "worker" and actor.known.vanished is not None:
            self._violate(f"{actor} does {done}, and its {actor.known.vanished} has vanished")

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
            f"log of {actor.name}, {line.level}: {line.text}"
            for actor in self._world.processes
            for line in actor.log.lines
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

    def _why_asked_again(self, run: AnyRun, started: AnyRun, actor: Actor) -> Asked | None:
        if run.status in ("aborted", "failed"):
            return Asked.ENDED_WITHOUT_ANSWER
        if run.number in self._unknown:
            return self._unknown[run.number]
        if run.can_stop and self._is_overdue(run):
            return Asked.TOO_LATE
        if run.was_suspended and self._is_said_of(run, SUSPENDED):
            return Asked.SUSPENDED
        known = (actor.known.store.read or {}).get("ids", {})
        if isinstance(run, Run) and run.message_id == started.message_id:
            if started.late or run.late:
                return Asked.LATE_SEND
            if not run.in_existing_thread and known.get("chat_id") != run.chat_id:
                return Asked.ONE_WINDOW
        if any(run.is_named_by(ids) for ids in self._task.forgotten):
            return Asked.STORE_LOST
        if any(run.is_named_by(ids) for ids in self._task.dropped):
            return Asked.DROPPED
        # What an old try started late is in no record.
        if started.late or run.late:
            return Asked.LATE_SEND
        if self._is_said_of(run, NOT_STOPPED):
            return Asked.NOT_STOPPED
        if self._is_said_of(run, OUTCOME_UNKNOWN):
            return Asked.OUTCOME_UNKNOWN
        if run.repeats_lost_start and not self._is_named(run):
            return Asked.REPEATED
        return None

    def _why_beside(self, run: AnyRun) -> Beside | None:
        """The next try after a clear stops what the record calls running."""
        if not run.can_stop:
            return Beside.CANNOT_STOP
        if self._is_said_of(run, NOT_STOPPED + OUTCOME_UNKNOWN):
            return Beside.LOGGED
        if run.late or self._unknown.get(run.number) is Asked.LATE_SEND:
            return Beside.LATE
        if any(run.is_named_by(ids) for ids in self._task.forgotten):
            return Beside.STORE_LOST
        if run.number in self._task.unseen:
            return Beside.NOBODY_THERE
        if self._is_not_waited_for(run):
            return Beside.NOT_WAITED
        called = [one for one in self._task.records if run.is_known_to(one["ids"])]
        if all(one["phase"] != "running" for one in called):
            return Beside.NOT_RUNNING
        dropped = any(run.is_named_by(ids) for ids in self._task.dropped)
        stops = [actor for actor in self._task.actors if actor.kind == "stop"]
        if dropped and any(run.is_known_to(stop.known.ids) for stop in stops):
            return Beside.STOP_UNDER_WAY
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

    def _why_stopped(self, run: AnyRun, actor: Actor) -> Stopped | None:
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

    def _is_overdue(self, run: AnyRun) -> bool:
        """Whether its time is over, which counts from its submission."""
        told = [record["ids"] for record in self._task.records]
        since = [ids["submitted_at"] for ids in told if run.is_named_by(ids)]
        began = min([run.started_at, *since])
        return bool(self._world.time.now >= began + self._task.timeout)

    def _why_left(self, run: AnyRun) -> Left | None:
        if not run.can_stop:
            return Left.CANNOT_STOP
        if self._is_said_of(run, NOT_STOPPED + OUTCOME_UNKNOWN):
            return Left.LOGGED
        if run.number in self._task.unseen:
            return Left.NOBODY_THERE
        if run.late or self._unknown.get(run.number) is Asked.LATE_SEND:
            return Left.LATE
        if not self._is_named(run):
            return Left.ONE_WINDOW
        if any(run.is_named_by(ids) for ids in self._task.forgotten):
            return Left.STORE_LOST
        if self._is_not_waited_for(run):
            return Left.NOT_WAITED
        if self._is_said_of(run, STATE_UNKNOWN):
            return Left.STATE_UNKNOWN
        if self._was_left_to_a_retry_that_never_came(run):
            return Left.NO_RETRY_CAME
        return None

    def _was_left_to_a_retry_that_never_came(self, run: AnyRun) -> bool:
        """Whether a try has left this run to the next one, and none began after that try."""
        tries = [
            actor
            for actor in self._world.processes
            if actor.kind == "worker" and actor.known.task is self._task
        ]
        for later, actor in enumerate(tries, start=1):
            said = any(TO_THE_RETRY in line.text and line.about is run for line in actor.log.lines)
            if said and all(next_try.known.ti.epoch != run.epoch for next_try in tries[later:]):
                return True
        return False

    def _is_not_waited_for(self, run: AnyRun) -> bool:
        """Whether the service has no way to tell how the run goes."""
        platform = self._world.platform
        return isinstance(platform, SimulatedTenant) and not platform.habits.history

    def _is_named(self, run: AnyRun) -> bool:
        """Whether a record has ever named the run."""
        return any(run.is_known_to(record["ids"]) for record in self._task.records)

    def _is_said_of(self, run: AnyRun, words: tuple[str, ...]) -> bool:
        """Whether a warning or an error that is about this run says so."""
        for actor in self._world.processes:
            said = [line.text for line in actor.log.lines if line.is_warning and line.about is run]
            if actor.error is not None and actor.concerned_with is run:
                said.append(str(actor.error))
            if any(word in text for word in words for text in said):
                return True
        return False


NOT_STOPPED = ("could not be stopped", "cannot be stopped")
"""What is said of a run that a process has tried to stop."""

NO_RESULT = ("the task returns no result of it",)
"""What is said of a complete run whose result could not be read."""

TRUNCATED = ("queries may be missing from the result (truncated)",)
"""What is said of a run that was not read from its beginning."""

OUTCOME_UNKNOWN = (
    "history could not be read",
    "may still be running",
    "may continue on the service",
    "A sync may be running",
    "several new syncs that could belong to this task",
)
"""What is said of a run of which a process could not learn enough."""

STATE_UNKNOWN = (
    "Airflow did not return the state of the task",
    "the state of the task could not be read",
)

TO_THE_RETRY = "The task's next try re-attaches to it"

SUSPENDED = ("The run is suspended", "The run stays suspended", "The run is still suspended")
