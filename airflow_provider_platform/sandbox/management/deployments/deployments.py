"""Deployments: list, one with its settings and build, and the tokens for data APIs."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS, Call, Resource
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import DEFAULT_BRANCH, Branches
from airflow_provider_platform.sandbox.state.world import World

resource = Resource("/api/v1/deployments")
analytics = Resource("/api/v1/usage-analytics/token", needs="Admin")

_STEPS = ("project", "upload", "schema", "github", "ssh", "databases", "ready", "demo")
_HOUR, _DAY = 3600, 86400


def _deployment(world: World, deployment_id: int) -> dict[str, Any]:
    return {
        "id": deployment_id,
        "name": DEPLOYMENTS[deployment_id],
        "deploymentUrl": f"{world.base_url}/deployments/{deployment_id}",
        "creationStep": "ready",
    }


@resource.get(query={"creationStep": checks.array(checks.string(one_of=_STEPS)), **paging.OFFSETS})
def list_deployments(call: Call) -> Any:
    steps = call.query.get("creationStep", _STEPS)
    items = [_deployment(call.world, deployment_id) for deployment_id in DEPLOYMENTS]
    return paging.offset_page(call, [item for item in items if item["creationStep"] in steps])


@resource.get("/{deploymentId}")
def get_deployment(call: Call) -> Any:
    return _deployment(call.world, call.deployment)


@resource.get("/{deploymentId}/settings")
def get_deployment_settings(call: Call) -> Any:
    return {
        **_deployment(call.world, call.deployment),
        "template": "simpleCluster",
        "cloudProvider": "aws",
        "releaseChannel": "latest",
        "deployBranchName": DEFAULT_BRANCH,
        "deployBranchReadOnly": False,
        "deployBranchMergeAllowed": True,
        "deployProjectRoot": "/",
        "isCubeSqlEnabled": True,
        "isSupportPreAggregations": True,
        "deployMode": "git",
    }


@resource.get("/{deploymentId}/build-status", query={"branchName": checks.string()})
def get_build_status(call: Call) -> Any:
    """Every branch of the sandbox is built; an unknown one never will be."""
    branch = call.query.get("branchName", DEFAULT_BRANCH)
    known = branch in call.store(Branches).names()
    return {
        "deploymentId": call.deployment,
        "branchName": branch,
        "mode": "production" if branch == DEFAULT_BRANCH else "dev_mode",
        "status": "built" if known else "building",
        "errorText": None if known else f"Bad branch: {branch}",
        "updatedAt": call.world.clock.stamp(),
    }


@resource.post(
    "/{deploymentId}/token", body={"expiresIn": checks.integer(minimum=60, maximum=_DAY)}
)
def create_deployment_token(call: Call) -> Any:
    token = data_token(call, call.deployment, call.body.get("expiresIn", _DAY))
    return {"cubeApiToken": token}


@analytics.post()
def create_usage_analytics_token(call: Call) -> Any:
    """A token for the account's own data, which deployment 1 holds here; it takes a prefix."""
    if not call.world.settings.usage_analytics:
        raise ApiError(404, "Usage Analytics is not enabled for this account")
    url = _deployment(call.world, 1)["deploymentUrl"]
    return {
        "token": data_token(call, 1, _HOUR, **credentials.WITH_PREFIX),
        "apiUrl": f"{url}/cubejs-api/v1",
        "deploymentId": 1,
        "expiresAt": call.world.clock.stamp(call.world.clock.now() + _HOUR),
    }


def data_token(call: Call, deployment: int, lifetime: int, **more: Any) -> str:
    """A signed token for the data API of ``deployment``, good for ``lifetime`` seconds.

    ``more`` claims may be added.
    """
    now = int(call.world.clock.now())
    claims = {"iat": now, "exp": now + lifetime, "deploymentId": deployment, **more}
    return credentials.sign(claims, call.world.credentials.api_secret)
