"""Rules over several arguments of a call: which exclude each other, and which go together.

A rule takes the values by name, None for what is absent, and raises ValueError. Models declare
theirs in `rules`, and so do operators. Only the standard library is needed here, so that DAG files
can be checked while they are parsed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

Rule: TypeAlias = tuple[tuple[str, ...], Callable[..., None]]
"""Names of arguments, the one that an error is about first, and what checks their values."""


def required(**values: Any) -> None:
    """All of them are given."""
    for name, value in values.items():
        if value is None:
            raise ValueError(f"{name} must be given")


def exactly_one(**values: Any) -> None:
    """One of them is given, and no other."""
    if sum(value is not None for value in values.values()) != 1:
        raise ValueError(f"give exactly one of {' and '.join(values)}")


def at_most_one(**values: Any) -> None:
    """They exclude each other."""
    if sum(value is not None for value in values.values()) > 1:
        raise ValueError(f"give only one of {' and '.join(values)}")


def together(**values: Any) -> None:
    """They are given together or not at all."""
    if len({value is None for value in values.values()}) > 1:
        raise ValueError(f"give both {' and '.join(values)}, or neither")
