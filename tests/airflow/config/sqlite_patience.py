"""How each part of Airflow writes to SQLite (a setting of the tests' home): without waiting for the
disk, and how long it waits for the only write lock.

The API server writes its audit log on its event loop; while it waits for the lock there, nothing
else in it can commit and give the lock back. So it must not wait long: it answers 500, and whoever
asked asks again. The other parts end when they cannot write, so they wait.
"""

from __future__ import annotations

import sqlite3
import sys
from typing import Any


class Connection(sqlite3.Connection):
    """What is written outlives a killed process, not a power cut."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.execute("PRAGMA synchronous=OFF")


CONNECT_ARGS = {"timeout": 1.0 if "api-server" in sys.argv else 60.0, "factory": Connection}
