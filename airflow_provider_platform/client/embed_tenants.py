"""Embed tenants: the customers' customers, their groups and users."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from airflow_provider_platform.client.embed import EmbedUserProfile
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformInputError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.models import AnswerModel, InputModel, Timestamp
from airflow_provider_platform.client.operation import Endpoint
from airflow_provider_platform.client.paging import Page, PageQuery
from airflow_provider_platform.client.policies import ADMINISTRATOR
from airflow_provider_platform.client.program import Program, call
from airflow_provider_platform.client.workspace import BulkActionError


class EmbedTenant(AnswerModel):
    """An embed tenant."""

    id: int
    name: str | None = None
    user_count: int | None = None
    created_at: Timestamp | None = None
    display_name: str | None = None


class EmbedUser(AnswerModel):
    """A user of an embed tenant."""

    id: int
    username: str | None = None
    created_at: Timestamp | None = None
    email: str | None = None
    external_id: str | None = None
    first_name: str | None = None
    last_login: Timestamp | None = None


class UserGroupDTO(AnswerModel):
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

    @model_validator(mode="after")
    def _one_id(self) -> Self:
        if (self.embed_user_id is None) == (self.external_id is None):
            raise ValueError("give exactly one of embed_user_id and external_id")
        return self


class EmbedGroupMembersInput(InputModel):
    """Users to add or remove."""

    members: list[EmbedGroupMemberInput] = Field(min_length=1, max_length=1000)


class EmbedGroupMembersMutationResponse(AnswerModel):
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


class ProvisionEmbedUserFailure(AnswerModel):
    """A user that was not provisioned."""

    external_id: str | None = None
    error: BulkActionError | None = None


class ProvisionEmbedUsersResponse(AnswerModel):
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

LIST_EMBED_TENANTS = Endpoint(
    operation_id="listEmbedTenants",
    method="GET",
    path=_TENANTS,
    query=EmbedSearchQuery,
    answer=Page[EmbedTenant],
    description="embed tenant list",
    permission=ADMINISTRATOR,
)
DELETE_EMBED_TENANT = Endpoint(
    operation_id="deleteEmbedTenant",
    method="DELETE",
    path=f"{_TENANT}/",
    answer=type(None),
    description="embed tenant delete",
    permission=ADMINISTRATOR,
)
DELETE_EMBED_TENANT_WITHOUT_SLASH = Endpoint(
    operation_id="deleteEmbedTenant",
    method="DELETE",
    path=_TENANT,
    answer=type(None),
    description="embed tenant delete",
    permission=ADMINISTRATOR,
)
LIST_EMBED_GROUPS = Endpoint(
    operation_id="getGroups",
    method="GET",
    path=_GROUPS,
    query=PageQuery,
    answer=Page[UserGroupDTO],
    description="embed group list",
    permission=ADMINISTRATOR,
)
CREATE_EMBED_GROUP = Endpoint(
    operation_id="createGroup",
    method="POST",
    path=_GROUPS,
    body=CreateEmbedGroupInput,
    body_required=True,
    answer=UserGroupDTO,
    description="embed group create",
    permission=ADMINISTRATOR,
)
GET_EMBED_GROUP = Endpoint(
    operation_id="getGroup",
    method="GET",
    path=_GROUP,
    answer=UserGroupDTO,
    description="embed group get",
    permission=ADMINISTRATOR,
)
UPDATE_EMBED_GROUP = Endpoint(
    operation_id="updateGroup",
    method="PATCH",
    path=_GROUP,
    body=UpdateEmbedGroupInput,
    body_required=True,
    answer=UserGroupDTO,
    description="embed group update",
    permission=ADMINISTRATOR,
)
DELETE_EMBED_GROUP = Endpoint(
    operation_id="deleteGroup",
    method="DELETE",
    path=_GROUP,
    answer=type(None),
    description="embed group delete",
    permission=ADMINISTRATOR,
)
LIST_EMBED_GROUP_MEMBERS = Endpoint(
    operation_id="getGroupMembers",
    method="GET",
    path=_MEMBERS,
    query=PageQuery,
    answer=Page[EmbedUser],
    description="embed group member list",
    permission=ADMINISTRATOR,
)
ADD_EMBED_GROUP_MEMBERS = Endpoint(
    operation_id="addGroupMembers",
    method="POST",
    path=_MEMBERS,
    body=EmbedGroupMembersInput,
    body_required=True,
    answer=EmbedGroupMembersMutationResponse,
    description="embed group member add",
    permission=ADMINISTRATOR,
)
REMOVE_EMBED_GROUP_MEMBERS = Endpoint(
    operation_id="removeGroupMembers",
    method="DELETE",
    path=_MEMBERS,
    body=EmbedGroupMembersInput,
    body_required=True,
    answer=type(None),
    description="embed group member remove",
    permission=ADMINISTRATOR,
)
LIST_EMBED_USERS = Endpoint(
    operation_id="listEmbedUsers",
    method="GET",
    path=f"{_TENANT}/users",
    query=EmbedSearchQuery,
    answer=Page[EmbedUser],
    description="embed user list",
    permission=ADMINISTRATOR,
)
PROVISION_EMBED_USER = Endpoint(
    operation_id="provisionEmbedUser",
    method="POST",
    path=f"{_TENANT}/user",
    body=ProvisionEmbedUserInput,
    body_required=True,
    answer=EmbedUser,
    description="embed user provision",
    permission=ADMINISTRATOR,
)
PROVISION_EMBED_USERS = Endpoint(
    operation_id="provisionEmbedUsers",
    method="POST",
    path=f"{_TENANT}/users",
    body=ProvisionEmbedUsersInput,
    body_required=True,
    answer=ProvisionEmbedUsersResponse,
    description="embed users provision",
    permission=ADMINISTRATOR,
)


def delete_embed_tenant(embed_tenant_name: str) -> Program[None]:
    """Delete an embed tenant with its users, groups and content; gone already is fine.

    The path ends in `/` on the first releases and without one later: where a tenant does not know
    the one (404, a redirect, a web page), the other is tried. Raises PlatformInputError for a
    name that is not in lower case, else the error of the second form.
    """
    if embed_tenant_name != embed_tenant_name.lower():
        raise PlatformInputError(
            "Nothing was sent: embed_tenant_name must be in lower case.", field="embed_tenant_name"
        )
    try:
        yield from call(DELETE_EMBED_TENANT(embed_tenant_name=embed_tenant_name))
    except (PlatformNotFoundError, PlatformAddressError):
        yield from call(DELETE_EMBED_TENANT_WITHOUT_SLASH(embed_tenant_name=embed_tenant_name))
