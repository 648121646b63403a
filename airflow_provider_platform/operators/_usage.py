"""The tokens of a chat task: the usage of all its runs, summed over its tries.

A try that fails has paid for its run too. The usage of each run is in the task state store, because
Airflow deletes a task's XComs at each try. Each run has a key of its own, so that a retry that
re-attaches to a run does not count the run twice. After a clear, the sum begins again. Before
Airflow 3.3 there is no store, so only the runs of this try are known.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.operators._record import TryCounters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.runs.run_kind import Ids

STORE_KEY = "platform_usage"
XCOM_KEY = "total_usage"

Usage = dict[str, Any]
"""The service's counts of a run: numbers by name, and `models`, a list of names."""


def read_runs(context: Context) -> dict[str, Usage]:
    """Return the stored usage of each run since the task was last cleared."""
    store: Any = context.get("task_state_store")
    stored = store.get(STORE_KEY) if store is not None else None
    if stored is None or not TryCounters.of(context).is_retry_of(TryCounters(**stored["counters"])):
        return {}
    runs: dict[str, Usage] = stored["runs"]
    return runs


def add_run(context: Context, ids: Ids, usage: Usage | None) -> dict[str, Usage]:
    """Store the usage of the run with these ids, None if it is unknown. Return the usage of each
    run."""
    runs = read_runs(context)
    if usage:
        runs = {**runs, f"{ids['message_id']} {ids['submitted_at']}": usage}
        store: Any = context.get("task_state_store")
        if store is not None:
            counters = asdict(TryCounters.of(context))
            store.set(STORE_KEY, {"counters": counters, "runs": runs})
    return runs


def total(usages: Iterable[Usage]) -> Usage:
    """Return the sum of each count, and the names of all models."""
    summed: Usage = {}
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                summed[name] = summed.get(name, 0) + value
            elif name == "models" and isinstance(value, list):
                summed[name] = list(dict.fromkeys([*summed.get(name, []), *map(str, value)]))
    return summed


def tokens(usage: Usage) -> int:
    """Return the number of tokens in a sum. The service's total has cached tokens too."""
    return int(usage.get("totalTokens", 0))
