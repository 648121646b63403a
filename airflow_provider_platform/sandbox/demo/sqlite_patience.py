"""How long each part of the demo's Airflow waits for SQLite's only write lock.

A part that cannot write ends, on a busy machine after Airflow's 5 seconds. Without a scheduler, no
task starts any more. So the parts wait longer, except the API server: while it waits on its event
loop, it can neither answer nor give back a lock of its own. It answers 500 then.
"""

from __future__ import annotations

import sys

CONNECT_ARGS = {"timeout": 5.0 if "api-server" in sys.argv else 120.0}
