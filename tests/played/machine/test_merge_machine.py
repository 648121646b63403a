"""The merge of one task, whatever happens (see `task_machine`): it is never sent again blindly."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator
from tests.support.machine.branches import BRANCH, BranchHabits, SimulatedBranches
from tests.support.machine.merge_ledger import MergeLedger
from tests.support.machine.task_machine import (
    EXAMPLES,
    HAS_STATE_STORE,
    MANY,
    PASTS_OF_ONE_REQUEST,
    THEN,
    WHO,
    TaskMachine,
    check_machine,
    output,
    tell_counts,
)
from tests.support.machine.tenant import DEPLOYMENT

if TYPE_CHECKING:
    from tests.support.machine.task_machine import Past

HABITS = st.builds(
    BranchHabits,
    fast_forward=st.booleans(),
    names_commits=st.sampled_from([True, True, True, False]),
    lists_commits=st.sampled_from([True, True, True, False]),
)


class MergeMachine(TaskMachine):
    """A task that merges a branch on which, as on production, others work too."""

    ledger_class = MergeLedger
    answered_at = "after mergeToDefaultBranch"

    @initialize(
        drops_state=st.booleans(),
        habits=HABITS,
        deferrable=st.booleans(),
        checked=st.booleans(),
        delete=st.booleans(),
    )
    def begin(
        self, drops_state: bool, habits: BranchHabits, deferrable: bool, checked: bool, delete: bool
    ) -> None:
        self.platform = SimulatedBranches(habits)
        self.begin_with(self.platform, drops_state=drops_state)
        commit = self.platform.branch if checked and habits.lists_commits else None
        outputs = {"branch": BRANCH, "deployment": DEPLOYMENT, "target": "default"}
        self.begin_task(
            PlatformMergeBranchOperator,
            outputs | ({"commit": commit} if commit else {}),
            branch_name=output("branch"),
            hash=output("commit") if commit else None,
            deployment_id=output("deployment"),
            into=output("target"),
            delete_branch=delete,
            deferrable=deferrable,
        )

    @rule(what=st.sampled_from(["branch", "production", "merge", "delete"]), then=THEN)
    def somebody_works(self, what: str, then: int) -> None:
        """Somebody commits to the branch or to production, merges the branch or deletes it."""
        if what == "branch":
            self.platform.commit_to_branch()
        elif what == "production":
            self.platform.commit_to_production()
        elif what == "merge" and self.platform.has_branch:
            self.platform.merge(delete=False)
        elif what == "delete":
            self.platform.delete()
        self._run_steps(then)

    @rule(conflict=st.booleans(), then=THEN)
    def conflict_or_resolve(self, conflict: bool, then: int) -> None:
        """Somebody's commit conflicts with the branch, or the conflict is resolved."""
        self.platform.conflict = conflict
        self._run_steps(then)

    @rule(refuses=st.booleans(), then=THEN)
    def refuse_or_allow(self, refuses: bool, then: int) -> None:
        """The service answers merges with `merged: false`, although nothing is merged."""
        self.platform.refuses = refuses
        self._run_steps(then)

    @rule(outcome=st.sampled_from(["failed", "built"]), then=THEN)
    def end_build(self, outcome: Any, then: int) -> None:
        """Production's build fails, or somebody starts it again."""
        self.platform.end_build(outcome)
        self._run_steps(then)

    @precondition(lambda self: self.task.workers)
    @rule(who=WHO, what=st.sampled_from(["lose", "kill"]), then=THEN)
    def lose_answer(self, who: int, what: str, then: int) -> None:
        """The answer to a merge is lost, or its worker killed before it."""
        worker = self._pick(self.task.workers, who)
        for _ in range(MANY):
            if not worker.alive or worker.at == self.answered_at:
                break
            self._step(worker)
        if worker.alive and what == "lose":
            worker.spoil = "lose"
        elif worker.alive:
            self.task.kill(worker)
        self._run_steps(then)

    def heal_service(self) -> None:
        self.platform.conflict = self.platform.refuses = False
        self.platform.end_build("built")


@pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later")
@pytest.mark.parametrize("past", PASTS_OF_ONE_REQUEST)
def test_merge_is_repeated_only_after_a_check_in_any_history(past: Past) -> None:
    check_machine(MergeMachine, past, examples=EXAMPLES)
    tell_counts()
