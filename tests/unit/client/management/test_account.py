"""Account-wide resources: app config, OAuth, agents, user attributes, usage."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.management.account.app_config import get_app_config
from airflow_provider_platform.client.management.account.oauth import (
    CreateOAuthIntegrationInput,
    OAuthIntegration,
    UpdateOAuthIntegrationInput,
    UserOAuthToken,
    create_oauth_integration,
    get_user_oauth_token,
    initiate_oauth_flow,
    list_user_oauth_tokens,
    update_oauth_integration,
)
from airflow_provider_platform.client.management.account.usage_analytics import (
    create_usage_analytics_token,
)
from airflow_provider_platform.client.management.account.user_attributes import (
    UserAttributeInput,
    UserAttributeType,
)
from airflow_provider_platform.client.management.deployments.agents import (
    Agent,
    AgentSkillsQuery,
    AgentsQuery,
    get_agent_skills,
    list_agents,
)

CANARY = "canary-secret"

TOKEN: dict[str, Any] = {
    "id": 1,
    "userId": 2,
    "integrationId": 3,
    "status": "active",
    "createdAt": "2026-07-20",
    "updatedAt": "2026-07-20T10:00:00.000Z",
}


def test_the_app_config_has_the_described_fields() -> None:
    sent = {
        "appTheme": {
            "palette": {"accent": {"hue": 200, "color": "#123456"}, "surfaceMode": "sparkling"},
            "logoUrl": "https://example.com/logo.png",
        },
        "applyThemeGlobally": True,
        "creatorMode": {
            "showGeneratedSql": True,
            "showSemanticSql": False,
            "localizedTitles": [{"locale": "de", "value": "Berichte"}],
        },
        "embedding": {"locale": "de-DE"},
        "futureSwitch": True,
    }

    config = get_app_config().read(sent)

    assert config.apply_theme_globally
    assert config.creator_mode is not None
    assert (config.creator_mode.show_generated_sql, config.creator_mode.show_semantic_sql) == (
        True,
        False,
    )
    assert config.creator_mode.localized_titles is not None
    assert config.creator_mode.localized_titles[0].value == "Berichte"
    assert config.embedding is not None
    assert config.embedding.locale == "de-DE"
    assert config.app_theme is not None
    assert config.app_theme.palette is not None
    assert config.app_theme.palette["surfaceMode"] == "sparkling"
    assert config.to_json() == sent


def test_empty_app_config_is_accepted() -> None:
    assert get_app_config().read({}).app_theme is None


@pytest.mark.parametrize(
    "last_error", [None, "text", 5, ["a"], {"code": 1, "nested": {"x": None}}, False]
)
def test_a_user_oauth_token_has_the_described_fields(last_error: Any) -> None:
    sent = {
        **TOKEN,
        "status": "half-asleep",
        "accessTokenExpiresAt": None,
        "refreshTokenExpiresAt": "2026-08-20",
        "lastError": last_error,
    }

    token = UserOAuthToken.model_validate(sent)

    assert (token.user_id, token.integration_id, token.status) == (2, 3, "half-asleep")
    assert token.access_token_expires_at is None
    assert token.refresh_token_expires_at is not None
    assert token.last_error == last_error
    assert token.to_json() == sent


@pytest.mark.parametrize("field", sorted(TOKEN))
def test_required_fields_of_a_user_oauth_token_are_required(field: str) -> None:
    answer = {name: value for name, value in TOKEN.items() if name != field}

    with pytest.raises(PlatformProtocolError, match=field):
        get_user_oauth_token(integration_id=3).read(answer)


def test_the_described_list_of_user_oauth_tokens_is_an_array() -> None:
    operation = list_user_oauth_tokens()

    assert (operation.method, operation.path, operation.query) == (
        "GET",
        "/v1/user-oauth-tokens",
        {},
    )
    assert [token.id for token in operation.read([TOKEN]).rows] == [1]


def test_starting_an_oauth_flow_is_not_repeated() -> None:
    operation = initiate_oauth_flow(integration_id=3)

    assert operation.path == "/v1/user-oauth-tokens/3/initiate"
    assert not operation.repeatable


def test_an_integrations_secret_is_sent_and_never_shown() -> None:
    fields = {
        "name": "n",
        "type": "t",
        "auth_url": "https://a.example.com",
        "token_url": "https://t.example.com",
        "client_id": "c",
        "redirect_uri": "https://r.example.com",
        "config": {"privateKey": CANARY},
    }
    create = create_oauth_integration(
        body=CreateOAuthIntegrationInput.build(**fields, client_secret=CANARY)
    )
    update = update_oauth_integration(
        integration_id=3, body=UpdateOAuthIntegrationInput.build(**fields)
    )

    assert create.body["clientSecret"] == CANARY
    assert "clientSecret" not in update.body
    assert update.body["config"] == {"privateKey": CANARY}
    assert CANARY not in repr(create) + repr(
        CreateOAuthIntegrationInput.build(**fields, client_secret=CANARY)
    )
    with pytest.raises(PlatformInputError, match="client_secret"):
        CreateOAuthIntegrationInput.build(**fields)


def test_secrets_in_an_integrations_config_are_hidden() -> None:
    integration = OAuthIntegration.model_validate(
        {"id": 3, "config": {"region": "eu", "auth": {"clientSecret": CANARY}}}
    )

    assert CANARY not in repr(integration)
    assert integration.to_json()["config"] == {
        "region": "eu",
        "auth": {"clientSecret": "**********"},
    }


def test_agents_hide_their_model_key_and_list_their_skills() -> None:
    agent = Agent.model_validate(
        {"id": 5, "name": "Ada", "agentLlm": {"id": 1, "apiKey": CANARY, "config": {"key": 1}}}
    )
    query = AgentsQuery.build(allow_embedding=True)
    skills = get_agent_skills(
        deployment_id=7, query=AgentSkillsQuery.build(space="s", branch_name="b")
    )

    assert CANARY not in repr(agent)
    assert list_agents(deployment_id=7, query=query).query == {"allowEmbedding": True}
    assert skills.query == {"space": "s", "branchName": "b"}
    assert skills.read({"skills": [{"name": "sql"}]}).to_json() == {"skills": [{"name": "sql"}]}


@pytest.mark.parametrize("value", [True, False, 1, 1.5, "x", ["a", 2]])
def test_user_attributes_keep_the_type_of_their_value(value: Any) -> None:
    sent = UserAttributeInput.build(name="vip", value=value).to_json()

    assert sent == {"name": "vip", "value": value}
    assert type(sent["value"]) is type(value)


def test_boolean_is_a_type_of_user_attributes() -> None:
    assert "boolean" in get_args(UserAttributeType)


def test_a_usage_analytics_token_is_a_secret() -> None:
    token = create_usage_analytics_token().read(
        {"token": CANARY, "apiUrl": "https://u.example.com"}
    )

    assert CANARY not in repr(token)
    assert token.token.get_secret_value() == CANARY
