"""Hides the values of response headers in what the HTTP library logs at debug level.

httpcore writes the headers of each response into its debug log, with cookies and tokens. The logger
formats them itself, so a filter rewrites the finished line: each header keeps its name, and only a
few headers that never contain a secret keep their value. The filter works for the whole process, so
it hides the headers of other users of the library too.
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
        """Rewrite the line. Return True, so that every line is logged."""
        if "headers" in (line := record.getMessage()):
            record.msg, record.args = _HEADER.sub(_shown, line), ()
        return True


def hide_headers() -> None:
    """Hide header values in httpcore's log from now on. A second call changes nothing."""
    for name in _LOGGERS:
        logger = logging.getLogger(name)
        if not any(isinstance(known, HeaderFilter) for known in logger.filters):
            logger.addFilter(HeaderFilter())


def _shown(header: re.Match[str]) -> str:
    harmless = header[2].lower() in _HARMLESS
    return header[0] if harmless else f"({header[1]}, '***')"
