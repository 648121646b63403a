"""Embedding: sessions and their single use, tenants with users and groups, dashboards."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

RETAIL = "embed-tenants/acme-retail"


def generate(platform: Platform, **body: Any) -> str:
    response = platform.call("POST", "embed/generate-session", json={"deploymentId": 1, **body})
    assert response.status_code == 200, response.text
    session: str = response.json()["sessionId"]
    return session


def redeem(platform: Platform, session: str) -> Any:
    """Without a bearer token: the session id is the credential."""
    url = f"{platform.sandbox.management_url}/v1/embed/session/token"
    return platform.http.post(url, json={"sessionId": session})


def test_session_can_be_redeemed_once(platform: Platform) -> None:
    session = generate(platform, externalId="shop-berlin", embedTenantName="acme-retail")
    answer = redeem(platform, session)
    payload = answer.json()["token"].split(".")[1]
    claims = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert (claims["sub"], claims["exp"] - claims["iat"]) == ("shop-berlin", 86400)
    assert redeem(platform, session).status_code == 401
    assert redeem(platform, "0" * 32).status_code == 401
    state = platform.control.state()
    assert [entry.id for entry in state.changed("embed-sessions")] == [1]
    assert session not in json.dumps([vars(entry) for entry in state.changes])


def test_revoking_is_idempotent(platform: Platform) -> None:
    session = generate(platform, internalId="analyst@acme.example.com")
    for _ in range(2):
        response = platform.call("POST", "embed/session/revoke", json={"sessionId": session})
        assert response.status_code == 204
    assert redeem(platform, session).status_code == 401
    unknown = platform.call("POST", "embed/session/revoke", json={"sessionId": "f" * 32})
    assert unknown.status_code == 204
    bad = platform.call("POST", "embed/session/revoke", json={"sessionId": "F"})
    assert bad.status_code == 400


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"deploymentId": None}, 400, "deploymentId must be a number"),
        ({"deploymentId": 9}, 404, "Deployment 9"),
        ({"branchName": "nope"}, 404, "nope is not a branch"),
        ({"embedTenantName": "Acme"}, 400, "embedTenantName must match"),
        ({"ephemeralTtlSeconds": 60}, 400, "ephemeralTtlSeconds should not exist"),
        ({"settings": {"timezone": "Berlin"}}, 400, "IANA"),
        (
            {"userAttributeDefinitions": [{"name": "a", "type": "bool"}]},
            400,
            "type must be one of",
        ),
    ],
)
def test_invalid_sessions_are_refused(
    platform: Platform, body: dict[str, Any], status: int, words: str
) -> None:
    response = platform.call("POST", "embed/generate-session", json={"deploymentId": 1, **body})
    assert response.status_code == status
    assert words in str(response.json()["message"])
    assert platform.control.state().changes == []


def test_embed_operations_need_an_administrator(platform: Platform) -> None:
    platform.control.set(token_lacks=["Admin"])
    for method, path in (
        ("POST", "embed/generate-session"),
        ("POST", "embed/session/revoke"),
        ("PATCH", "embed/dashboard/dash00000501"),
        ("GET", "embed-tenants"),
        ("DELETE", f"{RETAIL}/"),
        ("POST", f"{RETAIL}/user"),
        ("GET", f"{RETAIL}/groups"),
    ):
        assert platform.call(method, path).status_code == 403


def test_removed_operations_are_not_found(platform: Platform) -> None:
    for method, path in (
        ("GET", f"{RETAIL}/user-attributes"),
        ("DELETE", f"{RETAIL}/user-attributes/1"),
    ):
        assert "text/html" in platform.call(method, path).headers["content-type"]


def test_users_are_provisioned_idempotently(platform: Platform) -> None:
    body = {"externalId": "shop-rome", "email": "rome@retail.example.com"}
    first = platform.call("POST", f"{RETAIL}/user", json=body).json()
    assert platform.call("POST", f"{RETAIL}/user", json=body).json() == first
    assert "embedTenantName" not in first
    batch = {"users": [{"externalId": "shop-rome"}, {"externalId": "shop-oslo"}]}
    answer = platform.call("POST", f"{RETAIL}/users", json=batch).json()
    assert (answer["succeeded"][0], answer["failed"]) == (first, [])
    page = platform.call("GET", f"{RETAIL}/users?search=SHOP-O").json()
    assert [user["externalId"] for user in page["items"]] == ["shop-oslo"]


def test_described_tenant_deletes_an_embed_tenant_only_under_the_path_with_a_slash(
    platform: Platform,
) -> None:
    platform.control.set(tenant="described")
    assert "text/html" in platform.call("DELETE", RETAIL).headers["content-type"]
    assert platform.call("DELETE", f"{RETAIL}/").status_code == 204
