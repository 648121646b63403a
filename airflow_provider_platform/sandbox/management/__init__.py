"""The management API: every operation of the table, and what some of them do."""

from __future__ import annotations

from importlib import import_module

from starlette.routing import Route

from airflow_provider_platform.sandbox.management import call, generic_store

_WITH_HANDLERS = (
    "data_model",
    "dbt_syncs",
    "deliveries",
    "deployments",
    "embed",
    "exports",
    "notifications",
    "reports",
    "workbooks",
)


def routes() -> list[Route]:
    """Return the routes of all operations."""
    for name in _WITH_HANDLERS:
        import_module(f"{__name__}.{name}")
    return call.routes(generic_store.perform)
