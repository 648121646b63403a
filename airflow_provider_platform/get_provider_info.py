"""What Airflow reads of this provider: its connection type and form, modules, decorators, links.

There are no settings of its own in `airflow.cfg`: what can be set is the connection's.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform import __version__
from airflow_provider_platform.hooks.connection_type import HOOK_NAME, connection_type

PACKAGE = "airflow_provider_platform"
MODULES = {
    "hooks": ("platform", "sql"),
    "operators": (
        *("api", "branches", "chat", "compare", "dbt_sync", "deliveries", "evaluation"),
        *("exports", "notifications", "pre_aggregations", "query", "reports", "workbooks"),
    ),
    "sensors": ("account", "branches", "chat", "dbt_sync", "notifications", "reports"),
}
DECORATORS = {
    "platform_chat": f"{PACKAGE}.decorators.chat.platform_chat_task",
    "platform_sql": f"{PACKAGE}.decorators.query.platform_sql_task",
}

HOW_TO = (
    *("chat", "query", "dbt_sync", "reports", "workbooks", "notifications", "exports"),
    *("deliveries", "pre_aggregations", "any_operation"),
)
LINKS = (
    "Platform",
    "Agent",
    "Branch",
    "Dashboard",
    "Export",
    "File",
    "Notification",
    "Report",
    "Thread",
    "Workbook",
)


def get_provider_info() -> dict[str, Any]:
    """The provider metadata; its shape is Airflow's `provider_info.schema.json`."""
    return {
        "package-name": "airflow-provider-platform",
        "name": HOOK_NAME,
        "description": (
            "The analytics platform from Airflow: questions to its AI agent, dbt syncs, reports, "
            "workbooks, notifications, exports and the rest of its management API."
        ),
        "versions": [__version__],
        "integrations": [
            {
                "integration-name": HOOK_NAME,
                "external-doc-url": "https://cube.dev/docs",
                "how-to-guide": [f"/docs/howto/{page}.md" for page in HOW_TO],
                "logo": "/integration-logos/platform.svg",
                "tags": ["service"],
            }
        ],
        **{
            layer: [
                {
                    "integration-name": HOOK_NAME,
                    "python-modules": [f"{PACKAGE}.{layer}.{module}" for module in modules],
                }
            ]
            for layer, modules in MODULES.items()
        },
        "triggers": [
            {"integration-name": HOOK_NAME, "python-modules": [f"{PACKAGE}.triggers"]},
        ],
        "connection-types": [connection_type()],
        # The schema speaks of `path`, the code of Airflow reads `class-name`.
        "task-decorators": [
            {"name": name, "class-name": function, "path": function}
            for name, function in DECORATORS.items()
        ],
        "extra-links": [f"{PACKAGE}.links.{name}Link" for name in LINKS],
        "notifications": [f"{PACKAGE}.notifications.answer.PlatformAnswerNotifier"],
    }
