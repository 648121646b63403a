"""Runs the benchmarks: `python -m benchmarks [name ...]`."""

from __future__ import annotations

import sys

from benchmarks import (
    chat_fold,
    first_connection,
    frames,
    herd,
    import_cost,
    polls,
    rows_to_files,
    waiting_chats,
)

BENCHMARKS = {
    "chat_fold": chat_fold.main,
    "first_connection": first_connection.main,
    "frames": frames.main,
    "herd": herd.main,
    "import_cost": import_cost.main,
    "polls": polls.main,
    "rows_to_files": rows_to_files.main,
    "waiting_chats": waiting_chats.main,
}

for name in sys.argv[1:] or BENCHMARKS:
    if name not in BENCHMARKS:
        sys.exit(f"no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    print(f"{name}\n{'-' * len(name)}")
    BENCHMARKS[name]()
    print()
