"""Performs a run: gets the agent's records one by one; applies pace, breakpoints and run faults.

A run fault takes the steps of a run and yields other steps.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

from airflow_provider_platform.sandbox.chat.agent import (
    Agent,
    Assignment,
    Record,
    Step,
    aborted_record,
)
from airflow_provider_platform.sandbox.chat.planned_answers import PlannedAnswer, PlannedAnswers
from airflow_provider_platform.sandbox.chat.threads import Run, Thread
from airflow_provider_platform.sandbox.faults import RUN_KINDS, Fault, Subject
from airflow_provider_platform.sandbox.http.responses import JsonRpcError
from airflow_provider_platform.sandbox.state.branches import (
    BAD_BRANCH,
    CHAT_DEPLOYMENT,
    branches_of,
)
from airflow_provider_platform.sandbox.state.journal import RunEntry
from airflow_provider_platform.sandbox.state.pre_aggregations import PreAggregationJobs
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.warehouse import Warehouse

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


@dataclass
class Tokens:
    """The tokens that the agent has used."""

    used: int = 0

    def spend(self, tokens: int) -> None:
        self.used += tokens


RESUMABLE_FOR = 24 * 3600
"""Seconds after which a suspended run can no longer be resumed."""
SEPARATORS = " line\u2028paragraph\u2029next\u0085end"
"""Characters that some readers treat as line ends, although they are not line ends in this
stream."""


def start(
    server: ServerState,
    thread: Thread,
    *,
    message_id: str,
    text: str,
    branch: str | None,
    is_default_branch: bool,
) -> Run:
    """Start a run in a separate asyncio task. The thread must be idle."""
    entry = RunEntry(
        number=len(server.journal.state.runs) + 1,
        chat_id=thread.chat_id,
        message_id=message_id,
        text=text,
        identity=thread.owner,
        agent=thread.agent,
        branch=branch,
        started_at=time.time(),
    )
    server.journal.state.runs.append(entry)
    run = Run(thread, message_id, text, entry)
    assignment = Assignment(
        text=text,
        message_id=message_id,
        branch_error=_branch_error(server, branch, is_default_branch),
        previous=thread.last_query,
        earlier_messages=thread.messages(),
        messages=run.messages,
        settings=server.settings,
        warehouse_for=warehouse_for(server, branch),
        on_sql=entry.sql.append,
        on_tokens=server.store(Tokens).spend,
        plan=_plan(server, text, branch),
    )
    thread.runs.append(run)
    server.journal.changed()
    run.task = server.spawn(_Performance(server, run, assignment).play())
    return run


def ask(server: ServerState, text: str, branch: str) -> tuple[str | None, str | None]:
    """Ask the agent outside of a thread. Return its last SQL (None: it ran none) and its error."""
    sql: list[str] = []
    assignment = Assignment(
        text=text,
        message_id="",
        branch_error=_branch_error(server, branch, branch == _deploy(server)),
        previous=None,
        earlier_messages=[],
        messages=[],
        settings=server.settings,
        warehouse_for=warehouse_for(server, branch),
        on_sql=sql.append,
        on_tokens=server.store(Tokens).spend,
        plan=_plan(server, text, branch),
    )
    errors = [step.record.get("error") for step in Agent(assignment).steps()]
    return (sql[-1] if sql else None), next(filter(None, errors), None)


def _plan(server: ServerState, text: str, branch: str | None) -> PlannedAnswer | None:
    """Return the answer in place of the agent's rules, if any."""
    quota = server.settings.token_quota
    if quota is not None and server.store(Tokens).used >= quota:
        return PlannedAnswer(question=text, error="The token limit of the account is exceeded")
    return server.store(PlannedAnswers).take(text, branch or _deploy(server))


def warehouse_for(server: ServerState, branch: str | None) -> Callable[[str], Warehouse]:
    """Return which warehouse a query of the agent reads on this branch."""
    name = branch or _deploy(server)
    return partial(server.store(PreAggregationJobs).warehouse, server, CHAT_DEPLOYMENT, name)


def _deploy(server: ServerState) -> str:
    return branches_of(server, CHAT_DEPLOYMENT).deploy


def _branch_error(server: ServerState, name: str | None, is_default: bool) -> str | None:
    """Return why the branch that a message names has no data; None if it has data. Only the deploy
    branch may and must be named as the default branch.
    """
    branches = branches_of(server, CHAT_DEPLOYMENT)
    if name is not None and (name == branches.deploy) != is_default:
        return f"BadRequestError: {BAD_BRANCH}"
    answer = branches.ask(name or branches.deploy, server)
    if answer.kind in ("serving", "asleep"):
        return None
    refused = answer.kind in ("bad", "not_active")
    return f"BadRequestError: {answer.words}" if refused else answer.words


def abort(server: ServerState, run: Run) -> None:
    """Stop a run that is streaming or suspended."""
    if run.task is not None and run.task is not asyncio.current_task():
        run.task.cancel()
    run.append(aborted_record())
    run.become("aborted")
    server.journal.changed()


def give_up(server: ServerState, run: Run) -> None:
    """End a suspended run that nobody resumed before the thread got a new message."""
    if run.task is not None:
        run.task.cancel()
    run.become("failed")
    server.journal.changed()


class _Performance:
    """Performs one run from its first record to its end."""

    def __init__(self, server: ServerState, run: Run, assignment: Assignment) -> None:
        self._server = server
        self._run = run
        self._assignment = assignment
        self._subject = Subject(
            api="chat",
            chat_id=run.thread.chat_id,
            message_id=run.message_id,
            has_input=True,
            text=run.text,
        )
        taken = server.faults.take(self._subject, RUN_KINDS)
        self._faults = [armed.fault for armed in taken]
        if any(fault.kind == "line_separators" for fault in self._faults):
            assignment.answer_suffix = SEPARATORS
        self._passed: set[str] = set()

    async def play(self) -> None:
        run = self._run
        await self._stop_at("after_cutoff")
        agent = Agent(self._assignment)
        steps = agent.steps()
        for fault in self._faults:
            steps = inject(steps, fault, self._assignment, agent)
        for step in steps:
            for fault in list(self._faults):
                if len(run.log) >= fault.after and await self._interrupt(fault):
                    return
            settings = self._server.settings
            late = settings.usage_seconds if step.mark == "usage" else 0.0
            await asyncio.sleep(settings.pace + late)
            await self._stop_before(step)
            run.append(step.record)
            await self._stop_after(step)
        run.last_query = self._assignment.last_query
        run.become("failed" if any("error" in record for record in run.log) else "finished")
        self._server.journal.changed()

    async def _interrupt(self, fault: Fault) -> bool:
        """Apply a fault between two records. Return True if it ends the run."""
        run = self._run
        if fault.kind == "error":
            self._faults.remove(fault)
            line = fault.message
            run.append(
                {"error": line} if fault.form == "line" else JsonRpcError(line, -32603).document
            )
            run.become("failed")
        elif fault.kind == "abort":
            self._faults.remove(fault)
            abort(self._server, run)
        elif fault.kind == "suspend":
            self._faults.remove(fault)
            run.append({"id": "__suspended__", "role": "assistant"})
            run.resume_on = fault.resume
            run.resume_until = self._server.clock.now() + RESUMABLE_FOR
            run.resumed.clear()
            run.become("suspended")
            self._server.journal.changed()
            await run.resumed.wait()
            return False
        else:
            return False
        self._server.journal.changed()
        return True

    async def _stop_before(self, step: Step) -> None:
        if step.mark in ("final", "final_closing"):
            await self._stop_at("before_final", once=True)
        if step.mark == "state":
            await self._stop_at("after_final", once=True)
            await self._stop_at("before_state", once=True)

    async def _stop_after(self, step: Step) -> None:
        if step.mark == "echo":
            await self._stop_at("after_echo", once=True)
        await self._stop_at("mid_stream", after=len(self._run.log))

    async def _stop_at(self, name: str, *, once: bool = False, after: int | None = None) -> None:
        if once:
            if name in self._passed:
                return
            self._passed.add(name)
        point = self._server.breakpoints.match(name, self._subject, after=after)
        if point is None:
            return
        await self._run.opened.wait()
        await self._run.delivered()
        await self._server.breakpoints.stop(point, self._subject)
