"""The hook's methods for embed sessions and embedded dashboards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any, Literal

    from airflow_provider_platform.client.dashboards import Dashboard
    from airflow_provider_platform.client.embed import (
        GenerateEmbedTokenResponse,
        GenerateSessionResponse,
    )
    from airflow_provider_platform.client.embed_access import DashboardEmbeddingResponse
    from airflow_provider_platform.client.workbooks import Workbook


class EmbedMethods(ManagementMethods):
    """Embedding: sessions and their tokens, dashboards that may be embedded."""

    def generate_embed_session(
        self,
        *,
        external_id: str | None = None,
        internal_id: str | None = None,
        email: str | None = None,
        groups: list[str] | None = None,
        embed_tenant_name: str | None = None,
        embed_tenant_profile: dict[str, Any] | None = None,
        tenant_groups: list[str] | None = None,
        tenant_group_definitions: Sequence[Any] | None = None,
        creator_mode: bool | None = None,
        user_attributes: Sequence[Any] | None = None,
        security_context: dict[str, Any] | None = None,
        deployment_id: int | str | None = None,
        **fields: Any,
    ) -> GenerateSessionResponse:
        """Generate a session for a user; `session_id` is a SecretStr that can be redeemed once.

        `tenant_groups` and `tenant_group_definitions` are groups of the embed tenant and need
        `creator_mode` and `embed_tenant_name`; further fields are those of `GenerateSession`. Not
        repeated when its outcome is unknown. Raises PlatformPermissionError where the credential
        is not an administrator's or embedding is off.
        """
        from airflow_provider_platform.client.embed import GENERATE_EMBED_SESSION, GenerateSession

        return self.run(
            GENERATE_EMBED_SESSION(
                body=GenerateSession.build(
                    deployment_id=self.resolve_deployment_id(deployment_id),
                    external_id=external_id,
                    internal_id=internal_id,
                    email=email,
                    groups=groups,
                    embed_tenant_name=embed_tenant_name,
                    embed_tenant_profile=embed_tenant_profile,
                    tenant_groups=tenant_groups,
                    tenant_group_definitions=tenant_group_definitions,
                    creator_mode=creator_mode,
                    user_attributes=user_attributes,
                    security_context=security_context,
                    **fields,
                )
            )
        )

    def create_embed_token(self, *, session_id: Any) -> GenerateEmbedTokenResponse:
        """Redeem a session (a SecretStr or text) for a token, a SecretStr that lives a day.

        Raises PlatformAuthenticationError for a session that is unknown or redeemed.
        """
        from airflow_provider_platform.client.embed import (
            CREATE_EMBED_TOKEN,
            PostTokenBySessionIdInput,
        )

        return self.run(
            CREATE_EMBED_TOKEN(body=PostTokenBySessionIdInput.build(session_id=session_id))
        )

    def revoke_embed_session(self, *, session_id: Any) -> None:
        """Revoke a session (a SecretStr or text); one that is over already is fine."""
        from airflow_provider_platform.client.embed import (
            REVOKE_EMBED_SESSION,
            RevokeEmbedSessionInput,
        )

        self.run(REVOKE_EMBED_SESSION(body=RevokeEmbedSessionInput.build(session_id=session_id)))

    def get_embed_dashboard(self, public_id: str) -> Dashboard:
        """A dashboard that may be embedded. Raises PlatformPermissionError where it may not."""
        from airflow_provider_platform.client.embed_access import GET_EMBED_DASHBOARD

        return self.run(GET_EMBED_DASHBOARD(public_id=public_id))

    def update_dashboard_embedding(
        self, public_id: str, *, allow_embed: bool
    ) -> DashboardEmbeddingResponse:
        """Allow or forbid embedding of a dashboard."""
        from airflow_provider_platform.client.embed_access import (
            UPDATE_DASHBOARD_EMBEDDING,
            UpdateDashboardEmbeddingInput,
        )

        return self.run(
            UPDATE_DASHBOARD_EMBEDDING(
                public_id=public_id,
                body=UpdateDashboardEmbeddingInput.build(allow_embed=allow_embed),
            )
        )

    def list_embed_tenant_workbooks(
        self,
        embed_tenant_name: str,
        *,
        access_source: Literal["tenant", "allEmbedUsers", "folder"] | None = None,
        first: int | None = None,
        deployment_id: int | str | None = None,
    ) -> Iterator[Workbook]:
        """The workbooks that an embed tenant may see."""
        from airflow_provider_platform.client.embed_access import (
            LIST_EMBED_TENANT_WORKBOOKS,
            EmbedTenantWorkbooksQuery,
        )
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_EMBED_TENANT_WORKBOOKS,
                deployment_id=self.resolve_deployment_id(deployment_id),
                embed_tenant_name=embed_tenant_name,
                query=EmbedTenantWorkbooksQuery.build(access_source=access_source, first=first),
            )
        )
