"""The hook's methods for the account: app config, OAuth, agents, usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from airflow_provider_platform.client.agents import Agent, AgentSkillsResponse
    from airflow_provider_platform.client.app_config import AppConfigResponse
    from airflow_provider_platform.client.oauth import OAuthIntegration, UserOAuthToken
    from airflow_provider_platform.client.usage_analytics import UsageAnalyticsTokenResponse


class AccountMethods(ManagementMethods):
    """The account: app config, OAuth integrations and user tokens, agents, usage analytics."""

    def get_app_config(self) -> AppConfigResponse:
        """The app configuration: theme, titles, embedding."""
        from airflow_provider_platform.client.app_config import GET_APP_CONFIG

        return self.run(GET_APP_CONFIG())

    def list_user_oauth_tokens(self) -> Iterator[UserOAuthToken]:
        """The tokens that users have given for OAuth integrations; `status` is free text."""
        from airflow_provider_platform.client.oauth import LIST_USER_OAUTH_TOKENS
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(Listing.of(LIST_USER_OAUTH_TOKENS))

    def get_user_oauth_token(self, integration_id: int | str) -> UserOAuthToken:
        """The caller's token for an integration. Raises PlatformNotFoundError without one."""
        from airflow_provider_platform.client.oauth import GET_USER_OAUTH_TOKEN

        return self.run(GET_USER_OAUTH_TOKEN(integration_id=integration_id))

    def revoke_user_oauth_token(self, integration_id: int | str) -> None:
        """Give up the caller's token for an integration."""
        from airflow_provider_platform.client.oauth import REVOKE_USER_OAUTH_TOKEN

        self.run(REVOKE_USER_OAUTH_TOKEN(integration_id=integration_id))

    def initiate_oauth_flow(self, integration_id: int | str) -> None:
        """Start the authorization of an integration for the caller."""
        from airflow_provider_platform.client.oauth import INITIATE_OAUTH_FLOW

        self.run(INITIATE_OAUTH_FLOW(integration_id=integration_id))

    def list_oauth_integrations(self) -> Iterator[OAuthIntegration]:
        """The OAuth integrations of the account."""
        from airflow_provider_platform.client.oauth import LIST_OAUTH_INTEGRATIONS
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(Listing.of(LIST_OAUTH_INTEGRATIONS))

    def get_oauth_integration(self, integration_id: int | str) -> OAuthIntegration:
        """One OAuth integration."""
        from airflow_provider_platform.client.oauth import GET_OAUTH_INTEGRATION

        return self.run(GET_OAUTH_INTEGRATION(id=integration_id))

    def create_oauth_integration(
        self,
        *,
        name: str,
        type: str,
        auth_url: str,
        token_url: str,
        client_id: str,
        redirect_uri: str,
        client_secret: Any,
        config: dict[str, Any] | None = None,
        scopes: list[str] | None = None,
    ) -> OAuthIntegration:
        """Create an OAuth integration; `client_secret` is a SecretStr or text."""
        from airflow_provider_platform.client.oauth import (
            CREATE_OAUTH_INTEGRATION,
            CreateOAuthIntegrationInput,
        )

        return self.run(
            CREATE_OAUTH_INTEGRATION(
                body=CreateOAuthIntegrationInput.build(
                    name=name,
                    type=type,
                    auth_url=auth_url,
                    token_url=token_url,
                    client_id=client_id,
                    redirect_uri=redirect_uri,
                    client_secret=client_secret,
                    config=config,
                    scopes=scopes,
                )
            )
        )

    def update_oauth_integration(
        self,
        integration_id: int | str,
        *,
        name: str,
        type: str,
        auth_url: str,
        token_url: str,
        client_id: str,
        redirect_uri: str,
        client_secret: Any = None,
        config: dict[str, Any] | None = None,
        scopes: list[str] | None = None,
    ) -> OAuthIntegration:
        """Write an OAuth integration anew; without `client_secret` the stored one stays."""
        from airflow_provider_platform.client.oauth import (
            UPDATE_OAUTH_INTEGRATION,
            UpdateOAuthIntegrationInput,
        )

        return self.run(
            UPDATE_OAUTH_INTEGRATION(
                id=integration_id,
                body=UpdateOAuthIntegrationInput.build(
                    name=name,
                    type=type,
                    auth_url=auth_url,
                    token_url=token_url,
                    client_id=client_id,
                    redirect_uri=redirect_uri,
                    client_secret=client_secret,
                    config=config,
                    scopes=scopes,
                ),
            )
        )

    def delete_oauth_integration(self, integration_id: int | str) -> None:
        """Delete an OAuth integration."""
        from airflow_provider_platform.client.oauth import DELETE_OAUTH_INTEGRATION

        self.run(DELETE_OAUTH_INTEGRATION(id=integration_id))

    def list_agents(
        self, *, allow_embedding: bool | None = None, deployment_id: int | str | None = None
    ) -> Iterator[Agent]:
        """The AI agents of a deployment; an agent's id is part of the chat address."""
        from airflow_provider_platform.client.agents import LIST_AGENTS, AgentsQuery
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_AGENTS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=AgentsQuery.build(allow_embedding=allow_embedding),
            )
        )

    def get_agent_skills(
        self,
        *,
        space: str | None = None,
        branch_name: str | None = None,
        deployment_id: int | str | None = None,
    ) -> AgentSkillsResponse:
        """What the agents of a deployment know to do."""
        from airflow_provider_platform.client.agents import GET_AGENT_SKILLS, AgentSkillsQuery

        return self.run(
            GET_AGENT_SKILLS(
                deployment_id=self.resolve_deployment_id(deployment_id),
                query=AgentSkillsQuery.build(space=space, branch_name=branch_name),
            )
        )

    def create_usage_analytics_token(self) -> UsageAnalyticsTokenResponse:
        """A token (an hour, a SecretStr) for the usage data of the account at `api_url`. Raises
        PlatformNotFoundError where usage analytics is off."""
        from airflow_provider_platform.client.usage_analytics import CREATE_USAGE_ANALYTICS_TOKEN

        return self.run(CREATE_USAGE_ANALYTICS_TOKEN())
