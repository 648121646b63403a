"""A gate with any tasks, rules, defaults and clears merges and deletes only what its tasks proved.

The graph is a real one, made by `branch_gate`. Airflow's rules for starting a task are played: for
each pass, the tasks that were cleared get a new state, and the others keep theirs. Somebody may
commit to the branch between two passes: `commit` is executed as it is, and `merge` refuses a branch
that is at another commit (`test_merge_machine` proves this).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from airflow.sdk import DAG
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_platform._airflow import AirflowFailException, BaseOperator
from airflow_provider_platform.operators import _gate_tasks
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
    outcomes: tuple[str, ...]


@st.composite
def checks(draw: Any) -> list[Check]:
    made: list[Check] = []
    for number in range(draw(st.integers(1, 5))):
        after = draw(st.frozensets(st.integers(0, number - 1))) if number else frozenset()
        rule = draw(st.sampled_from(RULES))
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
    above = list(states.values())
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


@dataclass
class Branch:
    """The branch: the commit that it is at, and the one that each task inside has checked."""

    head: int = 0
    kept: int | None = None
    """The commit that `commit` has returned."""
    seen: dict[str, int] = field(default_factory=dict)


def run_pass(
    dag: DAG, cleared: set[str], states: dict[str, str], outcomes: dict[str, str], branch: Branch
) -> None:
    """Run the cleared tasks that are no teardowns."""
    for name in cleared:
        states.pop(name, None)
    for task in dag.topological_sort():
        name = task.task_id
        if name not in cleared or task.is_teardown:
            continue
        # A rule that does not wait, such as `always`, may start a task at any time.
        above = {one: states.get(one, "success") for one in task.upstream_task_ids}
        states[name] = state_by_rule(task, above) or outcomes.get(name, "success")
        if states[name] != "success":
            continue
        branch.seen[name] = branch.head
        if name == "gate.commit":
            states[name] = state_of_commit(task, states)
            branch.kept = branch.head if states[name] == "success" else None
        if name == "gate.merge" and branch.kept != branch.head:
            states[name] = "failed"


def state_of_commit(task: Any, states: Mapping[str, str]) -> str:
    """The state in which `commit` ends."""
    succeeded = [name for name in task.checks if states.get(name) == "success"]
    task.branch_name, task.now_at = "nightly", "a commit"
    with mock.patch.object(_gate_tasks, "get_succeeded", return_value=succeeded):
        try:
            task.execute({"ti": None})
        except AirflowFailException:
            return "failed"
    return "success"


def root(*outcomes: str) -> Check:
    return Check("all_success", frozenset(), outcomes)


REPORTED = [root("failed", "failed"), Check("all_done", frozenset({0}), ("success", "success"))]
MENDED = [root("failed", "success"), root("success", "success")]


@example(inside=REPORTED, defaults={}, whole=True, upstream=False, moves=False, chosen=set())
@example(inside=MENDED, defaults={}, whole=False, upstream=False, moves=True, chosen={0})
@example(inside=MENDED, defaults={}, whole=False, upstream=True, moves=True, chosen={0})
@example(inside=MENDED, defaults={}, whole=False, upstream=False, moves=False, chosen={0})
@given(
    inside=checks(),
    defaults=st.sampled_from(DEFAULTS),
    whole=st.booleans(),
    upstream=st.booleans(),
    moves=st.booleans(),
    chosen=st.sets(st.integers(0, 4)),
)
def test_gate_merges_only_what_every_task_inside_has_proved(
    inside: list[Check],
    defaults: dict[str, Any],
    whole: bool,
    upstream: bool,
    moves: bool,
    chosen: set[int],
) -> None:
    dag = gate_of(inside, defaults)
    names = [f"gate.check_{number}" for number in range(len(inside))]
    states: dict[str, str] = {}
    branch = Branch()
    cleared = set(dag.task_ids)
    for number in range(2):
        outcomes = {name: one.outcomes[number] for name, one in zip(names, inside, strict=True)}
        run_pass(dag, cleared, states, outcomes, branch)
        succeeded = all(states[name] == "success" for name in names)
        checking = {branch.seen[name] for name in names if name in branch.seen}
        proved = succeeded and checking == {branch.head}
        # `delete` reads the state of `merge`, so this is also what may be deleted.
        merged = states["gate.merge"] == "success"
        if merged:
            assert proved or only_always(inside, branch, names)
        if proved and (whole or number == 0 or not moves):
            assert merged or (upstream and number == 1)
        if not whole:
            some = [name for at, name in enumerate(names) if at in chosen] or names[:1]
            subset = dag.partial_subset(some, include_downstream=True, include_upstream=upstream)
            cleared = set(subset.task_dict)
        branch.head += moves
    own_tasks_keep_their_arguments(dag, names)


def only_always(inside: list[Check], branch: Branch, names: list[str]) -> bool:
    """Whether every task that has seen another commit has the rule `always`: such a task starts
    with the DAG run, before the branch is open, so it checks nothing."""
    others = [
        check
        for name, check in zip(names, inside, strict=True)
        if branch.seen.get(name) != branch.head
    ]
    return all(check.rule == "always" for check in others)


def own_tasks_keep_their_arguments(dag: DAG, names: list[str]) -> None:
    own = {name: dag.get_task(f"gate.{name}") for name in ("open", "built", "merge")}
    assert all(task.do_xcom_push and task.multiple_outputs for task in own.values())
    assert own["built"].wait_for_build is True
    assert own["merge"].hash.operator.task_id == "gate.commit"
    assert (own["merge"].wait_for_build, own["merge"].delete_branch) == (True, False)
    for name in ("close", "delete"):
        task = dag.get_task(f"gate.{name}")
        assert (task.is_teardown, task.depends_on_past) == (True, False)
    assert dag.get_task("gate.close").upstream_task_ids >= {*names, "gate.merge"}
