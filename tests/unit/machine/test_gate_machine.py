"""A gate with any tasks, rules, defaults and clears merges and deletes only what its tasks proved.

The graph is a real one, made by `branch_gate`. Airflow's rules for starting a task are played: for
each pass, the tasks that were cleared get a new state, and the others keep theirs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow.sdk import DAG
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform._airflow import BaseOperator
from airflow_provider_platform.operators.branches import branch_gate

if TYPE_CHECKING:
    from collections.abc import Mapping

RULES = ["all_success", "all_done", "one_done", "one_success", "none_failed", "always",
         "none_failed_min_one_success", "none_skipped"]  # fmt: skip
OUTCOMES = ["success", "success", "success", "failed", "skipped"]
FAILED = {"failed", "upstream_failed"}
DEFAULTS = [
    {},
    {"do_xcom_push": False},
    {"multiple_outputs": False},
    {"wait_for_build": False},
    {"depends_on_past": True},
    {"delete_branch": True},
    {"trigger_rule": "all_done"},
]


@dataclass(frozen=True)
class Check:
    """A task inside: it runs after those of `after` by its rule, and ends so in each pass."""

    rule: str
    after: frozenset[int]
    outcomes: tuple[str, str]


@st.composite
def checks(draw: Any) -> list[Check]:
    made: list[Check] = []
    for number in range(draw(st.integers(1, 5))):
        after = draw(st.frozensets(st.integers(0, number - 1))) if number else frozenset()
        # Airflow refuses any other rule right after a setup.
        rule = draw(st.sampled_from(RULES)) if after else "all_success"
        outcome = st.sampled_from(OUTCOMES)
        made.append(Check(rule, after, (draw(outcome), draw(outcome))))
    return made


def gate_of(inside: list[Check], defaults: dict[str, Any]) -> DAG:
    with (
        DAG(dag_id="gate", default_args=defaults) as dag,
        branch_gate("nightly", group_id="gate", default_args=defaults),
    ):
        tasks: list[BaseOperator] = []
        for number, check in enumerate(inside):
            tasks.append(BaseOperator(task_id=f"check_{number}", trigger_rule=check.rule))
            for before in check.after:
                tasks[before].set_downstream(tasks[-1])
    return dag


def state_by_rule(task: Any, states: Mapping[str, str]) -> str | None:
    """The state that a task gets without running; None if it runs."""
    above = [states[name] for name in task.upstream_task_ids]
    rule = str(getattr(task.trigger_rule, "value", task.trigger_rule))
    failed, skipped = bool(FAILED.intersection(above)), "skipped" in above
    if rule in ("all_done", "always", "one_done") or not above:
        return None
    if rule == "one_success":
        return None if "success" in above else "upstream_failed" if failed else "skipped"
    if rule == "none_skipped":
        return "skipped" if skipped else None
    if failed:
        return "upstream_failed"
    if rule == "none_failed":
        return None
    if rule == "none_failed_min_one_success":
        return None if "success" in above else "skipped"
    assert rule == "all_success"
    return "skipped" if skipped else None


def run_pass(dag: DAG, cleared: set[str], states: dict[str, str], outcomes: dict[str, str]) -> None:
    """Run the cleared tasks that are no teardowns."""
    for task in dag.topological_sort():
        if task.task_id in cleared and not task.is_teardown:
            state = state_by_rule(task, states)
            states[task.task_id] = state or outcomes.get(task.task_id, "success")


@given(checks(), st.sampled_from(DEFAULTS), st.booleans(), st.sets(st.integers(0, 4)))
def test_gate_merges_only_if_every_task_inside_succeeds(
    inside: list[Check], defaults: dict[str, Any], whole: bool, chosen: set[int]
) -> None:
    dag = gate_of(inside, defaults)
    names = [f"gate.check_{number}" for number in range(len(inside))]
    states: dict[str, str] = {}
    cleared = set(dag.task_ids)
    for number in range(2):
        outcomes = {name: one.outcomes[number] for name, one in zip(names, inside, strict=True)}
        run_pass(dag, cleared, states, outcomes)
        proved = all(states[name] == "success" for name in names)
        # `delete` reads the state of `merge`, so this is also what may be deleted.
        assert (states["gate.merge"] == "success") == proved
        if not whole:
            some = [name for at, name in enumerate(names) if at in chosen] or names[:1]
            cleared = set(dag.partial_subset(some, include_downstream=True).task_dict)
    own = {name: dag.get_task(f"gate.{name}") for name in ("open", "built", "merge")}
    assert all(task.do_xcom_push and task.multiple_outputs for task in own.values())
    assert own["built"].wait_for_build is True
    assert (own["merge"].wait_for_build, own["merge"].delete_branch) == (True, False)
    for name in ("close", "delete"):
        task = dag.get_task(f"gate.{name}")
        assert (task.is_teardown, task.depends_on_past) == (True, False)
    assert dag.get_task("gate.close").upstream_task_ids >= {*names, "gate.merge"}
