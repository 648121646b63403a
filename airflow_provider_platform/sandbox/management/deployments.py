"""Deployments: their settings, builds and logs, environments and tokens."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import DEPLOY_BRANCHES, Branch, branches_of
from airflow_provider_platform.sandbox.state.server_state import iso

_HOUR, _DAY = 3600, 86400
_SIGNED = ("meta", "sql-runner")


@generic_store.view("deployments")
def _with_url(call: Call, deployment: Item) -> Item:
    return {"deploymentUrl": f"{call.server.base_url}/deployments/{deployment['id']}"}


@handles("getDeploymentSettings")
def get_settings(call: Call) -> Any:
    settings = call.server.settings
    return {
        **generic_store.shown(
            call, "deployments", generic_store.item(call, "deployments", call.deployment)
        ),
        "template": "simpleCluster",
        "cloudProvider": "aws",
        "releaseChannel": "latest",
        "deployBranchName": DEPLOY_BRANCHES[call.deployment],
        "deployBranchReadOnly": False,
        "deployBranchMergeAllowed": settings.merge_outcome != "not_allowed",
        "deployProjectRoot": "/",
        "isCubeSqlEnabled": True,
        "isSupportPreAggregations": True,
        "deployMode": settings.deploy_mode,
    }


@handles("buildStatus")
def build_status(call: Call) -> Any:
    """The latest build of a branch, without a name of production.

    A branch that does not exist and one that nobody has opened are ``building`` for ever; only the
    error text tells.
    """
    server, branches = call.server, branches_of(call.server, call.deployment)
    name = call.query.get("branchName") or branches.deploy
    now, branch = server.clock.now(), branches.get(name)
    build = None if branch is None else branches.shown(branch, now)
    named = server.settings.named_commits == "all"
    status, error = branches.status(name, server)
    return {
        "deploymentId": call.deployment,
        "branchName": name,
        "mode": "production" if name == branches.deploy else "dev_mode",
        "status": status,
        "buildJobId": None if build is None else build.job,
        "deploymentStatus": "deployed",
        "errorText": error,
        "filesHash": None if build is None else build.model.files,
        "lastHash": build.model.commit if build is not None and named else None,
        "updatedAt": None if build is None else iso(build.changed_at(now)),
    }


@handles("getDeploymentLogs")
def get_logs(call: Call) -> Any:
    """Lines of the latest builds, oldest first; without ``source`` those of production."""
    branches, now = branches_of(call.server, call.deployment), call.server.clock.now()
    dev, wanted = call.query.get("source") == "dev", call.query.get("pod")
    lines = [
        (at, f"{'dev' if dev else 'api'}-{branch.id}", line)
        for branch in branches.all()
        if (branch.name != branches.deploy) == dev
        for build in (branch.previous, branch.build)
        if build is not None
        for at, line in build.log(now)
    ]
    return {
        "items": [
            {"date": iso(at), "pod": pod, "message": line}
            for at, pod, line in sorted(lines)
            if wanted in (None, pod)
        ]
    }


# -- tokens of the data API ------------------------------------------------------------------


@handles("deploymentToken")
def create_token(call: Call) -> Any:
    now = int(call.server.clock.now())
    expires = now + call.body.get("expiresIn", _DAY)
    claims = {"iat": now, "exp": expires, "deploymentId": call.deployment}
    return {"cubeApiToken": credentials.sign(claims, call.server.credentials.api_secret)}


# -- environments and their tokens -----------------------------------------------------------


def _environments(call: Call) -> list[Item]:
    """Production, then the branches with staging switched on."""
    branches = branches_of(call.server, call.deployment)
    staging = [_environment(call, "staging", one) for one in branches.all() if one.staging]
    production = branches.get(branches.deploy)
    return [_environment(call, "production", production), *staging] if production else staging


def _environment(call: Call, kind: str, branch: Branch) -> Item:
    """One environment; ids are text in answers."""
    base = f"{call.server.base_url}/deployments/{call.deployment}"
    if kind != "production":
        base = f"{base}/dev-mode/{quote(branch.name, safe='')}"
    return {
        "id": str(branch.environment),
        "type": kind,
        "branch": None if kind == "production" else branch.name,
        "user": None,
        "api_credentials": [
            {"type": "rest", "version": 1, "url": f"{base}/cubejs-api"},
            {"type": "sql", "version": 1, "host": "127.0.0.1", "port": 15432},
        ],
    }


@handles("getDeploymentEnvironments")
def get_environments(call: Call) -> Any:
    kind = call.query.get("type")
    found = [one for one in _environments(call) if kind in (None, one["type"])]
    return generic_store.page(call, found)


def _meant(call: Call) -> int:
    environment: int = call.path["environmentId"]
    if str(environment) not in [one["id"] for one in _environments(call)]:
        raise ApiError(404, f"Environment {environment} not found in deployment {call.deployment}")
    return environment


@handles("createDeploymentEnvironmentToken")
def create_environment_token(call: Call) -> Any:
    """Of the scopes asked for, only ``meta`` and ``sql-runner`` are signed."""
    environment, clock, context = _meant(call), call.server.clock, call.body["security_context"]
    scopes = [scope for scope in call.body.get("scopes", []) if scope in _SIGNED]
    now = int(clock.now())
    expires = now + call.body.get("expires_in", _HOUR)
    claims = {"scope": scopes, "deploymentId": call.deployment, "iat": now, "exp": expires}
    call.record("created", "environment-tokens", environment)
    token = {
        "token": credentials.sign({**context, **claims}, call.server.credentials.api_secret),
        "security_context": context,
        "created_at": clock.stamp(now),
        "expires_at": clock.stamp(expires),
        "scopes": scopes,
    }
    return {"data": token}
