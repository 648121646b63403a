"""Words and defaults that operators, the hook, runs, the client and models share.

Operators need them while Airflow parses a DAG file, so this module imports only `typing`. Words
that only one module uses are in that module. The defaults of a connection are in
`connection_fields`. Times are in seconds.
"""

from __future__ import annotations

from typing import Literal

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
"""HTTP methods of the management API."""

IfThreadBusy = Literal["wait", "fail"]
FailOnToolError = Literal["all", "any", "never"]
"""Which tool errors make a chat fail: all queries failed, any tool call failed, or never."""

CacheMode = Literal["stale-if-slow", "stale-while-revalidate", "must-revalidate", "no-cache"]
"""How the data API uses its cache for a query."""
OnTruncated = Literal["warn", "fail"]
RowFormat = Literal["parquet", "csv", "jsonl"]
"""Formats of files of rows."""
ChartFormat = Literal["png", "svg", "html"]
"""Formats in which this package draws a chart."""

ExportFormat = Literal["png", "pdf"]
ExportLayout = Literal["screenshot", "print"]
NotificationFormat = Literal["png", "pdf"]

SyncSource = Literal["git", "manifest"]
SyncOutput = Literal["branch", "files"]
IfUnsupported = Literal["fail", "skip"]
"""What to do on a tenant that lacks the operation."""
MergeTarget = Literal["default", "parent"]
"""The branch into which a branch is merged: production, or the branch it was created from."""

IfRunning = Literal["follow", "fail", "skip"]
"""What to do if a run of a delivery is active already."""
OnNotActivated = Literal["fail", "skip"]
"""What to do if the tenant does not have a feature."""
OnUnknown = Literal["warn", "fail"]
IfStartLost = Literal["fail", "repeat"]
"""What a retry does if the response to the start of builds was lost."""


CHAT_TIMEOUT = 1800.0
"""From the question to the end of its run."""
EVALUATION_TIMEOUT = 7200.0
"""From the first question of a suite to the last answer."""
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


def not_interrupted() -> bool:
    """Return False: nothing stops this work."""
    return False
