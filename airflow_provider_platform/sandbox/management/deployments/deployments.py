"""Deployments: list, one with its settings and build, and the tokens for data APIs."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.resource import DEPLOYMENTS, Call, Resource
from airflow_provider_platform.sandbox.state import credentials
from airflow_provider_platform.sandbox.state.branches import DEPLOY_BRANCHES, branches_of
from airflow_provider_platform.sandbox.state.clock import iso
from airflow_provider_platform.sandbox.state.server_state import ServerState

resource = Resource("/api/v1/deployments")
analytics = Resource("/api/v1/usage-analytics/token", needs="Admin", since="0.5.0")

_STEPS = ("project", "upload", "schema", "github", "ssh", "databases", "ready", "demo")
_CONTAINERS = ("INIT", "MAIN", "cubejs-server", "vector", "api-proxy")
_HOUR, _DAY = 3600, 86400


def _deployment(server: ServerState, deployment_id: int) -> dict[str, Any]:
    return {
        "id": deployment_id,
        "name": DEPLOYMENTS[deployment_id],
        "deploymentUrl": f"{server.base_url}/deployments/{deployment_id}",
        "creationStep": "ready",
    }


@resource.get(query={"creationStep": checks.array(checks.string(one_of=_STEPS)), **paging.OFFSETS})
def list_deployments(call: Call) -> Any:
    steps = call.query.get("creationStep", _STEPS)
    items = [_deployment(call.server, deployment_id) for deployment_id in DEPLOYMENTS]
    return paging.offset_page(call, [item for item in items if item["creationStep"] in steps])


@resource.get("/{deploymentId}")
def get_deployment(call: Call) -> Any:
    return _deployment(call.server, call.deployment)


@resource.get("/{deploymentId}/settings", since="0.4.0")
def get_deployment_settings(call: Call) -> Any:
    settings = call.server.settings
    return {
        **_deployment(call.server, call.deployment),
        "template": "simpleCluster",
        "cloudProvider": "aws",
        "releaseChannel": "latest",
        "deployBranchName": DEPLOY_BRANCHES[call.deployment],
        "deployBranchReadOnly": settings.deploy_branch_read_only,
        "deployBranchMergeAllowed": settings.deploy_branch_merge_allowed,
        "deployProjectRoot": "/",
        "isCubeSqlEnabled": True,
        "isSupportPreAggregations": True,
        "deployMode": settings.deploy_mode,
    }


@resource.get("/{deploymentId}/build-status", since="0.3.0", query={"branchName": checks.string()})
def get_build_status(call: Call) -> Any:
    """The latest build of a branch: without a name of the caller's active one, else production.

    A branch that does not exist and one that nobody has opened are ``building`` for ever; only the
    error text tells.
    """
    server, branches = call.server, branches_of(call.server, call.deployment)
    active = branches.active(call.credential)
    name = call.query.get("branchName") or active or branches.deploy
    now, branch = server.clock.now(), branches.get(name)
    build = None if branch is None else branches.shown(branch, now)
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
        "lastHash": None if build is None else build.model.commit,
        "updatedAt": None if build is None else iso(build.changed_at(now)),
    }


@resource.get(
    "/{deploymentId}/logs",
    since="0.3.0",
    query={
        "source": checks.string(one_of=("production", "dev")),
        "container": checks.string(one_of=_CONTAINERS),
        "pod": checks.string(),
    },
)
def get_deployment_logs(call: Call) -> Any:
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


@resource.post(
    "/{deploymentId}/token", body={"expiresIn": checks.integer(minimum=60, maximum=_DAY)}
)
def create_deployment_token(call: Call) -> Any:
    token = data_token(call, call.deployment, call.body.get("expiresIn", _DAY))
    return {"cubeApiToken": token}


@analytics.post()
def create_usage_analytics_token(call: Call) -> Any:
    """A token for the account's own data, which deployment 1 holds here; it takes a prefix."""
    if not call.server.settings.usage_analytics:
        raise ApiError(404, "Usage Analytics is not enabled for this account")
    url = _deployment(call.server, 1)["deploymentUrl"]
    return {
        "token": data_token(call, 1, _HOUR, **credentials.WITH_PREFIX),
        "apiUrl": f"{url}/cubejs-api/v1",
        "deploymentId": 1,
        "expiresAt": call.server.clock.stamp(call.server.clock.now() + _HOUR),
    }


def data_token(call: Call, deployment: int, lifetime: int, **more: Any) -> str:
    """A signed token for the data API of ``deployment``, good for ``lifetime`` seconds.

    ``more`` claims may be added.
    """
    now = int(call.server.clock.now())
    claims = {"iat": now, "exp": now + lifetime, "deploymentId": deployment, **more}
    return credentials.sign(claims, call.server.credentials.api_secret)
