"""The builds of pre-aggregations of one task, whatever happens (see `task_machine`): they are not
started again while the service knows their tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from tests.support.machine.build_jobs import JobsHabits, SimulatedJobs
from tests.support.machine.task_machine import (
    EXAMPLES,
    HAS_STATE_STORE,
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

HABITS = st.builds(JobsHabits, st.booleans(), st.booleans(), st.booleans())


class BuildJobsMachine(TaskMachine):
    """A task that builds pre-aggregations."""

    answered_at = "after request with post"

    @initialize(drops_state=st.booleans(), habits=HABITS, deferrable=st.booleans())
    def begin(self, drops_state: bool, habits: JobsHabits, deferrable: bool) -> None:
        self.platform = SimulatedJobs(habits)
        self.begin_with(self.platform, drops_state=drops_state)

        self.begin_task(
            PlatformBuildPreAggregationsOperator,
            {"cube": "orders", "deployment": DEPLOYMENT},
            cubes=[output("cube")],
            deployment_id=output("deployment"),
            if_start_lost="repeat" if habits.repeat else "fail",
            deferrable=deferrable,
        )

    @precondition(lambda self: self._going_on)
    @rule(who=WHO, then=THEN)
    def fail_a_build(self, who: int, then: int) -> None:
        self._pick(self._going_on, who).break_off()
        self._run_steps(then)

    @precondition(lambda self: self.platform.builds)
    @rule(who=WHO, between_tries=st.booleans(), then=THEN)
    def forget_jobs(self, who: int, between_tries: bool, then: int) -> None:
        """The cache in which the service keeps its jobs is emptied."""
        self._bring_amid(between_tries, *self.task.workers)
        self._pick(self._going_on or self.platform.builds, who).forget()
        self._leave_to_retry(between_tries)
        self._run_steps(then)

    @rule(then=THEN)
    def expire_data_tokens(self, then: int) -> None:
        self.platform.expire_data_tokens()
        self._run_steps(then)


@pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later")
@pytest.mark.parametrize("past", PASTS_OF_ONE_REQUEST)
def test_builds_are_started_once_in_any_history(past: Past) -> None:
    check_machine(BuildJobsMachine, past, examples=EXAMPLES)
    tell_counts()
