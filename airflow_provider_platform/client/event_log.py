"""Logging what a program notifies of: the text of an event is its line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Log(Protocol):
    """What a logger of the standard library and one of structlog have in common here."""

    def info(self, text: str, /, *values: object) -> Any:
        """Log a text; `%s` in it stands for the values."""


def log_events(log: Log) -> Callable[[object], None]:
    """A listener that logs every event."""

    def tell(event: object) -> None:
        log.info("%s", event)

    return tell


def log_changes(log: Log) -> Callable[[object], None]:
    """A listener that logs an event once while its text stays the same."""
    told: str | None = None

    def tell(event: object) -> None:
        nonlocal told
        if str(event) != told:
            told = str(event)
            log.info("%s", told)

    return tell
