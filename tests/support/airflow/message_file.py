"""A notifier for `test_deadline_alert`, in Airflow's configuration folder: writes the message."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier


class MessageFile(BaseNotifier):
    """Writes the message, and whether it had a picture, as one whole file named after the run."""

    template_fields = ("name",)

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def notify(self, context: Any) -> None:
        answer = context["platform_answer"]
        path = Path(os.environ["AIRFLOW_HOME"]) / f"{self.name}.json"
        part = path.with_suffix(".part")
        message = {"title": answer["title"], "text": answer["text"], "pid": os.getpid()}
        part.write_text(json.dumps(message))
        part.replace(path)
