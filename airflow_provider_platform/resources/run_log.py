"""The lines of a run in the log of its task.

A run reports its events, among them `LogLine` (`say`, `warn`) and `Stage`. Who runs it logs them
without secrets: an `EventLog` each event, `log_changes` an event once while it stays the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.client.redaction import log_line, quote_service

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.redaction import KnownSecrets


class Log(Protocol):
    """What a logger of the standard library and one of structlog have in common here."""

    def info(self, text: str, /, *values: object) -> Any:
        """Log a text; `%s` in it stands for the values."""

    def debug(self, text: str, /, *values: object) -> Any:
        """The same, for those who look for details."""

    def warning(self, text: str, /, *values: object) -> Any:
        """Log a text as a warning."""


@dataclass(frozen=True)
class LogLine:
    """A line for the task's log."""

    text: str
    is_warning: bool = False

    def write(self, log: Log, secrets: KnownSecrets) -> None:
        """Log the line, without secrets."""
        line = log_line(secrets.redact_text(self.text))
        (log.warning if self.is_warning else log.info)("%s", line)


@dataclass(frozen=True)
class Stage:
    """The status that the service reports of a run, for the log."""

    noun: str
    run: str
    status: str
    message: str = ""

    def __str__(self) -> str:
        said = f", {self.message}" if self.message else ""
        return quote_service(f"{self.noun} status: {self.status}{said} ({self.run})")


def say(api: Api, text: str) -> None:
    """Log a line."""
    api.report(LogLine(text))


def warn(api: Api, text: str) -> None:
    """Log a warning."""
    api.report(LogLine(text, is_warning=True))


SHOWN_STEPS = 12
"""How many lines of a run are shown at once; later lines are folded."""


class EventLog:
    """A listener that logs every event without the secrets: failures as warnings, the rest as
    information. The later lines of a long run are in a group, which log viewers fold and `close`
    ends. A `LogLine` is not folded."""

    def __init__(self, log: Log, secrets: KnownSecrets) -> None:
        self._log = log
        self._secrets = secrets
        self._lines = 0

    def __call__(self, event: object) -> None:
        if isinstance(event, LogLine):
            event.write(self._log, self._secrets)
            return
        is_detail = getattr(event, "is_detail", False)
        is_warning = getattr(event, "is_warning", False)
        line = log_line(self._secrets.redact_text(str(event)))
        if is_detail:
            self._log.debug("%s", line)
            return
        if is_warning:
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
