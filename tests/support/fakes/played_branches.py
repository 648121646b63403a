"""A tenant's branches played by a test: staging environments, merges and scripted builds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformError,
    PlatformNotFoundError,
    PlatformTransportError,
)
from tests.support.fakes.effects import OpenDataStream
from tests.support.fakes.played_tenant import PlayedTenant

if TYPE_CHECKING:
    from airflow_provider_platform.client.operation import Operation

MISSING: dict[str, PlatformError] = {
    "404": PlatformNotFoundError("no such path", status=404),
    "405": PlatformBadRequestError("method not allowed", status=405),
    "HTML": PlatformAddressError("an HTML page", is_html=True),
}
"""How a tenant answers for an operation that it does not have."""
MERGES = ("mergeToDefaultBranch", "mergeIntoParentBranch")
BUILT: dict[str, Any] = {"status": "built"}


@dataclass
class PlayedBranches(PlayedTenant):
    """The service. `missing` says how it answers for what it does not have: without `staging` it
    has no staging environments, without `build_api` neither these nor the list of branches.
    `builds` are the answers for the build status, one for each call; the last one stays. `log` is
    the answer for the deployment's log, None where it has no such operation. `dev_mode` is the
    credential's branch in dev mode. A branch that is `asleep` is `stopped` until its data API gets
    a request, whose address is kept in `woken`; the request itself fails.

    `commits` are the branches' commits. A merge gives its target a commit of its own or, with
    `fast_forward`, the branch's, and answers False where the target has the branch's commit, and
    with `refuses` always. `files` are the branches' `filesHash`. With `lost` the faults of a merge
    come after it was made. `settings` are the deployment's beside its
    production branch `main`, None where the tenant has no such operation.
    """

    staging: bool = True
    build_api: bool = True
    deployment: bool = True
    missing: str = "404"
    branches: dict[str, str] = field(default_factory=lambda: {"dbt-sync/main-1": "main"})
    """The parent of each branch."""
    builds: list[dict[str, Any]] = field(default_factory=lambda: [BUILT])
    log: Any = None
    environments: Any = field(default_factory=list)
    commits: dict[str, str] = field(default_factory=dict)
    settings: dict[str, Any] | None = field(default_factory=dict)
    fast_forward: bool = False
    refuses: bool = False
    files: dict[str, str] = field(default_factory=dict)
    merges: list[tuple[str, str]] = field(default_factory=list)
    """Branch and target of each merge that changed something."""
    deployment_url: str | None = "https://acme.example.com"

    switched_on: set[str] = field(default_factory=set)
    dev_mode: str | None = None
    asleep: bool = False
    woken: list[str] = field(default_factory=list)
    operations: list[Operation[Any]] = field(default_factory=list)

    def _answer(self, operation: Operation[Any]) -> Any:
        name = operation.operation_id
        self.now += self.latency
        self.calls.append((self.now, name))
        self.operations.append(operation)
        faults = self.faults.get(name, [])
        fault = faults.pop(0) if faults else None
        if fault is not None:
            if self.lost and name in MERGES:
                self._body_of(operation)
            raise fault
        return operation.read(self._body_of(operation))

    def _carry_out(self, effect: object) -> Any:
        if isinstance(effect, OpenDataStream):
            self.woken.append(effect.url)
            self.asleep = False
            raise PlatformTransportError("the environment starts")
        return super()._carry_out(effect)

    def _body_of(self, operation: Operation[Any]) -> Any:
        name, body = operation.operation_id, operation.body or {}
        if name == "buildStatus":
            return self._build_status(operation.query.get("branchName"))
        if name.endswith("/logs"):
            if self.log is None:
                raise MISSING["404"]
            return self.log
        if name == "getReports":
            if not self.deployment:
                raise MISSING["404"]
            return {"items": []}
        if name == "deploymentToken":
            return {"cubeApiToken": "token"}
        if name == "getDeploymentEnvironments":
            return {"data": self.environments}
        if name == "getDeploymentSettings":
            if self.settings is None:
                raise MISSING[self.missing]
            return {"id": 1, "deployBranchName": "main", "deployMode": "git", **self.settings}
        if name == "getDeployment":
            return {"id": 1, "deploymentUrl": self.deployment_url}
        if not self.build_api:
            raise MISSING[self.missing]
        if name == "listBranches":
            items: list[dict[str, Any]] = [
                {
                    "name": name,
                    "parentBranch": parent,
                    "lastHash": self.commits.get(name),
                    "isStagingEnvironmentEnabled": name in self.switched_on,
                }
                for name, parent in self.branches.items()
            ]
            production = {"name": "main", "lastHash": self.commits.get("main")}
            return {"items": [production, *items] if self.commits else items}
        if name in MERGES:
            return self._merge(name, body)
        assert name == "setBranchStagingEnvironment"
        return self._switch(body["branchName"], body["enabled"])

    def _build_status(self, branch_name: str | None) -> dict[str, Any]:
        if branch_name is None:
            mode = "production" if self.dev_mode is None else "dev_mode"
            return {**BUILT, "branchName": self.dev_mode or "main", "mode": mode}
        if branch_name in self.files:
            files = {"filesHash": self.files[branch_name], "lastHash": self.commits[branch_name]}
            return {**BUILT, "branchName": branch_name, **files}
        if self.asleep:
            return {"branchName": branch_name, "mode": "dev_mode", "status": "stopped"}
        build = self.builds.pop(0) if len(self.builds) > 1 else self.builds[0]
        return {"branchName": branch_name, "mode": "dev_mode", **build}

    def _merge(self, name: str, body: dict[str, Any]) -> dict[str, Any]:
        branch = self._existing(body["branchName"])
        target = "main" if name == "mergeToDefaultBranch" else self.branches[branch]
        made = (self.commits[branch], target)
        deletes = body.get("removeBranchAfterMerge") or body.get("deleteBranch")
        merged = made not in self.merges and not self.refuses
        if merged:
            self.merges.append(made)
            before = self.commits[target]
            own = f"{before}+{self.commits[branch]}"
            self.commits[target] = self.commits[branch] if self.fast_forward else own
            if deletes:
                del self.branches[branch]
        return {"merged": merged, "branchDeleted": bool(merged and deletes)}

    def _switch(self, branch_name: str, enabled: bool) -> dict[str, Any]:
        if not self.staging:
            raise MISSING[self.missing]
        self._existing(branch_name)
        (self.switched_on.add if enabled else self.switched_on.discard)(branch_name)
        return {
            "data": {
                "id": 7,
                "name": branch_name,
                "lastHash": "c0ffee",
                "isStagingEnvironmentEnabled": enabled,
            }
        }

    def _existing(self, branch_name: str) -> str:
        if branch_name not in self.branches:
            raise PlatformNotFoundError("no such branch", status=404)
        return branch_name
