"""OAuth: the account's integrations, and the tokens that users have granted through them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import embed_bodies
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

integrations = Resource(
    "/api/v1/oauth-integrations", needs="OAuthIntegrationsManage", since="0.3.0"
)
tokens = Resource("/api/v1/user-oauth-tokens", needs=None)

_INTEGRATION: checks.Fields = {
    "name": checks.needed(checks.string()),
    "type": checks.needed(checks.string()),
    "authUrl": checks.needed(embed_bodies.URL),
    "tokenUrl": checks.needed(embed_bodies.URL),
    "clientId": checks.needed(checks.string()),
    "redirectUri": checks.needed(embed_bodies.URL),
    "config": checks.mapping,
    "scopes": checks.array(checks.string()),
    "clientSecret": checks.string(),
}


class OAuthIntegrations(Items):
    """Integrations by id; 3 is there from the start. Secrets are taken and never given."""

    what = "OAuth integration"

    def __init__(self) -> None:
        super().__init__(
            [
                {
                    "id": 3,
                    "name": "Warehouse sign-in",
                    "type": "snowflake",
                    "authUrl": "https://login.example.com/authorize",
                    "tokenUrl": "https://login.example.com/token",
                    "clientId": "acme-platform",
                    "redirectUri": "https://acme.example.com/oauth/callback",
                    "createdAt": "2026-01-15",
                    "updatedAt": "2026-01-15T12:00:00.000Z",
                    "config": None,
                    "scopes": ["session:role:ANALYST"],
                }
            ]
        )

    def named(self, integration_id: int) -> Item:
        integration = self.by_id.get(integration_id)
        if integration is None:
            raise ApiError(404, f"OAuth integration {integration_id} not found")
        return integration


class UserOAuthTokens(Items):
    """The tokens that users have granted; the second one needs a new consent."""

    def __init__(self) -> None:
        super().__init__(
            [
                {
                    "id": 1,
                    "userId": 7,
                    "integrationId": 3,
                    "status": "active",
                    "createdAt": "2026-05-04",
                    "updatedAt": "2026-07-19T06:00:00.000Z",
                    "accessTokenExpiresAt": "2026-12-01T00:00:00.000Z",
                    "refreshTokenExpiresAt": None,
                },
                {
                    "id": 2,
                    "userId": 8,
                    "integrationId": 3,
                    "status": "expired",
                    "createdAt": "2026-04-01T08:15:00.000Z",
                    "updatedAt": "2026-06-30T08:15:00.000Z",
                    "accessTokenExpiresAt": "2026-06-30T08:15:00.000Z",
                    "refreshTokenExpiresAt": "2026-06-30",
                    "lastError": {"code": "invalid_grant", "attempts": 3},
                },
            ]
        )

    def own(self, call: Call) -> Item:
        """The caller's token of the integration in the path."""
        integration, caller = call.path["integrationId"], call.user
        for token in self.all():
            if (token["integrationId"], token["userId"]) == (integration, caller):
                return token
        raise ApiError(404, f"There is no token of this user for OAuth integration {integration}")


integrations.collections["oauth-integrations"] = lambda server: server.store(
    OAuthIntegrations
).all()
tokens.collections["user-oauth-tokens"] = lambda server: server.store(UserOAuthTokens).all()


@integrations.get()
def list_oauth_integrations(call: Call) -> Any:
    return call.store(OAuthIntegrations).all()


@integrations.post(body=checks.structure(checks.needing(_INTEGRATION, "clientSecret")))
def create_oauth_integration(call: Call) -> Any:
    now = call.server.clock.stamp()
    fields = {name: value for name, value in call.body.items() if name != "clientSecret"}
    blank = {"config": None, "scopes": None, "createdAt": now, "updatedAt": now}
    integration = call.store(OAuthIntegrations).add(**blank | fields)
    call.record("created", "oauth-integrations", integration["id"])
    return integration


@integrations.get("/{id}")
def get_oauth_integration(call: Call) -> Any:
    return call.store(OAuthIntegrations).named(call.path["id"])


@integrations.put(
    "/{id}",
    body=checks.structure(
        {**_INTEGRATION, "clientSecret": checks.nullable(_INTEGRATION["clientSecret"])}
    ),
)
def update_oauth_integration(call: Call) -> Any:
    """Replace it; without a ``clientSecret`` the old one stays."""
    integration = call.store(OAuthIntegrations).named(call.path["id"])
    fields = {name: value for name, value in call.body.items() if name != "clientSecret"}
    integration |= {
        "config": None,
        "scopes": None,
        **fields,
        "updatedAt": call.server.clock.stamp(),
    }
    call.record("updated", "oauth-integrations", integration["id"])
    return integration


@integrations.delete("/{id}")
def delete_oauth_integration(call: Call) -> Response:
    """The tokens granted through it are gone too."""
    integration = call.store(OAuthIntegrations).named(call.path["id"])
    call.store(OAuthIntegrations).delete(integration)
    granted = call.store(UserOAuthTokens)
    for token in granted.all():
        if token["integrationId"] == integration["id"]:
            granted.delete(token)
    call.record("deleted", "oauth-integrations", integration["id"])
    return call.undeclared()


@tokens.get()
def list_user_oauth_tokens(call: Call) -> Any:
    return call.store(UserOAuthTokens).all()


@tokens.get("/{integrationId}", since="0.3.0")
def get_user_oauth_token(call: Call) -> Any:
    return call.store(UserOAuthTokens).own(call)


@tokens.delete("/{integrationId}", since="0.3.0")
def revoke_user_oauth_token(call: Call) -> Response:
    granted = call.store(UserOAuthTokens)
    token = granted.own(call)
    granted.delete(token)
    call.record("deleted", "user-oauth-tokens", token["id"])
    return call.undeclared()


@tokens.post("/{integrationId}/initiate", since="0.3.0")
def initiate_oauth_flow(call: Call) -> Response:
    """The user has to go on in a browser."""
    integration = call.store(OAuthIntegrations).named(call.path["integrationId"])
    call.record("created", "oauth-flows", integration["id"])
    return call.undeclared()
