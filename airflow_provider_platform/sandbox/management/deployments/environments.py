"""Environments of a deployment and the tokens minted for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging, users
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import Branch, branches_of

resource = Resource("/api/v1/deployments/{deploymentId}/environments")

_TYPES = ("production", "staging", "development")
_LONGEST = 3600
_SIGNED = ("meta", "sql-runner")
_INPUT = checks.nullable_fields(
    {
        "security_context": checks.needed(checks.mapping),
        "expires_in": checks.integer(minimum=1, maximum=_LONGEST),
        "scopes": checks.array(checks.string()),
    }
)


class EnvironmentTokens:
    """Tokens with the environment they are for and the user who asked for them, oldest first."""

    def __init__(self) -> None:
        self.minted: list[tuple[int, int, Item]] = []


def _environments(call: Call) -> list[Item]:
    """Production, the branches with staging switched on, then the forks that somebody is on."""
    branches = branches_of(call.server, call.deployment)
    production = branches.get(branches.deploy)
    staging = [("staging", one, None) for one in branches.all() if one.staging]
    viewed = {session.branch: session.user for session in branches.sessions.values()}
    development = [
        ("development", one, str(users.owner(viewed[one.name])["email"]))
        for one in branches.all()
        if one.name in viewed
    ]
    return [
        _shown(call, kind, branch, user)
        for kind, branch, user in [("production", production, None), *staging, *development]
        if branch is not None
    ]


def _shown(call: Call, kind: str, branch: Branch, user: str | None) -> Item:
    """One environment; ids are text in answers."""
    base = f"{call.server.base_url}/deployments/{call.deployment}"
    if kind != "production":
        slashes = "" if call.server.settings.branch_path == "encoded" else "/"
        base = f"{base}/dev-mode/{quote(branch.name, safe=slashes)}"
    return {
        "id": str(branch.environment),
        "type": kind,
        "branch": None if kind == "production" else branch.name,
        "user": user,
        "api_credentials": [
            {"type": "rest", "version": 1, "url": f"{base}/cubejs-api"},
            {"type": "sql", "version": 1, "host": "127.0.0.1", "port": 15432},
        ],
    }


def _environment(call: Call) -> int:
    environment: int = call.path["environmentId"]
    if str(environment) not in [one["id"] for one in _environments(call)]:
        raise ApiError(404, f"Environment {environment} not found in deployment {call.deployment}")
    return environment


@resource.get(query={"type": checks.string(one_of=_TYPES), **paging.OFFSETS})
def list_environments(call: Call) -> Any:
    kind = call.query.get("type")
    items = [one for one in _environments(call) if kind in (None, one["type"])]
    return paging.offset_page(call, items)


@resource.get("/{environmentId}/tokens", query=paging.OFFSETS)
def list_environment_tokens(call: Call) -> Any:
    """Those of the caller that have not expired."""
    environment, caller = _environment(call), call.user
    now = call.server.clock.stamp()
    tokens = [
        token
        for place, user, token in call.store(EnvironmentTokens).minted
        if (place, user) == (environment, caller) and token["expires_at"] > now
    ]
    return paging.offset_page(call, tokens)


@resource.post("/{environmentId}/tokens", body=_INPUT)
def create_environment_token(call: Call) -> Any:
    """Of the scopes asked for, only ``meta`` and ``sql-runner`` are signed."""
    return _mint(call, [scope for scope in call.body.get("scopes", []) if scope in _SIGNED])


@resource.post("/{environmentId}/tokens-for-meta-sync", body=_INPUT)
def create_meta_sync_token(call: Call) -> Any:
    """Always ``meta``, and ``meta-private`` if asked for; other scopes are dropped."""
    private = "meta-private" in call.body.get("scopes", [])
    scopes = ["meta", "meta-private"] if private else ["meta"]
    return _mint(call, scopes, credentials.WITH_PREFIX)


def _mint(call: Call, scopes: list[str], more: Mapping[str, str] | None = None) -> Item:
    environment = _environment(call)
    clock, now = call.server.clock, int(call.server.clock.now())
    lifetime = call.body.get("expires_in", _LONGEST)
    may_edit = "DeploymentUpdate" not in call.server.settings.token_lacks
    context = call.body["security_context"] if may_edit else {}
    claims = {
        **context,
        **(more or {}),
        "scope": scopes,
        "deploymentId": call.deployment,
        "iat": now,
        "exp": now + lifetime,
    }
    token = {
        "token": credentials.sign(claims, call.server.credentials.api_secret),
        "security_context": context,
        "created_at": clock.stamp(now),
        "expires_at": clock.stamp(now + lifetime),
    }
    caller = call.user
    call.store(EnvironmentTokens).minted.append((environment, caller, token))
    call.record("created", "environment-tokens", environment)
    return {"data": {**token, "scopes": scopes}}
