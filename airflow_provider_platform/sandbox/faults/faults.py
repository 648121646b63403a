"""Faults on demand: their kinds and parameters, and the faults that are armed."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count as counter
from typing import Any, Literal

from airflow_provider_platform.sandbox.faults.matching import Match, Subject, Tally

ANSWER_KINDS = frozenset({"drop", "status", "html", "redirect", "jsonrpc", "continue_wait"})
"""Kinds that replace the response."""
WIRE_KINDS = frozenset(
    {
        "lost_response",
        "cut",
        "close",
        "silence",
        "blank_lines",
        "broken_json",
        "error_line",
        "gzip",
        "dribble",
        "odd_field",
    }
)
"""Kinds that change the bytes of one response. The run continues unchanged."""
RUN_KINDS = frozenset(
    {
        "error",
        "suspend",
        "abort",
        "no_answer",
        "no_final",
        "no_usage",
        "answer_only_in_state",
        "deltas_only",
        "decoy_final",
        "same_sort",
        "repeat_deltas",
        "unknown_records",
        "wrong_order",
        "line_separators",
        "huge_line",
    }
)
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
    parameters of its kind, which the page on the sandbox describes.

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
    quote_form: Literal["plain", "base64", "url"] = "plain"
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

    def take(self, subject: Subject, kinds: frozenset[str]) -> list[Armed]:
        """Return the faults of ``kinds`` that apply to ``subject``, and count each once."""
        return [a for a in self.all() if a.fault.kind in kinds and a.tally.take(subject)]
