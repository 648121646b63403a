"""Embedding: sessions, access, tenants; what is sent, and what the answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformError,
    PlatformInputError,
    PlatformNotFoundError,
    PlatformPermissionError,
)
from airflow_provider_platform.client.management.embed.access import (
    UpdateDashboardEmbeddingInput,
    UpdateEmbedAccessInput,
    update_dashboard_embedding,
    update_embed_access,
)
from airflow_provider_platform.client.management.embed.sessions import (
    GenerateSession,
    PostTokenBySessionIdInput,
    RevokeEmbedSessionInput,
    create_embed_token,
    generate_embed_session,
    revoke_embed_session,
)
from airflow_provider_platform.client.management.embed.tenants import (
    EmbedGroupMembersInput,
    ProvisionEmbedUsersInput,
    add_embed_group_members,
    delete_embed_tenant,
    provision_embed_users,
)
from airflow_provider_platform.client.operations.program import Call

CANARY = "0123456789abcdef0123456789abcdef"


def test_session_has_the_described_body() -> None:
    body = GenerateSession.build(
        deployment_id="7",
        external_id="u1",
        creator_mode=True,
        embed_tenant_name="acme",
        embed_tenant_profile={"displayName": "Acme"},
        tenant_groups=["buyers"],
        tenant_group_definitions=[{"name": "buyers", "description": "d"}],
        user_attributes=[{"name": "region", "value": ["EU", 1]}],
        settings={"allowAi": False, "locale": "de-DE"},
    )

    operation = generate_embed_session(body=body)

    assert (operation.method, operation.path) == ("POST", "/v1/embed/generate-session")
    assert operation.body == {
        "deploymentId": 7,
        "externalId": "u1",
        "creatorMode": True,
        "embedTenantName": "acme",
        "embedTenantProfile": {"displayName": "Acme"},
        "tenantGroups": ["buyers"],
        "tenantGroupDefinitions": [{"name": "buyers", "description": "d"}],
        "userAttributes": [{"name": "region", "value": ["EU", 1]}],
        "settings": {"allowAi": False, "locale": "de-DE"},
    }
    assert not operation.repeatable


@pytest.mark.parametrize(
    "given",
    [
        {"ephemeral_ttl_seconds": 60},
        {"ephemeralTtlSeconds": 60},
        {"external_id": "a", "internal_id": "b"},
        {"tenant_groups": ["a"]},
        {"tenant_groups": ["a"], "creator_mode": True},
        {"tenant_group_definitions": [{"name": "a"}], "embed_tenant_name": "acme"},
        {"embed_tenant_name": "Acme"},
        {"embed_tenant_name": "a_b"},
    ],
)
def test_sessions_that_the_service_would_refuse_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        GenerateSession.build(**{"deployment_id": 7, **given})


def test_a_session_id_is_a_secret_from_answer_to_request() -> None:
    session = generate_embed_session(body=GenerateSession()).read({"sessionId": CANARY})

    redeem = create_embed_token(body=PostTokenBySessionIdInput.build(session_id=session.session_id))
    revoke = revoke_embed_session(body=RevokeEmbedSessionInput.build(session_id=CANARY))

    assert redeem.body == revoke.body == {"sessionId": CANARY}
    token = redeem.read({"token": CANARY})
    for shown in (session, redeem, revoke, token):
        assert CANARY not in repr(shown)
        assert CANARY not in str(shown)
    assert CANARY not in str(session.to_json()) + str(token.to_json())
    assert revoke.read(None) is None


@pytest.mark.parametrize("session_id", ["", "short", "G" * 32, "0" * 33])
def test_invalid_session_id_is_refused_without_showing_it(session_id: str) -> None:
    with pytest.raises(PlatformInputError) as raised:
        RevokeEmbedSessionInput.build(session_id=session_id)

    assert not session_id or session_id not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"allow_embed": True}, {"allowEmbed": True}),
        (
            {"action": "read", "embed_tenant_name": "acme"},
            {"action": "read", "embedTenantName": "acme"},
        ),
        ({"action": "none", "all_embed_users": True}, {"action": "none", "allEmbedUsers": True}),
    ],
)
def test_embed_access_body_has_the_described_fields(
    given: dict[str, Any], body: dict[str, Any]
) -> None:
    operation = update_embed_access(
        deployment_id=7, workbook_id=3, body=UpdateEmbedAccessInput.build(**given)
    )

    assert operation.body == body


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"action": "read"},
        {"embed_tenant_name": "acme"},
        {"action": "read", "embed_tenant_name": "acme", "all_embed_users": True},
        {"action": "write", "all_embed_users": True},
    ],
)
def test_embed_access_without_one_target_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError):
        UpdateEmbedAccessInput.build(**given)


def test_patch_request_is_not_repeated() -> None:
    operation = update_dashboard_embedding(
        public_id="pub-1", body=UpdateDashboardEmbeddingInput.build(allow_embed=False)
    )

    assert (operation.method, operation.body) == ("PATCH", {"allowEmbed": False})
    assert not operation.repeatable


def test_group_member_needs_exactly_one_id() -> None:
    body = EmbedGroupMembersInput.build(members=[{"embedUserId": 1}, {"externalId": "u"}])

    operation = add_embed_group_members(embed_tenant_name="acme", group_id=5, body=body)

    assert operation.path == "/v1/embed-tenants/acme/groups/5/users"
    assert operation.body == {"members": [{"embedUserId": 1}, {"externalId": "u"}]}
    for member in ({}, {"embedUserId": 1, "externalId": "u"}):
        with pytest.raises(PlatformInputError, match="members"):
            EmbedGroupMembersInput.build(members=[member])


def test_provisioning_many_users_returns_the_failed_users() -> None:
    body = ProvisionEmbedUsersInput.build(users=[{"externalId": "u", "groups": []}])
    operation = provision_embed_users(embed_tenant_name="acme", body=body)

    outcome = operation.read(
        {
            "succeeded": [{"id": 1, "lastLogin": "2026-09-01"}],
            "failed": [{"externalId": "v", "error": {"status": 429, "message": "limit"}}],
        }
    )

    assert operation.body == {"users": [{"externalId": "u", "groups": []}]}
    assert outcome.failed is not None
    assert outcome.failed[0].external_id == "v"


def delete(*outcomes: PlatformError | None) -> tuple[list[str], BaseException | None]:
    """The paths that deleting a tenant asks for, and the error that it ends with."""
    program = delete_embed_tenant("acme")
    paths = []
    remaining = list(outcomes)
    try:
        effect = next(program)
        while True:
            assert isinstance(effect, Call)
            assert effect.operation.method == "DELETE"
            paths.append(effect.operation.path)
            outcome = remaining.pop(0)
            effect = program.throw(outcome) if outcome else program.send(None)
    except StopIteration:
        return paths, None
    except PlatformError as error:
        return paths, error


WITH_SLASH, WITHOUT = "/v1/embed-tenants/acme/", "/v1/embed-tenants/acme"


def test_a_tenant_is_deleted_at_the_described_path() -> None:
    assert delete(None) == ([WITH_SLASH], None)


@pytest.mark.parametrize(
    "unknown",
    [
        PlatformNotFoundError("404", status=404),
        PlatformBadRequestError("405", status=405),
        PlatformAddressError("308"),
    ],
)
def test_path_without_a_slash_is_tried_if_the_path_with_one_is_unknown(
    unknown: PlatformError,
) -> None:
    assert delete(unknown, None) == ([WITH_SLASH, WITHOUT], None)


def test_other_errors_of_a_deletion_do_not_try_the_second_path() -> None:
    for refused in (
        PlatformPermissionError("403", status=403),
        PlatformBadRequestError("400", status=400),
    ):
        assert delete(refused) == ([WITH_SLASH], refused)


def test_second_error_is_raised_if_neither_path_is_known() -> None:
    second = PlatformNotFoundError("no such tenant", status=404)

    assert delete(PlatformNotFoundError("404"), second) == ([WITH_SLASH, WITHOUT], second)


@pytest.mark.parametrize("name", ["Acme", "", ".."])
def test_names_that_cannot_be_tenants_are_refused(name: str) -> None:
    with pytest.raises(PlatformInputError):
        next(delete_embed_tenant(name))
