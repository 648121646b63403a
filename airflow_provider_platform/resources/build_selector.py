"""What the values of a selector of pre-aggregations look like.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime

_FULL_NAME = re.compile(r"[^.\s]+\.[^.\s]+")


def check_full_name(name: str) -> str:
    """The name of a pre-aggregation, as `cube.pre_aggregation`. Raises ValueError."""
    if not _FULL_NAME.fullmatch(name):
        raise ValueError("must be full names, as in orders.by_month (cube.pre_aggregation)")
    return name


def zoneless_range(moments: Sequence[str]) -> tuple[str, str]:
    """Two moments as the service reads them, without an offset: a date or a time stays as it is,
    and one with an offset becomes UTC, with the `Z` that the service knows. Raises ValueError."""
    if len(moments) != 2:
        raise ValueError("must be two dates or times, from and to")
    start, end = map(_zoneless, moments)
    if datetime.fromisoformat(start).replace(tzinfo=None) > datetime.fromisoformat(end).replace(
        tzinfo=None
    ):
        raise ValueError("must begin before it ends")
    return start, end


def _zoneless(moment: str) -> str:
    text = moment.strip()
    try:
        parsed = datetime.fromisoformat(text)
        if parsed.tzinfo is None:
            return text
        plain = parsed.astimezone(UTC).replace(tzinfo=None)
    except (ValueError, OverflowError):
        raise ValueError("must be two dates or times in ISO 8601, as 2025-01-31") from None
    return plain.isoformat(timespec="milliseconds") + "Z"
