"""Where the data API of a deployment is, and a token for it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pydantic import SecretStr

from airflow_provider_platform.client.addresses import DATA_PATH, data_address
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.resources import (
    create_deployment_token,
    get_deployment,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api
    from airflow_provider_platform.client.http.transport import Clock

TOKEN_SECONDS = 3600
"""How long a data token lives beyond the deadline of its request: the answer is read after that."""
LONGEST_TOKEN_SECONDS = 86400


def address_below(data_api_url: str, path: str) -> str:
    """Where a path of the data API is, below an address that may end in `/v1`, or in the host."""
    base = data_api_url.removesuffix("/v1")
    has_path = "/" in base.partition("://")[2]
    return f"{base if has_path else base + DATA_PATH}/v1/{path}"


async def find_deployment_address(
    api: Api, deployment_id: int, config: PlatformConfig, *, deadline: float | None, where: object
) -> str:
    """The data API address of a deployment's production, by the management API. `where` ends the
    message of errors. Raises PlatformError."""
    operation = get_deployment(deployment_id=deployment_id)
    deployment = await api.call(operation, deadline=deadline)
    if not deployment.deployment_url:
        raise PlatformProtocolError(
            "The service did not return the deployment's data API address. Set Data API address "
            "(data_api_url) in the connection.",
            where=where,
        )
    base = data_address(
        deployment.deployment_url, field="deploymentUrl", allow_http=config.allow_http
    )
    return f"{base}{DATA_PATH}"


async def mint_token(api: Api, deployment_id: int, *, deadline: float, clock: Clock) -> SecretStr:
    """A data token of our own, for as long as a request may last; asking for another one does no
    harm."""
    seconds = TOKEN_SECONDS + max(0, math.ceil(deadline - clock()))
    body = {"expiresIn": min(seconds, LONGEST_TOKEN_SECONDS)}
    operation = create_deployment_token(deployment_id=deployment_id, body=body)
    answer = await api.call(operation, deadline=deadline)
    return answer.cube_api_token
