"""Embedding: sessions and their single use, tenants with users and groups, dashboards."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform

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


def tenants(platform: Platform, search: str = "") -> dict[str, dict[str, Any]]:
    query = {"search": search} if search else {}
    page = platform.call("GET", "embed-tenants", params=query).json()
    return {tenant["name"]: tenant for tenant in page["items"]}


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


def test_a_session_makes_its_tenant_groups_and_user(platform: Platform) -> None:
    generate(
        platform,
        externalId="store-1",
        email="one@north.example.com",
        embedTenantName="acme-north",
        embedTenantProfile={"displayName": "Acme North"},
        creatorMode=True,
        tenantGroups=["managers"],
        tenantGroupDefinitions=[{"name": "managers", "description": "Who decide"}],
        groups=["finance"],
        userAttributes=[{"name": "region", "value": ["north", 1]}, {"name": "vip", "value": True}],
        settings={"locale": "de-DE", "timezone": "Europe/Berlin", "allowAi": False},
    )
    assert tenants(platform)["acme-north"]["displayName"] == "Acme North"
    users = platform.call("GET", "embed-tenants/acme-north/users").json()["items"]
    assert [(user["externalId"], user["email"]) for user in users] == [
        ("store-1", "one@north.example.com")
    ]
    (group,) = platform.call("GET", "embed-tenants/acme-north/groups").json()["items"]
    assert (group["name"], group["userCount"]) == ("managers", 1)


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


def test_users_are_provisioned_idempotently(platform: Platform) -> None:
    body = {
        "externalId": "shop-rome",
        "email": "rome@retail.example.com",
        "tenantGroups": ["buyers"],
        "userProfile": {"displayName": "Roma"},
    }
    first = platform.call("POST", f"{RETAIL}/user", json=body).json()
    second = platform.call("POST", f"{RETAIL}/user", json=body).json()
    assert first == second
    assert first["firstName"] == "Roma"
    assert "embedTenantName" not in first
    groups = platform.call("GET", f"{RETAIL}/groups").json()["items"]
    assert [(group["name"], group["userCount"]) for group in groups] == [("buyers", 1)]
    platform.call("POST", f"{RETAIL}/user", json={"externalId": "shop-rome", "tenantGroups": []})
    groups = platform.call("GET", f"{RETAIL}/groups").json()["items"]
    assert groups[0]["userCount"] == 0
    page = platform.call("GET", f"{RETAIL}/users?search=ROME").json()
    assert [user["id"] for user in page["items"]] == [first["id"]]
    assert tenants(platform, "retail")["acme-retail"]["userCount"] == 3


def test_each_failed_user_of_a_batch_is_reported(platform: Platform) -> None:
    users = [
        {"externalId": "shop-a"},
        {"externalId": "shop-b", "email": "no-address"},
        {"externalId": "shop-c"},
    ]
    answer = platform.call("POST", f"{RETAIL}/users", json={"users": users}).json()
    assert [user["externalId"] for user in answer["succeeded"]] == ["shop-a", "shop-c"]
    assert [(one["externalId"], one["error"]["status"]) for one in answer["failed"]] == [
        ("shop-b", 400),
    ]
    crowd = {"users": [{"externalId": f"u{n}"} for n in range(101)]}
    assert platform.call("POST", f"{RETAIL}/users", json=crowd).status_code == 400


def test_groups_and_their_members_can_be_managed(platform: Platform) -> None:
    made = platform.call("POST", f"{RETAIL}/groups", json={"name": "sellers"}).json()
    path = f"{RETAIL}/groups/{made['id']}"
    changed = platform.call("PATCH", path, json={"description": "Who sell"}).json()
    assert (changed["name"], changed["description"]) == ("sellers", "Who sell")
    assert platform.call("PATCH", path, json={"name": "x"}).status_code == 400
    body = {"members": [{"externalId": "shop-berlin"}, {"embedUserId": 902}]}
    first = platform.call("POST", f"{path}/users", json=body).json()
    assert [user["externalId"] for user in first["addedMembers"]] == ["shop-berlin", "shop-paris"]
    second = platform.call("POST", f"{path}/users", json=body).json()
    assert (second["addedMembers"], len(second["unchangedMembers"])) == ([], 2)
    assert len(platform.call("GET", f"{path}/users").json()["items"]) == 2
    for _ in range(2):
        assert platform.call("DELETE", f"{path}/users", json=body).status_code == 204
    assert platform.call("DELETE", path).status_code == 204
    assert platform.call("GET", path).status_code == 404
    stranger = {"members": [{"externalId": "stranger"}]}
    assert platform.call("POST", f"{RETAIL}/groups/951/users", json=stranger).status_code == 404


def test_dashboards_and_workbooks_can_be_opened_for_embedding(platform: Platform) -> None:
    path = "embed/dashboard/dash00000502"
    assert platform.call("GET", path).status_code == 403
    allowed = platform.call("PATCH", path, json={"allowEmbed": True}).json()
    assert allowed == {"publicId": "dash00000502", "allowEmbed": True}
    assert platform.call("GET", path).json()["id"] == 502
    assert platform.call("GET", "embed/dashboard/nope").status_code == 404


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
