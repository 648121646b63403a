"""Account-level and deployment-level resources: OAuth, app configuration, environments, agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

INTEGRATION = {
    "name": "Sign-in",
    "type": "okta",
    "authUrl": "https://id.example.com/authorize",
    "tokenUrl": "https://id.example.com/token",
    "clientId": "platform",
    "redirectUri": "https://acme.example.com/callback",
    "clientSecret": "s3cret",
}
TOKENS = "deployments/1/environments/11/tokens"


def test_oauth_integrations_can_be_managed(platform: Platform) -> None:
    made = platform.call("POST", "oauth-integrations", json=INTEGRATION).json()
    assert "clientSecret" not in made
    path = f"oauth-integrations/{made['id']}"
    assert platform.call("GET", path).json() == made
    changed = {**INTEGRATION, "clientSecret": None, "name": "Renamed"}
    assert platform.call("PUT", path, json=changed).json()["name"] == "Renamed"
    assert [one["id"] for one in platform.call("GET", "oauth-integrations").json()] == [
        3,
        made["id"],
    ]
    without = {name: value for name, value in INTEGRATION.items() if name != "clientSecret"}
    assert platform.call("POST", "oauth-integrations", json=without).status_code == 400
    bad = platform.call("POST", "oauth-integrations", json={**INTEGRATION, "authUrl": "id"})
    assert "authUrl must be a URL" in str(bad.json()["message"])
    assert platform.call("DELETE", "oauth-integrations/3").status_code == 200
    platform.control.set(token_lacks=["OAuthIntegrationsManage"])
    assert platform.call("GET", path).status_code == 403


def test_deployments_are_paged_by_offset_and_by_cursor(platform: Platform) -> None:
    page = platform.call("GET", "deployments?limit=1&offset=1").json()
    assert [one["id"] for one in page["items"]] == [2]
    assert page["pagination"] == {"total": 2, "offset": 1, "limit": 1}
    page = platform.call("GET", "deployments?first=1").json()
    assert page["pageInfo"]["hasNextPage"] is True
    mixed = platform.call("GET", "deployments?first=1&limit=1")
    assert (mixed.status_code, "cannot be mixed" in str(mixed.json())) == (400, True)
    both = platform.call("GET", "deployments?creationStep=ready&creationStep=demo").json()
    assert len(both["items"]) == 2
    assert platform.call("GET", "deployments?creationStep=demo").json()["items"] == []
    assert platform.call("GET", "deployments?creationStep=done").status_code == 400


def test_deployment_serves_settings_and_build_status(platform: Platform) -> None:
    settings = platform.call("GET", "deployments/1/settings").json()
    assert settings["deployBranchName"] == "main"
    status = platform.call("GET", "deployments/1/build-status?branchName=dev").json()
    assert (status["status"], status["mode"]) == ("built", "dev_mode")
    lost = platform.call("GET", "deployments/1/build-status?branchName=gone").json()
    assert "Bad branch" in lost["errorText"]


def test_token_of_an_environment_can_be_created(platform: Platform) -> None:
    page = platform.call("GET", "deployments/1/environments").json()
    assert [one["type"] for one in page["items"]] == ["production", "staging"]
    assert page["items"][0]["id"] == "11"
    assert page["pagination"]["total"] == 2
    only = platform.call("GET", "deployments/1/environments?type=staging").json()
    assert [one["id"] for one in only["items"]] == ["12"]
    body = {"security_context": {"country": "DE"}, "scopes": ["meta", "data"], "expires_in": 60}
    made = platform.call("POST", TOKENS, json=body).json()["data"]
    assert (made["scopes"], made["security_context"]) == (["meta"], {"country": "DE"})


def test_agents_are_listed(platform: Platform) -> None:
    agents = platform.call("GET", "deployments/1/agents").json()
    assert [(agent["id"], agent["name"], agent["agentConfigName"]) for agent in agents] == [
        (1, "Data analyst", "data-analyst"),
        (2, "Embedded analyst", "embedded-analyst"),
    ]
    embeddable = platform.call("GET", "deployments/1/agents?allowEmbedding=true").json()
    assert [agent["id"] for agent in embeddable] == [2]
    assert platform.call("GET", "deployments/2/agents").json() == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", TOKENS, {}, 400, "security_context is required"),
        ("POST", TOKENS, {"security_context": None}, 400, "must be an object"),
        (
            "POST",
            TOKENS,
            {"security_context": {}, "expires_in": 3601},
            400,
            "expires_in must not be greater than 3600",
        ),
        ("GET", "deployments/1/environments?type=test", None, 400, "type must be one of"),
        ("GET", "deployments/1/agents?allowEmbedding=yes", None, 400, "must be a boolean"),
        ("GET", "oauth-integrations/9", None, 404, "Oauth integration 9 not found"),
    ],
)
def test_invalid_account_requests_are_refused(
    platform: Platform, method: str, path: str, body: Any, status: int, words: str
) -> None:
    response = platform.call(method, path, **({} if body is None else {"json": body}))
    assert response.status_code == status
    assert words in str(response.json()["message"])
