"""The AI agents of a deployment and their skills."""

from __future__ import annotations

from airflow_provider_platform.client.models import AnswerModel, InputModel, SecretJson, Timestamp
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.paging import Page


class AgentLlm(AnswerModel):
    """A language model that an agent uses."""

    id: int | None = None
    config: SecretJson | None = None
    created_at: Timestamp | None = None
    llm_provider: str | None = None
    llm_type: str | None = None
    name: str | None = None
    updated_at: Timestamp | None = None
    user_id: int | None = None


class AgentSpaceConfig(AnswerModel):
    """The configuration of a space."""

    name: str | None = None
    space_config_name: str | None = None


class AgentSpace(AnswerModel):
    """The space that an agent belongs to."""

    id: int | None = None
    config: AgentSpaceConfig | None = None
    created_at: Timestamp | None = None
    name: str | None = None
    space_config_name: str | None = None
    updated_at: Timestamp | None = None
    user_id: int | None = None


class Agent(AnswerModel):
    """An agent; its id is part of the chat address."""

    id: int
    created_at: Timestamp | None = None
    updated_at: Timestamp | None = None
    accessible_views: list[str] | None = None
    agent_config_name: str | None = None
    agent_llm: AgentLlm | None = None
    agent_llm_id: int | None = None
    agent_space: AgentSpace | None = None
    agent_space_id: int | None = None
    config: SecretJson | None = None
    dedicated_ai_engineer_region: str | None = None
    deployment_id: int | None = None
    embedding_llm: AgentLlm | None = None
    embedding_url: str | None = None
    name: str | None = None
    user_id: int | None = None


class AgentSkill(AnswerModel):
    """Something an agent knows to do."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    input: str | None = None


class AgentSkillsResponse(AnswerModel):
    """The skills of a deployment's agents."""

    skills: list[AgentSkill] | None = None


class AgentsQuery(InputModel):
    """Which agents."""

    allow_embedding: bool | None = None


class AgentSkillsQuery(InputModel):
    """The skills of which space, on which branch."""

    space: str | None = None
    branch_name: str | None = None


LIST_AGENTS = Endpoint(
    operation_id="getAgents",
    method="GET",
    path="/v1/deployments/{deploymentId}/agents",
    query=AgentsQuery,
    answer=Page[Agent],
    description="agent list",
    permission="AgentRead",
)
GET_AGENT_SKILLS = Endpoint(
    operation_id="getAgentSkills",
    method="GET",
    path="/v1/deployments/{deploymentId}/agent-skills",
    query=AgentSkillsQuery,
    answer=AgentSkillsResponse,
    description="agent skills",
    permission="AgentRead",
)
