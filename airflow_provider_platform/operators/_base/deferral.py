"""Waiting: in the triggerer or on the worker, and until when."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context

BACKSTOP_SECONDS = 120.0
"""How much longer than the deadline Airflow waits for a trigger that does not run."""


def default_deferrable(given: bool | None) -> bool:
    """The given choice, else Airflow's `[operators] default_deferrable`."""
    if given is not None:
        return given
    from airflow_provider_platform._airflow import conf

    return bool(conf.getboolean("operators", "default_deferrable", fallback=False))


def earliest_deadline(
    deadline: float, execution_timeout: timedelta | None, context: Context, *, now: float
) -> float:
    """The deadline, or the end of this try by its `execution_timeout`, whichever comes first (Unix
    time)."""
    if execution_timeout is None:
        return deadline
    began = getattr(context.get("ti"), "start_date", None)
    start = began.timestamp() if began is not None else now
    return min(deadline, float(start + execution_timeout.total_seconds()))
