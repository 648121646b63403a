"""How many rows the data API gives for a query."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.state.settings import Settings

_NOT_SQL = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""", re.DOTALL)
_INNERMOST = re.compile(r"\([^()]*\)")
_WHOLE = re.compile(r"\s*\(([^()]*)\)[\s;]*")
_LIMIT = re.compile(r"(?<![\w.$])limit\s+(?!all\b)", re.IGNORECASE)


def row_limit(sql: str, settings: Settings) -> int | None:
    """Return the most rows of the query, apart from its own limit; None for all rows."""
    if not has_limit(sql):
        return settings.data_default_rows
    return settings.data_max_rows


def has_limit(sql: str) -> bool:
    """Return whether the query as a whole has a limit. Comments, strings and everything in
    parentheses are removed, from the inside out, and the rest is searched."""
    left = _NOT_SQL.sub(" x ", sql)
    while True:
        whole = _WHOLE.fullmatch(left)
        if whole:  # the whole query is in parentheses
            return bool(_LIMIT.search(whole[1]))
        fewer = _INNERMOST.sub(" x ", left)
        if fewer == left:
            return bool(_LIMIT.search(left))
        left = fewer
