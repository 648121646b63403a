"""The folder of a task's files and their names: after the task that writes them and the number of
the query.

The names are safe in every storage and the same for every try, so that a retry overwrites its own
files; two tasks never share one. Titles, which an agent makes up, are no part of them.
"""

from __future__ import annotations

import hashlib
import re

_UNSAFE = re.compile(r"[^A-Za-z0-9._=-]+")
MAX_NAME = 80
"""Characters of a name that are kept before its digest."""


def task_folder(
    dag_id: str, run_id: str, task_id: str, map_index: int = -1, loop_pass: str | None = None
) -> str:
    """The folder of a task in a run, as `dag/run/task`, with one more for a pass of a loop, and one
    more for a mapped task."""
    # Who starts a run chooses its id. With the digest, no id leads to the folder of another run.
    parts = [safe(dag_id), _with_digest(run_id), safe(task_id)]
    if loop_pass is not None:
        parts.append(safe(loop_pass))
    if map_index >= 0:
        parts.append(str(map_index))
    return "/".join(parts)


def writer_id(
    dag_id: str, run_id: str, task_id: str, map_index: int = -1, loop_pass: str | None = None
) -> str:
    """Eight hexadecimal digits for a task of a run, the same for every try."""
    name = "\0".join((dag_id, run_id, task_id, str(map_index), loop_pass or ""))
    return hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def query_name(number: int, ending: str) -> str:
    """The file of a query, counted from 1."""
    return f"query-{number}.{ending}"


def safe(name: str) -> str:
    """A name without anything that a storage takes for more than a letter. What had to be changed
    ends with a digest of what it was, so that different names stay different."""
    return name if name and _kept(name) == name else _with_digest(name)


def _kept(name: str) -> str:
    return _UNSAFE.sub("-", name).strip(".-")[:MAX_NAME]


def _with_digest(name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_kept(name)}-{digest}".lstrip("-")
