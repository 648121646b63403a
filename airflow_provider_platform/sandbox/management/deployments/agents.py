"""The AI agents of a deployment and what they are good at."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.state.agents import AGENTS, EMBEDDABLE
from airflow_provider_platform.sandbox.state.branches import branches_of

resource = Resource("/api/v1/deployments/{deploymentId}", needs="DeploymentAgentRead")

_SKILLS = ("Compare periods", "Explain a change")


@resource.get("/agents", query={"allowEmbedding": checks.boolean})
def list_agents(call: Call) -> Any:
    """A bare array of agents, each of which can be asked at its own chat address."""
    wanted = call.query.get("allowEmbedding")
    return [
        _agent(call, agent_id)
        for agent_id in AGENTS
        if wanted in (None, agent_id in EMBEDDABLE) and call.deployment == 1
    ]


def _agent(call: Call, agent_id: int) -> dict[str, Any]:
    embeddable = agent_id in EMBEDDABLE
    return {
        "id": agent_id,
        "name": AGENTS[agent_id],
        "createdAt": "2026-01-10",
        "updatedAt": "2026-07-01T09:00:00.000Z",
        "deploymentId": call.deployment,
        "agentSpaceId": 1,
        "agentSpace": {"id": 1, "name": "Default"},
        "agentLlm": {"id": 1, "name": "Rules", "llmProvider": "sandbox"},
        "config": {"allowEmbedding": embeddable},
        "accessibleViews": None,
        "embeddingUrl": f"{call.server.base_url}/embed/agents/{agent_id}" if embeddable else None,
        "userId": 7,
    }


@resource.get("/agent-skills", query={"space": checks.string(), "branchName": checks.string()})
def list_agent_skills(call: Call) -> Any:
    branch = call.query.get("branchName")
    if branch is not None and branches_of(call.server, call.deployment).get(branch) is None:
        raise ApiError(404, f"Branch {branch} not found in deployment {call.deployment}")
    return {
        "skills": [
            {
                "name": title.lower().replace(" ", "-"),
                "title": title,
                "description": f"{title} in the figures of the shop",
                "input": None,
            }
            for title in _SKILLS
        ]
    }
