"""Which index of a mapped task a file belongs to.

With `partial(output_path=...).expand(...)` all indexes have the same path, unless a template makes
the paths different. The indexes run at the same time, on different workers, in no order. Each index
would replace the file of the index before it, and all would succeed. So an index claims its path
before anything is sent: it stores the path as an XCom, then reads the claims of all indexes. If two
indexes have one path, at least the later one sees the other's claim and fails. Airflow deletes the
XComs of an index when another try of it begins, so a retry or a clear can claim its own path again.

Different tasks of a DAG may have the same path on purpose, for example if only one of two branches
runs. So if another task of the run has written to the path, or is writing to it, the task logs a
warning and continues.

After a clear, the paths may belong to other indexes (a list in another order). The claim of an
index that was cleared and has not claimed again does not count: the claim is from before the clear,
and the index has not ended.
"""

from __future__ import annotations

import logging
import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import get_mapped_xcoms, get_task_states
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.formats.service_text import quote_service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from airflow_provider_platform._airflow import Context, ObjectStoragePath

log = logging.getLogger(__name__)

CLAIM_KEY = "platform_output_path"
"""The key of the XCom in which an index claims its path."""
_ENDED = frozenset({"success", "failed", "skipped", "upstream_failed"})
_WRITING = frozenset({"success", "running", "deferred"})


@dataclass(frozen=True)
class PathClaim:
    """An index of a mapped task and the path that it writes to, None if it gave the path up.
    `clear_number` counts the clears of the DAG run before this try."""

    map_index: int
    path: str | None
    clear_number: int


def find_owner(
    own: PathClaim, claims: Iterable[PathClaim], state_of: Callable[[int], str | None]
) -> PathClaim | None:
    """Return the claim of another index to the same path, or None if no such claim counts.
    `state_of` returns the state of an index in Airflow ("removed" for an index that no longer
    exists)."""
    for claim in claims:
        if claim.path != own.path or claim.map_index == own.map_index:
            continue
        state = state_of(claim.map_index)
        if state in _ENDED or (state != "removed" and claim.clear_number == own.clear_number):
            return claim
    return None


def claim_path(name: str, path: ObjectStoragePath, context: Context) -> None:
    """Claim the path for this index, if the task is mapped. `name` is the argument that has the
    path. Raises PlatformInputError if the path is the file of another index."""
    ti: Any = context.get("ti")
    if ti is None or ti.map_index < 0:
        return
    clears = getattr(context.get("dag_run"), "clear_number", None) or 0
    own = PathClaim(ti.map_index, _identity(path), clears)
    if asdict(own) in get_mapped_xcoms(ti, CLAIM_KEY):  # claimed earlier in this try
        return
    ti.xcom_push(key=CLAIM_KEY, value=asdict(own))
    stored = get_mapped_xcoms(ti, CLAIM_KEY)

    def state_of(map_index: int) -> str | None:
        names = ("dag_id", "run_id", "task_id")
        return get_task_states(
            SimpleNamespace(
                **{attribute: getattr(ti, attribute) for attribute in names}, map_index=map_index
            )
        )

    owner = find_owner(own, [PathClaim(**claim) for claim in stored], state_of)
    if owner is None:
        return
    ti.xcom_push(key=CLAIM_KEY, value=asdict(PathClaim(ti.map_index, None, clears)))
    raise PlatformInputError(
        f"Nothing was sent: map index {ti.map_index} and map index {owner.map_index} of this task "
        f"have the same {name}, so they would overwrite each other's files. Give each index its "
        "own path, for example with {{ ti.map_index }} in the name.",
        where=quote_service(path),
        field=name,
    )


def warn_of_other_tasks(name: str, rendered: Any, context: Context) -> None:
    """Log a warning for each other task of the DAG that writes to the same path in this run. Tasks
    that have not begun are not mentioned: they may belong to another branch."""
    dag, ti = context.get("dag"), context.get("ti")
    if dag is None or ti is None:
        return
    for task_id, other in dag.task_dict.items():
        template = getattr(other, name, None)
        if task_id == ti.task_id or not isinstance(template, str):
            continue
        with suppress(Exception):  # another task's template need not render here
            if other.render_template(template, context) != str(rendered):
                continue
            place = SimpleNamespace(
                dag_id=ti.dag_id, run_id=ti.run_id, task_id=task_id, map_index=-1
            )
            if get_task_states(place) in _WRITING:
                log.warning(
                    "Task %r of this run has the same %s, %s. The task that ends last replaces "
                    "the file of the other task.",
                    *(task_id, name, quote_service(rendered)),
                )


def _identity(path: ObjectStoragePath) -> str:
    """Return the same string for two paths that lead to one file."""
    from airflow_provider_platform.results.files.atomic import is_local

    return os.path.realpath(path.path) if is_local(path) else str(path)
