"""Modules that are imported when something of them is first used: a DAG file that is parsed often
must not load what only an execution needs.

    if TYPE_CHECKING:
        from airflow_provider_platform.client.chat import program
    else:
        program = lazy_module("airflow_provider_platform.client.chat.program")
"""

from __future__ import annotations

from importlib import import_module
from typing import Any


class lazy_module:  # noqa: N801 - used as a function
    """Stands for a module of this name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
