"""`PlatformSensorTrigger`: wait until the condition of a sensor holds.

sensors/_base.py makes it, with `poke_interval` as the interval of its polls.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import BaseTrigger, TriggerEvent
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.operations.event_logger import log_changes
from airflow_provider_platform.client.polling.failure_budget import FailureBudget
from airflow_provider_platform.client.polling.poll_interval import PollInterval
from airflow_provider_platform.client.polling.poll_until import poll_until
from airflow_provider_platform.client.sensor_conditions import Condition
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.runs.run_kind import MAX_EVENT_BYTES
from airflow_provider_platform.triggers._remote_run import unexpected

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow_provider_platform.client.http.client import AsyncPlatformClient


class PlatformSensorTrigger(BaseTrigger):
    """Poll until the condition holds or the deadline has passed.

    `look` names the kind of condition and `subject` what the sensor waits for (see
    `client.sensor_conditions`); `pace` and `tolerance` are the fields of `PollInterval` and
    `FailureBudget`, under the names that stored triggers have; `deadline` is in Unix time. The
    event is `{"status": "seen" | "timeout" | "error", "wait": {...}, ...}`. With "seen" it contains
    `value`, None if the value exceeds 256 KB; with "error" the `error` as the client describes it.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        look: str,
        subject: dict[str, Any],
        pace: dict[str, Any],
        tolerance: dict[str, Any],
        deadline: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.platform_conn_id = platform_conn_id
        self.look = look
        self.subject = subject
        self.pace = pace
        self.tolerance = tolerance
        self.deadline = deadline

    @classmethod
    def of(
        cls,
        platform_conn_id: str,
        look: Condition,
        pace: PollInterval,
        tolerance: FailureBudget,
        deadline: float,
    ) -> PlatformSensorTrigger:
        """Return the trigger for a condition, with its arguments as plain JSON."""
        return cls(
            platform_conn_id=platform_conn_id,
            look=look.kind,
            subject=look.subject,
            pace=asdict(pace),
            tolerance=asdict(tolerance),
            deadline=deadline,
        )

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, as plain JSON."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {
            "platform_conn_id": self.platform_conn_id,
            "look": self.look,
            "subject": self.subject,
            "pace": self.pace,
            "tolerance": self.tolerance,
            "deadline": self.deadline,
        }

    @property
    def wait(self) -> dict[str, Any]:
        """Return what identifies this wait."""
        return {"look": self.look, "subject": self.subject, "deadline": self.deadline}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and yield the event that says how the wait ended."""
        yield TriggerEvent(await self._event())

    async def _event(self) -> dict[str, Any]:
        try:
            async with PlatformHook(self.platform_conn_id).async_client(again=True) as client:
                with client.redacted_errors():
                    value = await self._watch(client)
        except PlatformError as error:
            return self._failed(error)
        except Exception as error:
            self.log.exception("The trigger failed")
            return self._failed(unexpected(error))
        if value is None:
            return {"status": "timeout", "wait": self.wait}
        fits = len(json.dumps(value).encode()) <= MAX_EVENT_BYTES
        return {"status": "seen", "wait": self.wait, "value": value if fits else None}

    def _failed(self, error: PlatformError) -> dict[str, Any]:
        return {"status": "error", "wait": self.wait, "error": error.to_payload()}

    async def _watch(self, client: AsyncPlatformClient) -> dict[str, Any] | None:
        look = Condition(self.look, self.subject)
        program = poll_until(
            lambda: look.program(client.config, client.clock),
            PollInterval(**self.pace),
            FailureBudget(**self.tolerance),
            deadline=self.deadline,
            clock=client.clock,
            grace=look.may_be_late,
        )
        tell = log_changes(self.log)
        found: dict[str, Any] | None = await client.run(
            program, lambda event: tell(event, client.secrets)
        )
        return found
