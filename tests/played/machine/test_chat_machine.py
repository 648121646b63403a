"""The chat of one task, whatever happens (see `task_machine`)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from airflow_provider_platform.operators.chat import PlatformChatOperator
from tests.support.machine.platform import USER, Habits, SimulatedPlatform
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

if TYPE_CHECKING:
    from tests.support.machine.platform import Thread
    from tests.support.machine.task_machine import Past

PROMPT = "What is our revenue?"

HABITS = st.builds(
    Habits,
    replay=st.sampled_from(["before", "after", "none"]),
    follow_up=st.sampled_from(["subscribe", "state"]),
    resume=st.sampled_from(["follow_up", "input", "never"]),
    stopped=st.sampled_from(["aborted", "state", "aborted and state", "mark"]),
    long=st.sampled_from([False, False, True]),
)


class ChatMachine(TaskMachine):
    """A task that asks, perhaps in a thread in which others ask too."""

    @initialize(
        drops_state=st.booleans(),
        habits=HABITS,
        deferrable=st.booleans(),
        given=st.booleans(),
        own_settings=st.booleans(),
    )
    def begin(
        self, drops_state: bool, habits: Habits, deferrable: bool, given: bool, own_settings: bool
    ) -> None:
        if given and habits.replay == "none":
            # Whose question a given thread answers would show nowhere.
            habits = replace(habits, replay="before")
        self.platform = SimulatedPlatform(habits)
        self.begin_with(self.platform, drops_state=drops_state)
        self.thread: Thread | None = None
        if given:
            self.thread = self.platform.new_thread()
            self._other_asks("How many orders?")
            self.simulation.time.now += 1000
        outputs = {"prompt": PROMPT}
        if self.thread is not None:
            outputs["thread"] = self.thread.chat_id
        if own_settings:
            outputs["user"] = USER
        self.begin_task(
            PlatformChatOperator,
            outputs,
            prompt=output("prompt"),
            chat_id=output("thread") if self.thread is not None else None,
            session_settings={"externalId": output("user")} if own_settings else None,
            deferrable=deferrable,
        )

    @precondition(lambda self: self._going_on)
    @rule(
        who=WHO,
        end=st.sampled_from(["abort", "suspend", "no answer", "error"]),
        between_tries=st.booleans(),
        then=THEN,
    )
    def interrupt_run(self, who: int, end: str, between_tries: bool, then: int) -> None:
        """Somebody aborts a run, the service suspends it, or ends it without an answer."""
        run = self._pick(self._going_on, who)
        if end == "no answer" and run.is_answering:
            end = "error"
        if end == "abort":
            run.stop()
        elif end == "suspend":
            run.suspend()
        else:
            run.break_off(error=end == "error")
        self._leave_to_retry(between_tries)
        self._run_steps(then)

    @precondition(lambda self: self.thread is not None and self.thread.active is None)
    @rule(same=st.booleans(), then=THEN)
    def other_asks(self, same: bool, then: int) -> None:
        """Somebody else asks in the task's thread, perhaps the same."""
        self._other_asks(PROMPT if same else "And by product?")
        self._run_steps(then)

    def _other_asks(self, prompt: str) -> None:
        assert self.thread is not None
        body = {
            "chatId": self.thread.chat_id,
            "messageId": self.simulation.new_message_id(),
            "input": prompt,
        }
        self.platform.open(body, None)


@pytest.mark.skipif(not HAS_STATE_STORE, reason="the rules are those of Airflow 3.3 and later")
@pytest.mark.parametrize("past", PASTS)
def test_chat_keeps_the_rules_in_any_history(past: Past) -> None:
    check_machine(ChatMachine, past, examples=EXAMPLES)
    tell_counts()
