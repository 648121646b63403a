"""The OpenAPI document of the release that a tenant runs."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operation import Endpoint

GET_SPECIFICATION = Endpoint(
    operation_id="getSpec",
    method="GET",
    path="/v1/spec",
    answer=dict[str, Any],
    description="OpenAPI document get",
)
