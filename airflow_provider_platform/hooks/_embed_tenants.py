"""The hook's methods for embed tenants, their groups and users."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.hooks._base import ManagementMethods

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from airflow_provider_platform.client.embed_tenants import (
        EmbedGroupMembersMutationResponse,
        EmbedTenant,
        EmbedUser,
        ProvisionEmbedUsersResponse,
        UserGroupDTO,
    )


class EmbedTenantMethods(ManagementMethods):
    """Embed tenants; for administrators."""

    def list_embed_tenants(
        self, *, search: str | None = None, first: int | None = None
    ) -> Iterator[EmbedTenant]:
        """The embed tenants of the account."""
        from airflow_provider_platform.client.embed_tenants import (
            LIST_EMBED_TENANTS,
            EmbedSearchQuery,
        )
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(LIST_EMBED_TENANTS, query=EmbedSearchQuery.build(search=search, first=first))
        )

    def delete_embed_tenant(self, embed_tenant_name: str) -> None:
        """Delete an embed tenant with its users, groups and content; gone already is fine where
        the service says so. Raises PlatformInputError for a name not in lower case."""
        from airflow_provider_platform.client.embed_tenants import delete_embed_tenant

        self.run(delete_embed_tenant(embed_tenant_name))

    def list_embed_groups(
        self, embed_tenant_name: str, *, first: int | None = None
    ) -> Iterator[UserGroupDTO]:
        """The groups of an embed tenant."""
        from airflow_provider_platform.client.embed_tenants import LIST_EMBED_GROUPS
        from airflow_provider_platform.client.paging import Listing, PageQuery

        return self.iterate(
            Listing.of(
                LIST_EMBED_GROUPS,
                embed_tenant_name=embed_tenant_name,
                query=PageQuery.build(first=first),
            )
        )

    def create_embed_group(
        self, embed_tenant_name: str, *, name: str, description: str | None = None
    ) -> UserGroupDTO:
        """Create a group. Raises PlatformBadRequestError for a name that is taken or reserved."""
        from airflow_provider_platform.client.embed_tenants import (
            CREATE_EMBED_GROUP,
            CreateEmbedGroupInput,
        )

        return self.run(
            CREATE_EMBED_GROUP(
                embed_tenant_name=embed_tenant_name,
                body=CreateEmbedGroupInput.build(name=name, description=description),
            )
        )

    def get_embed_group(self, embed_tenant_name: str, group_id: int | str) -> UserGroupDTO:
        """One group."""
        from airflow_provider_platform.client.embed_tenants import GET_EMBED_GROUP

        return self.run(GET_EMBED_GROUP(embed_tenant_name=embed_tenant_name, id=group_id))

    def update_embed_group(
        self, embed_tenant_name: str, group_id: int | str, *, description: str
    ) -> UserGroupDTO:
        """Change a group's description; its name stays."""
        from airflow_provider_platform.client.embed_tenants import (
            UPDATE_EMBED_GROUP,
            UpdateEmbedGroupInput,
        )

        return self.run(
            UPDATE_EMBED_GROUP(
                embed_tenant_name=embed_tenant_name,
                id=group_id,
                body=UpdateEmbedGroupInput.build(description=description),
            )
        )

    def delete_embed_group(self, embed_tenant_name: str, group_id: int | str) -> None:
        """Delete a group. Raises PlatformBadRequestError while it has members."""
        from airflow_provider_platform.client.embed_tenants import DELETE_EMBED_GROUP

        self.run(DELETE_EMBED_GROUP(embed_tenant_name=embed_tenant_name, id=group_id))

    def list_embed_group_members(
        self, embed_tenant_name: str, group_id: int | str, *, first: int | None = None
    ) -> Iterator[EmbedUser]:
        """The users of a group."""
        from airflow_provider_platform.client.embed_tenants import LIST_EMBED_GROUP_MEMBERS
        from airflow_provider_platform.client.paging import Listing, PageQuery

        return self.iterate(
            Listing.of(
                LIST_EMBED_GROUP_MEMBERS,
                embed_tenant_name=embed_tenant_name,
                id=group_id,
                query=PageQuery.build(first=first),
            )
        )

    def add_embed_group_members(
        self, embed_tenant_name: str, group_id: int | str, *, members: Sequence[Any]
    ) -> EmbedGroupMembersMutationResponse:
        """Add up to 1000 users, each `{"embedUserId"}` or `{"externalId"}`, to a group."""
        from airflow_provider_platform.client.embed_tenants import (
            ADD_EMBED_GROUP_MEMBERS,
            EmbedGroupMembersInput,
        )

        return self.run(
            ADD_EMBED_GROUP_MEMBERS(
                embed_tenant_name=embed_tenant_name,
                id=group_id,
                body=EmbedGroupMembersInput.build(members=members),
            )
        )

    def remove_embed_group_members(
        self, embed_tenant_name: str, group_id: int | str, *, members: Sequence[Any]
    ) -> None:
        """Remove up to 1000 users, each `{"embedUserId"}` or `{"externalId"}`, from a group."""
        from airflow_provider_platform.client.embed_tenants import (
            REMOVE_EMBED_GROUP_MEMBERS,
            EmbedGroupMembersInput,
        )

        self.run(
            REMOVE_EMBED_GROUP_MEMBERS(
                embed_tenant_name=embed_tenant_name,
                id=group_id,
                body=EmbedGroupMembersInput.build(members=members),
            )
        )

    def list_embed_users(
        self, embed_tenant_name: str, *, search: str | None = None, first: int | None = None
    ) -> Iterator[EmbedUser]:
        """The users of an embed tenant."""
        from airflow_provider_platform.client.embed_tenants import (
            LIST_EMBED_USERS,
            EmbedSearchQuery,
        )
        from airflow_provider_platform.client.paging import Listing

        return self.iterate(
            Listing.of(
                LIST_EMBED_USERS,
                embed_tenant_name=embed_tenant_name,
                query=EmbedSearchQuery.build(search=search, first=first),
            )
        )

    def provision_embed_user(
        self,
        embed_tenant_name: str,
        *,
        external_id: str,
        email: str | None = None,
        groups: list[str] | None = None,
        tenant_groups: list[str] | None = None,
        user_profile: dict[str, Any] | None = None,
    ) -> EmbedUser:
        """Create a user or change one; the lists of groups replace what is there."""
        from airflow_provider_platform.client.embed_tenants import (
            PROVISION_EMBED_USER,
            ProvisionEmbedUserInput,
        )

        return self.run(
            PROVISION_EMBED_USER(
                embed_tenant_name=embed_tenant_name,
                body=ProvisionEmbedUserInput.build(
                    external_id=external_id,
                    email=email,
                    groups=groups,
                    tenant_groups=tenant_groups,
                    user_profile=user_profile,
                ),
            )
        )

    def provision_embed_users(
        self, embed_tenant_name: str, *, users: Sequence[Any]
    ) -> ProvisionEmbedUsersResponse:
        """Create or change up to 100 users, each a `ProvisionEmbedUserInput` or its object. Who
        failed is in `failed`, not an error."""
        from airflow_provider_platform.client.embed_tenants import (
            PROVISION_EMBED_USERS,
            ProvisionEmbedUsersInput,
        )

        return self.run(
            PROVISION_EMBED_USERS(
                embed_tenant_name=embed_tenant_name,
                body=ProvisionEmbedUsersInput.build(users=users),
            )
        )
