"""Text of the service as it may stand in messages and logs: one line, printable, not too long."""

from __future__ import annotations

import json
import re

from airflow_provider_platform.client.known_secrets import CUT, printable

MAX_SERVICE_TEXT = 500
MAX_CHART_CHARACTERS = 4 << 20
"""Characters of a chart's specification. A longer one is left out of the result: it would go to
XCom, and the drawing process refuses it."""
_GROUP_MARK = re.compile(r"[:#](?=:(?:end)?group::|#\[(?:end)?group\])", re.IGNORECASE)


def quote_service(text: object) -> str:
    """Text of the service as one printable line of at most 500 characters; an object or a list as
    JSON.

    Control characters (line ends, escape codes) and the `::group::` marks that log viewers fold
    on, wherever they stand in a line, are escaped, so that an answer cannot forge log lines.
    """
    if isinstance(text, dict | list | bool):
        text = json.dumps(text, ensure_ascii=False, default=str)
    return shortened(str(text), MAX_SERVICE_TEXT)


def shortened(text: str, length: int) -> str:
    """A text as one printable line of at most so many characters, safe for a log."""
    cut = text.strip()[: length + 1]
    line = _GROUP_MARK.sub(r"\g<0>\\", printable(cut))
    return line if len(line) <= length else line[: length - 1] + CUT


def log_line(text: str) -> str:
    """A text as one whole printable line, its spaces kept, safe for a log."""
    return _GROUP_MARK.sub(r"\g<0>\\", printable(text))
