"""Lengths of time as callers give them."""

from __future__ import annotations

from datetime import timedelta
from typing import TypeVar

T = TypeVar("T")

Seconds = float | timedelta
"""A length of time: seconds, or a timedelta."""


def in_seconds(value: T | timedelta) -> T | float:
    """A timedelta as seconds; anything else as it is."""
    return value.total_seconds() if isinstance(value, timedelta) else value
