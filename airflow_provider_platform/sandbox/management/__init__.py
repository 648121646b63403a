"""The management API: one module per resource, put together here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.management import (
    account,
    agents,
    data_model,
    dbt_sync,
    deployments,
    embed_access,
    embed_dashboards,
    embed_groups,
    embed_sessions,
    embed_tenants,
    embed_users,
    environments,
    exports,
    external_documents,
    folders,
    notification_recipients,
    notifications,
    oauth,
    report_placements,
    reports,
    resource,
    specification,
    workbook_dashboards,
    workbooks,
    workspace,
)

if TYPE_CHECKING:
    from starlette.routing import Route

    from airflow_provider_platform.sandbox.world import World

_DESCRIBED = (
    account.resource,
    agents.resource,
    data_model.resource,
    dbt_sync.resource,
    deployments.resource,
    embed_access.resource,
    embed_dashboards.resource,
    embed_groups.resource,
    embed_sessions.resource,
    embed_tenants.resource,
    embed_users.resource,
    environments.resource,
    exports.resource,
    external_documents.resource,
    folders.resource,
    notification_recipients.resource,
    notifications.resource,
    oauth.resource,
    report_placements.resource,
    reports.resource,
    workbook_dashboards.resource,
    workbooks.resource,
    workspace.resource,
)
RESOURCES = (*_DESCRIBED, specification.describing(_DESCRIBED))


def routes() -> list[Route]:
    """The routes of all resources."""
    return resource.routes(RESOURCES)


def names() -> list[str]:
    """The resources whose items tests can change."""
    return sorted(name for one in RESOURCES for name in one.collections)


def items(world: World, name: str) -> list[dict[str, Any]] | None:
    """The items of the resource of this name, all deployments together."""
    for one in RESOURCES:
        if name in one.collections:
            return one.collections[name](world)
    return None
