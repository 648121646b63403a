"""The two modes of a task that waits: on the worker, and deferred in the triggerer.

A test runs in both only if the mode can change what it checks.
"""

from __future__ import annotations

import pytest

MODES = {"on the worker": False, "deferred": True}


def in_both_modes(fixture: str) -> pytest.MarkDecorator:
    """Run a test in both modes; its fixture asks `is_deferred` for the mode."""
    return pytest.mark.parametrize(fixture, MODES.values(), ids=MODES.keys(), indirect=True)


def is_deferred(request: pytest.FixtureRequest) -> bool:
    """Return whether the task of this test is deferred: only if `in_both_modes` says so."""
    return bool(getattr(request, "param", False))
