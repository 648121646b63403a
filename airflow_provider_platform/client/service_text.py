"""Text of the service as it may stand in messages and logs: one line, printable, not too long."""

from __future__ import annotations

import json

from airflow_provider_platform.client.log_text import log_line

MAX_SERVICE_TEXT = 500
MAX_CHART_CHARACTERS = 4 << 20
"""Characters of a chart's specification. A longer one is left out of the result: it would go to
XCom, and the drawing process refuses it."""


def quote_service(text: object) -> str:
    """Return text of the service as one line of at most 500 characters (see `log_line`); an object
    or a list as JSON."""
    if isinstance(text, dict | list | bool):
        text = json.dumps(text, ensure_ascii=False, default=str)
    return shortened(str(text), MAX_SERVICE_TEXT)


def shortened(text: str, length: int) -> str:
    """Return the text as one line of at most so many characters, without the spaces around it (see
    `log_line`)."""
    return log_line(text.strip(), length)
