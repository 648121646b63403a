"""Embed tenants: the customers' customers, their groups and users."""

from __future__ import annotations

from typing import ClassVar

from pydantic import Field

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.management.embed.sessions import EmbedUserProfile
from airflow_provider_platform.client.management.workspace.objects import BulkActionError
from airflow_provider_platform.client.operations.models import InputModel, ResponseModel, Timestamp
from airflow_provider_platform.client.operations.operation import ADMINISTRATOR, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery
from airflow_provider_platform.client.operations.program import Program, call
from airflow_provider_platform.client.operations.rules import Rule, exactly_one


class EmbedTenant(ResponseModel):
    """An embed tenant."""

    id: int
    name: str | None = None
    user_count: int | None = None
    created_at: Timestamp | None = None
    display_name: str | None = None


class EmbedUser(ResponseModel):
    """A user of an embed tenant."""

    id: int
    username: str | None = None
    created_at: Timestamp | None = None
    email: str | None = None
    external_id: str | None = None
    first_name: str | None = None
    last_login: Timestamp | None = None


class UserGroupDTO(ResponseModel):
    """A group of an embed tenant; its name cannot be changed."""

    id: int
    name: str | None = None
    description: str | None = None
    user_count: int | None = None


class CreateEmbedGroupInput(InputModel):
    """A group to create."""

    name: str = Field(min_length=1, max_length=100)
    description: str | None = Field(default=None, max_length=500)


class UpdateEmbedGroupInput(InputModel):
    """What to change in a group."""

    description: str | None = Field(default=None, max_length=500)


class EmbedGroupMemberInput(InputModel):
    """A user, by one of the two ids."""

    embed_user_id: int | None = Field(default=None, ge=1)
    external_id: str | None = Field(default=None, min_length=1)

    rules: ClassVar[tuple[Rule, ...]] = ((("embed_user_id", "external_id"), exactly_one),)


class EmbedGroupMembersInput(InputModel):
    """Users to add or remove."""

    members: list[EmbedGroupMemberInput] = Field(min_length=1, max_length=1000)


class EmbedGroupMembersMutationResponse(ResponseModel):
    """What adding users did."""

    added_members: list[EmbedUser] | None = None
    unchanged_members: list[EmbedUser] | None = None


class ProvisionEmbedUserInput(InputModel):
    """A user to create or to change. `groups` and `tenant_groups` replace what is there; an empty
    list clears."""

    external_id: str = Field(min_length=1)
    email: str | None = None
    groups: list[str] | None = None
    tenant_groups: list[str] | None = None
    user_profile: EmbedUserProfile | None = None


class ProvisionEmbedUsersInput(InputModel):
    """Users to create or to change."""

    users: list[ProvisionEmbedUserInput] = Field(min_length=1, max_length=100)


class ProvisionEmbedUserFailure(ResponseModel):
    """A user that was not provisioned."""

    external_id: str | None = None
    error: BulkActionError | None = None


class ProvisionEmbedUsersResponse(ResponseModel):
    """What provisioning many users did."""

    succeeded: list[EmbedUser] | None = None
    failed: list[ProvisionEmbedUserFailure] | None = None


class EmbedSearchQuery(PageQuery):
    """Which tenants or users."""

    search: str | None = None


_TENANTS = "/v1/embed-tenants"
_TENANT = _TENANTS + "/{embedTenantName}"
_GROUPS = f"{_TENANT}/groups"
_GROUP = _GROUPS + "/{id}"
_MEMBERS = f"{_GROUP}/users"


@endpoint("GET", _TENANTS, operation_id="listEmbedTenants", permission=ADMINISTRATOR)
def list_embed_tenants(*, query: EmbedSearchQuery | None = None) -> Page[EmbedTenant]:
    """The embed tenants of the account."""


@endpoint("DELETE", f"{_TENANT}/", operation_id="deleteEmbedTenant", permission=ADMINISTRATOR)
def delete_embed_tenant_with_slash(*, embed_tenant_name: str) -> None:
    """Delete an embed tenant on a tenant of the first releases; see `delete_embed_tenant`."""


@endpoint("DELETE", _TENANT, operation_id="deleteEmbedTenant", permission=ADMINISTRATOR)
def delete_embed_tenant_without_slash(*, embed_tenant_name: str) -> None:
    """Delete an embed tenant on a tenant of a later release; see `delete_embed_tenant`."""


@endpoint("GET", _GROUPS, operation_id="getGroups", permission=ADMINISTRATOR)
def list_embed_groups(
    *, embed_tenant_name: str, query: PageQuery | None = None
) -> Page[UserGroupDTO]:
    """The groups of an embed tenant."""


@endpoint("POST", _GROUPS, operation_id="createGroup", permission=ADMINISTRATOR)
def create_embed_group(*, embed_tenant_name: str, body: CreateEmbedGroupInput) -> UserGroupDTO:
    """Create a group. Raises PlatformBadRequestError for a name that is taken or reserved."""


@endpoint("GET", _GROUP, operation_id="getGroup", permission=ADMINISTRATOR)
def get_embed_group(*, embed_tenant_name: str, group_id: int | str) -> UserGroupDTO:
    """One group."""


@endpoint("PATCH", _GROUP, operation_id="updateGroup", permission=ADMINISTRATOR)
def update_embed_group(
    *, embed_tenant_name: str, group_id: int | str, body: UpdateEmbedGroupInput | None = None
) -> UserGroupDTO:
    """Change a group's description; its name stays."""


@endpoint("DELETE", _GROUP, operation_id="deleteGroup", permission=ADMINISTRATOR)
def delete_embed_group(*, embed_tenant_name: str, group_id: int | str) -> None:
    """Delete a group. Raises PlatformBadRequestError while it has members."""


@endpoint("GET", _MEMBERS, operation_id="getGroupMembers", permission=ADMINISTRATOR)
def list_embed_group_members(
    *, embed_tenant_name: str, group_id: int | str, query: PageQuery | None = None
) -> Page[EmbedUser]:
    """The users of a group."""


@endpoint("POST", _MEMBERS, operation_id="addGroupMembers", permission=ADMINISTRATOR)
def add_embed_group_members(
    *, embed_tenant_name: str, group_id: int | str, body: EmbedGroupMembersInput
) -> EmbedGroupMembersMutationResponse:
    """Add up to 1000 users, each `{"embedUserId"}` or `{"externalId"}`, to a group."""


@endpoint("DELETE", _MEMBERS, operation_id="removeGroupMembers", permission=ADMINISTRATOR)
def remove_embed_group_members(
    *, embed_tenant_name: str, group_id: int | str, body: EmbedGroupMembersInput
) -> None:
    """Remove up to 1000 users, each `{"embedUserId"}` or `{"externalId"}`, from a group."""


@endpoint("GET", f"{_TENANT}/users", operation_id="listEmbedUsers", permission=ADMINISTRATOR)
def list_embed_users(
    *, embed_tenant_name: str, query: EmbedSearchQuery | None = None
) -> Page[EmbedUser]:
    """The users of an embed tenant."""


@endpoint("POST", f"{_TENANT}/user", operation_id="provisionEmbedUser", permission=ADMINISTRATOR)
def provision_embed_user(*, embed_tenant_name: str, body: ProvisionEmbedUserInput) -> EmbedUser:
    """Create a user or change one; the lists of groups replace what is there."""


@endpoint("POST", f"{_TENANT}/users", operation_id="provisionEmbedUsers", permission=ADMINISTRATOR)
def provision_embed_users(
    *, embed_tenant_name: str, body: ProvisionEmbedUsersInput
) -> ProvisionEmbedUsersResponse:
    """Create or change up to 100 users, each a `ProvisionEmbedUserInput` or its object. Who
    failed is in `failed`, not an error."""


def delete_embed_tenant(embed_tenant_name: str) -> Program[None]:
    """Delete an embed tenant with its users, groups and content; gone already is fine.

    The path ends in `/` on the first releases and without one later: where a tenant does not know
    the one (404, 405, a redirect, a web page), the other is tried. Raises PlatformInputError for a
    name that is not in lower case, else the error of the second form.
    """
    if embed_tenant_name != embed_tenant_name.lower():
        raise PlatformInputError(
            "Nothing was sent: embed_tenant_name must be in lower case.", field="embed_tenant_name"
        )
    try:
        yield from call(delete_embed_tenant_with_slash(embed_tenant_name=embed_tenant_name))
    except (PlatformNotFoundError, PlatformAddressError, PlatformBadRequestError) as error:
        if isinstance(error, PlatformBadRequestError) and error.status != 405:
            raise
        yield from call(delete_embed_tenant_without_slash(embed_tenant_name=embed_tenant_name))
