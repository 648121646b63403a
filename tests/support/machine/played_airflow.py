"""One task of a played Airflow: its state, its tries, its record, its triggers.

As Airflow 3.3 does it, or 3.4 (`Simulation.drops_state`): a try whose task instance was replaced
(by a retry or a clear) is not heard any more, its writes to the state store are refused; a task
that is cleared while it runs is "restarting" until its process is gone.
"""

from __future__ import annotations

import asyncio
import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.operators._run_record import STORE_KEY
from tests.support.machine.simulation import Actor
from tests.support.task_context import TaskDeferred, TaskInstance

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.machine.simulation import Simulation

RETRY_DELAY = 60.0
ENDED = ("success", "failed")
NAMES = {"dag_id": "dag", "task_id": "task", "run_id": "run", "map_index": -1}


class StoreError(Exception):
    """Airflow does not take or give the record."""


class Ti(TaskInstance):
    """The task instance of one try."""

    def __init__(self, task: PlayedTask, try_number: int, max_tries: int) -> None:
        super().__init__(try_number, max_tries)
        del self.task  # Airflow would have the trigger render this task's templates
        self.played = task
        self.epoch = task.epoch
        vars(self).update(NAMES)

    def xcom_push(self, key: str, value: Any) -> None:
        self.played.simulation.write("an XCom", value)
        super().xcom_push(key, value)


class Store:
    """The task state store, as one try reaches it."""

    def __init__(self, ti: Ti) -> None:
        self._ti = ti
        self.read: dict[str, Any] | None = None
        """The record as this try has read it last."""
        self.wrote: dict[str, Any] | None = None
        """The record as this try has written it last."""

    @property
    def began_by(self) -> float | None:
        """What names a submission that this try announces."""
        return self.wrote["ids"]["submitted_at"] if self.wrote else None

    def get(self, key: str, default: Any = None) -> Any:
        assert key == STORE_KEY
        task = self._ti.played
        self._pass("read of the record")
        if self._ti is not task.ti:
            return default  # Airflow takes "no such task instance" for "no such key"
        self.read = task.record and json.loads(json.dumps(task.record))
        return default if self.read is None else self.read

    def set(self, key: str, value: Any) -> None:
        assert key == STORE_KEY
        task = self._ti.played
        self._pass("write of the record")
        if self._ti is not task.ti:
            raise StoreError("404: no such task instance")
        task.record = self.wrote = task.simulation.write("the record", value)
        task.records.append(task.record)
        task.simulation.pause("after write of the record")

    def _pass(self, what: str) -> None:
        simulation = self._ti.played.simulation
        simulation.pause(f"before {what}")
        if simulation.api_down or simulation.store_refusals > 0:
            simulation.store_refusals = max(0, simulation.store_refusals - 1)
            raise StoreError("the API server does not answer")


class PlayedTask:
    """A task instance of a DAG run and what becomes of it; `make` makes its operator anew."""

    def __init__(
        self, simulation: Simulation, make: Callable[[], Any], *, retries: int, timeout: float
    ) -> None:
        self.simulation = simulation
        self.make = make
        self.timeout = timeout
        self.outputs: dict[str, Any] = {}
        """What other tasks have returned: the values of its arguments."""
        self.vanishing: str | None = None
        """The output that the next process does not find."""
        self.retries = retries
        self.max_tries = retries
        self.epoch = 0
        """How often it was cleared: how often somebody wanted it done again."""
        self.lost_max_tries = False
        self.state: str | None = "scheduled"
        self.ti = Ti(self, 1, retries)
        self.record: dict[str, Any] | None = None
        self.records: list[dict[str, Any]] = []
        self.forgotten: list[dict[str, Any]] = []
        """The ids of records that were lost."""
        self.dropped: list[dict[str, Any]] = []
        """The ids of records that a clear has dropped."""
        self.waiting: Deferral | None = None
        self.event: dict[str, Any] | None = None
        self.events: list[dict[str, Any]] = []
        self.results: list[Any] = []
        self.failures: list[BaseException] = []
        self.unseen: set[int] = set()
        """The runs that went on when the task ended, while nobody was there to collect of it who
        followed them."""

    @property
    def actors(self) -> list[Actor]:
        return [one for one in self.simulation.processes if one.alive]

    @property
    def workers(self) -> list[Actor]:
        return [one for one in self.actors if one.kind == "worker"]

    @property
    def triggers(self) -> list[Actor]:
        return [one for one in self.actors if one.kind == "trigger"]

    @property
    def is_running(self) -> bool:
        """Whether Airflow takes a process of its for alive."""
        return self.state in ("running", "restarting")

    @property
    def current_worker(self) -> Actor | None:
        """The process of the try that Airflow knows of, living or dead and not yet missed."""
        of_this = [
            one
            for one in self.simulation.processes
            if one.kind == "worker" and one.known.ti is self.ti and not one.reported
        ]
        return of_this[-1] if of_this else None

    # What Airflow does.

    def move_on(self) -> None:
        """The scheduler and the triggerer do their part."""
        if self.state == "scheduled":
            self.begin()
        elif self.state == "deferred" and not self.triggers:
            self.start_trigger()

    def begin(self) -> None:
        """The scheduler has a worker run the try, or its part after the deferral."""
        assert self.state == "scheduled"
        self.state = "running"
        self.remember_states()
        ti, deferral, event = self.ti, self.waiting, self.event
        self.waiting = self.event = None
        store = Store(ti)
        actor = Actor("worker", f"try {ti.try_number}", ti=ti, store=store)
        actor.known.task = self
        actor.known.ids = deferral.kwargs.get("run") if deferral is not None else None
        actor.known.vanished, self.vanishing = self.vanishing, None
        actor.known.outputs = {**self.outputs, actor.known.vanished: None}

        def work() -> Any:
            operator = actor.known.operator = self.make()
            operator._cached_logger = actor.log
            context = {"ti": ti, "task_state_store": store}
            operator.render_template_fields({**context, "outputs": actor.known.outputs})
            if deferral is None:
                result = operator.execute(context)
            elif event is None:
                arguments = {**deferral.kwargs, "error": "Trigger timeout"}
                result = operator.resume_execution("__fail__", arguments, context)
            else:
                arguments = {**deferral.kwargs, "event": event}
                result = operator.resume_execution(deferral.method, arguments, context)
            self.simulation.pause("before the XCom")
            return self.simulation.write("the result", result)

        actor.begin_with(work)
        self.simulation.spawn(actor)

    def collect(self, actor: Actor) -> None:
        """A process has ended by itself: what its supervisor reports, what its trigger yields."""
        actor.reported = True
        if actor.kind == "worker":
            self._collect_worker(actor)
        elif actor.kind == "trigger":
            self._collect_trigger(actor)
        elif actor.error is not None:
            raise AssertionError(f"{actor} raised {actor.error!r}") from actor.error

    def _collect_worker(self, actor: Actor) -> None:
        error = actor.error
        foreseen = (PlatformError, AirflowFailException, StoreError, TaskDeferred)
        timed_out = type(error).__name__ == "TaskDeferralTimeout"
        if error is not None and not isinstance(error, foreseen) and not timed_out:
            raise AssertionError(f"{actor} raised {error!r}") from error
        if isinstance(error, PlatformError | AirflowFailException):
            self.simulation.written.append(("the error of a try", str(error)))
        if actor.known.ti is not self.ti:
            return  # 409: Airflow has given that try up
        if self.state == "running":
            self._settle(actor, error)
            return
        unknowing = isinstance(error, TaskDeferred) and not actor.told_to_stop
        if unknowing and (self.state != "restarting" or self.simulation.drops_state):
            self._leave_unseen(actor)  # its task was ended or cleared, which nobody has told it
        if self.state == "restarting":
            self._next_try()

    def _settle(self, actor: Actor, error: BaseException | None) -> None:
        if error is None:
            self.state = "success"
            self.results.append(actor.result)
            self.simulation.ledger.succeeded(actor)
        elif isinstance(error, TaskDeferred):
            self.state = "deferred"
            self.waiting = Deferral(self, error)
            self.start_trigger()
        else:
            self.failures.append(error)
            self.simulation.ledger.failed(actor, error)
            self.fail(final=isinstance(error, AirflowFailException))
            if isinstance(error, StoreError) and self.state == "failed":
                self._leave_unseen(None)  # it could not read what it was to take up

    def fail(self, *, final: bool = False) -> None:
        """The try has failed: the next one follows, if there is one left."""
        if not final and self.ti.try_number <= self.max_tries:
            self.simulation.time.now += RETRY_DELAY
            self._next_try()
        else:
            self.state = "failed"

    def miss(self) -> None:
        """Airflow takes the running try for dead: its heartbeat does not come."""
        assert self.is_running
        worker = self.current_worker
        if worker is not None:
            worker.reported = True
        if self.state == "restarting":
            if self.simulation.drops_state:
                self._leave_unseen(None)  # a worker that stands still hears too late of the clear
            self._next_try()
            return
        self.fail()
        if self.state == "failed" and (worker is None or not worker.alive):
            self._leave_unseen(None)

    def start_trigger(self) -> None:
        """A triggerer runs the trigger, from its stored arguments."""
        assert self.waiting is not None
        deferral, ti = self.waiting, self.ti
        trigger = deferral.trigger()
        trigger.task_instance = ti
        actor = Actor("trigger", f"trigger of try {ti.try_number}", ti=ti)
        actor.known.deferral, actor.known.trigger, actor.known.task = deferral, trigger, self
        actor.known.ids = trigger.ids
        trigger._log = actor.log

        async def run() -> list[Any]:
            return [
                self.simulation.write("an event", event.payload) async for event in trigger.run()
            ]

        actor.begin_with(lambda: asyncio.run(run()))
        self.simulation.spawn(actor)

    def _collect_trigger(self, actor: Actor) -> None:
        if actor.error is not None:
            raise AssertionError(f"{actor} raised {actor.error!r}") from actor.error
        assert len(actor.result) == 1, f"{actor} ended with the events {actor.result}"
        self.events.append(actor.result[0])
        if self.state == "deferred" and self.waiting is actor.known.deferral:
            self.wake(actor.result[0])

    def wake(self, event: dict[str, Any] | None) -> None:
        """The event of the task's trigger (None: it did not come in time) has it run on."""
        assert self.state == "deferred"
        self.state, self.event = "scheduled", event
        self.remember_states()

    def stop_trigger(self, actor: Actor, *, moved: bool = False) -> None:
        """A triggerer is told that the trigger is not its own any more."""
        self.simulation.kill(actor)
        actor.reported = True
        if moved and self.simulation.drops_state:
            return
        trigger = actor.known.trigger
        stop = Actor("stop", f"stop by the {actor.name}", ti=actor.known.ti)
        stop.known.task, stop.known.ids = self, trigger.ids
        stop.told_to_stop = True
        stop.states.add(self.state)
        stop.log = actor.log
        stop.begin_with(lambda: asyncio.run(trigger.on_kill()))
        self.simulation.spawn(stop)

    # What a user does.

    def clear(self, *, lose_max_tries: bool, keep_state: bool = False) -> None:
        """Clear it; `max_tries` can get lost where several running tasks are cleared at once."""
        self.epoch += 1
        if self.simulation.drops_state and not keep_state:
            self._drop_record()
        self.lost_max_tries = lose_max_tries
        if not lose_max_tries:
            self.max_tries = self.ti.try_number + self.retries
        if self.state == "running" or (self.state == "restarting" and self.simulation.drops_state):
            self._become("restarting")
            return
        triggers = self.triggers if self.state == "deferred" else []
        self._next_try()
        for actor in triggers:
            self.stop_trigger(actor)

    def mark(self, state: str) -> None:
        """Mark it failed or success."""
        triggers = self.triggers if self.state == "deferred" else []
        worker = self.current_worker if self.state == "running" else None
        if not triggers and (worker is None or not worker.alive):
            self._leave_unseen(None)
        self._become(state)
        for actor in triggers:
            self.stop_trigger(actor)

    def kill(self, actor: Actor) -> None:
        """kill -9 to the process of a try. Of a task that has ended, nobody stops the run then."""
        self.simulation.kill(actor)
        if self.state in ENDED:
            # Its own last process would have taken up whatever the record names.
            self._leave_unseen(None if actor.known.ti is self.ti else actor)

    def terminate(self, actor: Actor) -> None:
        """SIGTERM to the process of a try."""
        if actor.told_to_stop:
            return
        self.simulation.history.append(f"{actor.name}: SIGTERM")
        actor.told_to_stop = True
        actor.states.add(self.state)
        operator = getattr(actor.known, "operator", None)
        if operator is not None:
            actor.interrupt(operator.on_kill)
        else:
            self.kill(actor)  # nothing handles the signal yet

    def _leave_unseen(self, actor: Actor | None) -> None:
        """The task has ended, and nobody hears of it who follows the run of this process, or
        anybody's."""
        ledger = self.simulation.ledger
        runs = [run for run in ledger.runs if run.status in ("streaming", "suspended")]
        self.unseen |= {run.number for run in runs if actor in (None, ledger.owner_of(run))}
        if actor is not None and actor.concerned_with is not None:
            self.unseen.add(actor.concerned_with.number)

    def lose_record(self) -> None:
        """The state store forgets it."""
        if self.record is not None:
            self.forgotten.append(self.record["ids"])
        self.record = None

    def _drop_record(self) -> None:
        """A clear drops the record. The process that follows the run hears of it and stops the run;
        where there is none, the next try does not know of the run."""
        if self.record is not None:
            self.dropped.append(self.record["ids"])
        self.record = None
        worker = self.current_worker
        is_heard = worker is not None and worker.alive if self.is_running else bool(self.triggers)
        if not is_heard:
            self._leave_unseen(None)

    def _next_try(self) -> None:
        self.ti = Ti(self, self.ti.try_number + 1, self.max_tries)
        self.waiting = self.event = None
        self._become("scheduled")

    def _become(self, state: str) -> None:
        self.state = state
        self.remember_states()

    def remember_states(self) -> None:
        """What they may find who have been told to stop and look the state up."""
        self.simulation.history.append(f"the task is {self.state}")
        for actor in self.actors:
            if actor.told_to_stop:
                actor.states.add(self.state)


class Deferral:
    """What a task that defers leaves in the metadata database."""

    def __init__(self, task: PlayedTask, deferred: Any) -> None:
        simulation = task.simulation
        self._path, arguments = deferred.trigger.serialize()
        self._arguments = simulation.write("the arguments of a trigger", arguments)
        self.method: str = deferred.method_name
        self.kwargs: dict[str, Any] = simulation.write("the task's next arguments", deferred.kwargs)
        self.until: float = simulation.time.now + deferred.timeout.total_seconds()

    def trigger(self) -> Any:
        module, name = self._path.rsplit(".", 1)
        return getattr(import_module(module), name)(**self._arguments)
