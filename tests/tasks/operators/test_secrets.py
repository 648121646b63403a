"""No secret that a task sends or receives is in its XComs, its record, its events or its error."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.triggers import unexpected
from tests.support.remote_tasks import deferral_while_stopped
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.captured_log import Capture

WORKBOOKS = "/v1/deployments/1/workbooks"
CANARY = "canary-of-an-api-key"
LENIENT: dict[str, Any] = {"fail_on_tool_error": "never", "details": True}


def ask(table: str, **arguments: Any) -> PlatformChatOperator:
    """A question whose query fails with the table's name, unless the table exists."""
    return PlatformChatOperator(
        task_id="ask",
        prompt=f'sql: SELECT * FROM "{table}"',
        poll_interval=0.05,
        **arguments,
    )


async def event_of(trigger: Any) -> dict[str, Any]:
    (event,) = [event async for event in trigger.run()]
    payload: dict[str, Any] = event.payload
    return payload


class TestChat:
    def test_tool_error_hides_the_quoted_key(self, platform_sandbox: Sandbox) -> None:
        tries, key = TaskTries(), platform_sandbox.chat_api_key
        with pytest.raises(ChatToolError, match=r"no such table: \*\*\*"):
            ask(key).execute(tries.context())
        assert key not in json.dumps(tries.store)

    def test_trigger_event_hides_the_quoted_key(self, platform_sandbox: Sandbox) -> None:
        key, tries = platform_sandbox.chat_api_key, TaskTries()
        operator = ask(key, deferrable=True)
        deferred = deferral_while_stopped(
            platform_sandbox.control, operator.execute, tries.context()
        )
        event = asyncio.run(event_of(deferred.trigger))
        assert "no such table: ***" in json.dumps(event)
        assert key not in json.dumps(event)
        with pytest.raises(ChatToolError, match=r"no such table: \*\*\*"):
            operator.execute_complete(tries.context(), event, **(deferred.kwargs or {}))

    @pytest.mark.parametrize("way", ["worker", "event", "thread"])
    def test_result_from_worker_event_or_thread_contains_no_secret(
        self,
        platform_sandbox: Sandbox,
        monkeypatch: pytest.MonkeyPatch,
        capture: Capture,
        way: str,
    ) -> None:
        key, tries = platform_sandbox.chat_api_key, TaskTries()
        if way == "thread":
            monkeypatch.setattr("airflow_provider_platform.resources.chat.run.MAX_EVENT_BYTES", 0)
        event, result = self.finished(
            platform_sandbox, ask(key, **LENIENT, deferrable=way != "worker"), tries
        )
        assert (event is None, bool(event and event["result"])) == (way == "worker", way == "event")
        assert "no such table: ***" in result["queries"][0]["error"]
        logged = capture.lines()
        assert logged
        assert key not in json.dumps([event, result, tries.store, logged])

    @staticmethod
    def finished(
        sandbox: Sandbox, operator: PlatformChatOperator, tries: TaskTries
    ) -> tuple[Any, dict[str, Any]]:
        """The event, None for a task that waits on the worker, and the result."""
        if not operator.deferrable:
            return None, operator.execute(tries.context())
        deferred = deferral_while_stopped(sandbox.control, operator.execute, tries.context())
        event = asyncio.run(event_of(deferred.trigger))
        kwargs = deferred.kwargs or {}
        return event, operator.execute_complete(tries.context(), event, **kwargs)

    def test_event_of_an_unexpected_failure_hides_the_key(
        self, platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        key, operator = platform_sandbox.chat_api_key, ask("orders", deferrable=True)
        trigger = deferral_while_stopped(
            platform_sandbox.control, operator.execute, TaskTries().context()
        ).trigger

        async def fail(_: Any) -> dict[str, Any]:
            raise KeyError(f"no such thing as {key}")

        monkeypatch.setattr(trigger, "follow", fail)
        event = asyncio.run(event_of(trigger))
        assert "no such thing as ***" in event["error"]["message"]
        assert key not in json.dumps(event)
        assert key in unexpected(KeyError(key)).message  # what the trigger alone would say


class TestAnyCall:
    def call(self, tries: TaskTries, **arguments: Any) -> Any:
        return PlatformApiOperator(task_id="call", **arguments).execute(tries.context())

    def test_error_hides_a_sent_secret_that_the_service_quotes(
        self, platform_sandbox: Sandbox
    ) -> None:
        tries = TaskTries()
        platform_sandbox.control.fault(
            "status", status=403, message="not so:", quotes="body", method="POST"
        )
        with pytest.raises(AirflowFailException, match=r"not so:.*\*\*\*") as caught:
            self.call(tries, method="POST", path=WORKBOOKS, body={"apiKey": CANARY})
        assert CANARY not in str(caught.value)
        assert CANARY not in str(caught.value.__cause__)
        assert CANARY not in json.dumps(tries.store)

    def test_response_that_quotes_a_known_secret_is_refused(
        self, platform_sandbox: Sandbox
    ) -> None:
        """No field of the answer is named like a credential, and one of its texts holds one."""
        token, tries = platform_sandbox.management_token, TaskTries()
        arguments = {"method": "POST", "path": WORKBOOKS, "body": {"name": f"for {token}"}}
        with pytest.raises(AirflowFailException, match="inside a longer string"):
            self.call(tries, **arguments)
        assert token not in json.dumps(tries.store)

    def test_filter_for_the_field_with_the_quoted_secret_is_refused(
        self, platform_sandbox: Sandbox
    ) -> None:
        token, tries = platform_sandbox.management_token, TaskTries()
        arguments = {"method": "POST", "path": WORKBOOKS, "body": {"name": f"for {token}"}}
        with pytest.raises(AirflowFailException, match="inside a longer string"):
            self.call(tries, **arguments, response_filter=lambda answer: answer["name"])
        assert token not in json.dumps(tries.store)

    def test_filter_for_another_field_returns_its_value(self, platform_sandbox: Sandbox) -> None:
        token, tries = platform_sandbox.management_token, TaskTries()
        arguments = {"method": "POST", "path": WORKBOOKS, "body": {"name": f"for {token}"}}
        found = self.call(tries, **arguments, response_filter=lambda answer: answer["id"])
        assert isinstance(found, int)
        assert token not in json.dumps(tries.store)
        assert tries.store[STORE_KEY]["phase"] == "done"
