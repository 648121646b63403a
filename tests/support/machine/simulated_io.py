"""Replace the package's clock, network and Airflow with those of the simulation."""

from __future__ import annotations

import json
import logging
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

from airflow_provider_platform import triggers as remote_trigger
from airflow_provider_platform.client import api, platform_client
from airflow_provider_platform.client.api import run_here
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformError,
    PlatformInterruptedError,
    PlatformTransportError,
)
from airflow_provider_platform.client.platform_client import PlatformClient, _ListenerFailed
from airflow_provider_platform.client.repeats import may_repeat, pause_after
from airflow_provider_platform.hooks import platform as platform_hook
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators import _run_stop
from airflow_provider_platform.resources.chat import call as chat_program
from tests.support.fakes.effects import (
    Call,
    CallData,
    CloseStream,
    OpenStream,
    PlayedApi,
    ReadStream,
    ReloadCredentials,
    SendChat,
    Sleep,
)
from tests.support.fakes.played_service import Fault
from tests.support.machine.build_jobs import SimulatedJobs
from tests.support.machine.platform import Run, SimulatedPlatform

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.support.fakes.played_service import Answer
    from tests.support.machine.simulation import Actor, Simulation


class _LibraryLog(logging.Handler):
    """Brings what modules log to the log of the process."""

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._world = simulation

    def emit(self, record: logging.LogRecord) -> None:
        actor = self._world.acting
        if actor is not None:
            text = self.format(record)
            actor.log.keep(record.levelname.lower(), text)


class _SimulatedApi(PlayedApi):
    """The `Api` of one run of work in the simulation."""

    simulation: Simulation

    def __init__(self, state: Any, *options: Any) -> None:
        super().__init__(state, *options)
        self._answer: Answer | None = None
        self._broken = False

    async def aclose(self) -> None:
        self._answer = None

    async def perform(self, effect: Any) -> Any:
        if self.interrupted():
            raise PlatformInterruptedError(api.INTERRUPTED)
        try:
            return await self._carry_out(effect)
        except PlatformError as error:
            self.secrets.hide_in(error)
            raise

    async def _carry_out(self, effect: Any) -> Any:
        match effect:
            case Call():
                return await self._managed(effect)
            case CallData():
                return self._data(effect)
            case OpenStream(body=body):
                await self.aclose()
                self._broken = False
                self._answer = self._chat("prompt" if "input" in body else "look", body)
            case ReadStream(timeout=seconds):
                return self._read(seconds)
            case CloseStream():
                await self.aclose()
            case SendChat(body=body):
                self._chat("abort", body)
            case Sleep(seconds=seconds):
                self.simulation.pause("sleep", wake=self.simulation.time.now + seconds)
            case ReloadCredentials():
                return await self._reload()
            case _:
                raise AssertionError(f"unexpected effect {effect!r}")
        return None

    async def _reload(self) -> bool:
        self.simulation.pause("reload")
        changed: bool = await self._replace(self.config)
        return changed

    def _request(self, what: str, about: Any, process: Callable[[Actor], Any]) -> Any:
        """One request: what the service does with it, between two pause points."""
        simulation, actor = self.simulation, self.simulation.acting
        assert actor is not None
        simulation.written.append((f"the body of a {what}", json.dumps(about)))
        simulation.pause(f"before {what}")
        spoil = actor.take_spoil("refuse", "unreachable")
        if simulation.time.now < simulation.service_down_until:
            outage = Fault("refuse", status=502).before()
            assert outage is not None
            raise outage
        if spoil is not None:
            refusal = Fault(spoil, status=503, retry_after="1").before()  # type: ignore[arg-type]
            assert refusal is not None
            raise refusal
        simulation.platform.check_key(simulation.platform.secret_of(self._state.config))
        answer = process(actor)
        simulation.pause(f"after {what}")
        if actor.take_spoil() is not None:
            raise PlatformTransportError("no complete answer in time")
        return answer

    def _chat(self, what: str, body: dict[str, Any]) -> Any:
        platform, ledger = self.simulation.platform, self.simulation.ledger
        assert isinstance(platform, SimulatedPlatform)
        acting = self.simulation.acting
        assert acting is not None
        if "chatId" in body and what != "prompt":
            acting.concern = _addressed(platform, body, acting)

        def process(actor: Actor) -> Any:
            if what == "abort":
                stopped = platform.abort(body)
                if stopped is not None:
                    ledger.stopped(stopped, actor)
                return None
            answer, started = platform.open(body, actor)
            if what == "look":
                actor.saw_last = platform.threads[body["chatId"]].runs[-1]
            ledger.asked(body, started, actor)
            if what == "prompt":
                asked = [run for run in platform.runs() if run.message_id == body["messageId"]]
                actor.concern = (asked or [None])[-1]
            return answer

        return self._request(what, body, process)

    async def _managed(self, effect: Any) -> Any:
        """A management call and its repeats, as the transport makes them."""
        operation = effect.operation.in_deployment(self._state.config.resolve_deployment_id)
        attempts = 1 if effect.once else self._state.config.max_attempts
        for attempt in range(1, attempts + 1):
            try:
                return self._management(operation)
            except PlatformAuthenticationError:
                if not await self._reload():
                    raise
                return self._management(operation)
            except PlatformError as error:
                wake = self.simulation.time.now + pause_after(error, attempt)
                if attempt == attempts or not may_repeat(error, repeatable=operation.repeatable):
                    raise
                if effect.deadline is not None and wake >= effect.deadline:
                    raise
                self.simulation.pause("sleep", wake=wake)
        raise AssertionError("the last attempt ends the call")

    def _management(self, operation: Any) -> Any:
        platform, ledger = self.simulation.platform, self.simulation.ledger
        assert not isinstance(platform, SimulatedPlatform)
        acting = self.simulation.acting
        assert acting is not None
        acting.concern = platform.concerned(operation) or acting.concern

        def process(actor: Actor) -> Any:
            told, changed = platform.answer(operation, actor)
            if operation.operation_id in platform.starts:
                actor.concern = changed
                ledger.started(changed, actor)
            elif changed is not None:
                ledger.stopped(changed, actor)
            return operation.read(told)

        return self._request(operation.operation_id, operation.body, process)

    def _data(self, effect: CallData) -> Any:
        """A request of the data API, which has a token of its own."""
        platform, ledger = self.simulation.platform, self.simulation.ledger
        assert isinstance(platform, SimulatedJobs)
        acting = self.simulation.acting
        assert acting is not None
        acting.concern = platform.concerned_by(effect) or acting.concern

        def process(actor: Actor) -> Any:
            told, started = platform.answer_data(effect, actor)
            if started is not None:
                actor.concern = started
                ledger.started(started, actor)
            return told

        return self._request(f"request with {effect.body['action']}", effect.body, process)

    def _read(self, seconds: float) -> bytes | None:
        simulation, actor = self.simulation, self.simulation.acting
        assert actor is not None
        assert self._answer is not None
        simulation.pause("read")
        spoil = actor.take_spoil()
        is_down = simulation.time.now < simulation.service_down_until
        if self._broken or is_down or spoil in ("reset", "refuse", "unreachable", "lose"):
            raise PlatformTransportError("the connection broke")
        if spoil == "close":
            return b""
        if spoil == "silence":
            simulation.time.now += seconds
            return None
        data = self._answer.read(seconds)
        if spoil == "half" and data:
            self._broken = True
            return data[: len(data) // 2]
        return data


def _addressed(platform: SimulatedPlatform, body: dict[str, Any], actor: Actor) -> Run | None:
    """The run that a look or an abort is about."""
    thread = platform.threads.get(body["chatId"])
    runs = thread.runs if thread is not None else []
    own = [run for run in runs if run.message_id == body.get("messageId")]
    if "messageId" not in body and isinstance(actor.concern, Run):
        own = [run for run in runs if run is actor.concern]
    return (own or runs or [None])[-1]


def _run(client: PlatformClient, work: Any, on_event: Any = lambda event: None) -> Any:
    """Stands for `PlatformClient.run`: here no work ever waits, so it needs no loop."""

    def report(event: object) -> None:
        try:
            on_event(event)
        except Exception as error:
            raise _ListenerFailed(error) from error

    async def hear(event: object) -> None:
        report(event)

    interrupted = partial(bool, client._interrupted)
    running = run_here(work, api.Api(client._state, hear, report, interrupted))
    try:
        running.send(None)
    except StopIteration as end:
        return end.value
    except _ListenerFailed as failed:
        raise failed.error from None
    raise AssertionError(f"{work} waits")


async def _at_once(function: Callable[..., Any], *args: Any) -> Any:
    return function(*args)


@contextmanager
def simulated_io(simulation: Simulation) -> Iterator[None]:
    """Inside the block, the package uses the simulation's clock, network and Airflow."""

    async def connection_on_loop(_: Any, conn_id: str) -> Any:
        return simulation.connection(conn_id)

    async def state_on_loop(ti: Any) -> str | None:
        simulation.pause("before state")
        return look_up_state(simulation, ti.played)

    def states(dag_id: str, map_index: int | None = None, **_: Any) -> dict[str, Any]:
        simulation.pause("before state")
        actor = simulation.acting
        assert actor is not None
        ti = actor.known.ti
        return {ti.run_id: {ti.task_id: look_up_state(simulation, ti.played)}}

    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    simulated_api = type("SimulatedApi", (_SimulatedApi,), {"simulation": simulation})
    library = logging.getLogger("airflow_provider_platform")
    handler, level = _LibraryLog(simulation), library.level
    replaced = [
        patch.object(api, "Api", simulated_api),
        patch.object(platform_client, "Api", simulated_api),
        patch.object(platform_client, "run_sync", _at_once),
        patch.object(PlatformClient, "run", _run),
        patch.object(platform_client, "steady_clock", lambda: lambda: simulation.time.now),
        patch.object(chat_program, "new_message_id", simulation.new_message_id),
        patch.object(PlatformHook, "get_connection", simulation.connection),
        patch.object(platform_hook, "get_connection_on_loop", connection_on_loop),
        patch.object(remote_trigger, "get_task_states_on_loop", state_on_loop),
        patch.object(remote_trigger, "MOVED_TRIGGER_IS_KILLED", not simulation.drops_state),
        patch.object(remote_trigger.PlatformRunTrigger, "_looked_up", True),
        patch.object(_run_stop, "run_within", lambda _, function: function()),
        patch.object(RuntimeTaskInstance, "get_task_states", states),
    ]
    with ExitStack() as stack:
        for one in replaced:
            stack.enter_context(one)
        library.addHandler(handler)
        library.setLevel(logging.DEBUG)
        try:
            yield
        finally:
            library.removeHandler(handler)
            library.setLevel(level)


def look_up_state(simulation: Simulation, task: Any) -> str | None:
    """The task's state, as Airflow's API tells it. Raises RuntimeError."""
    if simulation.api_down:
        if simulation.acting is not None:
            simulation.acting.states.add("unknown")
        raise RuntimeError("the API server does not answer")
    state: str | None = task.state
    return state
