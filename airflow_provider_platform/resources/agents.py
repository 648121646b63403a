"""Agents by name: a name is looked up when a question is asked, because an agent that is renamed or
made again has another id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.argument_rules import refuse
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, collect
from airflow_provider_platform.resources.names import choose_named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.api import Api
    from airflow_provider_platform.client.config import PlatformConfig


class Agent(ResponseModel):
    """An agent: its id, the name that the platform shows, and the name in the data model."""

    id: int
    name: str | None = None
    agent_config_name: str | None = None


list_agents = typed("getAgents", Page[Agent])


async def find_agent_id(
    api: Api,
    config: PlatformConfig,
    agent: str | None = None,
    agent_id: int | str | None = None,
) -> int | str | None:
    """Return the id of the agent that a call or its connection names; None for the agent of the
    chat address. A name of digits is an id. Raises PlatformInputError, PlatformConfigError."""
    if agent is not None and agent_id is not None:
        raise refuse("agent", "is given twice: give only one of agent and agent_id")
    name = config.agent_name(agent, agent_id)
    if name is None or name.isdecimal():
        return agent_id if name is None else name
    listing = list_agents(deployment_id=config.resolve_deployment_id(None))
    return choose_agent(name, (await collect(api.call, listing)).items)


def choose_agent(name: str, agents: Sequence[Agent]) -> int:
    """Return the id of the only agent with this name, in any case. Raises PlatformInputError."""
    names = {one.id: (one.name, one.agent_config_name) for one in agents}
    advice = (
        " The automatic agent is not in the list: to ask it, leave agent out, and use the "
        "deployment's chat address with a service token."
    )
    return choose_named("agent", name, names, advice=advice)
