"""Which requests or runs a fault or a breakpoint applies to, and to how many of them."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeVar

Api = Literal["chat", "management", "data"]


@dataclass(frozen=True)
class Subject:
    """A request, or a run (then method and path are None), that is compared with a rule."""

    api: Api | None = None
    method: str | None = None
    path: str | None = None
    chat_id: str | None = None
    message_id: str | None = None
    has_input: bool | None = None
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class Match(Subject):
    """The common fields of faults and breakpoints: which subjects match. A field that is not set
    matches everything.

    ``path`` and ``text`` (of the user message) are regular expressions that are searched for. The
    rule takes effect from the ``nth`` match on, ``count`` times (None: each time).
    """

    nth: int = 1
    count: int | None = 1

    def __post_init__(self) -> None:
        if self.api not in (None, "chat", "management", "data"):
            raise ValueError("api must be chat, management or data")
        if self.nth < 1:
            raise ValueError("nth counts from 1")
        if self.count is not None and self.count < 1:
            raise ValueError("count must be at least 1, or null for ever")
        for name in ("path", "text"):
            pattern = getattr(self, name)
            if pattern is not None:
                try:
                    re.compile(pattern)
                except re.error as error:
                    raise ValueError(f"{name} is not a regular expression: {error}") from None

    def fits(self, subject: Subject) -> bool:
        return (
            self.api in (None, subject.api)
            and (self.method is None or self.method.upper() == subject.method)
            and _found(self.path, subject.path)
            and self.chat_id in (None, subject.chat_id)
            and self.message_id in (None, subject.message_id)
            and self.has_input in (None, subject.has_input)
            and _found(self.text, subject.text)
        )

    def as_json(self) -> dict[str, Any]:
        """Return the fields that differ from their defaults."""
        defaults = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != defaults[name]}


def _found(pattern: str | None, value: str | None) -> bool:
    return pattern is None or (value is not None and re.search(pattern, value) is not None)


class Tally:
    """Counts the matches of one rule, and decides at which of them it takes effect."""

    def __init__(self, rule: Match) -> None:
        self.rule = rule
        self.seen = 0
        self.hits = 0

    @property
    def spent(self) -> bool:
        return self.rule.count is not None and self.hits >= self.rule.count

    def take(self, subject: Subject) -> bool:
        if self.spent or not self.rule.fits(subject):
            return False
        self.seen += 1
        if self.seen < self.rule.nth:
            return False
        self.hits += 1
        return True


M = TypeVar("M", bound=Match)


def from_json(kind: type[M], document: dict[str, Any]) -> M:
    """Build a rule from JSON; raises ``ValueError`` for unknown fields and bad values."""
    unknown = set(document) - {field.name for field in fields(kind)}
    if unknown:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    try:
        return kind(**document)
    except TypeError as error:
        raise ValueError(str(error)) from None
