"""Defaults of arguments that operators, the hook and runs share, in seconds and rows.

Operators need them while Airflow parses a DAG file, so this module imports nothing. The defaults of
a connection are in `settings/connection_fields.py`.
"""

from __future__ import annotations

CHAT_TIMEOUT = 1800.0
"""From the question to the end of its run."""
QUERY_TIMEOUT = 600.0
"""Until the first row of a query."""
POLL_INTERVAL = 5.0
"""Between two polls of a run."""
MAX_ROWS = 100
"""Rows of a query's result in XCom. A chat sends as many of each query, unless asked for more."""
EXPORT_LIFETIME = 300.0
"""The service drops an export and its file so long after the start, so no timeout is longer."""
MISSING_GRACE = 300.0
"""How long tables may be missing while no build moves, before they count as failed."""
