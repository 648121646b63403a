"""Authenticates requests to the chat API, and checks their bodies strictly."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.table import Schema, problems
from airflow_provider_platform.sandbox.http.responses import ApiError, JsonRpcError, is_json
from airflow_provider_platform.sandbox.state.credentials import matches, verify
from airflow_provider_platform.sandbox.state.server_state import ServerState

INTERNAL_USERS = frozenset({"analyst@acme.example.com", "admin@acme.example.com"})
USER_ATTRIBUTES = frozenset({"country", "region", "department"})
TOKEN_HEADERS = ("x-service-auth-token", "x-cube-auth-token")

_FORBIDDEN_WITH_INTERNAL_ID = ("roles", "groups", "userAttributes", "securityContext")
_TEXT: Schema = {"type": "string"}
_FILLED: Schema = {"type": "string", "minLength": 1}
_FLAG: Schema = {"type": "boolean"}
_OBJECT: Schema = {"type": "object"}


def _object(properties: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": properties, "required": list(required)}


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


_ZONE: Schema = {"type": "string", "format": "timezone"}
_ATTRIBUTE = _object(
    {"name": {"type": "string", "enum": sorted(USER_ATTRIBUTES)}, "value": _TEXT}, "name", "value"
)
_SESSION = _object(
    {
        "externalId": _FILLED,
        "internalId": _FILLED,
        "email": {"type": "string", "format": "email"},
        "userAttributes": _array(_ATTRIBUTE),
        "groups": _array(_FILLED),
        "roles": _array(_FILLED),
        "securityContext": _OBJECT,
        "isEphemeral": _FLAG,
        "ephemeralTtlSeconds": {"type": "integer", "minimum": 1},
        "publicDashboardId": _FILLED,
        "timezone": _ZONE,
        "settings": _object({"timezone": _ZONE}),
        "allowChatWorkspaceAuthoring": _FLAG,
    }
)
_CONTEXTS = [
    *("chat", "workbook", "model", "dashboard", "external", "mcp", "ai-widget", "onboarding"),
    *("explore", "connection_setup", "slack_dm", "published-dashboard"),
]
_STREAM = _object(
    {
        "input": _FILLED,
        "chatId": _FILLED,
        "messageId": {"type": "string", "pattern": "^[0-9]{13,}-message$"},
        "sessionSettings": {},
        "activeBranchName": _FILLED,
        "isDefaultBranch": _FLAG,
        "isDevMode": _FLAG,
        "agentId": {"type": ["number", "null"]},
        "context": {"type": "string", "enum": _CONTEXTS},
        "cubeCredentials": {},
        "dashboardContext": _OBJECT,
        "images": _array(
            _object({"mimeType": _FILLED, "data": _FILLED, "name": _TEXT}, "mimeType", "data")
        ),
        "workbookContext": _OBJECT,
        "workbookId": {"type": "number"},
    }
)
_ABORT = _object({"chatId": _FILLED, "sessionSettings": {}}, "chatId")


def _fits_64_bits(message_id: Any) -> bool:
    """Return whether the number in an id fits a signed integer of 64 bits, as which the service
    stores it."""
    digits = str(message_id).removesuffix("-message")
    return not digits.isdigit() or (len(digits) <= 19 and int(digits) < 2**63)


@dataclass(frozen=True)
class StreamRequest:
    """A valid body of the stream operation, and the agent that it was sent to."""

    agent: str
    identity: str
    input: str | None
    chat_id: str | None
    message_id: str | None
    branch: str | None
    is_default_branch: bool
    session_settings: dict[str, Any] | None
    """What a request with an API key says about the user; None with a service token, which ignores
    it."""


@dataclass(frozen=True)
class AbortRequest:
    """A valid body of the abort operation. An API key alone names no user."""

    agent: str
    identity: str | None
    chat_id: str


def read_stream_request(
    server: ServerState, agent: str, headers: Mapping[str, str], body: bytes
) -> StreamRequest:
    """Check credentials, then the body; raises ``JsonRpcError`` and ``ApiError`` (400, 403)."""
    claims = _authenticate(server, agent, headers)
    document = _document(headers, body)
    settings = document.get("sessionSettings")
    messages = problems(_STREAM, document)
    if not _fits_64_bits(document.get("messageId")):
        messages.append("messageId must be a Unix time in milliseconds that fits 64 bits")
    if claims is None:
        messages += _session_messages(settings, required=True)
    identity = _identity(claims, settings)
    if messages or identity is None:
        raise ApiError(400, messages)
    branch = document.get("activeBranchName")
    return StreamRequest(
        agent=agent,
        identity=identity,
        input=document.get("input"),
        chat_id=document.get("chatId"),
        message_id=document.get("messageId"),
        branch=branch,
        is_default_branch=document.get("isDefaultBranch", branch is None),
        session_settings=settings if claims is None else None,
    )


def read_abort_request(
    server: ServerState, agent: str, headers: Mapping[str, str], body: bytes
) -> AbortRequest:
    """As ``read_stream_request``, for the abort operation."""
    claims = _authenticate(server, agent, headers)
    document = _document(headers, body)
    messages = problems(_ABORT, document)
    settings = document.get("sessionSettings")
    if claims is None and "sessionSettings" in document:
        messages += _session_messages(settings, required=False)
    if messages:
        raise ApiError(400, messages)
    return AbortRequest(agent, _identity(claims, settings), document["chatId"])


def new_message_id() -> str:
    return f"{int(time.time() * 1000)}-message"


def _authenticate(
    server: ServerState, agent: str, headers: Mapping[str, str]
) -> dict[str, Any] | None:
    """Return the claims of a service token, or None for a valid API key."""
    authorization = headers.get("authorization")
    if authorization is not None:
        scheme, _, key = authorization.partition(" ")
        if scheme.lower() == "api-key" and not agent.startswith("agents/"):
            raise ApiError(403, "agentId is required for Api-Key authentication")
        if scheme.lower() != "api-key" or not matches(key.strip(), server.credentials.chat_api_key):
            raise JsonRpcError("Unauthorized: the API key is not valid for this agent")
        return None
    token = next((headers[name] for name in TOKEN_HEADERS if name in headers), None)
    if token is None:
        raise JsonRpcError("Unauthorized: no credentials were sent")
    if not server.settings.service_tokens:
        raise JsonRpcError("Unauthorized: service tokens are switched off for this deployment")
    try:
        claims = verify(token, server.credentials.api_secret, server.clock.now())
    except ValueError as error:
        raise JsonRpcError(f"Unauthorized: invalid service token: {error}") from None
    scope = claims.get("scope")
    if not isinstance(scope, list) or "chat" not in scope:
        raise JsonRpcError("Forbidden: the service token lacks the chat scope")
    external_id = claims.get("externalId", claims.get("sub"))
    if not isinstance(external_id, str) or not external_id:
        raise JsonRpcError("Unauthorized: the service token has neither externalId nor sub")
    return claims


def _identity(claims: dict[str, Any] | None, settings: Any) -> str | None:
    if claims is not None:
        return f"external:{claims.get('externalId', claims.get('sub'))}".lower()
    if isinstance(settings, dict):
        kind = "external" if "externalId" in settings else "internal"
        value = settings.get(f"{kind}Id")
        if isinstance(value, str):
            return f"{kind}:{value.strip()}".lower()
    return None


def _document(headers: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the JSON body; an empty body is allowed."""
    if not body:
        return {}
    if not is_json(headers):
        raise ApiError(415, "Content-Type must be application/json")
    try:
        document = json.loads(body)
    except ValueError:
        raise ApiError(400, "the body must be JSON") from None
    if not isinstance(document, dict):
        raise ApiError(400, "the body must be an object")
    return document


def _session_messages(settings: Any, *, required: bool) -> list[str]:
    if settings is None and required:
        return ["sessionSettings is required with API key authentication"]
    whole = _object({"sessionSettings": _SESSION})
    if messages := problems(whole, {"sessionSettings": settings}):
        return messages
    ids = [key for key in ("externalId", "internalId") if key in settings]
    if len(ids) != 1:
        return ["sessionSettings must have exactly one of externalId and internalId"]
    if ids == ["externalId"]:
        external_id = settings["externalId"]
        if external_id != external_id.lower() or re.search(r"\s", external_id):
            return ["sessionSettings.externalId must be lowercase and without spaces"]
        return []
    barred = [key for key in _FORBIDDEN_WITH_INTERNAL_ID if key in settings]
    if barred:
        return [f"sessionSettings.{key} is not allowed with internalId" for key in barred]
    if settings["internalId"].strip().lower() not in INTERNAL_USERS:
        return [f"sessionSettings.internalId: no user {settings['internalId']}"]
    return []
