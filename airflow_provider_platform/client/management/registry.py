"""Every operation that the client declares: the `Endpoint`s of all its modules."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import airflow_provider_platform.client.management as package
from airflow_provider_platform.client.operations.operation import Endpoint


def declared_endpoints() -> list[Endpoint[..., Any]]:
    """The declared operations, in the order of their paths; each once."""
    endpoints: dict[tuple[str, str], Endpoint[..., Any]] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        names = vars(import_module(module.name))
        for value in names.values():
            if isinstance(value, Endpoint):
                endpoints[value.path, value.method] = value
    return [endpoints[key] for key in sorted(endpoints)]
