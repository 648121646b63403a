"""Triggers that wait for a run at the service: exactly one event ends them, and a kill the run.

A trigger may run twice (a triggerer restarts, another takes over), so it submits nothing. Its
arguments are stored in the metadata database: ids, limits and a deadline, never a secret.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_platform._airflow import BaseTrigger, TriggerEvent, get_task_states_on_loop
from airflow_provider_platform.client.errors import (
    PlatformDeadlineError,
    PlatformError,
    PlatformProtocolError,
    PlatformTriggerError,
)
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.client.operations.log_events import EventLog
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.triggers._killed_tasks import UNKNOWN, stops_run

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_platform.client.http.client import AsyncPlatformClient
    from airflow_provider_platform.client.operations.program import Program

T = TypeVar("T")

KILL_SECONDS = 25.0
"""What `on_kill` may take in all; Airflow means to allow 30 seconds."""
LOOK_UP_SECONDS = 15.0
"""What Airflow may take of these to tell the task's state; the first such call takes seconds."""

STOOD_STILL_SECONDS = 15.0
"""How far past its deadline a trigger must be to conclude that its triggerer stood still (or was
down): a trigger that runs notices its deadline at once."""

_STOPS: set[asyncio.Task[None]] = set()
"""Stops under way: the event loop itself keeps no strong reference to a task."""


class RemoteRunTrigger(BaseTrigger):
    """Base of the triggers that follow a run; `run` holds the ids that name it.

    The event is `{"status": "success" | "error" | ..., "run": ids, ...}`; with "error" it carries
    the error as the client describes it, and whether the run was stopped.
    """

    def __init__(self, *, platform_conn_id: str, run: dict[str, Any], **limits: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.platform_conn_id = platform_conn_id
        self.ids = run
        self.limits = limits

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """The class path and the arguments, as plain JSON."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {"platform_conn_id": self.platform_conn_id, "run": self.ids, **self.limits}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Follow the run and tell how it ended."""
        yield TriggerEvent(await self._event())

    @abstractmethod
    async def follow(self, client: AsyncPlatformClient) -> dict[str, Any]:
        """Wait for the run; returns the event's own part. Raises PlatformError."""

    async def stop(self, client: AsyncPlatformClient) -> bool:  # noqa: ARG002
        """Stop the run; False where there was nothing of ours to stop: what the service drops by
        itself needs no stop."""
        return False

    async def carry_out(self, client: AsyncPlatformClient, program: Program[T]) -> T:
        """Run a program; what it notifies of is logged."""
        with closing(EventLog(self.log, client.secrets)) as tell:
            return await client.run(program, tell)

    async def on_kill(self) -> None:
        """Stop the run of a task that was ended from outside (Airflow 3.3+).

        Airflow repeats the cancel about every second, hence a task of its own, shielded.
        """
        if not self.limits.get("cancel_on_kill", True):
            return
        stop = asyncio.create_task(self._stop_unless_wanted())
        _STOPS.add(stop)
        stop.add_done_callback(_STOPS.discard)
        await asyncio.shield(stop)

    async def _event(self) -> dict[str, Any]:
        stopped = False
        try:
            async with PlatformHook(self.platform_conn_id).async_client(again=True) as client:
                try:
                    with client.redacted_errors():
                        return {"run": self.ids, **await self.follow(client)}
                except (PlatformDeadlineError, PlatformProtocolError):
                    if self.limits.get("cancel_on_kill", True) and not self._stood_still(client):
                        stopped = await self._stop_quietly(client)
                    raise
        except PlatformError as error:
            failure = error
        except Exception as error:
            self.log.exception("The trigger failed")
            failure = unexpected(error)
        return {
            "status": "error",
            "run": self.ids,
            "error": failure.to_payload(),
            "stopped": stopped,
        }

    def _stood_still(self, client: AsyncPlatformClient) -> bool:
        """Whether this trigger comes so late that others may have gone on with its task: then it
        only reports, and the worker that resumes the task decides what to stop."""
        late = client.clock() - float(self.limits["deadline"])
        if late <= STOOD_STILL_SECONDS:
            return False
        self.log.warning(
            "This trigger noticed its deadline %.0f seconds late, so its triggerer stood still or "
            "was down. It stops nothing; the worker that resumes the task does.",
            late,
        )
        return True

    async def _stop_unless_wanted(self) -> None:
        """Stop the run if the task has ended. A trigger is also killed when it moves to another
        triggerer: then its task is deferred and needs the run. A cleared task runs again, and its
        next try stops the old run."""
        try:
            async with asyncio.timeout(KILL_SECONDS):
                state = await self._state_of_task()
                if stops_run(state, killed="trigger"):
                    await self._stop_with_own_client()
                elif state == "deferred":
                    self.log.info(
                        "The task waits elsewhere or again: its remote run is left alone."
                    )
                elif state != UNKNOWN:
                    self.log.info("The task runs again: its next try stops the remote run.")
        except TimeoutError:
            self.log.warning("The remote run could not be stopped: there was no time left.")

    async def _state_of_task(self) -> str | None:
        try:
            async with asyncio.timeout(LOOK_UP_SECONDS):
                return await get_task_states_on_loop(self.task_instance)
        except Exception:
            self.log.warning(
                "Whether the task still waits could not be looked up: its remote run is left "
                "alone.",
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
        try:
            stopped = await self.stop(client)
        except PlatformError as error:
            self.log.warning("The remote run could not be stopped: %s", error)
            return False
        self.log.info("The remote run was %s.", "stopped" if stopped else "not ours to stop")
        return stopped


def unexpected(error: Exception) -> PlatformError:
    """What an event says of an error that nobody foresaw: a trigger that raises would leave the
    task without a word of it."""
    return PlatformTriggerError(
        f"The trigger failed: {type(error).__name__}: {quote_service(error)}"
    )
