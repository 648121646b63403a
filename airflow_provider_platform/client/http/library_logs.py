"""What the HTTP library logs at debug level, without what the headers of an answer say.

httpcore writes each answer's headers into its debug log as they came: cookies and tokens too. The
logger formats them itself, so a filter rewrites the finished line: every header keeps its name, and
only a few that never hold a secret keep their value. The filter is for the whole process: it hides
the headers of other users of the library as well.
"""

from __future__ import annotations

import logging
import re

_LOGGERS = ("httpcore.http11", "httpcore.http2")
_HARMLESS = frozenset(
    {"connection", "content-encoding", "content-length", "content-type", "date", "retry-after"}
    | {"server", "transfer-encoding", "vary"}
)
_TEXT = r"""b'(?:[^'\\]|\\.)*'|b"(?:[^"\\]|\\.)*\""""
_HEADER = re.compile(rf"\((b'([^'\s]+)'), (?:{_TEXT})\)")


class HeaderFilter(logging.Filter):
    """Hides the values of headers in lines of httpcore."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrite the line; every line is let through."""
        if "headers" in (line := record.getMessage()):
            record.msg, record.args = _HEADER.sub(_shown, line), ()
        return True


def hide_headers() -> None:
    """Have httpcore log no header's value from now on; again changes nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, HeaderFilter) for known in logger.filters):
            logger.addFilter(HeaderFilter())


def _shown(header: re.Match[str]) -> str:
    harmless = header[2].lower() in _HARMLESS
    return header[0] if harmless else f"({header[1]}, '***')"
