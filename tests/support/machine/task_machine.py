"""Whatever happens to a task, to its processes and to the service, in any order and overlapping:
its run is asked for as often as somebody wants it or a rule explains, nothing is stopped that a
try follows, nothing is left, nobody gets another's result, no secret is written.

What is the same for every kind of run on the service stands here, `TaskMachine`.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow.sdk.execution_time import context
from hypothesis import HealthCheck, Phase, currently_in_test_context, event, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from airflow_provider_platform._airflow import AirflowFailException
from tests.support.hypothesis_profiles import examples
from tests.support.machine.ledger import Ledger
from tests.support.machine.played_airflow import ENDED, PlayedTask
from tests.support.machine.simulated_io import simulated_io
from tests.support.machine.simulation import Actor, Platform, Simulation

if TYPE_CHECKING:
    from collections.abc import Callable

TIMEOUT = 1800.0
OUTAGE = 120.0
RETRIES = 2
EXAMPLES = int(os.environ.get("MACHINE_EXAMPLES", examples(25)))
STEPS = 20
MANY = 300

Past = Literal[
    "none",
    "running",
    "cleared",
    "killed while it runs",
    "killed while it runs, and cleared",
    "killed before it returns",
    "killed while it runs, and too late",
    "killed before the answer",
    "answer lost",
]
"""What has happened to the task before anything else does."""
_OF_ONE_REQUEST: tuple[Past, ...] = (
    "killed while it runs, and too late",
    "killed before the answer",
    "answer lost",
)
PASTS_OF_ONE_REQUEST: tuple[Past, ...] = get_args(Past)
"""Those of a run that one request starts and nothing stops."""
PASTS = tuple(past for past in PASTS_OF_ONE_REQUEST if past not in _OF_ONE_REQUEST)

SPOILS = st.sampled_from(["refuse", "unreachable", "lose", "reset", "close", "silence", "half"])
WHO = st.integers(0, 3)
THEN = st.one_of(st.integers(0, 3), st.integers(0, 25))
HAS_STATE_STORE = hasattr(context, "TaskStateStoreAccessor")
COUNTED: Counter[str] = Counter()


def output(name: str) -> str:
    """A template that renders to the output of this name."""
    return f"{{{{ outputs.{name} }}}}"


class TaskMachine(RuleBasedStateMachine):
    """One task, everybody who does something to it, and the service."""

    past: ClassVar[Past] = "none"
    ledger_class: ClassVar[type[Ledger]] = Ledger
    answered_at: ClassVar[str] = ""
    """The pause point at which the service has processed the request that starts a run."""

    def __init__(self) -> None:
        super().__init__()
        self._simulated_io: Any = None

    def begin_with(self, platform: Platform, *, drops_state: bool) -> None:
        """Start the simulation, of Airflow 3.3 or, with `drops_state`, of Airflow 3.4."""
        self.simulation = Simulation(platform, drops_state=drops_state)
        self._simulated_io = simulated_io(self.simulation)
        self._simulated_io.__enter__()

    def begin_task(self, operator: type[Any], outputs: dict[str, Any], **options: Any) -> None:
        """Begin the task of this operator, with its past. `outputs` are what other tasks have
        returned, which its arguments name something with (see `output`)."""
        past = self.past
        outputs = {"connection": "platform_default", **outputs}
        options |= {"platform_conn_id": output("connection"), "timeout": TIMEOUT}

        def make() -> Any:
            return operator(task_id="task", **options)

        self.task = PlayedTask(self.simulation, make, retries=RETRIES, timeout=TIMEOUT)
        self.task.outputs = outputs
        self.simulation.ledger = self.ledger_class(self.simulation, self.task)
        if past == "cleared":
            self._go_on_until(lambda: self.task.state in ENDED)
            self.task.clear(lose_max_tries=False)
        elif past == "running" or past.startswith("killed while it runs"):
            self._go_on_until(lambda: bool(self._going_on))
            self._run_steps(6)
        elif past == "killed before it returns":
            self._go_on_until(lambda: any(one.at == "before the XCom" for one in self.task.actors))
        elif past in ("killed before the answer", "answer lost"):
            self._go_on_until(lambda: any(one.at == self.answered_at for one in self.task.actors))
            for actor in self.task.actors:
                actor.spoil = "lose"
        if past.startswith("killed"):
            for actor in self.task.actors:
                self.task.kill(actor)
        if past.endswith("too late"):
            self.simulation.time.now += TIMEOUT
        if past.endswith("and cleared"):
            self.task.clear(lose_max_tries=False)
            if self.task.is_running:
                self.task.miss()

    def _go_on_until(self, condition: Callable[[], bool]) -> None:
        for _ in range(MANY):
            if condition():
                return
            self._run_steps(1)
        raise AssertionError("a task to which nothing happens gets nowhere")

    # Each rule acts, and then the processes run for some steps, in turns.

    @rule(then=st.integers(1, 40))
    def go_on(self, then: int) -> None:
        self._run_steps(then)

    @precondition(lambda self: self.task.state not in ENDED)
    @rule()
    def go_on_until_it_waits(self) -> None:
        """Until the task is deferred, or does nothing before its next try."""
        for _ in range(MANY):
            if self.task.state == "deferred" or self.task.state in ENDED:
                return
            self._run_steps(1)

    @precondition(lambda self: self.task.actors)
    @rule(who=WHO, steps=st.integers(1, 15))
    def go_on_alone(self, who: int, steps: int) -> None:
        """One process goes on, all others stand still."""
        actor = self._pick(self.task.actors, who)
        for _ in range(steps):
            self._step(actor)

    @precondition(lambda self: self.task.actors)
    @rule(seconds=st.sampled_from([0.0, 60.0, 600.0, 1800.0]), then=THEN)
    def change(self, seconds: float, then: int) -> None:
        """Time passes, or, without, the key is rotated."""
        if seconds:
            self.simulation.time.now += seconds
        else:
            self.simulation.rotate_key()
        self._run_steps(then)

    # Faults of the network and of the service.

    @precondition(lambda self: self.task.actors)
    @rule(who=WHO, spoil=SPOILS, then=THEN)
    def spoil(self, who: int, spoil: Any, then: int) -> None:
        """The next thing that a process does goes wrong."""
        self._pick(self.task.actors, who).spoil = spoil
        self._run_steps(then)

    # Faults of Airflow.

    @precondition(lambda self: self.task.actors)
    @rule(then=THEN)
    def lose_service(self, then: int) -> None:
        """The service is away for two minutes."""
        self.simulation.service_down_until = self.simulation.time.now + OUTAGE
        self._run_steps(then)

    @precondition(lambda self: self.task.actors)
    @rule(what=st.sampled_from(["no record", "no access", "no API"]), then=THEN)
    def lose_airflow(self, what: str, then: int) -> None:
        """The record is lost; the next access to it fails; the API server is away for a while."""
        if what == "no record":
            self.task.lose_record()
        elif what == "no access":
            self.simulation.store_refusals = 1
        else:
            self.simulation.api_down_until = self.simulation.time.now + 100.0
        self._run_steps(then)

    @rule(who=st.integers(0, 9), then=THEN)
    def lose_output(self, who: int, then: int) -> None:
        """The next process does not find an output that an argument names something with."""
        if who < len(self.task.outputs):
            self.task.vanishing = self._pick(sorted(self.task.outputs), who)
        self._run_steps(then)

    @precondition(lambda self: self.task.workers)
    @rule(who=WHO, amid=st.booleans(), noticed=st.booleans(), then=THEN)
    def kill_worker(self, who: int, amid: bool, noticed: bool, then: int) -> None:
        """kill -9, which Airflow notices at once or later."""
        actor = self._pick(self.task.workers, who)
        self._bring_amid(amid, actor)
        if not actor.alive:
            return
        self.task.kill(actor)
        if noticed and actor is self.task.current_worker and self.task.is_running:
            self.task.miss()
        self._run_steps(then)

    @precondition(lambda self: self.task.workers)
    @rule(who=WHO, amid=st.booleans(), then=THEN)
    def sigterm(self, who: int, amid: bool, then: int) -> None:
        """The process is told to end: its pod goes, its supervisor has lost Airflow ..."""
        actor = self._pick(self.task.workers, who)
        self._bring_amid(amid, actor)
        if actor.alive:
            self.task.terminate(actor)
        self._run_steps(then)

    @precondition(lambda self: self.task.is_running)
    @rule(then=THEN)
    def miss(self, then: int) -> None:
        """Airflow takes the try for dead, which it is, or it stands still, or is cut off."""
        self.task.miss()
        self._run_steps(then)

    @precondition(lambda self: self.task.state == "deferred" and self.task.triggers)
    @rule(who=WHO, what=st.sampled_from(["twice", "killed"]), then=THEN)
    def shake_triggerers(self, who: int, what: str, then: int) -> None:
        """A trigger is run twice, or its triggerer is killed."""
        actor = self._pick(self.task.triggers, who)
        if what == "killed":
            self.simulation.kill(actor)
        else:
            self.task.start_trigger()
        self._run_steps(then)

    @precondition(lambda self: self.task.state == "deferred" and self.task.triggers)
    @rule(who=WHO, then=THEN)
    def move_trigger(self, who: int, then: int) -> None:
        """Another triggerer takes a trigger over."""
        actor = self._pick(self.task.triggers, who)
        self.task.start_trigger()
        self.task.stop_trigger(actor, moved=True)
        self._run_steps(then)

    @precondition(lambda self: self.task.state == "deferred" and self.task.events)
    @rule(who=WHO, then=THEN)
    def mistake_event(self, who: int, then: int) -> None:
        """An earlier trigger's event reaches the task: ids of triggers are used again."""
        self.task.wake(self._pick(self.task.events, who))
        self._run_steps(then)

    @precondition(lambda self: self._is_overdue)
    @rule(then=THEN)
    def trigger_timeout(self, then: int) -> None:
        self.task.wake(None)
        self._run_steps(then)

    # Users.

    @rule(
        lose_max_tries=st.booleans(),
        keep_state=st.booleans(),
        amid=st.booleans(),
        told=st.booleans(),
        then=THEN,
    )
    def clear(
        self, lose_max_tries: bool, keep_state: bool, amid: bool, told: bool, then: int
    ) -> None:
        """The task is cleared; with many others at once, what Airflow counts may get lost."""
        self._bring_amid(amid, *self.task.workers)
        self.task.clear(lose_max_tries=lose_max_tries, keep_state=keep_state)
        self._tell_workers(told)
        self._run_steps(then)

    @precondition(lambda self: self.task.state not in ENDED)
    @rule(
        state=st.sampled_from(["success", "failed"]),
        amid=st.booleans(),
        told=st.booleans(),
        then=THEN,
    )
    def mark(self, state: str, amid: bool, told: bool, then: int) -> None:
        self._bring_amid(amid, *self.task.workers)
        if self.task.state in ENDED:
            return
        self.task.mark(state)
        self._tell_workers(told)
        self._run_steps(then)

    def _bring_amid(self, wanted: bool, *actors: Actor) -> None:
        """Let the processes go on, if that is wanted, until each is amid its run or has ended."""
        for actor in actors if wanted else ():
            for _ in range(MANY):
                run = actor.concern
                if not actor.alive or (run is not None and run.status == "streaming"):
                    break
                self._step(actor)

    def _leave_to_retry(self, wanted: bool) -> None:
        """Kill the workers, if that is wanted, and have Airflow notice it: the next try is the
        first to learn what becomes of the run."""
        for actor in self.task.workers if wanted else []:
            self.task.kill(actor)
        if wanted and self.task.is_running:
            self.task.miss()

    def _tell_workers(self, told: bool) -> None:
        """Their supervisors collect at once that Airflow wants them ended, or later."""
        for actor in self.task.workers if told else []:
            self.task.terminate(actor)

    @invariant()
    def keeps_the_rules(self) -> None:
        if self._simulated_io is not None:
            self.simulation.ledger.check()

    def teardown(self) -> None:
        if self._simulated_io is None:
            return
        try:
            self._come_to_rest()
        finally:
            for actor in self.simulation.processes:
                if actor.alive:
                    self.simulation.kill(actor)
            self._simulated_io.__exit__(None, None, None)
        for why, times in self.simulation.ledger.explained.items():
            if currently_in_test_context():
                event(f"{type(why).__name__}: {why.value}")
            COUNTED[f"{type(why).__name__}: {why.value}"] += times
        COUNTED["examples"] += 1
        COUNTED["runs"] += len(self.simulation.ledger.runs)
        COUNTED["tries"] += sum(one.kind == "worker" for one in self.simulation.processes)
        COUNTED["triggers"] += sum(one.kind == "trigger" for one in self.simulation.processes)
        COUNTED["results"] += len(self.task.results)
        COUNTED["failures"] += len(self.task.failures)

    def heal_service(self) -> None:
        """Make the service well again."""

    def _come_to_rest(self) -> None:
        """With everything well again, the task comes to its end, and leaves nothing."""
        self.heal_service()
        self.simulation.api_down_until = self.simulation.store_refusals = 0
        self.simulation.service_down_until = 0
        self.task.vanishing = None
        for actor in self.simulation.processes:
            actor.spoil = None
        failures = len(self.task.failures)
        for _ in range(30):
            while self.task.actors:
                for actor in self.task.actors:
                    if actor.kind == "worker" and self._is_unwanted(actor):
                        self.task.terminate(actor)
                        self._to_end(actor, at_most=300)
                        if actor.alive:
                            self.task.kill(actor)
                    else:
                        self._to_end(actor)
            if self.task.state in ENDED:
                break
            if self.task.is_running:
                self.task.miss()
            self._run_steps(1)
            self.simulation.ledger.check()
        self.simulation.ledger.check()
        assert self.task.state in ENDED, f"the task is {self.task.state} for ever"
        unforeseen = [
            error
            for error in self.task.failures[failures + 1 :]
            if not isinstance(error, AirflowFailException)
        ]
        assert not unforeseen, f"tries fail although everything is well: {unforeseen}"

    def _is_unwanted(self, actor: Actor) -> bool:
        return actor.known.ti is not self.task.ti or self.task.state != "running"

    @property
    def _going_on(self) -> list[Any]:
        return [run for run in self.simulation.platform.runs() if run.status == "streaming"]

    @property
    def _is_overdue(self) -> bool:
        waiting = self.task.waiting
        overdue = waiting is not None and self.simulation.time.now >= waiting.until
        return overdue and self.task.state == "deferred"

    def _pick(self, among: Any, who: int) -> Any:
        return among[who % len(among)]

    def _run_steps(self, steps: int) -> None:
        """What there is goes on in turns; the scheduler and the triggerer do their part."""
        for turn in range(steps):
            self.task.move_on()
            actors = self.task.actors
            if actors:
                self._step(actors[turn % len(actors)])
        self.task.move_on()

    def _step(self, actor: Actor) -> None:
        if actor.alive:
            self.simulation.step(actor)
            if not actor.alive:
                self.task.collect(actor)

    def _to_end(self, actor: Actor, *, at_most: int = 5000) -> None:
        for _ in range(at_most):
            if not actor.alive:
                return
            self._step(actor)
        assert at_most < 5000, f"{actor} never ends"


def check_machine(
    machine: type[TaskMachine], past: Past, *, examples: int, shrink: bool = True
) -> None:
    """Have the machine do its worst to a task with that past. Raises AssertionError where a rule
    is broken."""
    run_state_machine_as_test(
        type(machine.__name__, (machine,), {"past": past}),
        settings=settings(
            max_examples=examples,
            stateful_step_count=STEPS,
            deadline=None,
            report_multiple_bugs=False,
            derandomize=True,
            database=None,
            print_blob=True,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


def tell_counts() -> None:
    """Write what happened how often."""
    sys.stdout.write("".join(f"{times:6} {what}\n" for what, times in sorted(COUNTED.items())))
    COUNTED.clear()
