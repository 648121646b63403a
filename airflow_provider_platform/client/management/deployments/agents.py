"""The AI agents of a deployment and their skills."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import (
    JsonObject,
    QueryModel,
    ResponseModel,
    Timestamp,
)
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page


class Agent(ResponseModel):
    """An agent; its id is part of the chat address."""

    id: int
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    accessible_views: list[str] | None = None
    agent_config_name: str | None = None
    agent_llm: JsonObject | None = None
    agent_llm_id: int | None = None
    agent_space: JsonObject | None = None
    agent_space_id: int | None = None
    config: JsonObject | None = None
    dedicated_ai_engineer_region: str | None = None
    deployment_id: int | None = None
    embedding_llm: JsonObject | None = None
    embedding_url: str | None = None
    name: str | None = None
    user_id: int | None = None


class AgentSkillsResponse(ResponseModel):
    """The skills of a deployment's agents."""

    skills: list[JsonObject] | None = None


class AgentsQuery(QueryModel):
    """Which agents."""

    allow_embedding: bool | None = None


class AgentSkillsQuery(QueryModel):
    """The skills of which space, on which branch."""

    space: str | None = None
    branch_name: str | None = None


_DEPLOYMENT = "/v1/deployments/{deploymentId}"
_READ = "AgentRead"


@endpoint("GET", f"{_DEPLOYMENT}/agents", operation_id="getAgents", permission=_READ)
def list_agents(
    *, deployment_id: DeploymentId = None, query: AgentsQuery | None = None
) -> Page[Agent]:
    """The AI agents of a deployment; an agent's id is part of the chat address."""


@endpoint("GET", f"{_DEPLOYMENT}/agent-skills", operation_id="getAgentSkills", permission=_READ)
def get_agent_skills(
    *, deployment_id: DeploymentId = None, query: AgentSkillsQuery | None = None
) -> AgentSkillsResponse:
    """What the agents of a deployment know to do."""
