"""`PlatformSensorTrigger`: wait until the condition of a sensor holds.

sensors/_base.py makes it, with `poke_interval` as the interval of its polls.
"""

from __future__ import annotations

import json
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

    `condition`, `poll_interval` and `failure_budget` are the fields of `Condition`, `PollInterval`
    and `FailureBudget` as plain JSON; `deadline` is in Unix time. The event is
    `{"status": "success" | "timeout" | "error", "wait": {...}, ...}`. With "success" it contains
    `value`, None if the value exceeds 256 KB; with "error" the `error` as the client describes it.
    """

    def __init__(
        self,
        *,
        platform_conn_id: str,
        condition: dict[str, Any],
        poll_interval: dict[str, Any],
        failure_budget: dict[str, Any],
        deadline: float,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.platform_conn_id = platform_conn_id
        self.condition = condition
        self.poll_interval = poll_interval
        self.failure_budget = failure_budget
        self.deadline = deadline

    def serialize(self) -> tuple[str, dict[str, Any]]:
        """Return the class path and the arguments, as plain JSON."""
        path = f"{type(self).__module__}.{type(self).__qualname__}"
        return path, {
            "platform_conn_id": self.platform_conn_id,
            "condition": self.condition,
            "poll_interval": self.poll_interval,
            "failure_budget": self.failure_budget,
            "deadline": self.deadline,
        }

    @property
    def wait(self) -> dict[str, Any]:
        """Return what identifies this wait."""
        return {"condition": self.condition, "deadline": self.deadline}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        """Wait, and yield the event that says how the wait ended."""
        yield TriggerEvent(await self._event())

    async def _event(self) -> dict[str, Any]:
        try:
            async with PlatformHook(self.platform_conn_id).async_client(again=True) as client:
                with client.redacted_errors():
                    value = await self._poll(client)
        except PlatformError as error:
            return self._failed(error)
        except Exception as error:
            self.log.exception("The trigger failed")
            return self._failed(unexpected(error))
        if value is None:
            return {"status": "timeout", "wait": self.wait}
        fits = len(json.dumps(value).encode()) <= MAX_EVENT_BYTES
        return {"status": "success", "wait": self.wait, "value": value if fits else None}

    def _failed(self, error: PlatformError) -> dict[str, Any]:
        return {"status": "error", "wait": self.wait, "error": error.to_payload()}

    async def _poll(self, client: AsyncPlatformClient) -> dict[str, Any] | None:
        condition = Condition(**self.condition)
        log_change = log_changes(self.log)
        value: dict[str, Any] | None = await client.run(
            lambda api: poll_until(
                api,
                lambda api: condition.poll(api, client.config, client.clock),
                PollInterval(**self.poll_interval),
                FailureBudget(**self.failure_budget),
                deadline=self.deadline,
                clock=client.clock,
                grace=condition.may_be_late,
            ),
            lambda event: log_change(event, client.secrets),
        )
        return value
