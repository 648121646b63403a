"""One printable line of any text: what a log line or an error's message may contain."""

from __future__ import annotations

import re

CUT = "…"
"""Replaces the part that was cut from a text."""
MAX_LOG_LINE = 2000
"""Characters of a line: it may quote several texts of the service."""
_GROUP_MARK = re.compile(r"[:#](?=:(?:end)?group::|#\[(?:end)?group\])", re.IGNORECASE)


def printable(text: str) -> str:
    """Return the text as one line: control characters (line ends, escape codes) are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def log_line(text: str, length: int = MAX_LOG_LINE) -> str:
    """Return the text as one printable line of at most so many characters.

    Control characters and the `::group::` marks that log viewers fold on, wherever they stand in a
    line, are escaped, so that text of the service cannot forge log lines. Every log line and every
    error with text of the service goes through this function.
    """
    line = _GROUP_MARK.sub(r"\g<0>\\", printable(text[: length + 1]))
    return line if len(line) <= length else line[: length - 1] + CUT
