"""Embed sessions: generate one, exchange its id once for a token, revoke it."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import embed_bodies
from airflow_provider_platform.sandbox.management.shared import embed_tenants as tenants
from airflow_provider_platform.sandbox.management.shared.embed_tenants import EmbedTenants
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS, Call, Resource
from airflow_provider_platform.sandbox.management.workbooks.dashboards import Dashboards
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import branches_of

resource = Resource("/api/v1/embed", needs="Admin")

_DAY = 86400
_FOR_CREATORS = ("tenantGroups", "tenantGroupDefinitions")
_TEXTS = checks.array(checks.string())


@dataclass
class Session:
    """One session; its id is a credential and does not show in the journal."""

    number: int
    claims: dict[str, Any]
    open: bool = True


class Sessions:
    """Sessions by their secret id."""

    def __init__(self) -> None:
        self.by_id: dict[str, Session] = {}

    def add(self, claims: dict[str, Any]) -> tuple[str, Session]:
        session_id = secrets.token_hex(16)
        self.by_id[session_id] = Session(len(self.by_id) + 1, claims)
        return session_id, self.by_id[session_id]


@resource.post(
    "/generate-session",
    body={
        "deploymentId": checks.needed(checks.integer()),
        "branchName": checks.string(),
        "creatorMode": checks.boolean,
        "email": embed_bodies.EMAIL,
        "embedTenantName": checks.string(pattern=tenants.NAME),
        "embedTenantProfile": embed_bodies.TENANT_PROFILE,
        "embedTheme": embed_bodies.THEME,
        "externalId": checks.string(),
        "internalId": checks.string(),
        "groupDefinitions": checks.array(embed_bodies.GROUP_DEFINITION),
        "groups": _TEXTS,
        "isEphemeral": checks.boolean,
        "publicDashboardId": checks.string(),
        "roles": _TEXTS,
        "securityContext": checks.mapping,
        "settings": embed_bodies.SESSION_SETTINGS,
        "tenantGroupDefinitions": checks.array(embed_bodies.GROUP_DEFINITION),
        "tenantGroups": _TEXTS,
        "userAttributeDefinitions": checks.array(embed_bodies.USER_ATTRIBUTE_DEFINITION),
        "userAttributes": checks.array(embed_bodies.USER_ATTRIBUTE),
        "userProfile": embed_bodies.USER_PROFILE,
    },
)
def generate_session(call: Call) -> Any:
    """One more session; tenant, groups and user that it names are made if they are not there."""
    body = call.body
    _check(call, body)
    tenant = body.get("embedTenantName")
    if tenant is not None:
        _provide(call, tenant, body)
    claims = {
        "deploymentId": body["deploymentId"],
        "branchName": body.get("branchName"),
        "sub": body.get("externalId") or body.get("internalId"),
        "embedTenantName": tenant,
        "creatorMode": body.get("creatorMode", False),
    }
    session_id, session = call.store(Sessions).add(claims)
    call.record("created", "embed-sessions", session.number)
    return {"sessionId": session_id}


@resource.post(
    "/session/token",
    needs=None,
    anonymous=True,
    body={"sessionId": checks.needed(checks.string())},
)
def create_token_of_session(call: Call) -> Any:
    """The session id is the credential, and good for one exchange."""
    session = call.store(Sessions).by_id.get(call.body["sessionId"])
    if session is None or not session.open:
        raise ApiError(401, "The session is unknown or has been used")
    session.open = False
    now = int(call.server.clock.now())
    claims = {**session.claims, "iat": now, "exp": now + _DAY}
    call.record("redeemed", "embed-sessions", session.number)
    return {"token": credentials.sign(claims, call.server.credentials.api_secret)}


@resource.post(
    "/session/revoke",
    since="0.11.0",
    body={"sessionId": checks.needed(checks.string(pattern="[0-9a-f]{32}"))},
)
def revoke_session(call: Call) -> Response:
    """A session that is not there is revoked already; the answer is 204 always."""
    session = call.store(Sessions).by_id.get(call.body["sessionId"])
    if session is not None:
        session.open = False
        call.record("revoked", "embed-sessions", session.number)
    return Response(status_code=204)


def _check(call: Call, body: dict[str, Any]) -> None:
    may_create = body.get("creatorMode") and "embedTenantName" in body
    messages = [
        f"{name} needs creatorMode and embedTenantName"
        for name in _FOR_CREATORS
        if name in body and not may_create
    ]
    if "externalId" in body and "internalId" in body:
        messages.append("externalId and internalId exclude each other")
    if "embedTenantProfile" in body and "embedTenantName" not in body:
        messages.append("embedTenantProfile needs embedTenantName")
    if messages:
        raise ApiError(400, messages)
    if body["deploymentId"] not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {body['deploymentId']} not found")
    branch = body.get("branchName")
    if branch is not None:
        answer = branches_of(call.server, body["deploymentId"]).ask(branch, call.server)
        if answer.kind == "bad":
            raise ApiError(404, f"{branch} is not a branch of deployment {body['deploymentId']}")
        if answer.kind not in ("serving", "asleep"):
            raise ApiError(400, [f"nothing serves the branch {branch}: {answer.words}"])
    dashboard = body.get("publicDashboardId")
    if dashboard is not None and call.store(Dashboards).with_public_id(dashboard) is None:
        raise ApiError(404, f"Dashboard {dashboard} not found")


def _provide(call: Call, tenant: str, body: dict[str, Any]) -> None:
    store, now = call.store(EmbedTenants), call.server.clock.stamp()
    profile = body.get("embedTenantProfile") or {}
    store.provide(tenant, profile.get("displayName"), now)
    for definition in body.get("tenantGroupDefinitions", []):
        store.provide_group(tenant, definition["name"], definition.get("description"))
    groups = [store.provide_group(tenant, name) for name in body.get("tenantGroups", [])]
    if "externalId" in body:
        fields = {"email": body["email"]} if "email" in body else {}
        user = store.provide_user(tenant, body["externalId"], **fields)
        store.put_in_groups(user, groups)
