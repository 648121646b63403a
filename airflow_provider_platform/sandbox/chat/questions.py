"""The questions that the sandbox's agent understands, and the SQL for each question."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from airflow_provider_platform.sandbox.state.warehouse import COUNTRIES, CUSTOMERS

_METRICS = {
    "revenue": ("Revenue", "ROUND(SUM(orders.amount), 2)", r"revenue|sales|turnover"),
    "average": (
        "Average order value",
        "ROUND(AVG(orders.amount), 2)",
        r"average order value|aov",
    ),
    "quantity": ("Items sold", "SUM(orders.quantity)", r"items|quantity|units"),
    "orders": ("Orders", "COUNT(*)", r"orders?"),
}
_DIMENSIONS = {
    "country": ("customers.country", r"countr(?:y|ies)"),
    "segment": ("customers.segment", r"segments?"),
    "customer": ("customers.name", r"customers?"),
    "product": ("products.name", r"products?"),
    "category": ("products.category", r"categor(?:y|ies)"),
    "month": ("orders.month", r"months?"),
    "status": ("orders.status", r"status(?:es)?"),
}
_MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
_FROM = (
    "FROM orders JOIN customers ON customers.id = orders.customer_id "
    "JOIN products ON products.id = orders.product_id"
)
_LISTS = {
    "orders": f"SELECT orders.id, orders.ordered_at, customers.name AS customer, "
    f"products.name AS product, orders.quantity, orders.amount {_FROM} ORDER BY orders.id",
    "customers": "SELECT id, name, country, city, segment FROM customers ORDER BY id",
    "products": "SELECT id, name, category, price FROM products ORDER BY id",
}

EXAMPLES = (
    "revenue by country",
    "top 5 products",
    "orders per month",
    "chart revenue by category",
    "total revenue in March",
    "list all orders",
    "and by product?",
    "only for Germany",
    "orders per month for Dubois 01",
    "sql: SELECT ...",
)


@dataclass(frozen=True)
class Query:
    """One query that the agent will run. A follow-up question changes the previous query."""

    title: str
    sql: str
    chart: bool = False
    metric: str | None = None
    dimension: str | None = None
    filters: tuple[tuple[str, str], ...] = ()
    limit: int | None = None


def understand(text: str, previous: Query | None) -> list[Query]:
    """Return the queries for ``text``, in order; empty if no pattern matches.

    Several questions in one message are joined by ``, then``.
    """
    queries: list[Query] = []
    for part in re.split(r"[,;.]\s*then\s+", text):
        query = _one(part.strip(), queries[-1] if queries else previous)
        if query is not None:
            queries.append(query)
    return queries


def _one(text: str, previous: Query | None) -> Query | None:
    literal = re.match(r"(?:run\s+)?sql:\s*(.+)", text, re.IGNORECASE | re.DOTALL)
    if literal:
        return Query("Your query", literal[1].strip())
    low = text.lower()
    chart = re.search(r"\b(chart|plot|graph|draw|visuali[sz]e)", low) is not None
    listing = re.search(r"\blist (?:all |the )?(orders|customers|products)\b", low)
    if listing:
        return Query(f"All {listing[1]}", _LISTS[listing[1]])
    metric = next((m for m, (_, _, names) in _METRICS.items() if _has(names, low)), None)
    top = re.search(r"\btop (\d{1,3})\b", low)
    dimension = _dimension(low, top is not None)
    filters = _filters(low)
    if metric is None and top and dimension is not None:
        metric = "revenue"
    if metric is not None:
        limit = int(top[1]) if top else None
        return _build(Query("", "", chart, metric, dimension, filters, limit))
    if previous is None or previous.metric is None or not (dimension or filters or chart or top):
        return None
    named = {column for column, _ in filters}
    kept = tuple(entry for entry in previous.filters if entry[0] not in named)
    return _build(
        replace(
            previous,
            chart=chart,
            dimension=dimension or previous.dimension,
            filters=kept + filters,
            limit=int(top[1]) if top else (None if dimension else previous.limit),
        )
    )


def _has(names: str, low: str) -> bool:
    return re.search(rf"\b(?:{names})\b", low) is not None


def _dimension(low: str, top: bool) -> str | None:
    for name, (_, names) in _DIMENSIONS.items():
        if re.search(rf"\b(?:by|per|each|every)\s+(?:{names})\b", low):
            return name
        if top and re.search(rf"\btop \d+ (?:{names})\b", low):
            return name
    return None


def _filters(low: str) -> tuple[tuple[str, str], ...]:
    found = [("customers.country", name) for name in COUNTRIES if _has(name.lower(), low)]
    found += [("customers.name", name) for name in CUSTOMERS if _has(name.lower(), low)]
    found += [
        ("orders.month", f"2025-{number:02d}")
        for number, name in enumerate(_MONTHS, start=1)
        if _has(name, low)
    ]
    found += [("orders.month", month) for month in re.findall(r"\b2025-\d{2}\b", low)]
    return tuple(found)


def _build(query: Query) -> Query:
    label, expression, _ = _METRICS[query.metric or "revenue"]
    name = query.metric or "revenue"
    where = ""
    if query.filters:
        columns: dict[str, list[str]] = {}
        for column, value in query.filters:
            columns.setdefault(column, []).append(f"'{value}'")
        tests = [f"{column} IN ({', '.join(values)})" for column, values in columns.items()]
        where = f" WHERE {' AND '.join(tests)}"
    title = label
    if query.dimension is None:
        sql = f"SELECT {expression} AS {name} {_FROM}{where}"
    else:
        column = _DIMENSIONS[query.dimension][0]
        order = "1" if query.dimension == "month" and query.limit is None else f"{name} DESC, 1"
        sql = (
            f"SELECT {column} AS {query.dimension}, {expression} AS {name} {_FROM}{where} "
            f"GROUP BY {column} ORDER BY {order}"
        )
        if query.limit is not None:
            sql += f" LIMIT {query.limit}"
            title = f"Top {query.limit} by {query.dimension}: {label.lower()}"
        else:
            title = f"{label} by {query.dimension}"
    if query.filters:
        title += f" ({', '.join(value for _, value in query.filters)})"
    return replace(query, title=title, sql=sql)
