"""The management API: one module or package per resource, put together here."""

from __future__ import annotations

from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from starlette.routing import Route

from airflow_provider_platform.sandbox.management import openapi
from airflow_provider_platform.sandbox.management.shared import resource
from airflow_provider_platform.sandbox.management.shared.resource import Resource
from airflow_provider_platform.sandbox.state.server_state import ServerState


def _declared() -> list[Resource]:
    """The resources of all modules below this one."""
    modules = [import_module(found.name) for found in walk_packages(__path__, f"{__name__}.")]
    return [
        value
        for module in modules
        for value in vars(module).values()
        if isinstance(value, Resource)
    ]


_DECLARED = _declared()
RESOURCES = (*_DECLARED, openapi.describing(_DECLARED))


def routes() -> list[Route]:
    """The routes of all resources."""
    return resource.routes(RESOURCES)


def names() -> list[str]:
    """The resources whose items tests can change."""
    return sorted(name for one in RESOURCES for name in one.collections)


def items(server: ServerState, name: str) -> list[dict[str, Any]] | None:
    """The items of the resource of this name, all deployments together."""
    for one in RESOURCES:
        if name in one.collections:
            return one.collections[name](server)
    return None
