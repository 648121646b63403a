"""Run faults that change the records: each takes the steps of a run and yields other steps."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

from airflow_provider_platform.sandbox.chat.agent import Agent, Assignment, Record, Step
from airflow_provider_platform.sandbox.faults.faults import Fault

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
"""The marks of the two neighbouring records that are swapped; None is any mark."""


def inject(
    steps: Iterator[Step], fault: Fault, assignment: Assignment, agent: Agent
) -> Iterator[Step]:
    """Return the steps of a run with one fault applied."""
    change = getattr(Injector(fault, assignment, agent), fault.kind, None)
    return steps if change is None else change(steps)


class Injector:
    """One method per kind of fault, named after it."""

    def __init__(self, fault: Fault, assignment: Assignment, agent: Agent) -> None:
        self._fault = fault
        self._assignment = assignment
        self._agent = agent

    def no_answer(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The run ends right after the echo."""
        yield next(steps)
        yield Step(self._agent.state(), "state")
        yield Step(self._agent.usage(), "usage")

    def no_final(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The agent works, and then the run ends without its final message."""
        for step in steps:
            if step.mark == "state":
                self._assignment.messages.pop()
                yield Step(self._agent.state(), "state")
            elif step.mark not in ("final", "final_closing"):
                yield step

    def answer_only_in_state(self, steps: Iterator[Step]) -> Iterator[Step]:
        return (step for step in steps if step.mark not in ("final", "final_closing"))

    def no_usage(self, steps: Iterator[Step]) -> Iterator[Step]:
        return (step for step in steps if step.mark != "usage")

    def deltas_only(self, steps: Iterator[Step]) -> Iterator[Step]:
        """No record repeats the whole final message, so it stays in process."""
        for step in steps:
            if step.mark == "state" and self._fault.kept == "half":
                kept = self._assignment.messages[-1]["kwargs"]
                kept["content"] = kept["content"][: len(kept["content"]) // 2]
                yield replace(step, record=self._agent.state())
            elif step.mark != "final_closing":
                yield step

    def decoy_final(self, steps: Iterator[Step]) -> Iterator[Step]:
        """After the answer comes a record from below the final node, which is not the answer."""
        for step in steps:
            yield step
            if step.mark == "final_closing":
                decoy = {"id": f"{step.record['id']}-note", "content": "Not the answer."}
                path = ["final", "critic", "note"]
                yield Step({**step.record, **decoy, "graphPath": path}, "work")

    def same_sort(self, steps: Iterator[Step]) -> Iterator[Step]:
        """All records of one id have the ``sort`` of the first record."""
        first: dict[str, int] = {}
        for step in steps:
            if "sort" in step.record:
                sort = first.setdefault(step.record["id"], step.record["sort"])
                yield replace(step, record={**step.record, "sort": sort})
            else:
                yield step

    def repeat_deltas(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Every delta comes twice; the full record at the end of the message corrects the text."""
        for step in steps:
            yield step
            if step.record.get("isDelta"):
                yield step

    def unknown_records(self, steps: Iterator[Step]) -> Iterator[Step]:
        """Between the records come records of unknown kinds, and each known record has an unknown
        field."""
        for number, step in enumerate(steps):
            yield replace(step, record={**step.record, "futureField": {"nested": True}})
            if step.mark != "usage":
                yield Step(_STRANGERS[number % len(_STRANGERS)], "work")

    def wrong_order(self, steps: Iterator[Step]) -> Iterator[Step]:
        """``usage_first``: before the state; ``echo_late``: after the first assistant record;
        ``result_first``: a finished tool call before its start."""
        first, second = _ORDERS[self._fault.order]
        for step in steps:
            following = next(steps, None) if step.mark == first else None
            if following is None:
                yield step
            elif second in (None, following.mark):
                yield from (following, step)
            else:
                yield from (step, following)

    def huge_line(self, steps: Iterator[Step]) -> Iterator[Step]:
        """The first finished tool call has ``size`` bytes of padding."""
        done = False
        for step in steps:
            call = step.record.get("toolCall")
            if done or not call or "result" not in call:
                yield step
                continue
            done = True
            result = {**json.loads(call["result"]), "padding": "x" * self._fault.size}
            padded = {**call, "result": json.dumps(result, ensure_ascii=False)}
            yield replace(step, record={**step.record, "toolCall": padded})
