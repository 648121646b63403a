"""The data model: its branches, what opens them, whether they compile, and merging.

A call that names no branch means the one that its credential has active in development mode, else
the deploy branch; ``validate`` alone always means the deploy branch.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.state.branches import (
    FORK_PREFIX,
    Branch,
    DeploymentBranches,
    branches_of,
)
from airflow_provider_platform.sandbox.state.builds import DOES_NOT_COMPILE

resource = Resource("/build/api/v1/deployments/{deploymentId}", needs="SchemaUpdate", since="0.3.0")

_NAME = checks.string(max_length=200)
_ONE: checks.Fields = {"branchId": checks.integer(), "branchName": _NAME}


@resource.get("/branches", needs="SchemaRead", query=paging.PARAMETERS)
def list_branches(call: Call) -> Any:
    branches = [_shown(branch) for branch in _branches(call).all()]
    return paging.page(call, branches, deprecated=True)


@resource.post(
    "/branches",
    body={
        "name": checks.needed(_NAME),
        "activate": checks.boolean,
        "enterDevMode": checks.boolean,
        "from": _NAME,
    },
)
def create_branch(call: Call) -> Any:
    """A new branch; put into development mode it is active, but no fork."""
    store, body = _branches(call), call.body
    if store.get(body["name"]) is not None:
        raise ApiError(400, [f"the branch {body['name']} exists already"])
    parent = _named(call, body.get("from", store.deploy))
    branch = store.add(body["name"], parent.name)
    call.record("created", "branches", branch.name)
    active = bool(body.get("activate"))
    if active:
        store.enter(branch, call.credential, call.user, call.server)
        call.record("entered", "dev-mode", branch.name)
    return _state(branch, active=active)


@resource.delete(
    "/branches",
    since="0.4.0",
    query={"branchName": checks.needed(_NAME), "removeOnUpstream": checks.boolean},
)
def remove_branch(call: Call) -> Any:
    """Children get the branch's parent; whoever is on it is on the deploy branch again."""
    branch = _named(call, call.query["branchName"])
    if branch.name == _branches(call).deploy:
        raise ApiError(400, ["the deploy branch cannot be deleted"])
    _remove(call, branch)
    return {"success": True}


@resource.put(
    "/branches/staging-environment",
    since="0.4.0",
    body={"enabled": checks.needed(checks.boolean), **_ONE},
)
def set_branch_staging_environment(call: Call) -> Any:
    """For shared branches only; the answer does not wait for the branch to answer."""
    store, branch, enabled = _branches(call), _given(call), call.body["enabled"]
    if branch.name == store.deploy:
        raise ApiError(400, ["the deploy branch has no staging environment"])
    if branch.name.startswith(FORK_PREFIX):
        raise ApiError(400, [f"{branch.name} is a personal branch and has no staging environment"])
    store.set_staging(branch, enabled, call.server)
    call.record("enabled" if enabled else "disabled", "staging-environments", branch.name)
    return {"data": _shown(branch)}


@resource.get(
    "/data-model/validate",
    needs="SchemaRead",
    since="0.4.0",
    query={"branchName": _NAME, "devMode": checks.boolean},
)
def validate_data_model(call: Call) -> Any:
    """Ask the branch's own running environment, without which there is nothing to ask."""
    if "branchName" in call.query and "devMode" in call.query:
        raise ApiError(400, ["branchName and devMode exclude each other"])
    store, name = _branches(call), call.query.get("branchName")
    if call.query.get("devMode"):
        name = store.active(call.credential)
        if name is None:
            raise ApiError(400, ["no branch is active: enter development mode first"])
    branch = _named(call, name or store.deploy)
    answer = store.ask(branch.name, call.server)
    errors: list[dict[str, str | None]] = []
    build = store.shown(branch, call.server.clock.now())
    if answer.kind == "failed" and build is not None and build.error == DOES_NOT_COMPILE:
        errors = [{"message": DOES_NOT_COMPILE, "fileName": "orders.yml"}]
    elif answer.kind not in ("serving", "asleep"):
        raise ApiError(400, [answer.words])
    return {
        "deploymentId": call.deployment,
        "branchName": branch.name,
        "mode": "production" if branch.name == store.deploy else "dev_mode",
        "valid": not errors,
        "errors": errors,
        "cubesCount": None if errors else 3,
    }


@resource.post("/dev-mode", body={"branchName": _NAME})
def start_dev_mode(call: Call) -> Any:
    """Work on the personal fork of a branch: the same fork each time, made when there is none."""
    store = _branches(call)
    parent = _named(call, call.body.get("branchName", store.deploy))
    if parent.owner is None:
        _allow_deploy_branch(call, parent)
        branch = store.fork(parent, call.user, call.server.settings)
    elif parent.owner == call.user:
        branch = parent
    else:
        raise ApiError(400, [f"{parent.name} is another user's personal branch"])
    store.enter(branch, call.credential, call.user, call.server)
    call.record("entered", "dev-mode", branch.name)
    return _state(branch, active=True)


@resource.delete("/dev-mode")
def stop_dev_mode(call: Call) -> Any:
    name = _branches(call).leave(call.credential, call.server)
    if name is not None:
        call.record("left", "dev-mode", name)
    elif call.server.settings.leave_nothing != "200":
        raise ApiError(int(call.server.settings.leave_nothing), "Development mode is not active")
    return {"success": True}


@resource.post(
    "/commit",
    body={
        "branchName": _NAME,
        "exitDevMode": checks.boolean,
        "message": checks.string(),
        "resolveMergeConflict": checks.boolean,
    },
)
def commit_changes(call: Call) -> Any:
    """There are no edits to push: the sandbox has no operation that writes files."""
    store = _branches(call)
    branch = _named(call, call.body.get("branchName") or _own(call))
    if branch.owner is None:
        raise ApiError(400, [f"{branch.name} is not a dev-mode branch"])
    call.record("updated", "branches", branch.name)
    if call.body.get("exitDevMode"):
        store.leave(call.credential, call.server)
        call.record("left", "dev-mode", branch.name)
    return {"success": True}


@resource.post("/pull", body={"branchName": checks.needed(_NAME)})
def pull_branch(call: Call) -> Any:
    """There is no remote, so nothing has changed there."""
    _named(call, call.body["branchName"])
    return {"buildTriggered": False}


@resource.post(
    "/merge",
    body=checks.structure(
        {
            **_ONE,
            "deleteBranch": checks.nullable(checks.boolean),
            "message": checks.nullable(checks.string()),
            "squashCommits": checks.nullable(checks.boolean),
            "switchToParentBranch": checks.nullable(checks.boolean),
        }
    ),
)
def merge_into_parent_branch(call: Call) -> Any:
    """Without ``deleteBranch`` the branch stays; switching to the parent leaves the fork."""
    branch = _meant(call)
    if branch.parent is None:
        raise ApiError(400, [f"{branch.name} is the deploy branch and has no parent"])
    answer = _merge(call, branch, branch.parent, delete=bool(call.body.get("deleteBranch")))
    store = _branches(call)
    on_it = store.active(call.credential) == branch.name
    if call.body.get("switchToParentBranch") and on_it:
        store.leave(call.credential, call.server)
        call.record("left", "dev-mode", branch.name)
    return answer


@resource.post(
    "/merge-to-default",
    body=checks.structure(
        {
            **_ONE,
            "message": checks.needed(checks.string()),
            "removeBranchAfterMerge": checks.nullable(checks.boolean),
        }
    ),
)
def merge_to_default_branch(call: Call) -> Any:
    branch, deploy = _meant(call), _branches(call).deploy
    if branch.name == deploy:
        raise ApiError(400, [f"{branch.name} is the deploy branch and has no parent"])
    default = call.server.settings.merge_removes_branch
    delete = bool(call.body.get("removeBranchAfterMerge", default))
    return _merge(call, branch, deploy, delete=delete)


def _branches(call: Call) -> DeploymentBranches:
    return branches_of(call.server, call.deployment)


def _own(call: Call) -> str:
    """The branch that a call means which names none."""
    store = _branches(call)
    return store.active(call.credential) or store.deploy


def _named(call: Call, name: str) -> Branch:
    branch = _branches(call).get(name)
    if branch is None:
        raise ApiError(404, f"Branch {name} not found in deployment {call.deployment}")
    return branch


def _given(call: Call) -> Branch:
    """The branch that the body names, by its name or its id."""
    if ("branchId" in call.body) == ("branchName" in call.body):
        raise ApiError(400, ["exactly one of branchId and branchName is required"])
    if "branchName" in call.body:
        return _named(call, call.body["branchName"])
    branch = _branches(call).with_id(call.body["branchId"])
    return branch if branch is not None else _named(call, str(call.body["branchId"]))


def _meant(call: Call) -> Branch:
    """The branch that the body names, else the one that such a call means."""
    if "branchId" in call.body or "branchName" in call.body:
        return _given(call)
    return _named(call, _own(call))


def _allow_deploy_branch(call: Call, branch: Branch) -> None:
    """Refuse a token that may change other branches only."""
    if branch.name == _branches(call).deploy and call.server.settings.dev_branches_only:
        raise ApiError(403, "Forbidden: the SchemaUpdate permission is missing")


def _merge(call: Call, branch: Branch, target: str, *, delete: bool) -> dict[str, bool]:
    store, settings = _branches(call), call.server.settings
    into = _named(call, target)
    _allow_deploy_branch(call, into)
    if into.name == store.deploy and not settings.deploy_branch_merge_allowed:
        raise ApiError(403, f"Merging into {into.name} is not allowed")
    if settings.merge_outcome == "conflict":
        raise ApiError(409, f"{branch.name} conflicts with {into.name} in orders.yml")
    merged = settings.merge_outcome == "merged" and store.merge(branch, into, call.server)
    if merged:
        call.record("merged", "branches", branch.name)
    if delete and merged:
        _remove(call, branch)
    return {"merged": merged, "branchDeleted": delete and merged}


def _remove(call: Call, branch: Branch) -> None:
    _branches(call).remove(branch)
    call.record("deleted", "branches", branch.name)


def _state(branch: Branch, *, active: bool) -> dict[str, Any]:
    return {"active": active, "branchName": branch.name, "parentBranch": branch.parent}


def _shown(branch: Branch) -> Item:
    return {
        "id": branch.id,
        "name": branch.name,
        "parentBranch": branch.parent,
        "isStagingEnvironmentEnabled": branch.staging,
        "lastHash": branch.model.commit,
    }
