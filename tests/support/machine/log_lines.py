"""The log of a process, with every line as a reader sees it."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.machine.simulation import Actor, AnyRun


@dataclass(frozen=True)
class Line:
    """One line of a log, and the run that it is about."""

    level: str
    text: str
    about: AnyRun | None

    @property
    def is_warning(self) -> bool:
        return self.level not in ("info", "debug")


class Log:
    """Stands for a task's log. Every line is kept as it would be read."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self.lines: list[Line] = []
        self.checked = 0

    def keep(self, level: str, text: str) -> None:
        """One more line."""
        self.lines.append(Line(level, text, self._actor.concerned_with))

    def __getattr__(self, level: str) -> Callable[..., None]:
        if level.startswith("_"):
            raise AttributeError(level)

        def log(message: str, *args: Any, exc_info: Any = None, **_: Any) -> None:
            text = str(message) % args if args else str(message)
            if exc_info or level == "exception":
                text += "\n" + traceback.format_exc()
            self.keep(level, text)

        return log
