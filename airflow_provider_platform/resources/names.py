"""Things by the name that people know: agents, reports, workbooks and dashboards.

A name is looked up when a task runs, because a thing that is renamed or made again has another id.
Upper and lower case are equal. A name that nothing has, or several things have, sends nothing: the
error lists what there is. A name of digits is a name, as of a report "2025"; an agent's is an id.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.argument_rules import refuse, text
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import typed
from airflow_provider_platform.client.pages import Page, collect
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.reports import list_reports

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from airflow_provider_platform.client.api import Api

LISTED = 50
"""So many things an error lists."""


class _Published(ResponseModel):
    id: int | None = None
    title: str | None = None


class _NamedWorkbook(ResponseModel):
    id: int
    name: str | None = None
    published_dashboard: _Published | None = None


class Agent(ResponseModel):
    """An agent: its id, the name that the platform shows, and the name in the data model."""

    id: int
    name: str | None = None
    agent_config_name: str | None = None


list_agents = typed("getAgents", Page[Agent])
_list_workbooks = typed("getWorkbooks", Page[_NamedWorkbook])


def choose_named(
    thing: str, name: str, names: Mapping[int, Sequence[str | None]], *, advice: str = ""
) -> int:
    """Return the id of the only thing with this name, in any case. `names` are the names of each
    id. Raises PlatformInputError."""
    known = {key: [one for one in some if one] for key, some in names.items()}
    ids = [key for key, some in known.items() if name.casefold() in map(str.casefold, some)]
    if len(ids) == 1:
        return ids[0]
    found = f"{len(ids)} {thing}s have" if ids else f"no {thing} has"
    listed = [f"{quote_service(next(iter(some), ''))!r} ({key})" for key, some in known.items()]
    more = f", and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    raise PlatformInputError(
        f"Nothing was sent: {found} the name {quote_service(name)!r}. The deployment's {thing}s "
        f"and their ids: {', '.join(listed[:LISTED]) or 'none'}{more}. To name the {thing} by its "
        f"id, use {thing}_id.{advice}",
        field=thing,
    )


async def find_id(api: Api, thing: str, name: str, deployment_id: int) -> int:
    """Return the id of the report, workbook or dashboard with this name. A dashboard has the title
    with which its workbook was published. Raises PlatformInputError."""
    if thing == "report":
        reports = await collect(api.call, list_reports(deployment_id=deployment_id))
        return choose_named(thing, name, {one.id: (one.name,) for one in reports.items})
    workbooks = (await collect(api.call, _list_workbooks(deployment_id=deployment_id))).items
    if thing == "workbook":
        return choose_named(thing, name, {one.id: (one.name,) for one in workbooks})
    published = [one.published_dashboard for one in workbooks if one.published_dashboard]
    titles = {one.id: (one.title,) for one in published if one.id is not None}
    return choose_named(thing, name, titles)


async def find_agent_id(
    api: Api,
    agent: str | None = None,
    agent_id: int | str | None = None,
) -> int | str | None:
    """Return the id of the agent that a call or its connection names; None for the agent of the
    chat address. A name of digits is an id. Raises PlatformInputError, PlatformConfigError."""
    if agent is not None and agent_id is not None:
        raise refuse("agent", "is given twice: give only one of agent and agent_id")
    if agent is not None:
        agent = text("agent", agent)
    name = api.config.agent_name(agent, agent_id)
    if name is None or name.isdecimal():
        return agent_id if name is None else name
    listing = list_agents(deployment_id=api.config.resolve_deployment_id(None))
    return choose_agent(name, (await collect(api.call, listing)).items)


def choose_agent(name: str, agents: Sequence[Agent]) -> int:
    """Return the id of the only agent with this name, in any case. Raises PlatformInputError."""
    names = {one.id: (one.name, one.agent_config_name) for one in agents}
    advice = (
        " The automatic agent is not in the list: to ask it, leave agent out, and use the "
        "deployment's chat address with a service token."
    )
    return choose_named("agent", name, names, advice=advice)
