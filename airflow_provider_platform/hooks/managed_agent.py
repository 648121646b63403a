"""Our agent for other agents: the contract of Airflow's common-ai provider for managed agents.

Experimental, as that provider marks it. Only `PlatformHook.agent`, `resolve_agent`,
`get_agent_capabilities` and `invoke_agent` import this module, and with it the provider.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    ChatNoAnswerError,
    ChatToolError,
    PlatformError,
    PlatformInputError,
)

try:
    from airflow.providers.common.ai.exceptions import (
        ManagedAgentInvocationError,
        ManagedAgentRejected,
    )
    from airflow.providers.common.ai.managed_agents import base as contract
except ImportError as missing:
    raise PlatformInputError(
        "Airflow's common-ai provider is not installed, or its release has no managed agents. "
        "Install it: pip install 'apache-airflow-providers-common-ai>=1.0'."
    ) from missing

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.resources.chat.result import ChatResult

PLATFORM = "platform.agent"
NOT_OPTIONS = ("prompt", "agent", "agent_id", "chat_id", "timeout")
"""Options of `chat` that the request itself, or whoever binds the agent, decides."""


def bind(hook: Any, agent: str) -> contract.BoundManagedAgent:
    """Return an agent of the connection as the client that `ManagedAgentToolset` takes."""
    return contract.BoundManagedAgent(hook=hook, agent=agent)


def resolve(agent: str) -> contract.ManagedAgentRef:
    """Return how logs and metrics name the agent."""
    return contract.ManagedAgentRef(platform=PLATFORM, name=agent or "the connection's agent")


def capabilities() -> contract.ManagedAgentCapabilities:
    """Return what each of our agents can do."""
    return contract.ManagedAgentCapabilities(sessions=True, usage=True, trace=True)


def invoke(
    chat: Callable[..., ChatResult], agent: str, request: contract.ManagedAgentRequest
) -> contract.ManagedAgentResponse:
    """Ask the agent with `PlatformHook.chat`, and return its answer. `session_id` is a chat id,
    `trace_ref` the message id; `vendor_options` are options of `chat`.

    Raises ManagedAgentRejected if another wording can help, ManagedAgentInvocationError if neither
    that nor a retry of the task can, and PlatformError if a retry of the task can.
    """
    options = dict(request.vendor_options)
    if (refused := sorted(options.keys() & set(NOT_OPTIONS))) or request.prompt is None:
        raise ManagedAgentInvocationError(
            f"Nothing was sent: {', '.join(refused)} cannot be in vendor_options."
            if refused
            else "Nothing was sent: this agent takes a prompt, not messages."
        )
    options |= {"chat_id": request.session_id, "agent": agent or None}
    if request.timeout is not None:
        options["timeout"] = request.timeout
    try:
        result = chat(request.prompt, **options)
    except (ChatToolError, ChatNoAnswerError) as error:
        raise ManagedAgentRejected(error.message) from error
    except PlatformError as error:
        if isinstance(error, PlatformInputError) and error.field == "input":
            raise ManagedAgentRejected(error.message) from error
        if error.retryable:
            raise
        raise ManagedAgentInvocationError(error.message) from error
    usage = result.usage or {}
    return contract.ManagedAgentResponse(
        text=result.answer,
        raw=result.to_json(),
        session_id=result.chat_id,
        usage=contract.ManagedAgentUsage(usage.get("inputTokens"), usage.get("outputTokens")),
        trace_ref=result.message_id,
    )
