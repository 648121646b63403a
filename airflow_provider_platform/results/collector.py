"""Python's garbage collector while many rows are read."""

from __future__ import annotations

import gc
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

NEVER = 2**31 - 1
"""So many collections of younger objects the collector lets pass before a full one."""

_lock = threading.Lock()
_users = 0
_before = gc.get_threshold()


@contextmanager
def no_full_collections() -> Iterator[None]:
    """Let the garbage collector look at new objects only. Every row is an object that it counts,
    so that it would look through all of Airflow some twenty times in a million rows: almost half of
    the time that they take. Blocks of several threads may overlap: the last one restores it."""
    global _users, _before
    with _lock:
        if not _users:
            _before = gc.get_threshold()
            gc.set_threshold(*_before[:2], NEVER)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if not _users:
                gc.set_threshold(*_before)
