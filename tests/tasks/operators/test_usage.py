"""The tokens of a task: summed over its tries, and limited by `max_tokens`."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import ChatNoAnswerError, ChatToolError
from airflow_provider_platform.operators.chat import USAGE_KEY
from airflow_provider_platform.resources.chat.result import total_usage
from tests.support.remote_tasks import chat, stopped_until_followed
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.control.client import SandboxControl
    from tests.support.captured_log import Capture


def used(context: Any) -> dict[str, Any] | None:
    """The sum that the try of this context pushed."""
    summed: dict[str, Any] | None = context["ti"].xcoms.get("total_usage")
    return summed


def failed_try(tries: TaskTries, **arguments: Any) -> dict[str, Any]:
    """What a try pushed whose run ended without an answer."""
    context = tries.context()
    with pytest.raises(ChatNoAnswerError):
        chat(**arguments).execute(context)
    summed = used(context)
    assert summed
    return summed


async def event_of(trigger: Any) -> Any:
    (payload,) = [event.payload async for event in trigger.run()]
    return payload


def test_usage_of_a_failed_try_is_added_to_that_of_its_retry(control: SandboxControl) -> None:
    control.fault("no_final")
    tries = TaskTries()
    failed = failed_try(tries)
    context = tries.context()
    result = chat().execute(context)
    assert used(context) == total_usage([failed, result["usage"]])


def test_trigger_reports_the_usage_of_a_failed_run(control: SandboxControl) -> None:
    control.fault("no_final")
    tries = TaskTries()
    with stopped_until_followed(control):
        waiting = deferral(chat(deferrable=True).execute, tries.context())
        event = asyncio.run(event_of(waiting.trigger))
    assert event["status"] == "error"
    context = tries.context()
    with pytest.raises(ChatNoAnswerError):
        chat(deferrable=True).execute_complete(context, event, waiting.kwargs["run"])
    assert used(context) == total_usage([event["error"]["details"]["usage"]])


def test_question_that_a_try_asks_again_after_a_dead_run_counts_too(
    control: SandboxControl,
) -> None:
    control.fault("no_final")
    tries = TaskTries()
    with stopped_until_followed(control):
        deferral(chat(deferrable=True).execute, tries.context())
        context = tries.context()
        result = chat().execute(context)
    first, second = tries.store[USAGE_KEY]["runs"].values()
    assert second == result["usage"] != first
    assert used(context) == total_usage([first, second])


def test_retry_that_reads_the_same_answer_again_counts_it_once(control: SandboxControl) -> None:
    tries = TaskTries()
    result = chat().execute(tries.context())
    context = tries.context()
    assert chat().execute(context)["message_id"] == result["message_id"]
    assert used(context) == total_usage([result["usage"]])


def test_usage_of_an_answer_that_fails_the_task_counts_once(control: SandboxControl) -> None:
    context = TaskTries().context()
    with pytest.raises(ChatToolError) as caught:
        chat(active_branch_name="nowhere").execute(context)
    assert len(control.state().messages) == 1
    assert used(context) == total_usage([caught.value.details["usage"]])


def test_sum_begins_again_after_a_clear(control: SandboxControl) -> None:
    control.fault("no_final")
    tries = TaskTries()
    failed_try(tries)
    tries.clear()
    context = tries.context()
    result = chat().execute(context)
    assert used(context) == total_usage([result["usage"]])


def test_sum_has_only_the_runs_of_this_try_without_a_store(control: SandboxControl) -> None:
    control.fault("no_final")
    tries = TaskTries(store=False)
    failed_try(tries)
    context = tries.context()
    result = chat().execute(context)
    assert used(context) == total_usage([result["usage"]])


def test_sum_adds_counts_and_collects_models() -> None:
    one = {"models": ["a"], "llmCalls": 1, "totalTokens": 7, "odd": True}
    two = {"models": ["a", "b"], "llmCalls": 2, "totalTokens": 5, "more": "text"}
    assert total_usage([one, two]) == {"models": ["a", "b"], "llmCalls": 3, "totalTokens": 12}


def test_task_whose_tokens_are_used_up_asks_nothing_and_fails_for_good(
    control: SandboxControl,
) -> None:
    control.fault("no_final")
    tries = TaskTries()
    failed = failed_try(tries, max_tokens=1)
    context = tries.context()
    expected = f"Nothing was sent.*used {failed['totalTokens']:,} tokens, and max_tokens is 1"
    with pytest.raises(AirflowFailException, match=expected):
        chat(max_tokens=1).execute(context)
    assert len(control.state().messages) == 1
    assert used(context) == failed
    tries.clear()
    assert chat(max_tokens=1).execute(tries.context())["answer"]


def test_answer_beyond_the_limit_of_tokens_is_returned_with_a_warning(
    control: SandboxControl, capture: Capture
) -> None:
    assert chat(max_tokens=1).execute(TaskTries().context())["answer"]
    assert "more than max_tokens (1)" in "\n".join(capture.lines())


def test_retry_below_the_limit_of_tokens_asks_again(control: SandboxControl) -> None:
    control.fault("no_final")
    tries = TaskTries()
    failed = failed_try(tries, max_tokens="9000000")
    assert failed["totalTokens"] < 9_000_000
    assert chat(max_tokens=9_000_000).execute(tries.context())["answer"]
