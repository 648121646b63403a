"""Compare what a task merged with the rules of merges.

A merge cannot be taken back, and no operation lists merges. So every request to merge must follow a
look at the commits, and no request may be sent for a merge that this look, or the record that the
try has read, shows as made. A task that succeeds has production built from what it merged.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from tests.support.machine.branches import MergeRequest, SimulatedBranches
from tests.support.machine.ledger import Ledger

if TYPE_CHECKING:
    from tests.support.machine.branches import Look
    from tests.support.machine.played_airflow import PlayedTask
    from tests.support.machine.simulation import Actor, AnyRun, Simulation


class Again(Enum):
    """Why a merge of one commit was sent once more."""

    UNSURE = "the commits could not tell whether the one before it was made"
    STORE_LOST = "the record was lost"
    LATE = "a try that was given up sent the one before it, or sends this one"


MOST_REQUESTS = 2
"""Merges that one try may send: the second one decides what the commits cannot tell."""


class MergeLedger(Ledger):
    """The book of one task that merges."""

    def __init__(self, simulation: Simulation, task: PlayedTask) -> None:
        super().__init__(simulation, task)
        assert isinstance(simulation.platform, SimulatedBranches)
        self._branches = simulation.platform
        self.checked = task.outputs.get("commit")
        """The commit that the task's author lets in, None for any."""

    def started(self, started: AnyRun, actor: Actor) -> None:
        """A process of the task has sent a merge."""
        assert isinstance(started, MergeRequest)
        if actor.kind != "worker":
            self._violate(f"{actor} merges: {started}")
        self._check_outputs(started, actor)
        started.epoch = actor.known.ti.epoch
        started.late = actor.known.ti is not self._task.ti
        looks = self._looks(actor)
        if not looks:
            self._violate(f"{actor} sends {started} and has not looked at the commits")
        else:
            self._check_look(started, looks[-1], actor)
        own = [run for run in self.runs if self._owners[run.number] is actor]
        if len(own) >= MOST_REQUESTS:
            self._violate(f"{actor} sends {started} after {own}")
        self.runs.append(started)
        self._owners[started.number] = actor

    def stopped(self, run: AnyRun, actor: Actor) -> None:
        """Nothing stops a merge."""
        self._violate(f"{actor} stops {run}")

    def succeeded(self, actor: Actor) -> None:
        """A try has returned its result: production is built from a commit that it has seen on the
        branch, and from the one that was checked."""
        result: dict[str, Any] = actor.result
        self._check_outputs(result, actor)
        if result["status"] != "built":
            self._violate(f"{actor} has not waited for production: {result}")
        if self._is_unsure_of_the_build():
            return
        seen = {self.checked} if self.checked is not None else self._seen_on_branch()
        if not any(self._branches.serves(commit) for commit in seen):
            self._violate(f"{actor} returns {result}, and production has none of {seen}")
        if result["hash"] is not None and not self._branches.serves(result["hash"]):
            self._violate(f"{actor} says that production is built from {result['hash']}")

    def _is_unsure_of_the_build(self) -> bool:
        """Whether a warning says that nothing shows which model production was built from."""
        logs = [line for one in self._world.processes for line in one.log.lines]
        return any(line.is_warning and "does not name the commit" in line.text for line in logs)

    def _seen_on_branch(self) -> set[str]:
        looks = [look for one in self._world.processes for look in self._looks(one)]
        return {look.branch for look in looks if look.branch is not None}

    def _looks(self, actor: Actor) -> list[Look]:
        """What a process has seen of the commits."""
        looks: list[Look] = getattr(actor.known, "looks", [])
        return looks

    def _check_look(self, started: MergeRequest, look: Look, actor: Actor) -> None:
        if self.checked is not None and self.checked != look.branch:
            self._violate(f"{actor} sends {started}, and {self.checked} was checked")
        for run in self.runs:
            if not run.made or run.source != started.source:
                continue
            why = self._why_again(run, started, look, actor)
            if why is None:
                self._violate(f"{actor} sends {started} after {run}; the commits were {look}")
            else:
                self.explained[why] += 1

    def _why_again(
        self, run: MergeRequest, started: MergeRequest, look: Look, actor: Actor
    ) -> Again | None:
        """Why a commit is merged again that the task has merged."""
        if any(run.is_named_by(ids) for ids in self._task.forgotten + self._task.dropped):
            return Again.STORE_LOST
        if started.late or run.late:
            return Again.LATE
        if look.merges < run.number:
            return None  # without a look since
        known = (actor.known.store.read or {}).get("ids", {})
        if not self._branches.habits.lists_commits:
            return Again.UNSURE
        if run.is_known_to(known) or look.production == run.source:
            return None
        return Again.UNSURE
