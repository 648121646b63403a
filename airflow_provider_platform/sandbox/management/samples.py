"""What the sandbox's account has at the start: the samples of each resource, and their users.

`Items` holds the items of all resources by their id, beginning with the samples.
"""

from __future__ import annotations

import copy
from typing import Any

Sample = dict[str, Any]

DEPLOYMENTS = {1: "Acme production", 2: "Acme staging"}
AGENTS = {1: "Data analyst", 2: "Embedded analyst"}
"""The agents by id; all belong to deployment 1."""
_SQL = "SELECT status, SUM(amount) FROM orders GROUP BY 1"

USERS = {7: ("analyst@acme.example.com", "Ada"), 8: ("admin@acme.example.com", "Grace")}
"""E-mail addresses and first names of the console users."""
OWNER = 7
"""The user of the first management token."""


def owner(user_id: int) -> Sample:
    """Return a user as answers name the owner of something."""
    email, first_name = USERS.get(user_id, (f"user-{user_id}@acme.example.com", None))
    return {"id": user_id, "email": email, "firstName": first_name, "picture": None}


def find_user(user_id: int | None, email: str | None) -> Sample | None:
    """Return the console user with this id, or else with this e-mail address."""
    for known_id, (known_email, _) in USERS.items():
        if known_id == user_id or (user_id is None and known_email == (email or "").lower()):
            return owner(known_id)
    return None


def public_id(kind: str, item_id: int) -> str:
    """Return a public id of twelve characters."""
    return f"{kind}{item_id:0{12 - len(kind)}d}"


def dashboard_config(title: str) -> Sample:
    """Return a dashboard with a chart, a filter and an AI widget."""
    kinds = (("chart-1", "CHART"), ("filter-1", "FILTER"), ("ai-1", "AI"))
    widgets = [
        {
            "id": widget_id,
            "type": kind,
            "position": {"x": 4 * column, "y": 0, "w": 4, "h": 6},
            "config": {},
        }
        for column, (widget_id, kind) in enumerate(kinds)
    ]
    return {"kind": "CLASSIC", "title": title, "description": None, "widgets": widgets}


DEFAULTS: dict[str, Sample] = {
    "folders": {"position": 0, "parentId": None, "type": "FOLDER", "user": owner(OWNER)},
    "workbooks": {
        "name": "Untitled workbook",
        "meta": {},
        "calculatedFields": {},
        "isFavorite": False,
        "type": "WORKBOOK",
        "user": owner(OWNER),
    },
    "reports": {
        "name": "Untitled report",
        "version": 1,
        "meta": None,
        "externalWorkbookPlacements": [],
        "type": "REPORT",
        "user": owner(OWNER),
        "refreshedByUser": owner(OWNER),
        "canEdit": True,
        "canManage": True,
    },
    "oauth-integrations": {"config": None},
    "report-deliveries": {"paused": False, "ownerUserId": OWNER},
    "dashboards": {
        "status": "published",
        "allowEmbed": False,
        "versionNumber": 0,
        "reportSnapshots": [],
        "description": None,
        "fromSharedWorkspace": False,
        "restrictDataDownload": False,
        "useBoardDashboards": True,
    },
}
"""Fields of a new item that its creation does not set."""


def _folder(folder_id: int, deployment: int, name: str, parent: int | None = None) -> Sample:
    return {
        **DEFAULTS["folders"],
        "id": folder_id,
        "name": name,
        "position": folder_id,
        "deploymentId": deployment,
        "createdAt": "2026-02-01",
        "updatedAt": "2026-02-01T09:00:00.000Z",
        "createdBy": 7,
        "updatedBy": 7,
        "parentId": parent,
    }


def _workbook(
    workbook_id: int, deployment: int, name: str, slug: str | None = None, folder: int | None = None
) -> Sample:
    return {
        **DEFAULTS["workbooks"],
        "id": workbook_id,
        "name": name,
        "deploymentId": deployment,
        "createdAt": "2026-03-01",
        "updatedAt": f"2026-06-{workbook_id % 100:02d}T10:00:00.000Z",
        "createdBy": 7,
        "userId": 7,
        "folderId": folder,
        "slug": slug,
        "dashboardDraft": dashboard_config(name),
    }


def _dashboard(dashboard_id: int, deployment: int, workbook_id: int, title: str) -> Sample:
    return {
        **DEFAULTS["dashboards"],
        "id": dashboard_id,
        "publicId": public_id("dash", dashboard_id),
        "deploymentId": deployment,
        "workbookId": workbook_id,
        "createdBy": 7,
        "title": title,
        "allowEmbed": dashboard_id == 501,
        "versionNumber": 1,
        "versionId": dashboard_id * 1000 + 1,
        "config": dashboard_config(title),
    }


def _report(deployment: int, number: int, name: str) -> Sample:
    report_id = deployment * 100 + number
    return {
        **DEFAULTS["reports"],
        "id": report_id,
        "publicId": public_id("report", report_id),
        "name": name,
        "deploymentId": deployment,
        "userId": 7,
        "createdBy": 7,
        "refreshedBy": 7,
        "createdAt": f"2026-03-{number:02d}",
        "updatedAt": f"2026-07-{20 - number:02d}T05:30:00.000Z",
        "lastViewedAt": f"2026-07-{1 + number * 7 % 10:02d}T08:00:00.000Z",
        "version": 1,
        "folderId": 11 if deployment == 1 and number <= 3 else None,
        "workbookId": deployment * 100 + 201 if number <= 2 else None,
        **dict.fromkeys(("title", "description", "meta", "jsonQuery", "pivotItems", "source")),
        "sqlQuery": _SQL,
        **dict.fromkeys(("externalWorkbookId", "resultLocation", "endResultCell")),
        "externalWorkbookPlacements": [],
    }


def _agent(agent_id: int, name: str) -> Sample:
    embeddable = agent_id == 2
    return {
        "id": agent_id,
        "name": name,
        "createdAt": "2026-01-10",
        "updatedAt": "2026-07-01T09:00:00.000Z",
        "deploymentId": 1,
        "config": {"allowEmbedding": embeddable},
        "allowEmbedding": embeddable,
        "agentConfigName": name.lower().replace(" ", "-"),
        "userId": OWNER,
    }


def _delivery(delivery_id: int, report: int, name: str, owner_id: int, cron: list[str]) -> Sample:
    return {
        "id": delivery_id,
        "deploymentId": 1,
        "name": name,
        "reportId": report,
        "ownerUserId": owner_id,
        "destination": {"spreadsheet": "1AbC", "sheetName": name, "anchorCell": "A1"},
        "writeMode": "overwrite",
        "schedule": {"cronExpressions": cron, "timezone": "UTC"} if cron else None,
        "shape": None,
        "notifications": {"inbox": True, "email": False},
        "paused": False,
    }


_REVENUE = (
    "SELECT SUM(amount) AS total, country FROM orders JOIN customers "
    "ON customers.id = orders.customer_id GROUP BY country"
)
_TOP = (
    "SELECT products.name, SUM(amount) FROM orders JOIN products "
    "ON products.id = orders.product_id GROUP BY 1 ORDER BY 2 DESC LIMIT 5"
)
_CUSTOMERS = "SELECT name, country FROM customers"
CERTIFIED_QUERIES = {"monthly_orders": "SELECT month, COUNT(*) FROM orders GROUP BY month"}
_QUESTIONS = (
    ("eval_questions.yml", "revenue by country", _REVENUE, None),
    ("eval_questions.yml", "orders per month", None, "monthly_orders"),
    ("eval_questions.yml", "top 5 products", _TOP, None),
    ("eval_questions/customers.yml", "list all customers", _CUSTOMERS, None),
)
"""The entries of the model's ``eval_questions``: file, question, SQL or certified query."""

_REPORTS = (
    "Revenue by country",
    "Orders per month",
    "Top products",
    "Returns by category",
    "Average order value",
    "Customers by segment",
    "Nightly summary",
)

ITEMS: dict[str, list[Sample]] = {
    "deployments": [
        {"id": number, "name": name, "creationStep": "ready"}
        for number, name in DEPLOYMENTS.items()
    ],
    "folders": [
        _folder(11, 1, "Finance"),
        _folder(12, 1, "Monthly", 11),
        _folder(13, 1, "Operations"),
        _folder(21, 2, "Trials"),
    ],
    "workbooks": [
        _workbook(301, 1, "Sales overview", "sales-overview", 11),
        _workbook(302, 1, "Customer health"),
        _workbook(303, 1, "Returns, first draft"),
        _workbook(401, 2, "Staging board"),
    ],
    "dashboards": [
        _dashboard(501, 1, 301, "Sales overview"),
        _dashboard(502, 1, 302, "Customer health"),
        _dashboard(601, 2, 401, "Staging board"),
    ],
    "reports": [
        _report(deployment, number, name)
        for deployment, names in ((1, _REPORTS), (2, _REPORTS[:2]))
        for number, name in enumerate(names, start=1)
    ],
    "notifications": [],
    "report-deliveries": [
        _delivery(501, 101, "Revenue by country", 7, []),
        _delivery(502, 102, "Orders per month", 7, ["0 6 * * *"]),
        _delivery(503, 103, "Top products", 8, []),
    ],
    "scheduled-tasks": [
        {
            "id": number,
            "deploymentId": 1,
            "userId": user,
            "nextRunAt": next_run,
            "notificationEnabled": False,
        }
        for number, user, next_run in ((601, 7, None), (602, 8, "2026-12-01T06:00:00.000Z"))
    ],
    "oauth-integrations": [
        {
            "id": 3,
            "name": "Warehouse sign-in",
            "type": "snowflake",
            "authUrl": "https://login.example.com/authorize",
            "tokenUrl": "https://login.example.com/token",
            "clientId": "acme-platform",
            "redirectUri": "https://acme.example.com/oauth/callback",
            "createdAt": "2026-01-15",
            "updatedAt": "2026-01-15T12:00:00.000Z",
            "config": None,
            "scopes": ["session:role:ANALYST"],
        }
    ],
    "eval-questions": [
        {
            "id": number,
            "deploymentId": 1,
            "file": file,
            "name": question.replace(" ", "_"),
            "question": question,
            "sql": sql,
            "certifiedQuery": certified,
        }
        for number, (file, question, sql, certified) in enumerate(_QUESTIONS, start=1)
    ],
    "agents": [_agent(agent_id, name) for agent_id, name in AGENTS.items()],
    "user-oauth-tokens": [
        {
            "id": 3,
            "userId": 7,
            "integrationId": 3,
            "status": "active",
            "createdAt": "2026-05-04",
            "updatedAt": "2026-07-19T06:00:00.000Z",
            "accessTokenExpiresAt": "2031-12-01T00:00:00.000Z",
            "refreshTokenExpiresAt": None,
        }
    ],
    "embed-tenants": [
        {
            "id": 1,
            "embedTenantName": "acme-retail",
            "name": "acme-retail",
            "displayName": "Acme Retail",
            "createdAt": "2026-04-02",
            "userCount": 2,
        }
    ],
    # One of the two has an e-mail address.
    "users": [
        {
            "id": 900 + number,
            "embedTenantName": "acme-retail",
            "externalId": external_id,
            "username": external_id,
            "email": email,
            "firstName": None,
            "createdAt": "2026-04-02",
            "lastLogin": None,
        }
        for number, external_id, email in (
            (1, "shop-berlin", "berlin@retail.example.com"),
            (2, "shop-paris", None),
        )
    ],
    "groups": [
        {
            "id": 951,
            "embedTenantName": "acme-retail",
            "name": "buyers",
            "description": "Those who order",
            "userCount": 0,
        }
    ],
}


Item = dict[str, Any]


class Items:
    """The items, which are the samples at the start. Ids are never used again."""

    def __init__(self) -> None:
        self._of = {
            name: {item["id"]: item for item in copy.deepcopy(items)}
            for name, items in ITEMS.items()
        }
        self._next = {name: max(items, default=0) + 1 for name, items in self._of.items()}

    def names(self) -> list[str]:
        return sorted(self._of)

    def all(self, name: str) -> list[Item]:
        """Return the items of a resource, oldest first."""
        return list(self._of[name].values())

    def get(self, name: str, item_id: Any) -> Item | None:
        return self._of[name].get(item_id)

    def find(self, resource: str, /, **fields: Any) -> Item | None:
        """Return the first item that has these values."""
        return next(
            (
                item
                for item in self.all(resource)
                if all(item.get(key) == value for key, value in fields.items())
            ),
            None,
        )

    def add(self, name: str, fields: dict[str, Any]) -> Item:
        """Add an item with the next free id."""
        item = {"id": self._next[name], **fields}
        self._of[name][item["id"]] = item
        self._next[name] += 1
        return item

    def remove(self, name: str, item: Item) -> None:
        del self._of[name][item["id"]]
