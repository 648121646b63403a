"""How long each part of Airflow waits for SQLite's only write lock (a setting of the tests' home).

The API server writes its audit log on its event loop; while it waits for the lock there, nothing
else in it can commit and give the lock back. So it must not wait long: it answers 500, and whoever
asked asks again. The other parts end when they cannot write, so they wait.
"""

from __future__ import annotations

import sys

CONNECT_ARGS = {"timeout": 1.0 if "api-server" in sys.argv else 60.0}
