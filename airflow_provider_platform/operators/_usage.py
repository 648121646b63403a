"""The tokens of a chat task: the usage of all its runs, summed over its tries.

A try that fails has paid for its run too. The usage of each run is in the task state store, because
Airflow deletes a task's XComs at each try. Each run has a key of its own, so that a retry that
re-attaches to a run does not count the run twice. After a clear, the sum begins again. Before
Airflow 3.3 there is no store, so only the runs of this try are known.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.operators._retry_or_clear import TryCounters

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.runs.run_kind import Ids

STORE_KEY = "platform_usage"

Usage = dict[str, Any]
"""The service's counts of a run: numbers by name, and `models`, a list of names."""


def add_usage(store: Any, counters: TryCounters, ids: Ids, usage: Usage | None) -> Usage:
    """Store the usage of the run with these ids, None if it is unknown. Return the sum of all runs
    since the task was last cleared. `counters` are those of this try."""
    stored = store.get(STORE_KEY) if store is not None else None
    runs: dict[str, Usage] = {}
    if stored is not None and counters.is_retry_of(TryCounters(**stored["counters"])):
        runs = stored["runs"]
    if usage:
        runs = {**runs, f"{ids['message_id']} {ids['submitted_at']}": usage}
        if store is not None:
            store.set(STORE_KEY, {"counters": asdict(counters), "runs": runs})
    return total(runs.values())


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
