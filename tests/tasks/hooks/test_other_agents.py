"""The connection in agents of Airflow's common-ai provider: its SQL tools, and our agent as one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    PlatformPermissionError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

pytest.importorskip("airflow.providers.common.ai", reason="the common-ai provider")

from airflow.providers.common.ai.exceptions import (
    ManagedAgentInvocationError,
    ManagedAgentRejected,
)
from airflow.providers.common.ai.managed_agents.base import ManagedAgentRequest

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelResponse

    from airflow_provider_platform.sandbox.server import Sandbox

QUESTION = "revenue by country"
OPTIONS = {"poll_interval": 0.05}


def call(toolset: Any, tool: str, **arguments: Any) -> str:
    """What a model gets from a tool that it calls with these arguments."""
    # Each worker would import them to collect the tests, which takes a second.
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    received: list[str] = []

    def model(messages: list[Any], _: Any) -> ModelResponse:
        returned = [part for part in messages[-1].parts if isinstance(part, ToolReturnPart)]
        if returned:
            received.append(str(returned[0].content))
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(tool, arguments)])

    Agent(FunctionModel(model), toolsets=[toolset]).run_sync("work")
    return received[0]


def test_sql_toolset_lists_tables_and_reads_them(platform_sandbox: Sandbox) -> None:
    from airflow.providers.common.ai.toolsets.sql import SQLToolset

    toolset = SQLToolset("platform_default")
    tables = json.loads(call(toolset, "list_tables"))
    assert {"orders", "customers"} <= set(tables)
    schema = call(toolset, "get_schema", table_name="payments")
    assert "paid_at" in schema
    assert "timestamp" in schema
    assert "480" in call(toolset, "query", sql="SELECT count(*) AS n FROM orders")


def test_hook_toolset_asks_our_agent(platform_sandbox: Sandbox) -> None:
    from airflow.providers.common.ai.toolsets.hook import HookToolset

    toolset = HookToolset(PlatformHook(), allowed_methods=["chat"])
    result = json.loads(call(toolset, "chat", prompt=QUESTION, **OPTIONS))
    assert result["answer"]
    assert [message.text for message in platform_sandbox.control.state().messages] == [QUESTION]


def test_managed_agent_toolset_takes_only_a_prompt(platform_sandbox: Sandbox) -> None:
    from airflow.providers.common.ai.toolsets.managed_agent import ManagedAgentToolset

    toolset = ManagedAgentToolset(PlatformHook().agent(), tool_name="ask", vendor_options=OPTIONS)
    with PlatformHook() as hook:
        answer = hook.chat(QUESTION, poll_interval=0.05).answer
    assert call(toolset, "ask", prompt=QUESTION) == answer


def test_session_is_continued_and_usage_reported(platform_sandbox: Sandbox) -> None:
    with PlatformHook() as hook:
        agent = hook.agent()
        assert agent.capabilities.sessions
        first = agent.invoke(ManagedAgentRequest(prompt=QUESTION, vendor_options=OPTIONS))
        second = agent.invoke(
            ManagedAgentRequest(
                prompt="top 5 products", session_id=first.session_id, vendor_options=OPTIONS
            )
        )
        thread = hook.read_thread(second.session_id)
    assert second.session_id == first.session_id
    assert [turn.message_id for turn in thread.turns] == [first.trace_ref, second.trace_ref]
    assert first.usage.input_tokens > 0
    assert first.raw["queries"]


def test_identity_needs_no_network(platform_sandbox: Sandbox) -> None:
    agent = PlatformHook().agent("Sales")
    assert (agent.ref.platform, agent.ref.name) == ("platform.agent", "Sales")
    assert platform_sandbox.control.state().requests == []


def ask(prompt: str, **options: Any) -> Any:
    with PlatformHook() as hook:
        return hook.agent().invoke(
            ManagedAgentRequest(prompt=prompt, vendor_options={**OPTIONS, **options})
        )


def test_rejected_question_is_told_apart_from_refused_and_passing_failures(
    platform_sandbox: Sandbox,
) -> None:
    with pytest.raises(ManagedAgentRejected, match="no such column: nonsense"):
        ask("sql: SELECT nonsense FROM orders")
    with pytest.raises(ManagedAgentRejected):
        ask("")
    platform_sandbox.control.fault("status", status=403, api="chat")
    with pytest.raises(ManagedAgentInvocationError) as refused:
        ask(QUESTION)
    assert isinstance(refused.value.__cause__, PlatformPermissionError)


def test_caller_cannot_choose_another_agent(platform_sandbox: Sandbox) -> None:
    for option in ({"agent_id": 2}, {"chat_id": "a"}, {"prompt": "b"}):
        with pytest.raises(ManagedAgentInvocationError, match="cannot be in vendor_options"):
            PlatformHook().agent().invoke(
                ManagedAgentRequest(prompt=QUESTION, vendor_options=option)
            )
    assert platform_sandbox.control.state().requests == []
