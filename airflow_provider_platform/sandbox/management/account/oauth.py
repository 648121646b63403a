"""OAuth: the account's integrations, and the tokens that users have granted through them."""

from __future__ import annotations

from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import embed_shapes
from airflow_provider_platform.sandbox.management.shared.items import Item, Items
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

resource = Resource()

_INTEGRATIONS = "/api/v1/oauth-integrations"
_TOKENS = "/api/v1/user-oauth-tokens"
_INTEGRATION: checks.Shape = {
    "name": checks.string(),
    "type": checks.string(),
    "authUrl": embed_shapes.URL,
    "tokenUrl": embed_shapes.URL,
    "clientId": checks.string(),
    "redirectUri": embed_shapes.URL,
    "config": checks.mapping,
    "scopes": checks.array(checks.string()),
    "clientSecret": checks.string(),
}
_REQUIRED = ("name", "type", "authUrl", "tokenUrl", "clientId", "redirectUri")


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
        integration, caller = call.path["integrationId"], call.world.settings.caller
        for token in self.all():
            if (token["integrationId"], token["userId"]) == (integration, caller):
                return token
        raise ApiError(404, f"There is no token of this user for OAuth integration {integration}")


resource.collections["oauth-integrations"] = lambda world: world.store(OAuthIntegrations).all()
resource.collections["user-oauth-tokens"] = lambda world: world.store(UserOAuthTokens).all()


@resource.operation("GET", _INTEGRATIONS, needs="OAuthIntegrationsManage")
def list_oauth_integrations(call: Call) -> Any:
    return call.store(OAuthIntegrations).all()


@resource.operation(
    "POST",
    _INTEGRATIONS,
    needs="OAuthIntegrationsManage",
    body=checks.structure(_INTEGRATION, required=(*_REQUIRED, "clientSecret")),
)
def create_oauth_integration(call: Call) -> Any:
    now = call.world.clock.stamp()
    fields = {name: value for name, value in call.body.items() if name != "clientSecret"}
    blank = {"config": None, "scopes": None, "createdAt": now, "updatedAt": now}
    integration = call.store(OAuthIntegrations).add(**blank | fields)
    call.record("created", "oauth-integrations", integration["id"])
    return integration


@resource.operation("GET", f"{_INTEGRATIONS}/{{id}}", needs="OAuthIntegrationsManage")
def get_oauth_integration(call: Call) -> Any:
    return call.store(OAuthIntegrations).named(call.path["id"])


@resource.operation(
    "PUT",
    f"{_INTEGRATIONS}/{{id}}",
    needs="OAuthIntegrationsManage",
    body=checks.structure(
        {**_INTEGRATION, "clientSecret": checks.nullable(_INTEGRATION["clientSecret"])},
        required=_REQUIRED,
    ),
)
def update_oauth_integration(call: Call) -> Any:
    """Replace it; without a ``clientSecret`` the old one stays."""
    integration = call.store(OAuthIntegrations).named(call.path["id"])
    fields = {name: value for name, value in call.body.items() if name != "clientSecret"}
    integration |= {"config": None, "scopes": None, **fields, "updatedAt": call.world.clock.stamp()}
    call.record("updated", "oauth-integrations", integration["id"])
    return integration


@resource.operation("DELETE", f"{_INTEGRATIONS}/{{id}}", needs="OAuthIntegrationsManage")
def delete_oauth_integration(call: Call) -> Response:
    """The tokens granted through it are gone too."""
    integration = call.store(OAuthIntegrations).named(call.path["id"])
    call.store(OAuthIntegrations).delete(integration)
    tokens = call.store(UserOAuthTokens)
    for token in tokens.all():
        if token["integrationId"] == integration["id"]:
            tokens.delete(token)
    call.record("deleted", "oauth-integrations", integration["id"])
    return call.undeclared()


@resource.operation("GET", _TOKENS, needs=None)
def list_user_oauth_tokens(call: Call) -> Any:
    return call.store(UserOAuthTokens).all()


@resource.operation("GET", f"{_TOKENS}/{{integrationId}}", needs=None)
def get_user_oauth_token(call: Call) -> Any:
    return call.store(UserOAuthTokens).own(call)


@resource.operation("DELETE", f"{_TOKENS}/{{integrationId}}", needs=None)
def revoke_user_oauth_token(call: Call) -> Response:
    tokens = call.store(UserOAuthTokens)
    token = tokens.own(call)
    tokens.delete(token)
    call.record("deleted", "user-oauth-tokens", token["id"])
    return call.undeclared()


@resource.operation("POST", f"{_TOKENS}/{{integrationId}}/initiate", needs=None)
def initiate_oauth_flow(call: Call) -> Response:
    """The user has to go on in a browser."""
    integration = call.store(OAuthIntegrations).named(call.path["integrationId"])
    call.record("created", "oauth-flows", integration["id"])
    return call.undeclared({"authUrl": integration["authUrl"]})
