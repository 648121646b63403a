"""Deployments: list, one, and the token for its data API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox import credentials, shapes
from airflow_provider_platform.sandbox.management import paging
from airflow_provider_platform.sandbox.management.resource import DEPLOYMENTS, Call, Resource

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.world import World

resource = Resource()

_DAY = 86400
_OFFSETS: shapes.Shape = {
    "creationStep": shapes.string(),
    "offset": shapes.integer(minimum=0),
    "limit": shapes.integer(minimum=0),
}


def _deployment(world: World, deployment_id: int) -> dict[str, Any]:
    return {
        "id": deployment_id,
        "name": DEPLOYMENTS[deployment_id],
        "deploymentUrl": f"{world.base_url}/deployments/{deployment_id}",
        "creationStep": "finished",
    }


@resource.operation("GET", "/api/v1/deployments", query={**paging.PARAMETERS, **_OFFSETS})
def list_deployments(call: Call) -> Any:
    items = [_deployment(call.world, deployment_id) for deployment_id in DEPLOYMENTS]
    return paging.page(call, items, deprecated=True)


@resource.operation("GET", "/api/v1/deployments/{deploymentId}")
def get_deployment(call: Call) -> Any:
    return _deployment(call.world, call.deployment)


@resource.operation(
    "POST",
    "/api/v1/deployments/{deploymentId}/token",
    body=shapes.nullable_fields({"expiresIn": shapes.integer(minimum=60, maximum=_DAY)}),
)
def create_deployment_token(call: Call) -> Any:
    now = int(time.time())
    claims = {
        "iat": now,
        "exp": now + call.body.get("expiresIn", _DAY),
        "deploymentId": call.deployment,
    }
    return {"cubeApiToken": credentials.sign(claims, call.world.credentials.api_secret)}
