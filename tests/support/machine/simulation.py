"""A simulation of Airflow with its workers and triggerers, and of the service.

The package's own code runs unchanged. The simulation answers its calls, reads and writes. At each
of these, the process pauses (`processes`). Between two pause points nothing interrupts a process.
At a pause point anything can happen: other processes run, the connection breaks, the process is
killed.
"""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal

from tests.support.machine.branches import MergeRequest, SimulatedBranches
from tests.support.machine.build_jobs import Builds, SimulatedJobs
from tests.support.machine.log_lines import Log
from tests.support.machine.platform import Run, SimulatedPlatform
from tests.support.machine.processes import Process
from tests.support.machine.tenant import SimulatedTenant, Sync

if TYPE_CHECKING:
    from tests.support.machine.ledger import Ledger

Spoil = Literal["refuse", "unreachable", "lose", "reset", "close", "silence", "half"]
"""What happens to a process's next effect: the request is refused or not made, its answer is
lost; the stream breaks, ends early, goes silent, or breaks inside a line."""

Platform = SimulatedPlatform | SimulatedTenant | SimulatedBranches | SimulatedJobs
AnyRun = Run | Sync | MergeRequest | Builds


class Simulation:
    """One service and one Airflow, as the processes see them."""

    def __init__(self, platform: Platform, *, drops_state: bool = False) -> None:
        self.platform = platform
        self.drops_state = drops_state
        """Whether this is Airflow 3.4: a clear drops the record, unless the user keeps it, and a
        trigger that moves gets no `on_kill`."""
        self.time = self.platform.time
        self.processes: list[Actor] = []
        self.acting: Actor | None = None
        self.keys: list[str] = []
        self.written: list[tuple[str, str]] = []
        """Everything that somebody could read later, and where it stands."""
        self.history: list[str] = []
        """What happened, for whoever reads of a failure."""
        self.store_refusals = 0
        self.api_down_until = 0.0
        self.service_down_until = 0.0
        """Until then the service answers nothing but 502, and streams break."""
        self.ledger: Ledger
        self._message_ids = 0
        self.rotate_key()

    @property
    def api_down(self) -> bool:
        """Whether Airflow's API server does not answer."""
        return self.time.now < self.api_down_until

    def rotate_key(self) -> None:
        """Another key on the service and in the connection."""
        self.keys.append(f"canary-{len(self.keys) % 4}-of-the-key")
        self.platform.key = self.keys[-1]

    def connection(self, *_: Any) -> Any:
        """The Airflow connection as it is now."""
        fields = dict.fromkeys(("host", "schema", "login", "password", "port"))
        fields |= self.platform.connection(self.keys[-1])
        return SimpleNamespace(**{**fields, "extra": json.dumps(fields["extra"])})

    def new_message_id(self) -> str:
        self._message_ids += 1
        return f"{int(self.time.now * 1000)}{self._message_ids:06d}-message"

    def write(self, where: str, what: Any) -> Any:
        """Something is kept where it can be read: as JSON, which is what comes back."""
        text = json.dumps(what)
        self.written.append((where, text))
        return json.loads(text)

    def spawn(self, actor: Actor) -> Actor:
        self.processes.append(actor)
        return actor

    def step(self, actor: Actor) -> None:
        """Run a process until its next pause point."""
        self.acting = actor
        before = actor.at
        actor.step()
        self.acting = None
        end = "" if actor.alive else f" and ends ({actor.error or 'well'})"
        self.history.append(f"{actor.name}: {before} -> {actor.at}{end}")

    def kill(self, actor: Actor) -> None:
        """kill -9."""
        self.acting = actor
        actor.kill()
        self.acting = None
        self.history.append(f"{actor.name}: killed at {actor.at}")

    def pause(self, at: str, *, wake: float | None = None) -> None:
        """Pause the process that calls this method. A helper thread of a process does not pause."""
        actor = self.acting
        if actor is not None and actor.is_here:
            actor.pause(at, wake=wake)
            # Time may have passed meanwhile, never less than what was waited for.
            if wake is not None:
                self.time.now = max(self.time.now, wake)
        elif wake is not None:
            self.time.now = max(self.time.now, wake)


class Actor(Process):
    """A simulated process: a try on a worker, a trigger, or the stop by a killed trigger."""

    def __init__(
        self,
        kind: Literal["worker", "trigger", "stop", "other"],
        name: str,
        **known: Any,
    ) -> None:
        super().__init__(name)
        self.kind = kind
        self.known = SimpleNamespace(**known)
        self.spoil: Spoil | None = None
        self.log = Log(self)
        self.concern: AnyRun | None = None
        """The run that it has spoken of with the service last."""
        self.states: set[str | None] = set()
        """What the task's state has been while it was told to stop."""
        self.saw_last: Run | None = None
        """The last run of the thread when it looked at it last."""
        self.told_to_stop = False
        self.reported = False

    @property
    def concerned_with(self) -> AnyRun | None:
        """The run that it is about: what it logs now is about that one."""
        given = getattr(self.known, "ids", None)
        store = getattr(self.known, "store", None)
        if given is None and store is not None and store.read is not None:
            given = store.read["ids"]
        if self.concern is not None or given is None:
            return self.concern
        runs = self.known.task.simulation.platform.runs()
        return next((run for run in runs if run.is_known_to(given)), None)

    @property
    def stopping(self) -> bool:
        """Whether what runs was told to stop."""
        return self.kind == "stop" or self.told_to_stop

    def take_spoil(self, *kinds: Spoil) -> Spoil | None:
        """What is to go wrong now; with kinds, only where it is one of those."""
        spoil = self.spoil
        if spoil is None or (kinds and spoil not in kinds):
            return None
        self.spoil = None
        return spoil
