"""Account-level resources: the app configuration and the OAuth tokens of users."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.management.resource import Call, Resource

resource = Resource()

_CONFIG: dict[str, Any] = {
    "appTheme": None,
    "applyThemeGlobally": False,
    "creatorMode": {
        "showGeneratedSql": True,
        "showSemanticSql": False,
        "localizedTitles": [{"locale": "de", "value": "Auswertungen"}],
    },
    "embedding": {"locale": "en-US"},
    "restrictDataDownload": False,
    "sheetsAgentChatEnabled": True,
}


class UserOAuthTokens:
    """The tokens that users have granted; the second one needs a new consent."""

    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = [
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


resource.collections["user-oauth-tokens"] = lambda world: world.store(UserOAuthTokens).items


@resource.operation("GET", "/api/v1/app-config")
def get_app_config(_call: Call) -> Any:
    return _CONFIG


@resource.operation("GET", "/api/v1/user-oauth-tokens")
def list_user_oauth_tokens(call: Call) -> Any:
    return call.store(UserOAuthTokens).items
