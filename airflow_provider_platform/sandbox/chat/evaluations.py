"""Evaluations of agents: a run asks the sandbox's agent each question and compares rows.

A run asks all questions when it starts; the clock decides its status. Each start is another run.
The command line of the service shows the paths and the fields; values of fields are inferred.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product
from typing import Any

from airflow_provider_platform.sandbox.chat import runs as chat_runs
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import CERTIFIED_QUERIES, Item
from airflow_provider_platform.sandbox.state.branches import branches_of
from airflow_provider_platform.sandbox.state.warehouse import QueryError

_STAGES = ("queued", "running")
_SCORES = {"pass": 1, "fail": 0}
_MOST_ROWS = 50_000

Rows = list[list[Any]]


@dataclass(frozen=True)
class Evaluation:
    """One run over the questions of the agent."""

    id: int
    deployment: int
    branch: str
    agent: str
    started_at: float
    pace: float
    results: list[Item]

    def status(self, now: float) -> str:
        passed = (now - self.started_at) / self.pace if self.pace else len(_STAGES)
        return _STAGES[int(passed)] if passed < len(_STAGES) else "completed"


class Evaluations(dict[int, Evaluation]):
    """The runs by id."""


def _runs(call: Call) -> Evaluations:
    if not call.server.settings.evaluations:
        raise ApiError(404, f"Cannot {call.operation.method} {call.operation.path}")
    return call.store(Evaluations)


def _meant(call: Call) -> Evaluation:
    wanted = call.path["evaluationId"]
    run = _runs(call).get(wanted)
    if run is None or run.deployment != call.deployment:
        raise ApiError(404, f"Evaluation {wanted} not found in deployment {call.deployment}")
    return run


@handles("startEvaluation")
def start_evaluation(call: Call) -> Any:
    """Ask the agent the questions of one file, or of all files. The branch must be served."""
    body, server, runs = call.body, call.server, _runs(call)
    agent, file, branch = body.get("agentName"), body.get("questionFile"), body["branchName"]
    if agent is not None and call.items.find("agents", agentConfigName=agent) is None:
        raise ApiError(400, [f"agentName: no agent {agent}"])
    questions = generic_store.of(call, "eval-questions")
    if file is not None:
        questions = [one for one in questions if one["file"] == file]
    if not questions:
        raise ApiError(400, [f"no questions in {file or 'agents/'}"])
    answer = branches_of(server, call.deployment).ask(branch, server)
    if answer.kind not in ("serving", "asleep"):
        raise ApiError(404 if answer.kind == "bad" else 400, answer.words)
    run = Evaluation(
        id=len(runs) + 1,
        deployment=call.deployment,
        branch=branch,
        agent=agent or "auto",
        started_at=server.clock.now(),
        pace=server.settings.evaluation_pace,
        results=[_result(call, branch, one) for one in questions],
    )
    runs[run.id] = run
    call.record("created", "evaluations", run.id)
    return {"id": run.id}


@handles("getEvaluation")
def get_evaluation(call: Call) -> Any:
    run = _meant(call)
    status = run.status(call.server.clock.now())
    return {"id": run.id, "status": status, "branchName": run.branch, "agentName": run.agent}


@handles("getEvaluationResults")
def get_results(call: Call) -> Any:
    """The results, of which there are none before the end."""
    run = _meant(call)
    ended = run.status(call.server.clock.now()) == "completed"
    return generic_store.page(call, run.results if ended else [], everything=True)


def _result(call: Call, branch: str, question: Item) -> Item:
    verdict, text = _verdict(call, branch, question), question["question"]
    return {"verdict": verdict, "questionTextSnapshot": text, "score": _SCORES.get(verdict)}


def _verdict(call: Call, branch: str, question: Item) -> str:
    """Return ``pass``, ``fail``, ``review`` (nothing to compare) or ``error``."""
    sql, error = chat_runs.ask(call.server, question["question"], branch)
    certified = question["certifiedQuery"]
    truth = question["sql"] or CERTIFIED_QUERIES.get(certified)
    if error is not None or (certified is not None and truth is None):
        return "error"
    if sql is None or truth is None:
        return "review"
    warehouse_for = chat_runs.warehouse_for(call.server, branch)
    try:
        expected, actual = (
            warehouse_for(one).query(one, limit=_MOST_ROWS).rows for one in (truth, sql)
        )
    except QueryError:
        return "error"
    return "pass" if agree(expected, actual) else "fail"


def agree(expected: Rows, actual: Rows) -> bool:
    """Return whether the results agree: as many rows, in any order, and each expected column is
    among the actual ones, under any name. Numbers count to 4 significant figures."""
    if len(expected) != len(actual):
        return False
    wanted, present = _columns(expected), _columns(actual)
    choices = [[one for one in present if Counter(one) == Counter(column)] for column in wanted]
    rows = Counter(zip(*wanted, strict=True))
    return any(Counter(zip(*choice, strict=True)) == rows for choice in product(*choices))


def _columns(rows: Rows) -> list[tuple[Any, ...]]:
    rounded = [[f"{v:.4g}" if isinstance(v, int | float) else v for v in row] for row in rows]
    return list(zip(*rounded, strict=True))
