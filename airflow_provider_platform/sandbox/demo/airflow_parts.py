"""Tells which parts of Airflow are up, from what Airflow's health page answers; and the sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

SANDBOX = "sandbox"
_API_SERVER = "metadatabase"
_NAMES = {
    _API_SERVER: "API server",
    "scheduler": "scheduler",
    "dag_processor": "DAG processor",
    "triggerer": "triggerer",
    SANDBOX: "sandbox",
}
"""Parts of Airflow as its health page and as its documentation call them; and the sandbox."""
_WITHOUT = {
    _API_SERVER: "no page opens and no task starts",
    "scheduler": "no task starts",
    "dag_processor": "changes of DAG files are not seen",
    "triggerer": "deferred tasks do not go on",
    SANDBOX: "tasks cannot connect to it",
}


class AirflowParts:
    """What is known of the parts. Each change is told once, as a line for the terminal. ``folder``
    has the logs."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._up = {SANDBOX}  # it was ready before Airflow was started
        self._lost: set[str] = set()

    def missing(self) -> str:
        """The names of the parts that have not been up yet."""
        seen = self._up | self._lost
        return ", ".join(name for part, name in _NAMES.items() if part not in seen)

    def news(self, health: Mapping[str, Any]) -> list[str]:
        """The lines about what is different now.

        ``health`` is what the health page answers, with the sandbox. It is empty if the API server
        does not answer, which says nothing about the other parts.
        """
        lines = []
        for part, name in _NAMES.items():
            healthy = (health.get(part) or {}).get("status") == "healthy"
            if healthy and part not in self._up:
                lines.append(f"{name} is up{' again' if part in self._lost else ''}")
                self._up.add(part)
                self._lost.discard(part)
            elif not healthy and part in self._up and (health or part == _API_SERVER):
                lines.append(
                    f"{name} gives no sign of life: {_WITHOUT[part]}. If it does not come back, "
                    f"press Ctrl-C and start the UI again. The logs are in {self._folder}"
                )
                self._up.discard(part)
                self._lost.add(part)
        return lines
