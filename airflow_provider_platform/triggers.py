"""What waits in the triggerer: each trigger waits for one thing and ends with exactly one event.

`PlatformRunTrigger` waits for the end of a run, `PlatformQueryTrigger` for the first row of a
query, and `PlatformSensorTrigger` for the condition of a sensor.

A trigger may run twice (a triggerer restarts, or another triggerer takes over), so it submits no
run. Airflow stores its arguments in the metadata database: ids, limits, a deadline, session
settings and a hash of the prompt, and for a query its SQL. They never contain a prompt or a
credential. `resources.stop_decision` says when a trigger stops its run.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import closing, suppress
from inspect import signature
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_platform._airflow import (
    MOVED_TRIGGER_IS_KILLED,
    BaseTrigger,
    TaskSuccessEvent,
    TriggerEvent,
    get_task_states_on_loop,
)
from airflow_provider_platform.client.choices import POLL_INTERVAL
from airflow_provider_platform.client.errors import (
    ChatSuspendedError,
    PlatformDeadlineError,
    PlatformError,
    PlatformProtocolError,
    PlatformTriggerError,
)
from airflow_provider_platform.client.polling import FailureBudget, PollInterval, Wait, poll_until
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.run_kind import (
    MAX_EVENT_BYTES,
    NOT_STOPPED,
    RunEnvironment,
    kind_class,
)
from airflow_provider_platform.resources.run_log import EventLog, log_changes
from airflow_provider_platform.resources.stop_decision import UNKNOWN, trigger_stops_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine

    from airflow_provider_platform.client.choices import CacheMode
    from airflow_provider_platform.client.platform_client import AsyncPlatformClient
    from airflow_provider_platform.resources.run_kind import (
        Ids,
        RunKind,
    )

TRIGGER_KILL_SECONDS = 25.0
"""Seconds that `on_kill` may take in all; Airflow intends to allow 30."""
TRIGGER_STATE_SECONDS = 15.0
"""Seconds of these that Airflow may take to report the task's state; its first call takes
seconds."""

STOOD_STILL_SECONDS = 15.0
"""Seconds after the deadline from which a trigger concludes that its triggerer was frozen or down.
A running trigger notices its deadline at once."""

T = TypeVar("T")

_TASKS: set[asyncio.Task[Any]] = set()
"""The stops that are running: the event loop itself keeps no strong reference to a task."""


def _start_task(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task that outlives the trigger."""
    task = asyncio.create_task(work)
    _TASKS.add(task)
    task.add_done_callback(_TASKS.discard)
    return task


class OneEventTrigger(BaseTrigger):
    """Base of the triggers that end with one event. `deadline` is in Unix time.

    The event is `{"status": "success" | "error" | ..., ...}` with the `subject`, which names what
    is waited for. With "error" it contains the error as the client describes it, and whether the
    run was stopped.
    """

    def __init__(self, *, platform_conn_id: str, deadline: float) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.platform_conn_id = platform_conn_id
        self.deadline = float(deadline)

    @property
    def subject(self) -> dict[str, Any]:
        """The field of the event that names what is waited for."""
        raise NotImplementedError

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments of the class, as plain JSON."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        names = signature(type(self)).parameters
        return path, {name: self.stored(name) for name in names}

    def stored(self, name: str) -> Any:
        """Return the argument of this name, as plain JSON."""
        return getattr(self, name)

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the run and report how it ended."""
        yield TriggerEvent(await self._event())

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        """Wait for the end; returns the fields of the event. Raises PlatformError."""
        raise NotImplementedError

    async def stop_after_failure(
        self,
        client: AsyncPlatformClient,  # noqa: ARG002 - here nothing can be stopped
    ) -> bool:
        """Return whether the run was stopped, because the wait met its deadline or could not read a
        response."""
        return False

    async def _event(self) -> dict[str, Any]:
        stopped = False
        try:
            async with PlatformHook(self.platform_conn_id).async_client(again=True) as client:
                try:
                    with client.redacted_errors():
                        return {**self.subject, **await self.follow(client)}
                except (PlatformDeadlineError, PlatformProtocolError):
                    stopped = await self.stop_after_failure(client)
                    raise
        except PlatformError as error:
            failure = error
        except Exception as error:
            self.log.exception("The trigger failed")
            failure = unexpected(error)
        return {
            "status": "error",
            **self.subject,
            "error": failure.to_payload(),
            "stopped": stopped,
        }


class RunTrigger(OneEventTrigger):
    """Base of the triggers that wait for a run, or a query, that its ids name (`run`)."""

    def __init__(self, *, run: Ids, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.ids = run

    @property
    def subject(self) -> dict[str, Any]:
        return {"run": self.ids}

    def stored(self, name: str) -> Any:
        return self.ids if name == "run" else super().stored(name)


class PlatformRunTrigger(RunTrigger):
    """Follow a run. `kind` is where the kind is in `resources`, `arguments` are those that the kind
    needs to follow the run (`RunKind.followed_with`), `run` holds its ids.

    `poll_interval` is in seconds; `cancel_on_kill` says whether the run is stopped if its task is
    stopped or exceeds its deadline. The event is `{"status": "success", ...}` with the fields of
    `RunKind.to_event`. The status "suspended" asks the worker to repeat the input of a chat.
    """

    _looked_up = False

    def __init__(
        self,
        *,
        platform_conn_id: str,
        kind: str,
        run: Ids,
        deadline: float,
        arguments: dict[str, Any] | None = None,
        poll_interval: float = POLL_INTERVAL,
        cancel_on_kill: bool = True,
    ) -> None:
        super().__init__(platform_conn_id=platform_conn_id, run=run, deadline=deadline)
        self.kind = kind
        self.arguments = arguments or {}
        self.poll_interval = float(poll_interval)
        self.cancel_on_kill = cancel_on_kill

    def run_kind(self) -> RunKind[Any, Any]:
        """Return the kind of the run, for following and stopping it."""
        return kind_class(self.kind)(**self.arguments)

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        self._prepare_state_look_up()
        run_kind = self.run_kind()
        env = RunEnvironment(self.deadline, self.poll_interval, in_triggerer=True)
        with closing(EventLog(self.log, client.secrets)) as event_log:
            try:
                outcome = await client.run(
                    lambda api: run_kind.follow(api, env, self.ids), event_log
                )
            except ChatSuspendedError:
                return {"status": "suspended"}
        return {"status": "success", **run_kind.to_event(client.secrets, outcome)}

    async def on_kill(self) -> None:
        """Stop the run of a task that was stopped (Airflow 3.3+).

        Airflow repeats the cancel about every second, so the stop runs in a shielded task of its
        own.
        """
        if not self.cancel_on_kill:
            return
        await asyncio.shield(_start_task(self._stop_unless_wanted()))

    def _prepare_state_look_up(self) -> None:
        """Read the state of a task once in each triggerer, without waiting for it. For its first
        look-up Airflow builds its API in the triggerer, which takes ten seconds of processor time
        or more: an `on_kill` that had to wait for this would come too late to stop a run."""
        if (
            MOVED_TRIGGER_IS_KILLED
            and self.cancel_on_kill
            and self.task_instance is not None
            and not PlatformRunTrigger._looked_up
        ):
            PlatformRunTrigger._looked_up = True
            _start_task(self._look_up_state())

    async def _look_up_state(self) -> None:
        with suppress(Exception):  # `on_kill` looks again and logs a failure
            await get_task_states_on_loop(self.task_instance)

    async def stop_after_failure(self, client: AsyncPlatformClient) -> bool:
        if not self.cancel_on_kill or self._stood_still(client):
            return False
        return await self._stop_quietly(client)

    def _stood_still(self, client: AsyncPlatformClient) -> bool:
        """Return whether this trigger is so late that others may have continued its task. Then the
        trigger only reports, and the worker that resumes the task decides what to stop."""
        late = client.clock() - self.deadline
        if late <= STOOD_STILL_SECONDS:
            return False
        self.log.warning(
            "This trigger noticed its deadline %.0f seconds late, because its triggerer was "
            "blocked or down. The trigger does not stop the run; the worker that resumes the "
            "task stops it.",
            late,
        )
        return True

    async def _stop_unless_wanted(self) -> None:
        """Stop the run if the task was marked or cleared. Before Airflow 3.4 a trigger is also
        killed when it moves to another triggerer: then its task is deferred and needs the run."""
        try:
            async with asyncio.timeout(TRIGGER_KILL_SECONDS):
                state = await self._state_of_task() if MOVED_TRIGGER_IS_KILLED else None
                if trigger_stops_run(state):
                    await self._stop_with_own_client()
                elif state == "deferred":
                    self.log.info(
                        "Another trigger waits for this task, so the remote run is not stopped."
                    )
                elif state != UNKNOWN:
                    self.log.info(
                        "Another try of the task has begun or will begin. It stops the remote run "
                        "or re-attaches to it."
                    )
        except TimeoutError:
            self.log.warning(
                "The remote run could not be stopped, because no time was left for it. The run may "
                "continue."
            )

    async def _state_of_task(self) -> str | None:
        try:
            async with asyncio.timeout(TRIGGER_STATE_SECONDS):
                return await get_task_states_on_loop(self.task_instance)
        except Exception:
            self.log.warning(
                "The remote run is not stopped, because the state of the task could not be read.",
                exc_info=True,
            )
            return UNKNOWN

    async def _stop_with_own_client(self) -> None:
        try:
            async with PlatformHook(self.platform_conn_id).async_client(again=True) as client:
                await self._stop_quietly(client)
        except PlatformError as error:
            self.log.warning("The remote run could not be stopped: %s", error)

    async def _stop_quietly(self, client: AsyncPlatformClient) -> bool:
        run_kind = self.run_kind()
        if not run_kind.can_stop:
            self.log.info(NOT_STOPPED)
            return False
        try:
            stopped = await client.run(lambda api: run_kind.stop(api, self.ids))
        except PlatformError as error:
            self.log.warning("The remote run could not be stopped: %s", error)
            return False
        self.log.info(
            "The remote run was %s.",
            "stopped" if stopped else "not stopped, because it does not belong to this task",
        )
        return stopped


class _RowsArrived(Exception):
    """The first rows of the query are here, so the trigger needs no others."""


class PlatformQueryTrigger(RunTrigger):
    """Send the query again until it returns its first row. The worker then sends the query once
    more and reads the rows: the service keeps the result, but drops a query if nobody requests its
    result. So nothing has to be stopped.

    `run` names the wait and holds the SQL, which the worker must repeat unchanged, and the SQL of
    the first page (`first_page`) if the result is read in pages. The other arguments are those of
    the query; `deadline` is in Unix time.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        run: Ids,
        deployment_id: int | None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: CacheMode | None = None,
        deadline: float,
    ) -> None:
        super().__init__(platform_conn_id=platform_conn_id, run=run, deadline=deadline)
        self.deployment_id = deployment_id
        self.branch_name = branch_name
        self.timezone = timezone
        self.cache = cache

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
        from airflow_provider_platform.resources.sql.response import SqlChunk

        query = SqlQuery(
            self.ids.get("first_page") or self.ids["sql"],
            deployment_id=self.deployment_id,
            deadline=self.deadline,
            branch_name=self.branch_name,
            timezone=self.timezone,
            cache=self.cache,
        )

        def stop_at_rows(event: object) -> None:
            if isinstance(event, SqlChunk):
                raise _RowsArrived

        with suppress(_RowsArrived):
            await client.run(lambda api: run_sql(api, query), stop_at_rows)
        return {"status": "success"}


class PlatformSensorTrigger(OneEventTrigger):
    """Poll until the condition holds or the deadline has passed.

    `condition`, `poll_interval` and `failure_budget` are the fields of `Condition`, `PollInterval`
    and `FailureBudget` as plain JSON; `deadline` is in Unix time. The event is
    `{"status": "success" | "timeout" | "error", "wait": {...}, ...}`. With "success" it contains
    `value`, None if the value exceeds 256 KB; with "error" the `error` as the client describes it.
    With `end_from_trigger` a success ends the task, and the value is its XCom.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        condition: dict[str, Any],
        poll_interval: dict[str, Any],
        failure_budget: dict[str, Any],
        deadline: float,
        end_from_trigger: bool = False,
    ) -> None:
        super().__init__(platform_conn_id=platform_conn_id, deadline=deadline)
        self.condition = condition
        self.poll_interval = poll_interval
        self.failure_budget = failure_budget
        self.end_from_trigger = end_from_trigger

    @property
    def subject(self) -> dict[str, Any]:
        return {"wait": {"condition": self.condition, "deadline": self.deadline}}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and yield the event that says how the wait ended."""
        event = await self._event()
        if self.end_from_trigger and event.get("value") is not None:
            yield TaskSuccessEvent(xcoms={"return_value": event["value"]})
        else:
            yield TriggerEvent(event)

    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        from airflow_provider_platform.resources.sensor_conditions import Condition

        condition = Condition(**self.condition)
        log_change = log_changes(self.log)
        wait = Wait(
            self.deadline,
            PollInterval(**self.poll_interval),
            begins="after a pause",
            grace=condition.may_be_late,
            notify_failures=True,
            last_failure_counts=False,
        )
        budget = FailureBudget(**self.failure_budget)
        value: dict[str, Any] | None = await client.run(
            lambda api: poll_until(api, condition.poll, wait, budget),
            lambda event: log_change(event, client.secrets),
        )
        if value is None:
            return {"status": "timeout"}
        fits = len(json.dumps(value).encode()) <= MAX_EVENT_BYTES
        return {"status": "success", "value": value if fits else None}


def unexpected(error: Exception) -> PlatformError:
    """Return the part of an event that describes an unexpected error. If a trigger
    raises, the task does not learn what happened."""
    return PlatformTriggerError(
        f"The trigger failed with an unexpected error, {type(error).__name__}: "
        f"{quote_service(error).removesuffix('.')}. The log of the trigger has the details. A "
        "retry may succeed."
    )
