"""The data model: its branches, whether they compile, development mode, and merging."""

from __future__ import annotations

import hashlib
from typing import Any

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management.shared import paging
from airflow_provider_platform.sandbox.management.shared.items import Item
from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource
from airflow_provider_platform.sandbox.state.branches import DEFAULT_BRANCH, Branch, Branches

resource = Resource("/build/api/v1/deployments/{deploymentId}", needs="SchemaUpdate")

_NAME = checks.string(max_length=200)
_ONE: checks.Fields = {"branchId": checks.integer(), "branchName": _NAME}
_BROKEN = "orders.yml: the cube orders joins customers, which does not exist"


@resource.get("/branches", needs="SchemaRead", query=paging.PARAMETERS)
def list_branches(call: Call) -> Any:
    branches = [_shown(branch) for branch in call.store(Branches).all()]
    return paging.page(call, branches, deprecated=True)


@resource.post(
    "/branches", body={"name": checks.needed(_NAME), "activate": checks.boolean, "from": _NAME}
)
def create_branch(call: Call) -> Any:
    store, body = call.store(Branches), call.body
    if store.get(body["name"]) is not None:
        raise ApiError(400, [f"the branch {body['name']} exists already"])
    parent = _named(call, body.get("from", DEFAULT_BRANCH))
    branch = store.add(body["name"], parent.name)
    call.record("created", "branches", branch.name)
    if body.get("activate"):
        store.in_dev_mode[call.world.settings.caller] = branch.name
    return _state(branch, active=bool(body.get("activate")))


@resource.delete(
    "/branches", query={"branchName": checks.needed(_NAME), "removeOnUpstream": checks.boolean}
)
def remove_branch(call: Call) -> Any:
    branch = _named(call, call.query["branchName"])
    if branch.name == DEFAULT_BRANCH:
        raise ApiError(400, ["the deploy branch cannot be deleted"])
    _remove(call, branch)
    return {"success": True}


@resource.put(
    "/branches/staging-environment", body={"enabled": checks.needed(checks.boolean), **_ONE}
)
def set_branch_staging_environment(call: Call) -> Any:
    branch = _given(call)
    branch.staging = call.body["enabled"]
    call.record("updated", "branches", branch.name)
    return {"data": _shown(branch)}


@resource.get(
    "/data-model/validate",
    needs="SchemaRead",
    query={"branchName": _NAME, "devMode": checks.boolean},
)
def validate_data_model(call: Call) -> Any:
    """A branch with ``broken`` in its name does not compile."""
    if "branchName" in call.query and "devMode" in call.query:
        raise ApiError(400, ["branchName and devMode exclude each other"])
    own = call.store(Branches).in_dev_mode.get(call.world.settings.caller, DEFAULT_BRANCH)
    name = own if call.query.get("devMode") else call.query.get("branchName", DEFAULT_BRANCH)
    branch = _named(call, name)
    broken = "broken" in branch.name
    return {
        "deploymentId": call.deployment,
        "branchName": branch.name,
        "mode": "production" if branch.name == DEFAULT_BRANCH else "dev_mode",
        "valid": not broken,
        "errors": [{"message": _BROKEN, "fileName": "orders.yml"}] if broken else [],
        "cubesCount": None if broken else 3,
    }


@resource.post("/dev-mode", body={"branchName": _NAME})
def start_dev_mode(call: Call) -> Any:
    """Fork a personal branch, the same one each time, and work on it."""
    parent, caller = _named(call, call.body.get("branchName", DEFAULT_BRANCH)), _caller(call)
    branch = call.store(Branches).add(f"dev-{caller}-{parent.name}", parent.name)
    call.store(Branches).in_dev_mode[caller] = branch.name
    return _state(branch, active=True)


@resource.delete("/dev-mode")
def stop_dev_mode(call: Call) -> Any:
    call.store(Branches).in_dev_mode.pop(_caller(call), None)
    return {"success": True}


@resource.post(
    "/commit",
    body={
        "exitDevMode": checks.boolean,
        "message": checks.string(),
        "resolveMergeConflict": checks.boolean,
    },
)
def commit_changes(call: Call) -> Any:
    active = call.store(Branches).in_dev_mode
    name = active.get(_caller(call))
    if name is None:
        raise ApiError(400, ["no branch is active: enter development mode first"])
    call.record("updated", "branches", name)
    if call.body.get("exitDevMode"):
        del active[_caller(call)]
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
    return _merge(call, delete=bool(call.body.get("deleteBranch")))


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
    return _merge(call, delete=bool(call.body.get("removeBranchAfterMerge")))


def _caller(call: Call) -> int:
    return call.world.settings.caller


def _named(call: Call, name: str) -> Branch:
    branch = call.store(Branches).get(name)
    if branch is None:
        raise ApiError(404, f"Branch {name} not found in deployment {call.deployment}")
    return branch


def _given(call: Call) -> Branch:
    """The branch that the body names, by its name or its id."""
    if ("branchId" in call.body) == ("branchName" in call.body):
        raise ApiError(400, ["exactly one of branchId and branchName is required"])
    if "branchName" in call.body:
        return _named(call, call.body["branchName"])
    branch = call.store(Branches).with_id(call.body["branchId"])
    return branch if branch is not None else _named(call, str(call.body["branchId"]))


def _merge(call: Call, *, delete: bool) -> dict[str, bool]:
    branch = _given(call)
    if branch.parent is None:
        raise ApiError(400, [f"{branch.name} is the deploy branch and has no parent"])
    call.record("merged", "branches", branch.name)
    if delete:
        _remove(call, branch)
    return {"merged": True, "branchDeleted": delete}


def _remove(call: Call, branch: Branch) -> None:
    call.store(Branches).remove(branch)
    call.record("deleted", "branches", branch.name)


def _state(branch: Branch, *, active: bool) -> dict[str, Any]:
    return {"active": active, "branchName": branch.name, "parentBranch": branch.parent}


def _shown(branch: Branch) -> Item:
    return {
        "id": branch.id,
        "name": branch.name,
        "parentBranch": branch.parent,
        "isStagingEnvironmentEnabled": branch.staging,
        "lastHash": hashlib.sha256(branch.name.encode()).hexdigest()[:40],
    }
