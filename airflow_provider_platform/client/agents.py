"""Agents by name: a name is looked up when a question is asked, because an agent that is renamed or
made again has another id."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, collect
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.rules import at_most_one, refuse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.wire import Api


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
    chat address. A name of digits is an id. Raises PlatformInputError if no agent, or more than
    one, has the name."""
    try:
        at_most_one(agent=agent, agent_id=agent_id)
    except ValueError as error:
        raise refuse("agent", f"is given twice: {error}") from None
    name = config.agent_name(agent, agent_id)
    if name is None or name.isdecimal():
        return agent_id if name is None else name
    if config.management_url is None or config.deployment_id is None:
        raise PlatformConfigError(
            f"The agent {quote_service(name)!r} cannot be found by its name, because "
            "Management API address (host), Management token (password) or Deployment id "
            f"(deployment_id) is missing in {config.place}. Set them, or give the agent's id.",
            field="deployment_id",
        )
    listing = list_agents(deployment_id=config.deployment_id)
    return choose_agent(name, (await collect(api.call, listing)).items, config.deployment_id)


def choose_agent(name: str, agents: Sequence[Agent], deployment_id: int) -> int:
    """Return the id of the agent with this name. The shown name counts before the name in the data
    model, and an equal name before one that differs in upper and lower case. Raises
    PlatformInputError."""
    where = f"deployment {deployment_id}"
    asked = quote_service(name)
    for wanted, fold in ((name, str), (name.casefold(), str.casefold)):
        for field in ("name", "agent_config_name"):
            ids = [agent.id for agent in agents if fold(getattr(agent, field) or "") == wanted]
            if len(ids) == 1:
                return ids[0]
            if ids:
                raise PlatformInputError(
                    f"Nothing was sent: {len(ids)} agents have the name {asked!r}. Give the id of "
                    f"one of them as agent_id: {', '.join(map(str, ids))}.",
                    where=where,
                    field="agent",
                )
    known = sorted({agent.name or agent.agent_config_name or str(agent.id) for agent in agents})
    near = get_close_matches(name, known, n=len(known) or 1)
    names = ", ".join(repr(quote_service(one)) for one in dict.fromkeys([*near, *known]))
    raise PlatformInputError(
        f"Nothing was sent: no agent has the name {asked!r}. "
        + (f"The agents are {names}." if agents else "The deployment lists no agents.")
        + " The automatic agent of a deployment is not in the list: to ask it, leave agent out, "
        "and use the deployment's chat address with a service token.",
        where=where,
        field="agent",
    )
