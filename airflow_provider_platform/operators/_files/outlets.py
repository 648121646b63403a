"""What the assets that a task writes tell of it: the extra of their events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context


def tell_outlets(context: Context, outlets: Sequence[Any], facts: dict[str, Any]) -> None:
    """Put the facts of a file into the event of each asset among the outlets, so that a DAG that is
    scheduled on it finds what it needs. Keys that the author has set stay."""
    events: Any = context.get("outlet_events")
    if events is None:
        return
    for outlet in outlets:
        if getattr(outlet, "uri", None) is not None:
            extra = events[outlet].extra
            extra.update({key: value for key, value in facts.items() if key not in extra})
