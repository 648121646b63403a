"""Misbehaviour on demand: faults, and breakpoints at which the sandbox stops.

A breakpoint holds the sandbox until a test releases it, so no test has to sleep. A fault or a
breakpoint says which requests or runs it applies to, and to how many of them.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, fields
from itertools import count as counter
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


ANSWER_KINDS = {
    "drop": "The connection is closed before the request is processed.",
    "status": (
        "An HTTP error, and the request is not processed: `status` (503), `retry_after` (seconds, "
        "sent as `retry_after_form`: `seconds` or `date`), `body` (`json`, `html` or `empty`), "
        "`message`. `quotes`: the message ends with this part of the request (`authorization` or "
        "`body`), in `quote_form` (`plain` or `url`)."
    ),
    "html": "A web page with status 200. The request is not processed.",
    "redirect": "A redirect with `status` (3xx). The request is not processed.",
    "jsonrpc": (
        "A JSON-RPC error with status 200 and this `message`; `indented`: on several lines. The "
        "request is not processed."
    ),
    "continue_wait": (
        'The data API answers "Continue wait", so the client must ask again. Needs `api="data"`.'
    ),
}
"""Kinds that replace the response, and what each does."""
WIRE_KINDS = {
    "lost_response": "The request is processed, then the connection is cut before the response.",
    "cut": (
        "The connection is cut after `after` records and `bytes` of the next record. "
        "`inside_character`: in the middle of a character. `reset`: with a TCP reset."
    ),
    "close": "The response ends after `after` records, as if it were complete.",
    "silence": "After `after` records, nothing is sent until you release the fault.",
    "blank_lines": (
        "After `after` records, only blank lines are sent, one each `interval` seconds, until you "
        "release the fault."
    ),
    "broken_json": "After `after` records, only half of the next record is sent.",
    "error_line": (
        "An error with this `message` ends the response after `after` records. If the response is "
        "shorter, the error is its last line."
    ),
    "gzip": "The response is compressed.",
    "dribble": "The response is sent one byte at a time.",
    "odd_field": (
        "The `field` of a JSON response (`updatedAt`, `items.0.filters`) has another `value`."
    ),
}
"""Kinds that change the bytes of one response. The run continues unchanged."""
RUN_KINDS = {
    "error": "The run fails after `after` records, with `message`. `form`: `line` or `jsonrpc`.",
    "suspend": (
        "`__suspended__` after `after` records. `resume`: only the same message, sent again within "
        "24 hours, resumes the run (`input`), or a request without `input` does (`follow_up`)."
    ),
    "abort": "`__aborted__` after `after` records.",
    "no_answer": "The run ends after the echo of the question.",
    "no_final": "The run ends without its final message.",
    "answer_only_in_state": "The answer is only in `__state__`.",
    "no_usage": "The run ends without `__usage__`.",
    "deltas_only": (
        "The final record is never marked as complete. `kept`: how much of the answer `__state__` "
        "has, `whole` or `half`."
    ),
    "decoy_final": "After the final answer comes a record that looks like a final answer.",
    "same_sort": "All records of a message have the same `sort`.",
    "repeat_deltas": "Every piece of text arrives twice.",
    "unknown_records": "Some records have unknown types, and all have unknown fields.",
    "wrong_order": "Records come in another `order`: `usage_first`, `echo_late` or `result_first`.",
    "line_separators": "The answer contains U+2028, U+2029 and U+0085.",
    "huge_line": "A tool result is very long: `size` bytes (20 MB).",
}
"""Kinds that change what a chat run produces, for all its readers."""

_PARAMETERS = {
    "status": {"status", "retry_after", "retry_after_form", "body", "message"}
    | {"quotes", "quote_form"},
    "redirect": {"status"},
    "jsonrpc": {"message", "indented"},
    "deltas_only": {"kept"},
    "cut": {"after", "bytes", "inside_character", "reset"},
    "close": {"after"},
    "silence": {"after"},
    "blank_lines": {"after", "interval"},
    "broken_json": {"after"},
    "error_line": {"after", "message"},
    "odd_field": {"field", "value"},
    "error": {"after", "message", "form"},
    "suspend": {"after", "resume"},
    "abort": {"after"},
    "wrong_order": {"order"},
    "huge_line": {"size"},
}


@dataclass(frozen=True, kw_only=True)
class Fault(Match):
    """One fault: its ``kind``, the requests or runs to which it applies (see ``Match``), and the
    parameters of its kind.

    ``after`` counts records: for faults of a response, the lines sent on that connection; for
    faults of a run, the run's own records, of which the user echo is the first.
    """

    kind: str
    after: int = 0
    bytes: int = 0
    inside_character: bool = False
    reset: bool = False
    interval: float = 0.05
    status: int | None = None
    retry_after: int | None = None
    retry_after_form: Literal["seconds", "date"] = "seconds"
    body: Literal["json", "html", "empty"] = "json"
    message: str = "Internal error of the sandbox, as asked for"
    quotes: Literal["authorization", "body"] | None = None
    quote_form: Literal["plain", "url"] = "plain"
    form: Literal["line", "jsonrpc"] = "line"
    resume: Literal["follow_up", "input"] = "input"
    order: Literal["usage_first", "echo_late", "result_first"] = "usage_first"
    field: str = ""
    value: Any = None
    indented: bool = False
    kept: Literal["whole", "half"] = "whole"
    size: int = 20_000_000

    def __post_init__(self) -> None:
        super().__post_init__()
        known = ANSWER_KINDS | WIRE_KINDS | RUN_KINDS
        if self.kind not in known:
            raise ValueError(f"no fault {self.kind!r}; known are {', '.join(sorted(known))}")
        if self.kind in RUN_KINDS and (self.method or self.path):
            raise ValueError(f"{self.kind} applies to a run, so leave out method and path")
        if self.kind == "odd_field" and not self.field:
            raise ValueError("odd_field needs the field that it changes")
        extra = set(self.as_json()) - _PARAMETERS.get(self.kind, set()) - _COMMON
        if extra:
            raise ValueError(f"{self.kind} takes no {', '.join(sorted(extra))}")


_COMMON = set(Match.__dataclass_fields__) | {"kind"}


class Armed:
    """A fault that is armed; ``released`` ends a silence."""

    def __init__(self, number: int, fault: Fault) -> None:
        self.id = str(number)
        self.fault = fault
        self.tally = Tally(fault)
        self.released = asyncio.Event()


class ArmedFaults:
    """The armed faults, in the order in which they were added."""

    def __init__(self) -> None:
        self._armed: dict[str, Armed] = {}
        self._numbers = counter(1)

    def arm(self, fault: Fault) -> Armed:
        armed = Armed(next(self._numbers), fault)
        self._armed[armed.id] = armed
        return armed

    def get(self, fault_id: str) -> Armed | None:
        return self._armed.get(fault_id)

    def all(self) -> list[Armed]:
        return list(self._armed.values())

    def clear(self) -> None:
        """Disarm all faults and end every silence."""
        for armed in self._armed.values():
            armed.released.set()
        self._armed.clear()

    def take(self, subject: Subject, kinds: Collection[str]) -> list[Armed]:
        """Return the faults of ``kinds`` that apply to ``subject``, and count each once."""
        return [a for a in self.all() if a.fault.kind in kinds and a.tally.take(subject)]


REQUEST_BREAKPOINTS = {
    "before_call": (
        "The request has arrived and is not processed. If the client disconnects, the sandbox "
        "forgets the request, unless `process_disconnected` is set."
    ),
    "before_answer": "The request is processed, and no byte of the response is sent.",
}
RUN_BREAKPOINTS = {
    "after_cutoff": "After the record `__cutoff__`.",
    "after_echo": "After the echo of the question.",
    "mid_stream": "After `after` records of the run (4). The echo of the question is the first.",
    "before_final": "Before the final record.",
    "after_final": "After the final record.",
    "before_state": "Before the record `__state__`.",
}
"""The moments of a run. All connected clients have received everything so far."""


@dataclass(frozen=True, kw_only=True)
class Breakpoint(Match):
    """Stop a request or a run at the breakpoint ``name``."""

    name: str
    after: int = 4
    process_disconnected: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        known = REQUEST_BREAKPOINTS | RUN_BREAKPOINTS
        if self.name not in known:
            raise ValueError(f"no breakpoint {self.name!r}; known are {', '.join(sorted(known))}")
        if self.name in RUN_BREAKPOINTS and (self.method or self.path):
            raise ValueError(f"{self.name} applies to a run, so leave out method and path")


class _SetBreakpoint:
    """A breakpoint that is set, what has stopped at it, and whether it is released."""

    def __init__(self, rule: Breakpoint) -> None:
        self.rule = rule
        self.tally = Tally(rule)
        self.released = asyncio.Event()
        self.stopped: list[Subject] = []


class Breakpoints:
    """The breakpoints that are set. ``changed`` is called each time a request or a run stops."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._set: list[_SetBreakpoint] = []
        self._changed = changed

    def set(self, rule: Breakpoint) -> None:
        self._set.append(_SetBreakpoint(rule))

    def match(
        self, name: str, subject: Subject, *, after: int | None = None
    ) -> _SetBreakpoint | None:
        """Return the breakpoint at which ``subject`` must stop, and count the match. Return None if
        it need not stop."""
        for point in self._set:
            if point.rule.name != name or point.released.is_set():
                continue
            if after is not None and point.rule.after != after:
                continue
            if point.tally.take(subject):
                return point
        return None

    async def stop(self, point: _SetBreakpoint, subject: Subject) -> None:
        """Wait at ``point`` until it is released."""
        point.stopped.append(subject)
        self._changed()
        await point.released.wait()

    def stopped(self, name: str) -> list[Subject]:
        """Return the requests and runs that have stopped at the breakpoints of this name."""
        return [
            subject
            for point in self._set
            if point.rule.name == name and not point.released.is_set()
            for subject in point.stopped
        ]

    def names(self) -> list[str]:
        return [point.rule.name for point in self._set if not point.released.is_set()]

    def release(self, name: str | None = None) -> int:
        """Let everything at this breakpoint (None: at each breakpoint) continue, and remove the
        breakpoint. Return how many were set."""
        released = [point for point in self._set if name in (None, point.rule.name)]
        for point in released:
            point.released.set()
        self._set = [point for point in self._set if not point.released.is_set()]
        return len(released)
