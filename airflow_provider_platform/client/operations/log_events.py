"""Logging what a program notifies of: the text of an event is its line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.client.redaction import KnownSecrets


class Log(Protocol):
    """What a logger of the standard library and one of structlog have in common here."""

    def info(self, text: str, /, *values: object) -> Any:
        """Log a text; `%s` in it stands for the values."""


def log_events(log: Log, secrets: KnownSecrets) -> Callable[[object], None]:
    """A listener that logs every event, without the secrets."""

    def tell(event: object) -> None:
        log.info("%s", secrets.redact(str(event)))

    return tell


def log_changes(log: Log) -> Callable[[object, KnownSecrets], None]:
    """A listener that logs an event once while its text stays the same, without the secrets of
    the client that told it."""
    last: str | None = None

    def tell(event: object, secrets: KnownSecrets) -> None:
        nonlocal last
        text = secrets.redact(str(event))
        if text != last:
            last = text
            log.info("%s", last)

    return tell
