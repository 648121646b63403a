"""Deployments: their settings, builds and logs, environments, tokens and agents."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.items import Item
from airflow_provider_platform.sandbox.management.samples import AGENTS, EMBEDDABLE
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import DEPLOY_BRANCHES, Branch, branches_of
from airflow_provider_platform.sandbox.state.clock import iso

_HOUR, _DAY = 3600, 86400
_SIGNED = ("meta", "sql-runner")


@store.view("deployments")
def shown(call: Call, deployment: Item) -> Item:
    url = f"{call.server.base_url}/deployments/{deployment['id']}"
    return {**deployment, "deploymentUrl": url}


@handles("getDeployments")
def get_deployments(call: Call) -> Any:
    steps = call.query.get("creationStep")
    found = [
        one for one in call.items.all("deployments") if not steps or one["creationStep"] in steps
    ]
    return store.page(call, [shown(call, one) for one in found], everything=True)


@handles("getDeploymentSettings")
def get_settings(call: Call) -> Any:
    settings = call.server.settings
    return {
        **shown(call, store.item(call, "deployments", call.deployment)),
        "template": "simpleCluster",
        "cloudProvider": "aws",
        "releaseChannel": "latest",
        "deployBranchName": DEPLOY_BRANCHES[call.deployment],
        "deployBranchReadOnly": False,
        "deployBranchMergeAllowed": settings.merge_outcome != "not_allowed",
        "deployProjectRoot": "/",
        "isCubeSqlEnabled": True,
        "isSupportPreAggregations": True,
        "deployMode": settings.deploy_mode,
    }


@handles("buildStatus")
def build_status(call: Call) -> Any:
    """The latest build of a branch, without a name of production.

    A branch that does not exist and one that nobody has opened are ``building`` for ever; only the
    error text tells.
    """
    server, branches = call.server, branches_of(call.server, call.deployment)
    name = call.query.get("branchName") or branches.deploy
    now, branch = server.clock.now(), branches.get(name)
    build = None if branch is None else branches.shown(branch, now)
    status, error = branches.status(name, server)
    return {
        "deploymentId": call.deployment,
        "branchName": name,
        "mode": "production" if name == branches.deploy else "dev_mode",
        "status": status,
        "buildJobId": None if build is None else build.job,
        "deploymentStatus": "deployed",
        "errorText": error,
        "filesHash": None if build is None else build.model.files,
        "lastHash": None if build is None else build.model.commit,
        "updatedAt": None if build is None else iso(build.changed_at(now)),
    }


@handles("getDeploymentLogs")
def get_logs(call: Call) -> Any:
    """Lines of the latest builds, oldest first; without ``source`` those of production."""
    branches, now = branches_of(call.server, call.deployment), call.server.clock.now()
    dev, wanted = call.query.get("source") == "dev", call.query.get("pod")
    lines = [
        (at, f"{'dev' if dev else 'api'}-{branch.id}", line)
        for branch in branches.all()
        if (branch.name != branches.deploy) == dev
        for build in (branch.previous, branch.build)
        if build is not None
        for at, line in build.log(now)
    ]
    return {
        "items": [
            {"date": iso(at), "pod": pod, "message": line}
            for at, pod, line in sorted(lines)
            if wanted in (None, pod)
        ]
    }


# -- tokens of the data API ------------------------------------------------------------------


@handles("deploymentToken")
def create_token(call: Call) -> Any:
    token = _data_token(call, call.deployment, call.body.get("expiresIn", _DAY))
    return {"cubeApiToken": token}


@handles("createToken")
def create_usage_analytics_token(call: Call) -> Any:
    """A token for the account's own data, which deployment 1 holds here; it takes a prefix."""
    return {
        "token": _data_token(call, 1, _HOUR, **credentials.WITH_PREFIX),
        "apiUrl": f"{call.server.base_url}/deployments/1/cubejs-api/v1",
        "deploymentId": 1,
        "expiresAt": call.server.clock.stamp(call.server.clock.now() + _HOUR),
    }


def _data_token(call: Call, deployment: int, lifetime: int, **more: Any) -> str:
    """Return a signed token for the data API of ``deployment``, good for ``lifetime`` seconds."""
    now = int(call.server.clock.now())
    claims = {"iat": now, "exp": now + lifetime, "deploymentId": deployment, **more}
    return credentials.sign(claims, call.server.credentials.api_secret)


# -- environments and their tokens -----------------------------------------------------------


def _environments(call: Call) -> list[Item]:
    """Production, then the branches with staging switched on."""
    branches = branches_of(call.server, call.deployment)
    staging = [_environment(call, "staging", one) for one in branches.all() if one.staging]
    production = branches.get(branches.deploy)
    return [_environment(call, "production", production), *staging] if production else staging


def _environment(call: Call, kind: str, branch: Branch) -> Item:
    """One environment; ids are text in answers."""
    base = f"{call.server.base_url}/deployments/{call.deployment}"
    if kind != "production":
        base = f"{base}/dev-mode/{quote(branch.name, safe='')}"
    return {
        "id": str(branch.environment),
        "type": kind,
        "branch": None if kind == "production" else branch.name,
        "user": None,
        "api_credentials": [
            {"type": "rest", "version": 1, "url": f"{base}/cubejs-api"},
            {"type": "sql", "version": 1, "host": "127.0.0.1", "port": 15432},
        ],
    }


@handles("getDeploymentEnvironments")
def get_environments(call: Call) -> Any:
    kind = call.query.get("type")
    found = [one for one in _environments(call) if kind in (None, one["type"])]
    return store.page(call, found)


def _meant(call: Call) -> int:
    environment: int = call.path["environmentId"]
    if str(environment) not in [one["id"] for one in _environments(call)]:
        raise ApiError(404, f"Environment {environment} not found in deployment {call.deployment}")
    return environment


@handles("createDeploymentEnvironmentToken")
def create_environment_token(call: Call) -> Any:
    """Of the scopes asked for, only ``meta`` and ``sql-runner`` are signed."""
    return _mint(call, [scope for scope in call.body.get("scopes", []) if scope in _SIGNED])


@handles("createDeploymentEnvironmentTokenForMetaSync")
def create_meta_sync_token(call: Call) -> Any:
    """Always ``meta``, and ``meta-private`` if asked for; other scopes are dropped."""
    private = "meta-private" in call.body.get("scopes", [])
    scopes = ["meta", "meta-private"] if private else ["meta"]
    return _mint(call, scopes, credentials.WITH_PREFIX)


def _mint(call: Call, scopes: list[str], more: Mapping[str, str] | None = None) -> Item:
    environment, clock = _meant(call), call.server.clock
    now, lifetime = int(clock.now()), call.body.get("expires_in", _HOUR)
    context = call.body["security_context"]
    claims = {
        **context,
        **(more or {}),
        "scope": scopes,
        "deploymentId": call.deployment,
        "iat": now,
        "exp": now + lifetime,
    }
    token = {
        "token": credentials.sign(claims, call.server.credentials.api_secret),
        "security_context": context,
        "created_at": clock.stamp(now),
        "expires_at": clock.stamp(now + lifetime),
    }
    call.record("created", "environment-tokens", environment)
    return {"data": {**token, "scopes": scopes}}


# -- agents ----------------------------------------------------------------------------------


@handles("getAgents")
def get_agents(call: Call) -> Any:
    """Each agent can be asked at a chat address of its own."""
    wanted = call.query.get("allowEmbedding")
    return [
        _agent(call, agent_id)
        for agent_id in AGENTS
        if wanted in (None, agent_id in EMBEDDABLE) and call.deployment == 1
    ]


def _agent(call: Call, agent_id: int) -> Item:
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
