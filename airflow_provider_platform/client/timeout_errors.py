"""The words of databases, of their drivers and of the query queue for a time limit that was hit.

The data API passes on what the database says and gives no code beside it, so the words decide. They
are phrases of several words or error names; a column that is called `timeout`, quoted or not, is
none of them.
"""

from __future__ import annotations

import re

TIME_OUT_ADVICE = (
    "A retry may succeed. If it does not, reduce what the query reads, or raise the time limit "
    "of the database or of the deployment (CUBEJS_DB_QUERY_TIMEOUT)."
)
LONGEST = 10_000
"""Characters of a text that are searched."""

_QUOTED_NAME = re.compile(r"""(['"`])[^\s'"`]*\1""")
_TIMED_OUT = re.compile(
    r"""
      timed[- ]?out\b                                   # also ETIMEDOUT
    | \btime-?out(?:error|_exceeded)\b                  # TimeoutError, TIMEOUT_EXCEEDED
    | \b(?:call|connect|connection|execution|gateway|job|lock|lock\ wait|query|read|request
        |server|socket|statement|warehouse)\ time-?out\b
    | \btime-?out\ (?:after|exceeded|expired|reached|of\ \d)
    | \btime\ out\ period\ exceeded
    | (?:^|[:.]\ )time-?out:
    | \bdeadline[ _]exceeded\b
    | \bexecution\ time\ exceeded\b
    | \btime\ (?:limit|cap)\ (?:was\ )?exceeded\b
    | \bexceed(?:s|ed)?\ (?:[a-z]+\ ){0,5}time\ (?:limit|cap)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)


def says_time_out(message: object) -> bool:
    """Whether an error of the data API says that the query hit a time limit of the database, of
    the connection to it or of the queue."""
    return _TIMED_OUT.search(_QUOTED_NAME.sub(" ", str(message)[:LONGEST])) is not None
