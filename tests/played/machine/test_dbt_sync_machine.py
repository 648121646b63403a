"""The dbt sync of one task, whatever happens (see `task_machine`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.support.machine.task_machine import (
    EXAMPLES,
    HAS_STATE_STORE,
    PASTS,
    THEN,
    WHO,
    TaskMachine,
    check_machine,
    output,
    tell_counts,
)
from tests.support.machine.tenant import DEPLOYMENT, SimulatedTenant, TenantHabits

if TYPE_CHECKING:
    from tests.support.machine.task_machine import Past

HABITS = st.builds(
    TenantHabits,
    history=st.sampled_from([True, True, True, False]),
    cancelled=st.sampled_from(["in the history", "in both"]),
)
BRANCH = "airflow"


class DbtSyncMachine(TaskMachine):
    """A task that starts a sync in a deployment in which others start some too."""

    @initialize(
        drops_state=st.booleans(), habits=HABITS, deferrable=st.booleans(), named=st.booleans()
    )
    def begin(self, drops_state: bool, habits: TenantHabits, deferrable: bool, named: bool) -> None:
        if self.past.startswith(("running", "killed while")):
            habits = replace(habits, history=True)  # else nobody waits while it runs
        self.platform = SimulatedTenant(habits)
        self.begin_with(self.platform, drops_state=drops_state)

        self.begin_task(
            PlatformDbtSyncOperator,
            {"deployment": DEPLOYMENT} | ({"branch": BRANCH} if named else {}),
            branch_name=output("branch") if named else None,
            deployment_id=output("deployment"),
            deferrable=deferrable,
        )

    @precondition(lambda self: self._going_on)
    @rule(
        who=WHO,
        end=st.sampled_from(["cancel", "fail"]),
        between_tries=st.booleans(),
        then=THEN,
    )
    def interrupt_sync(self, who: int, end: str, between_tries: bool, then: int) -> None:
        """Somebody cancels a sync, or it fails."""
        sync = self._pick(self._going_on, who)
        if end == "cancel":
            sync.stop()
        else:
            sync.break_off()
        self._leave_to_retry(between_tries)
        self._run_steps(then)

    @rule(then=THEN)
    def other_starts(self, then: int) -> None:
        """A push to the dbt repository starts a sync."""
        self.platform.start({"branchName": BRANCH}, None, trigger="webhook")
        self._run_steps(then)


@pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later")
@pytest.mark.parametrize("past", PASTS)
def test_dbt_sync_keeps_the_rules_in_any_history(past: Past) -> None:
    check_machine(DbtSyncMachine, past, examples=EXAMPLES)
    tell_counts()
