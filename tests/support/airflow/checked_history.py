"""Reads the history of a test that has ended, and checks it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from tests.support.airflow.history import Task, history_of
from tests.support.airflow.history_rules import Rule, violations_of

if TYPE_CHECKING:
    import pytest

    from tests.support.airflow.sandbox_server import PatientControl
    from tests.support.airflow.task_run import TaskRun

_KINDS: dict[str, Literal["chat", "sync"]] = {"ask": "chat", "sync": "sync"}
_STOP_SECONDS = 60.0
"""How long a stop may take that has begun before the test ended, and a run that nobody holds."""
_POLL = 1.0


def allowed_rules(test: pytest.Item) -> set[Rule]:
    """The rules that the test may break, by its marks `history_allows(rule, because=...)`."""
    allowed = set()
    for mark in test.iter_markers("history_allows"):
        (name,) = mark.args
        assert mark.kwargs["because"], "a mark says why"
        allowed.add(Rule(name))
    return allowed


def check_history(sandbox: PatientControl, started: list[TaskRun], allowed: set[Rule]) -> None:
    """Raises AssertionError, with the whole history, where it breaks a rule. What can still pass
    (a stop that is under way) is waited for."""
    deadline = time.monotonic() + _STOP_SECONDS
    while True:
        # The sandbox first: whatever Airflow does meanwhile explains more, not less.
        state = sandbox.state()
        if not (state.messages or state.syncs):
            return
        tasks = [task for run in started if run.task_id in _KINDS for task in _tasks_of(run)]
        history = history_of(state, tasks)
        violations = [one for one in violations_of(history) if one.rule not in allowed]
        passing = all(one.rule is Rule.LEFT_RUNNING for one in violations)
        if not violations or not passing or time.monotonic() > deadline:
            break
        time.sleep(_POLL)
    report = "\n".join([*map(str, violations), "--- the history", str(history)])
    assert not violations, report


def _tasks_of(run: TaskRun) -> list[Task]:
    """All instances of the task, the mapped ones too."""
    given = run.api.run(run.dag_id, run.run_id)["conf"]
    instances = run.api.task_instances(run.dag_id, run.run_id, run.task_id)
    return [_task_of(run.mapped(one["map_index"]), one, given) for one in instances]


def _task_of(run: TaskRun, instance: dict[str, Any], given: dict[str, Any]) -> Task:
    rendered = instance["rendered_fields"] or {}
    prompts = {rendered.get("prompt")}
    if run.map_index < 0:
        prompts.add(given.get("prompt"))
    result = run.xcoms().get("return_value") if instance["state"] == "success" else None
    return Task(
        name=str(run),
        kind=_KINDS[run.task_id],
        state=instance["state"],
        tries=instance["try_number"],
        clears=run.clears,
        prompts=frozenset(text for text in prompts if text is not None),
        timeout=_seconds(rendered.get("timeout")),
        result=(result.get("chat_id"), result.get("message_id")) if result else None,
    )


def _seconds(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
