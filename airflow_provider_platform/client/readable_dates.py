"""Dates and times as a person reads them: without what is zero in all of them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

_MOMENT = re.compile(
    r"(\d{4}-\d{2}-\d{2})(?:[T ](\d{2}:\d{2})(?::(\d{2})(?:\.(\d+))?)?(Z|[+-]\d{2}:?\d{2})?)?",
    re.ASCII,
)
_UTC = {None, "Z", "+00:00", "+0000"}


def short_moments(texts: Sequence[Any]) -> list[str | None] | None:
    """Dates and times without the zeros that all of them end with; None where one is neither.

    None among them stays None. All have the same form: one with a time, all with a time.

    `2025-01-01T00:00:00.000` becomes `2025-01-01`, `2025-01-01T13:30:00.000` `2025-01-01 13:30`.
    """
    matches = [_MOMENT.fullmatch(text) for text in texts if isinstance(text, str)]
    if len(matches) != sum(text is not None for text in texts) or not matches:
        return None
    parts = [match for match in matches if match is not None]
    if len(parts) != len(matches) or len({part[5] for part in parts}) > 1:
        return None
    zone = parts[0][5]
    suffix = "" if zone in _UTC else zone
    days = all((part[2] or "00:00") == "00:00" and _is_zero(part[3]) for part in parts)
    minutes = all(_is_zero(part[3]) and _is_zero(part[4]) for part in parts)
    fractions = any(not _is_zero(part[4]) for part in parts)
    shown: list[str] = []
    for part in parts:
        text = part[1]
        if not (days and minutes) or suffix:
            text += f" {part[2] or '00:00'}"
            if not minutes:
                text += f":{part[3] or '00'}"
            if fractions:
                text += f".{(part[4] or '0')[:3]}"
        shown.append(text + suffix)
    left = iter(shown)
    return [None if text is None else next(left) for text in texts]


def _is_zero(digits: str | None) -> bool:
    return digits is None or not digits.strip("0")
