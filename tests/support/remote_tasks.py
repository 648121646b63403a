"""Tasks that start something at the sandbox: operators with short pauses, and their tries."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import PlatformError, PlatformTransportError
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from tests.support.task_context import TaskDeferred, TaskTries, deferral

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform.sandbox.control.client import SandboxControl

PROMPT = "revenue by country"
LOOK = {"api": "chat", "has_input": False, "path": "/stream-chat-state$"}
"""A request that follows a chat run or reads its thread."""
HISTORY = {"method": "GET", "path": "/dbt-sync$"}


def chat(**arguments: Any) -> PlatformChatOperator:
    return PlatformChatOperator(
        task_id="ask",
        **{"prompt": PROMPT, "poll_interval": 0.01, "deferrable": False, **arguments},
    )


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """Wait until a condition is true that the sandbox's control cannot wait for. Raises
    AssertionError."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until, "the condition did not come true"
        time.sleep(0.01)


def sync(**arguments: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(
        task_id="sync", **{"poll_interval": 0.01, "deferrable": False, **arguments}
    )


def deferral_while_stopped(
    control: SandboxControl, function: Any, *args: Any, **kwargs: Any
) -> TaskDeferred:
    """Return the TaskDeferred of a chat task that defers in this call. Until then the sandbox stops
    the run at a breakpoint: a task whose run is already over does not defer."""
    control.set_breakpoint("after_echo")
    try:
        return deferral(function, *args, **kwargs)
    finally:
        control.release("after_echo")


@contextmanager
def stopped_until_followed(
    control: SandboxControl, point: str = "after_echo", text: str | None = None
) -> Iterator[None]:
    """In the block, stop the next run, or the run of this question, until a second connection
    follows it: the trigger's, after the worker's."""
    control.set_breakpoint(point, **({} if text is None else {"text": text}))

    def release() -> None:
        try:
            (hit,) = control.wait_for_breakpoint(point, 300)
            control.wait_until(
                lambda state: [s.message_id for s in state.subscriptions].count(hit.message_id) > 1,
                300,
            )
        finally:
            control.release(point)

    with ThreadPoolExecutor(1) as pool:
        released = pool.submit(release)
        try:
            yield
        finally:
            control.release(point)  # if the block failed, this ends the wait
        released.result()


def lost_prompt(control: SandboxControl) -> TaskTries:
    """Return the tries of a chat. The first try knows the thread, but could not read it to find its
    prompt."""
    control.fault("cut", after=1)
    control.fault("drop", **LOOK, count=6)
    tries = TaskTries()
    with pytest.raises(PlatformTransportError, match="A retry looks for the message"):
        chat().execute(tries.context())
    return tries


class Try(threading.Thread):
    """A try of a task, in a thread of its own; `error` is what it ended with."""

    def __init__(self, operator: Any, tries: TaskTries) -> None:
        super().__init__()
        self._operator = operator
        self._context = tries.context()
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self._operator.execute(self._context)
        except (PlatformError, AirflowFailException, AirflowSkipException) as error:
            self.error = error

    def end(self) -> BaseException | None:
        """Wait for the end; what it ended with."""
        self.join(30)
        assert not self.is_alive()
        return self.error
