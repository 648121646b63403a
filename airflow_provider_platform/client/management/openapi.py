"""The OpenAPI document of the release that a tenant runs."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.operations.operation import endpoint


@endpoint("GET", "/v1/spec", operation_id="getSpec")
def get_specification() -> dict[str, Any]:
    """The OpenAPI document of the release that the tenant runs."""
