"""All modules of the client and of the runs, and the typed calls in them."""

from __future__ import annotations

import pkgutil
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_platform import client, resources
from airflow_provider_platform.client.operation import operation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType


def modules() -> Iterator[ModuleType]:
    """Import and yield every module."""
    for package in (client, resources):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            yield import_module(module.name)


def typed_calls() -> dict[str, Any]:
    """The type that each typed call reads, by the operation's id."""
    return {
        value.args[0]: value.args[1]
        for module in modules()
        for value in vars(module).values()
        if isinstance(value, partial) and value.func is operation
    }
