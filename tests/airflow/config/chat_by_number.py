"""A trigger for `test_many_waits`: the chat trigger, started and ended without a worker.

Airflow adds the configuration folder to the path of the triggerer, the DAGs' folder not.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.triggers.base import BaseTrigger, TaskSuccessEvent

from airflow_provider_platform.triggers import PlatformRunTrigger

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from airflow.triggers.base import TriggerEvent

CHATS = "chats.json"
"""In Airflow's home: a list of the arguments of chat triggers."""


class ChatByNumber(BaseTrigger):
    """Follows the chat whose number is its task's map index; the event becomes the task's XCom."""

    def serialize(self) -> tuple[str, dict[str, Any]]:
        return f"{__name__}.ChatByNumber", {}

    async def run(self) -> AsyncIterator[TriggerEvent]:
        chats = json.loads((Path(os.environ["AIRFLOW_HOME"]) / CHATS).read_text())
        trigger = PlatformRunTrigger(**chats[self.task_instance.map_index])
        async for event in trigger.run():
            yield TaskSuccessEvent(xcoms={"event": event.payload})
