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
    """Rows that the query gives at most, besides a limit of its own; None for all of them."""
    if not has_limit(sql):
        return settings.data_default_rows
    return None if settings.data_streaming else settings.data_max_rows


def has_limit(sql: str) -> bool:
    """Whether the query itself, not a part of it, has a limit: comments, texts and what stands in
    parentheses are taken out, from the inside to the outside, and the rest is looked at."""
    left = _NOT_SQL.sub(" x ", sql)
    while True:
        whole = _WHOLE.fullmatch(left)
        if whole:  # nothing but a query in parentheses
            return bool(_LIMIT.search(whole[1]))
        fewer = _INNERMOST.sub(" x ", left)
        if fewer == left:
            return bool(_LIMIT.search(left))
        left = fewer
