"""The semantic model of the sample warehouse: the SQL of its members."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.state.warehouse import MEMBERS

FROM = (
    "FROM orders JOIN customers ON customers.id = orders.customer_id "
    "JOIN products ON products.id = orders.product_id"
)
"""The FROM of every query: the three cubes, joined."""

_SQL = {
    "orders.count": "COUNT(*)",
    "orders.revenue": "ROUND(SUM(orders.amount), 2)",
    "orders.average": "ROUND(AVG(orders.amount), 2)",
    "orders.quantity": "SUM(orders.quantity)",
    "orders.month": "orders.month || '-01T00:00:00.000'",
    "orders.status": "orders.status",
    "customers.country": "customers.country",
    "customers.segment": "customers.segment",
    "customers.name": "customers.name",
    "products.name": "products.name",
    "products.category": "products.category",
}
GRANULARITIES = {
    "day": "strftime('%Y-%m-%dT00:00:00.000', orders.ordered_at)",
    "month": "strftime('%Y-%m-01T00:00:00.000', orders.ordered_at)",
    "quarter": "strftime('%Y', orders.ordered_at) || '-' || "
    "printf('%02d', (CAST(strftime('%m', orders.ordered_at) AS INTEGER) + 2) / 3 * 3 - 2) "
    "|| '-01T00:00:00.000'",
    "year": "strftime('%Y-01-01T00:00:00.000', orders.ordered_at)",
}
"""For each granularity of the only time dimension: the SQL of the start of its span."""
TIME_DIMENSION = "orders.month"
DAY = "orders.ordered_at"


def sql_of(member: str) -> str | None:
    """Return the expression of a member; None if there is no such member."""
    return _SQL.get(member)


def is_measure(member: str) -> bool:
    return any(name == member and aggregation for name, _, _, aggregation in MEMBERS)


def annotation(member: str) -> dict[str, Any]:
    """Return what ``/v1/load`` says about a member in addition to the rows."""
    title, kind = next((title, kind) for name, title, kind, _ in MEMBERS if name == member)
    cube, _, short = member.partition(".")
    return {"title": f"{cube.title()} {title}", "shortTitle": short.title(), "type": kind}


def meta() -> dict[str, Any]:
    """Return the answer of ``/v1/meta``: the cubes with their measures, dimensions and segments."""
    cubes: dict[str, dict[str, Any]] = {}
    for name, title, kind, aggregation in MEMBERS:
        cube_name = name.split(".")[0]
        cube = cubes.setdefault(
            cube_name,
            {
                "name": cube_name,
                "type": "cube",
                "title": cube_name.title(),
                "isVisible": True,
                "public": True,
                "connectedComponent": 1,
                "measures": [],
                "dimensions": [],
                "segments": [],
                "hierarchies": [],
                "folders": [],
                "nestedFolders": [],
            },
        )
        shared = {"name": name, "title": title, "shortTitle": title, "type": kind}
        if aggregation:
            measure = {"aggType": aggregation, "cumulative": False, "cumulativeTotal": False}
            drill = {"drillMembers": [], "drillMembersGrouped": {"measures": [], "dimensions": []}}
            cube["measures"].append({**shared, **measure, **drill})
        else:
            cube["dimensions"].append({**shared, "primaryKey": False, "suggestFilterValues": True})
    return {"cubes": list(cubes.values())}
