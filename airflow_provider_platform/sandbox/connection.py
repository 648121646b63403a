"""How to reach a sandbox: its addresses, its credentials and an Airflow connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.credentials import Credentials

CHAT_PATH = "/api/v1/public/acme/agents/1/chat"


def describe(url: str, credentials: Credentials) -> dict[str, Any]:
    """Return everything that a client needs. The ready file and the control API contain this."""
    return {
        "url": url,
        "management_url": f"{url}/api",
        "chat_url": f"{url}{CHAT_PATH}",
        "management_token": credentials.management_token,
        "chat_api_key": credentials.chat_api_key,
        "api_secret": credentials.api_secret,
        "connection": connection(url, credentials),
    }


def connection(url: str, credentials: Credentials, **overrides: Any) -> dict[str, Any]:
    """An Airflow connection in its JSON form.

    ``overrides`` named ``host``, ``password``, ``port`` and so on replace standard fields, all
    others go into ``extra``; None leaves a field out.
    """
    standard: dict[str, Any] = {
        "conn_type": "platform",
        "host": f"{url}/api",
        "password": credentials.management_token,
    }
    extra: dict[str, Any] = {
        "chat_url": f"{url}{CHAT_PATH}",
        "chat_api_key": credentials.chat_api_key,
        "session_settings": {"externalId": "nightly-pipeline"},
        "deployment_id": 1,
        "web_links": web_links(url),
    }
    for name, value in overrides.items():
        target = standard if name in _STANDARD else extra
        target[name] = value
    return {
        **{name: value for name, value in standard.items() if value is not None},
        "extra": {name: value for name, value in extra.items() if value is not None},
    }


def web_links(url: str) -> dict[str, str]:
    """Return the addresses of the sandbox's pages, by what they show. What has no page of its own
    leads to the part of the overview that lists it."""
    pages = {
        "agent": "app?agent={agent_id}#threads",
        "thread": "app/threads/{chat_id}",
        "branch": "app?branch={branch_name}#syncs",
        "report": "app?report={report_id}#changes",
        "workbook": "app?workbook={workbook_id}#changes",
        "dashboard": "app?dashboard={dashboard_id}#changes",
        "notification": "app?notification={notification_id}#changes",
        "export": "app?export={job_id}#changes",
    }
    return {name: f"{url}/{page}" for name, page in pages.items()}


_STANDARD = frozenset({"conn_type", "host", "password", "port", "login", "schema", "description"})
