"""Values as short texts, and how many columns of a terminal a text takes."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping
from typing import Any

from airflow_provider_platform.client.redaction import CUT, printable


def cell(value: Any, most: int = 40) -> str:
    """A value as one printable line of at most so many columns; nothing for None."""
    if value is None:
        return ""
    if isinstance(value, (Mapping, list, tuple)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return shorten(printable(str(value)[: most + 1]), most)


def width(text: str) -> int:
    """Columns that a terminal gives the text: two for a wide character, none for an accent."""
    if text.isascii():
        return len(text)
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) == "Cf":
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def shorten(text: str, most: int) -> str:
    """The text cut to so many columns, which a mark at its end says."""
    if width(text) <= most:
        return text
    kept, used = [], 0
    for character in text:
        used += _width(character)
        if used > most - 1:
            break
        kept.append(character)
    return "".join(kept) + CUT


def pad(text: str, columns: int, *, right: bool = False) -> str:
    """The text with as many spaces as it lacks."""
    spaces = " " * max(0, columns - width(text))
    return spaces + text if right else text + spaces


def number(value: Any) -> float | None:
    """The number that a value is, or that its text is; None for anything else."""
    if isinstance(value, bool) or value is None:
        return None
    try:
        found = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if abs(found) != float("inf") and found == found else None
