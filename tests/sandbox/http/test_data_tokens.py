"""How a data token is sent in the header: alone, or after the word Bearer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform


def deployment_token(platform: Platform) -> str:
    token: str = platform.call("POST", "deployments/1/token", json={}).json()["cubeApiToken"]
    return token


def analytics_token(platform: Platform) -> str:
    token: str = platform.call("POST", "usage-analytics/token").json()["token"]
    return token


def status(platform: Platform, header: str) -> int:
    """The status of a query with this ``Authorization`` header."""
    url = f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/cubesql"
    body = {"query": "SELECT 1"}
    return platform.http.post(url, json=body, headers={"Authorization": header}).status_code


@pytest.mark.parametrize(
    ("mint", "alone", "bearer"), [(deployment_token, 200, 403), (analytics_token, 403, 200)]
)
def test_each_token_is_sent_as_documented(
    platform: Platform, mint: Any, alone: int, bearer: int
) -> None:
    token = mint(platform)
    assert status(platform, token) == alone
    assert status(platform, f"Bearer {token}") == bearer
    assert status(platform, f"Basic {token}") == 403
