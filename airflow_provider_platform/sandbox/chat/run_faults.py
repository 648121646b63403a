"""Run faults that change the records themselves: each takes the beats of a run and gives others."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_provider_platform.sandbox.chat.agent import Agent, Assignment, Beat, Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.faults.book import Fault

_STRANGERS: tuple[Record, ...] = (
    {"id": "__heartbeat__", "at": 1},
    {"id": "note-1", "role": "system", "kind": "progress", "percent": 40},
    {"kind": "telemetry", "payload": {"a": [1, 2, 3]}},
)
_ORDERS = {
    "usage_first": ("state", "usage"),
    "echo_late": ("echo", None),
    "result_first": ("tool", "tool"),
}
"""Marks of the two neighbouring records that change places; None is any."""


def spoil(
    beats: Iterator[Beat], fault: Fault, assignment: Assignment, agent: Agent
) -> Iterator[Beat]:
    """The beats of a run as one fault leaves them."""
    change = getattr(_Spoiler(fault, assignment, agent), fault.kind, None)
    return beats if change is None else change(beats)


class _Spoiler:
    """One method per kind of fault, named after it."""

    def __init__(self, fault: Fault, assignment: Assignment, agent: Agent) -> None:
        self._fault = fault
        self._assignment = assignment
        self._agent = agent

    def no_answer(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """The run ends right after the echo."""
        yield next(beats)
        yield Beat(self._agent.state(), "state")
        yield Beat(self._agent.usage(), "usage")

    def no_final(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """The agent works, and then the run ends without its final message."""
        for beat in beats:
            if beat.mark == "state":
                self._assignment.messages.pop()
                yield Beat(self._agent.state(), "state")
            elif beat.mark not in ("final", "final_closing"):
                yield beat

    def answer_only_in_state(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        return (beat for beat in beats if beat.mark not in ("final", "final_closing"))

    def no_usage(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        return (beat for beat in beats if beat.mark != "usage")

    def deltas_only(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """The final message is never repeated whole."""
        return (beat for beat in beats if beat.mark != "final_closing")

    def decoy_final(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """A record from below the final node, later than the answer, that is not the answer."""
        for beat in beats:
            yield beat
            if beat.mark == "final_closing":
                decoy = {"id": f"{beat.record['id']}-note", "content": "Not the answer."}
                path = ["final", "critic", "note"]
                yield Beat({**beat.record, **decoy, "graphPath": path}, "work")

    def same_sort(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """All records of one id carry the ``sort`` of the first."""
        first: dict[str, int] = {}
        for beat in beats:
            if "sort" in beat.record:
                sort = first.setdefault(beat.record["id"], beat.record["sort"])
                yield replace(beat, record={**beat.record, "sort": sort})
            else:
                yield beat

    def repeat_deltas(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """Every delta comes twice; the full record that closes the message sets it right."""
        for beat in beats:
            yield beat
            if beat.record.get("isDelta"):
                yield beat

    def unknown_records(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """Records of unknown kinds in between, and an unknown field in every known one."""
        for number, beat in enumerate(beats):
            yield replace(beat, record={**beat.record, "futureField": {"nested": True}})
            if beat.mark != "usage":
                yield Beat(_STRANGERS[number % len(_STRANGERS)], "work")

    def wrong_order(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """``usage_first``: before the state; ``echo_late``: after the first assistant record;
        ``result_first``: a finished tool call before its start."""
        first, second = _ORDERS[self._fault.order]
        for beat in beats:
            following = next(beats, None) if beat.mark == first else None
            if following is None:
                yield beat
            elif second in (None, following.mark):
                yield from (following, beat)
            else:
                yield from (beat, following)

    def huge_line(self, beats: Iterator[Beat]) -> Iterator[Beat]:
        """The first finished tool call carries ``size`` bytes of padding."""
        done = False
        for beat in beats:
            call = beat.record.get("toolCall")
            if done or not call or "result" not in call:
                yield beat
                continue
            done = True
            result = {**json.loads(call["result"]), "padding": "x" * self._fault.size}
            padded = {**call, "result": json.dumps(result, ensure_ascii=False)}
            yield replace(beat, record={**beat.record, "toolCall": padded})
