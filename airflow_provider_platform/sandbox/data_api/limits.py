"""How many rows the data API gives for a query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot
from sqlglot import errors, exp

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.settings import Settings


def row_limit(sql: str, settings: Settings) -> int | None:
    """Return the most rows of the query, apart from its own limit; None for all rows."""
    return settings.data_max_rows if has_limit(sql) else settings.data_default_rows


def has_limit(sql: str) -> bool:
    """Return whether the query as a whole has a limit. What cannot be read has none."""
    try:
        query = sqlglot.parse_one(sql, dialect="postgres")
    except errors.SqlglotError:
        return False
    while isinstance(query, exp.Subquery) and not query.args.get("limit"):
        query = query.this
    limit = query.args.get("limit")
    return limit is not None and not isinstance(limit.args.get("expression"), exp.Var)
