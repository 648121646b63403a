"""The data model: its branches, what opens them, whether they compile, and merging.

A call that names no branch means the deploy branch. There is no development mode.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.http.responses import ApiError
from airflow_provider_platform.sandbox.management import generic_store
from airflow_provider_platform.sandbox.management.call import Call, handles
from airflow_provider_platform.sandbox.management.samples import Item
from airflow_provider_platform.sandbox.state.branches import (
    DOES_NOT_COMPILE,
    Branch,
    DeploymentBranches,
    branches_of,
)


@handles("listBranches")
def list_branches(call: Call) -> Any:
    return generic_store.page(call, [_shown(call, branch) for branch in _branches(call).all()])


@handles("createBranch")
def create_branch(call: Call) -> Any:
    branches, body = _branches(call), call.body
    if branches.get(body["name"]) is not None:
        raise ApiError(400, [f"the branch {body['name']} exists already"])
    parent = _named(call, body.get("from", branches.deploy))
    branch = branches.add(body["name"], parent.name)
    call.record("created", "branches", branch.name)
    return {"active": False, "branchName": branch.name, "parentBranch": branch.parent}


@handles("removeBranch")
def remove_branch(call: Call) -> Any:
    """Children get the branch's parent."""
    branch = _named(call, call.query["branchName"])
    if branch.name == _branches(call).deploy:
        raise ApiError(400, ["the deploy branch cannot be deleted"])
    _remove(call, branch)
    return {"success": True}


@handles("setBranchStagingEnvironment")
def set_branch_staging_environment(call: Call) -> Any:
    """For shared branches only; the answer does not wait for the branch to answer."""
    branches, branch, enabled = _branches(call), _given(call), call.body["enabled"]
    if branch.name == branches.deploy:
        raise ApiError(400, ["the deploy branch has no staging environment"])
    branches.set_staging(branch, enabled, call.server)
    call.record("enabled" if enabled else "disabled", "staging-environments", branch.name)
    return {"data": _shown(call, branch)}


@handles("validateDataModel")
def validate_data_model(call: Call) -> Any:
    """Ask the branch's own running environment, without which there is nothing to ask."""
    if "branchName" in call.query and "devMode" in call.query:
        raise ApiError(400, ["branchName and devMode exclude each other"])
    branches, name = _branches(call), call.query.get("branchName")
    if call.query.get("devMode"):
        raise ApiError(400, ["no branch is active: enter development mode first"])
    branch = _named(call, name or branches.deploy)
    answer = branches.ask(branch.name, call.server)
    errors: list[dict[str, str | None]] = []
    build = branches.shown(branch, call.server.clock.now())
    if answer.kind == "failed" and build is not None and build.error == DOES_NOT_COMPILE:
        errors = [{"message": DOES_NOT_COMPILE, "fileName": "orders.yml"}]
    elif answer.kind not in ("serving", "asleep"):
        raise ApiError(400, [answer.words])
    return {
        "deploymentId": call.deployment,
        "branchName": branch.name,
        "mode": "production" if branch.name == branches.deploy else "dev_mode",
        "valid": not errors,
        "errors": errors,
        "cubesCount": None if errors else 3,
    }


@handles("mergeIntoParentBranch")
def merge_into_parent_branch(call: Call) -> Any:
    """Without ``deleteBranch`` the branch stays."""
    branch = _meant(call)
    if branch.parent is None:
        raise ApiError(400, [f"{branch.name} is the deploy branch and has no parent"])
    return _merge(call, branch, branch.parent, delete=bool(call.body.get("deleteBranch")))


@handles("mergeToDefaultBranch")
def merge_to_default_branch(call: Call) -> Any:
    branch, deploy = _meant(call), _branches(call).deploy
    if branch.name == deploy:
        raise ApiError(400, [f"{branch.name} is the deploy branch and has no parent"])
    delete = bool(call.body.get("removeBranchAfterMerge", True))
    return _merge(call, branch, deploy, delete=delete)


def _branches(call: Call) -> DeploymentBranches:
    return branches_of(call.server, call.deployment)


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
    """The branch that the body names, else the deploy branch."""
    if "branchId" in call.body or "branchName" in call.body:
        return _given(call)
    return _named(call, _branches(call).deploy)


def _allow_deploy_branch(call: Call, branch: Branch) -> None:
    """Refuse a token that may change other branches only."""
    if branch.name == _branches(call).deploy:
        call.require("SchemaUpdate")


def _merge(call: Call, branch: Branch, target: str, *, delete: bool) -> dict[str, bool]:
    branches, settings = _branches(call), call.server.settings
    into = _named(call, target)
    _allow_deploy_branch(call, into)
    if into.name == branches.deploy and settings.merge_outcome == "not_allowed":
        raise ApiError(403, f"Merging into {into.name} is not allowed")
    if settings.merge_outcome == "conflict":
        raise ApiError(409, f"{branch.name} conflicts with {into.name} in orders.yml")
    merged = settings.merge_outcome == "merged" and branches.merge(branch, into, call.server)
    if merged:
        call.record("merged", "branches", branch.name)
    if delete and merged:
        _remove(call, branch)
    return {"merged": merged, "branchDeleted": delete and merged}


def _remove(call: Call, branch: Branch) -> None:
    _branches(call).remove(branch)
    call.record("deleted", "branches", branch.name)


def _shown(call: Call, branch: Branch) -> Item:
    named = call.server.settings.named_commits != "none"
    return {
        "id": branch.id,
        "name": branch.name,
        "parentBranch": branch.parent,
        "isStagingEnvironmentEnabled": branch.staging,
        "lastHash": branch.model.commit if named else None,
    }
