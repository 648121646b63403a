"""Evaluations of agents: a run asks the sandbox's agent each question and compares rows.

A run asks all questions when it starts; the clock decides its status. The command line of the
service shows the paths and the fields; values of fields are inferred.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
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

    deployment: int
    branch: str
    agent: str
    started_at: float
    results: list[Item]


class Evaluations(dict[int, Evaluation]):
    """The runs by id."""


def _runs(call: Call) -> Evaluations:
    if not call.server.settings.evaluations:
        raise ApiError(404, f"Cannot {call.operation.method} {call.operation.path}")
    return call.store(Evaluations)


def _named(call: Call) -> tuple[Evaluation, str, bool]:
    """Return the run that the path names, its status now, and whether its results are there."""
    wanted = call.path["evaluationId"]
    run = _runs(call).get(wanted)
    if run is None or run.deployment != call.deployment:
        raise ApiError(404, f"Evaluation {wanted} not found in deployment {call.deployment}")
    pace, seconds = call.server.settings.evaluation_pace, call.server.clock.now() - run.started_at
    stages = [stage for at, stage in enumerate(_STAGES, start=1) if seconds < at * pace]
    late = seconds < len(_STAGES) * pace + call.server.settings.evaluation_results_delay
    return run, stages[0] if stages else "completed", not late


@handles("startEvaluation")
def start_evaluation(call: Call) -> Any:
    """Ask the agent the questions of one file, or of all files. The branch must be served."""
    body, server, runs = call.body, call.server, _runs(call)
    agent, file, branch = body.get("agentName"), body.get("questionFile"), body["branchName"]
    if agent is not None and call.items.find("agents", agentConfigName=agent) is None:
        raise ApiError(400, [f"agentName: no agent {agent}"])
    questions = [
        one for one in generic_store.of(call, "eval-questions") if file in (None, one["file"])
    ]
    if not questions:
        raise ApiError(400, [f"no questions in {file or 'agents/'}"])
    answer = branches_of(server, call.deployment).ask(branch, server)
    if answer.kind not in ("serving", "asleep"):
        raise ApiError(404 if answer.kind == "bad" else 400, answer.words)
    results = [_result(call, branch, one) for one in questions]
    number, now = len(runs) + 1, server.clock.now()
    runs[number] = Evaluation(call.deployment, branch, agent or "auto", now, results)
    call.record("created", "evaluations", number)
    return {"id": number}


@handles("getEvaluation")
def get_evaluation(call: Call) -> Any:
    run, status, _ = _named(call)
    number = call.path["evaluationId"]
    return {"id": number, "status": status, "branchName": run.branch, "agentName": run.agent}


@handles("getEvaluationResults")
def get_results(call: Call) -> Any:
    """The results, of which there are none before the end."""
    run, _, are_there = _named(call)
    return generic_store.page(call, run.results if are_there else [])


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
    rows = sorted(zip(*wanted, strict=True))
    choices = permutations(present, len(wanted))
    return any(sorted(zip(*choice, strict=True)) == rows for choice in choices)


def _columns(rows: Rows) -> list[tuple[str, ...]]:
    rounded = [[f"{v:.4g}" if isinstance(v, int | float) else str(v) for v in row] for row in rows]
    return list(zip(*rounded, strict=True))
