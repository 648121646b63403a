"""The management API: one module per resource, put together here."""

from __future__ import annotations

from typing import Any

from starlette.routing import Route

from airflow_provider_platform.sandbox.management import data_model, dbt_sync, folders, workspace
from airflow_provider_platform.sandbox.management import openapi as specification
from airflow_provider_platform.sandbox.management.account import app_config as account
from airflow_provider_platform.sandbox.management.account import oauth
from airflow_provider_platform.sandbox.management.deployments import agents, environments
from airflow_provider_platform.sandbox.management.deployments import operations as deployments
from airflow_provider_platform.sandbox.management.embed import access as embed_access
from airflow_provider_platform.sandbox.management.embed import dashboards as embed_dashboards
from airflow_provider_platform.sandbox.management.embed import groups as embed_groups
from airflow_provider_platform.sandbox.management.embed import sessions as embed_sessions
from airflow_provider_platform.sandbox.management.embed import tenants as embed_tenants
from airflow_provider_platform.sandbox.management.embed import users as embed_users
from airflow_provider_platform.sandbox.management.exports import operations as exports
from airflow_provider_platform.sandbox.management.notifications import operations as notifications
from airflow_provider_platform.sandbox.management.notifications import (
    recipients as notification_recipients,
)
from airflow_provider_platform.sandbox.management.reports import external_documents
from airflow_provider_platform.sandbox.management.reports import operations as reports
from airflow_provider_platform.sandbox.management.reports import placements as report_placements
from airflow_provider_platform.sandbox.management.shared import resource
from airflow_provider_platform.sandbox.management.workbooks import (
    dashboard_drafts as workbook_dashboards,
)
from airflow_provider_platform.sandbox.management.workbooks import operations as workbooks
from airflow_provider_platform.sandbox.state.world import World

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
