"""Names of time zones.

Only the standard library is needed here, so that DAG files can be checked while they are parsed.
"""

from __future__ import annotations

from zoneinfo import ZoneInfo


def check_timezone(name: str) -> str:
    """The name of an IANA time zone. Raises ValueError for any other text."""
    try:
        ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        raise ValueError("must be an IANA time zone, as in Europe/Berlin") from None
    return name
