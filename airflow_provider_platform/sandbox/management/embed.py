"""Embedding: users are provisioned, and sessions are made, redeemed and revoked."""

from __future__ import annotations

import secrets
from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.call import Call, given, handles
from airflow_provider_platform.sandbox.management.generic_store import shown
from airflow_provider_platform.sandbox.management.samples import DEPLOYMENTS, Item
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import branches_of

_DAY = 86400


@handles("provisionEmbedUser", "provisionEmbedUsers")
def provision_users(call: Call) -> Any:
    """Create or change users; the same request again changes nothing."""
    users = [_provision(call, given(one)) for one in call.body.get("users", [call.body])]
    return {"succeeded": users, "failed": []} if "users" in call.body else users[0]


def _provision(call: Call, fields: Item) -> Item:
    external_id = fields["externalId"]
    named = {"embedTenantName": call.path["embedTenantName"], "externalId": external_id}
    known = call.items.find("users", **named)
    blank = {"username": external_id, "createdAt": call.now, "email": None}
    user = known or call.items.add("users", {**named, **blank})
    user["email"] = fields.get("email", user["email"])
    call.record("created" if known is None else "updated", "users", user["id"])
    return shown(call, "users", user)


class Sessions:
    """Sessions by their secret id: their number, and the claims of the token; None if used."""

    def __init__(self) -> None:
        self.by_id: dict[str, tuple[int, Item | None]] = {}


@handles("generateSession")
def generate_session(call: Call) -> Any:
    """One more session, every time it is asked for."""
    body = call.body
    _check_place(call, body["deploymentId"], body.get("branchName"))
    claims = {
        "deploymentId": body["deploymentId"],
        "branchName": body.get("branchName"),
        "sub": body.get("externalId") or body.get("internalId"),
        "embedTenantName": body.get("embedTenantName"),
        "creatorMode": body.get("creatorMode", False),
    }
    session_id, sessions = secrets.token_hex(16), call.store(Sessions).by_id
    sessions[session_id] = (len(sessions) + 1, claims)
    call.record("created", "embed-sessions", len(sessions))
    return {"sessionId": session_id}


@handles("postTokenBySessionId")
def redeem_session(call: Call) -> Any:
    """The session id is the credential, and good for one exchange."""
    number, claims = _end(call)
    if claims is None:
        raise ApiError(401, "The session is unknown or has been used")
    now = int(call.server.clock.now())
    call.record("redeemed", "embed-sessions", number)
    token = {**claims, "iat": now, "exp": now + _DAY}
    return {"token": credentials.sign(token, call.server.credentials.api_secret)}


@handles("revokeSession")
def revoke_session(call: Call) -> None:
    """A session that does not exist is revoked already."""
    number, _ = _end(call)
    if number:
        call.record("revoked", "embed-sessions", number)


def _end(call: Call) -> tuple[int, Item | None]:
    """Return the session that the body names, and keep only its number; 0 if there is none."""
    sessions, session_id = call.store(Sessions).by_id, call.body["sessionId"]
    number, claims = sessions.get(session_id, (0, None))
    if number:
        sessions[session_id] = (number, None)
    return number, claims


def _check_place(call: Call, deployment: int, branch: str | None) -> None:
    if deployment not in DEPLOYMENTS:
        raise ApiError(404, f"Deployment {deployment} not found")
    if branch is not None:
        answer = branches_of(call.server, deployment).ask(branch, call.server)
        if answer.kind == "bad":
            raise ApiError(404, f"{branch} is not a branch of deployment {deployment}")
        if answer.kind not in ("serving", "asleep"):
            raise ApiError(400, [f"nothing serves the branch {branch}: {answer.words}"])
