"""The management API: one module per resource, put together here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.management import (
    account,
    dbt_sync,
    deployments,
    embed_access,
    exports,
    folders,
    notification_recipients,
    notifications,
    reports,
    workbook_dashboards,
    workbooks,
)

if TYPE_CHECKING:
    from starlette.routing import Route

    from airflow_provider_platform.sandbox.world import World

RESOURCES = (
    account.resource,
    dbt_sync.resource,
    deployments.resource,
    embed_access.resource,
    exports.resource,
    folders.resource,
    notifications.resource,
    notification_recipients.resource,
    reports.resource,
    workbook_dashboards.resource,
    workbooks.resource,
)


def routes() -> list[Route]:
    """The routes of all resources."""
    return [route for resource in RESOURCES for route in resource.routes()]


def names() -> list[str]:
    """The resources whose items tests can change."""
    return sorted(name for resource in RESOURCES for name in resource.collections)


def items(world: World, name: str) -> list[dict[str, Any]] | None:
    """The items of the resource of this name, all deployments together."""
    for resource in RESOURCES:
        if name in resource.collections:
            return resource.collections[name](world)
    return None
