"""Logs the events of a run: the text of an event is its line in the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.client.redaction import log_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.client.redaction import KnownSecrets


class Log(Protocol):
    """What a logger of the standard library and one of structlog have in common here."""

    def info(self, text: str, /, *values: object) -> Any:
        """Log a text; `%s` in it stands for the values."""

    def debug(self, text: str, /, *values: object) -> Any:
        """The same, for those who look for details."""

    def warning(self, text: str, /, *values: object) -> Any:
        """Log a text as a warning."""


SHOWN_STEPS = 12
"""How many lines of a run are shown at once; later lines are folded."""


class EventLog:
    """A listener that logs every event without the secrets: failures as warnings, the rest as
    information. The later lines of a long run are in a group, which log viewers fold and `close`
    ends."""

    def __init__(self, log: Log, secrets: KnownSecrets) -> None:
        self._log = log
        self._secrets = secrets
        self._lines = 0

    def __call__(self, event: object) -> None:
        line = log_line(self._secrets.redact_text(str(event)))
        if getattr(event, "is_detail", False):
            self._log.debug("%s", line)
            return
        if getattr(event, "is_warning", False):
            if self._lines > SHOWN_STEPS:  # a warning is never folded; the next line folds again
                self._log.info("::endgroup::")
                self._lines = SHOWN_STEPS
            self._log.warning("%s", line)
            return
        if self._lines == SHOWN_STEPS:
            self._log.info("::group::Further steps")
        self._lines += 1
        self._log.info("%s", line)

    def close(self) -> None:
        """End the group: lines about the end of the run are shown."""
        if self._lines > SHOWN_STEPS:
            self._log.info("::endgroup::")
        self._lines = 0


def log_changes(log: Log) -> Callable[[object, KnownSecrets], None]:
    """Return a listener that logs an event once while its text stays the same, without the secrets
    of the client that sent it."""
    last: str | None = None

    def log_change(event: object, secrets: KnownSecrets) -> None:
        nonlocal last
        text = log_line(secrets.redact_text(str(event)))
        if text != last:
            last = text
            log.info("%s", last)

    return log_change
