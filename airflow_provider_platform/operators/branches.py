"""Operators for branches of the data model: open a branch, merge, close and delete it; and
`branch_gate`, a group of tasks that does all of this around the checks of a branch.

How a task waits for a build, and what is logged about it, is in runs/branches.py (open) and
runs/merges.py (merge).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform._airflow import BaseOperator, TaskGroup
from airflow_provider_platform.client.choices import EnvironmentOrSupported, MergeTarget
from airflow_provider_platform.client.defaults import POLL_INTERVAL
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.links import BranchLink, Links
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.failures import ShortTraceback
from airflow_provider_platform.operators._base.operator import DeploymentOperator
from airflow_provider_platform.operators._submission.submit_or_reattach import RemoteRunOperator

BUILD_TIMEOUT = 900.0
MERGE_TIMEOUT = 1800.0
IfDevModeBusy = Literal["replace", "fail"]
MergeWhen = Literal["on_success", "never"]
DeleteWhen = Literal["on_success", "always", "never"]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from airflow_provider_platform._airflow import BaseTrigger, Context
    from airflow_provider_platform.operators._base.operator import Checks
    from airflow_provider_platform.runs.branches import BranchRunKind
    from airflow_provider_platform.runs.merges import MergeRunKind
    from airflow_provider_platform.runs.run_kind import Ids


class PlatformOpenBranchOperator(DeploymentOperator, RemoteRunOperator):
    """Open a branch of the data model and wait until it is built, so that it answers questions and
    queries.

    Use it between a dbt sync and the tasks that ask or query the branch of the sync.

    A branch that a dbt sync wrote answers no question and no query until it is open. There are two
    ways to open a branch. A staging environment is a setting of the branch; prefer it in a
    pipeline. Dev mode is a state of the connection's credential, which can have only one branch
    open at a time. Opening a branch again changes nothing, so a retry opens it again and continues
    to wait. The branch stays open until somebody closes it (`PlatformCloseBranchOperator`).

    Returns `{"branch_name", "opened_branch", "opened_hash", "environment", "url", "hash",
    "status"}`, also pushed key by key. `branch_name` is the name to use in questions and queries:
    in dev mode the personal fork, else the branch itself. `opened_hash` is the commit of the branch
    itself; give it to `PlatformMergeBranchOperator(hash=...)`. `environment` is `staging`,
    `dev_mode`, or None if the tenant has no operation that opens a branch. `url` is the branch's
    data API address, None if the tenant does not report it. `hash` is the commit that was built.
    `status` is `built`, or None if the task did not wait.

    A build that fails fails the task, with the service's message and the end of the build's log if
    the tenant provides it. A 403 names the missing permission: opening needs SchemaUpdate or
    SchemaUpdateDevBranches, waiting needs DeploymentRead.

    :param branch_name: the branch to open
    :param environment: `staging` (shared by all users; releases since v0.4.0), `dev_mode` (a
        personal fork of the branch), or `if_supported`: staging; dev mode if the tenant has no
        staging environments; a warning if the tenant has neither, because a person may have opened
        the branch in the platform
    :param if_dev_mode_busy: in dev mode, if the credential is already in dev mode on another
        branch: `replace` closes that branch, `fail` raises a DevModeBusyError, and a retry may
        succeed
    :param wait_for_build: wait until the branch is built
    :param cancel_on_kill: has no effect: the branch stays open when the task is stopped
    :param timeout: seconds (or a timedelta) of wall time until the branch is built; an earlier
        `execution_timeout` counts too
    :param multiple_outputs: push the result key by key too, so that `open.output["branch_name"]`
        works
    """

    operator_extra_links = Links(BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"branch_name": "branch_name"}

    checks: ClassVar[Checks] = {
        "branch_name": arguments.text,
        "environment": partial(arguments.choice, choices=get_args(EnvironmentOrSupported)),
        "if_dev_mode_busy": partial(arguments.choice, choices=get_args(IfDevModeBusy)),
        "wait_for_build": arguments.boolean,
    }

    def __init__(
        self,
        *,
        branch_name: str,
        environment: EnvironmentOrSupported = "staging",
        if_dev_mode_busy: IfDevModeBusy = "replace",
        wait_for_build: bool | str = True,
        timeout: float | timedelta = BUILD_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.branch_name = branch_name
        self.environment = environment
        self.if_dev_mode_busy = if_dev_mode_busy
        self.wait_for_build: Any = wait_for_build
        self.validate_known_arguments()

    def run_kind(self) -> BranchRunKind:
        from airflow_provider_platform.runs.branches import BranchRunKind

        return BranchRunKind(
            branch_name=self.branch_name,
            environment=self.environment,
            replaces=self.if_dev_mode_busy == "replace",
            wait_for_build=bool(self.wait_for_build),
            deployment_id=self.deployment_id,
        )

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.branches import PlatformBuildTrigger

        return PlatformBuildTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=False,  # there is nothing to stop
        )


class PlatformCloseBranchOperator(DeploymentOperator):
    """Close an open branch: switch its staging environment off, or leave dev mode.

    The task succeeds if there is nothing to close: the branch no longer exists, dev mode is already
    off, nothing was opened, or the credential is in dev mode on another branch, which stays open.
    Any other failure fails the task.

    Use it after the tasks that asked the branch, as a teardown, so that the state of the DAG run
    stays the state of those tasks: `close.as_teardown(setups=[sync, open])`. Give it the synced
    branch, so that it closes the branch after a failed build too. It also accepts the outputs of
    `PlatformOpenBranchOperator`.

    Returns `{"branch_name", "environment", "closed"}`; `closed` is False if there was nothing to
    close.

    :param branch_name: the branch that was opened, or in dev mode its fork; if it renders to
        nothing, the branch was never opened, and the task closes nothing
    :param environment: `staging`, `dev_mode`, or `if_supported`: the one of the two that the branch
        is open in
    """

    operator_extra_links = Links(BranchLink)
    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_text,
        "environment": partial(arguments.choice, choices=get_args(EnvironmentOrSupported)),
    }

    def __init__(
        self,
        *,
        branch_name: str | None,
        environment: EnvironmentOrSupported | None = "if_supported",
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.environment = environment
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Close the branch."""
        from airflow_provider_platform.client.management.data_model.open_and_close import (
            NothingToClose,
            close_branch,
        )

        nothing: NothingToClose | None = NothingToClose("no branch was opened")
        with ShortTraceback(), self.opened(context) as hook:
            if self.branch_name is not None:
                deployment_id = hook.resolve_deployment_id(self.deployment_id)
                client = hook.open_client()
                nothing = client.run(
                    close_branch(deployment_id, self.branch_name, str(self.environment))
                )
        if nothing is None:
            self.log.info(
                "Closed branch %s. The branch is kept; it can be opened again in the platform or "
                "with PlatformOpenBranchOperator.",
                self.branch_name,
            )
        else:
            self.log.info("Nothing to close: %s.", nothing.reason)
        return {
            "branch_name": self.branch_name,
            "environment": self.environment,
            "closed": nothing is None,
        }


class PlatformMergeBranchOperator(DeploymentOperator, RemoteRunOperator):
    """Merge a branch into production, and wait until production is built from the merge.

    Use it after the tasks that check the branch, and before the tasks that read production.

    Until that build is over, production answers from the previous data model. The task reads the
    deployment's settings first: in deploy mode `cli` a merge does not build production, so the task
    merges nothing and fails. If production already has the commit of the branch, the task does not
    merge again: it waits for the build and succeeds with `merged` False.

    The branch is merged once. If the response to a merge was lost, the task compares the commits of
    both branches. It sends the merge once more only if the commits do not decide and the branch has
    not changed: this changes nothing if production already has the merge. A cleared task does not
    repeat a merge that it made.

    Returns `{"branch_name", "into", "merged", "branch_deleted", "hash", "status"}`, also pushed key
    by key. `into` is the branch that was merged into. `hash` is the commit that production was
    built from, and `status` is `built`. Both are None if the task did not wait for a build.

    A conflict, the answer that nothing was merged and a branch that no longer exists fail the task
    without a retry. A build that fails fails the try; a retry waits for the build again. A 403
    names the missing permission: merging into production needs SchemaUpdate, waiting needs
    DeploymentRead. Needs release v0.4.0 or later.

    :param branch_name: the branch to merge; for a branch in dev mode its own name, not its fork's
    :param into: `default` (the production branch) or `parent` (the branch from which it was
        created). A merge builds only production, so the task waits only for production's build
    :param message: the message of the merge; default: a sentence with the DAG and the task
    :param delete_branch: delete the branch with the merge
    :param hash: the commit that was checked, as `PlatformOpenBranchOperator` returns it; the task
        does not merge a branch that has another commit now
    :param wait_for_build: wait until production is built from the merge
    :param cancel_on_kill: has no effect: a merge cannot be undone
    :param timeout: seconds (or a timedelta) of wall time for each try until production is built; an
        earlier `execution_timeout` counts too
    :param multiple_outputs: push the result key by key too, so that `merge.output["hash"]` works
    """

    operator_extra_links = Links(BranchLink)

    checks: ClassVar[Checks] = {
        "branch_name": arguments.text,
        "into": partial(arguments.choice, choices=get_args(MergeTarget)),
        "message": arguments.optional_text,
        "delete_branch": arguments.boolean,
        "hash": arguments.optional_text,
        "wait_for_build": arguments.boolean,
    }

    def __init__(
        self,
        *,
        branch_name: str,
        into: MergeTarget = "default",
        message: str | None = None,
        delete_branch: bool | str = False,
        hash: str | None = None,
        wait_for_build: bool | str = True,
        timeout: float | timedelta = MERGE_TIMEOUT,
        cancel_on_kill: bool = False,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            timeout=timeout,
            cancel_on_kill=cancel_on_kill,
            multiple_outputs=multiple_outputs,
            **kwargs,
        )
        self.branch_name = branch_name
        self.into = into
        self.message = message
        self.delete_branch: Any = delete_branch
        self.hash = hash
        self.wait_for_build: Any = wait_for_build
        self.validate_known_arguments()

    def run_kind(self) -> MergeRunKind:
        from airflow_provider_platform.runs.merges import MergeRunKind

        return MergeRunKind(
            branch_name=self.branch_name,
            into=self.into,
            message=self.message or f"Merged by Airflow: DAG {self.dag_id}, task {self.task_id}",
            delete_branch=bool(self.delete_branch),
            checked_hash=self.hash,
            wait_for_build=bool(self.wait_for_build),
            deployment_id=self.deployment_id,
        )

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.branches import PlatformMergedBuildTrigger

        return PlatformMergedBuildTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=False,  # there is nothing to stop
        )


class PlatformDeleteBranchOperator(DeploymentOperator):
    """Delete a branch, and before it the fork that dev mode made of the branch.

    Use it after all tasks that use the branch have succeeded. The branch of a failed DAG run is
    then kept, so that a person can look at it.

    If the branch no longer exists, the task succeeds. If the tenant's API cannot delete branches,
    the task logs a warning and succeeds. The service refuses to delete the production branch.

    Returns `{"branch_name", "deleted"}`; `deleted` is the list of the names that this try deleted.

    :param branch_name: the branch to delete; if it renders to nothing, the task deletes neither the
        branch nor the fork
    :param fork: the name that was asked, as `PlatformOpenBranchOperator` returns it: in dev mode
        the personal fork; if it is the branch's own name, the branch is deleted once
    :param remove_on_upstream: delete the branch in the connected Git repository too
    """

    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_text,
        "fork": arguments.optional_text,
        "remove_on_upstream": arguments.boolean,
    }

    def __init__(
        self,
        *,
        branch_name: str | None,
        fork: str | None = None,
        remove_on_upstream: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.fork = fork
        self.remove_on_upstream: Any = remove_on_upstream
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Delete the fork, then the branch."""
        from airflow_provider_platform.client.management.data_model.open_and_close import (
            delete_branch,
        )

        deleted = []
        with ShortTraceback(), self.opened(context) as hook:
            deployment_id = hook.resolve_deployment_id(self.deployment_id)
            client = hook.open_client()
            if self.branch_name is None:
                self.log.info("No branch name was given, so no branch is deleted.")
            names = [] if self.branch_name is None else [self.fork, self.branch_name]
            for name in dict.fromkeys(filter(None, names)):
                not_deleted = client.run(
                    delete_branch(
                        deployment_id, name, remove_on_upstream=bool(self.remove_on_upstream)
                    )
                )
                if not_deleted is None:
                    self.log.info("Deleted branch %s", name)
                    deleted.append(name)
                elif not_deleted.exists:
                    self.log.warning(
                        "Branch %s was not deleted: %s. Delete it in the platform.",
                        name,
                        not_deleted.reason,
                    )
                else:
                    self.log.info(
                        "Branch %s was not deleted, because there is nothing to delete: %s",
                        name,
                        not_deleted.reason,
                    )
        return {"branch_name": self.branch_name, "deleted": deleted}


@contextmanager
def branch_gate(
    branch_name: Any,
    *,
    group_id: str = "branch_gate",
    merge: MergeWhen = "on_success",
    delete: DeleteWhen = "on_success",
    environment: EnvironmentOrSupported = "staging",
    into: MergeTarget = "default",
    message: str | None = None,
    deployment_id: Any = None,
    platform_conn_id: str = "platform_default",
    merge_conn_id: str | None = None,
    deferrable: bool | None = None,
    poll_interval: float | timedelta = POLL_INTERVAL,
    timeout: float | timedelta = BUILD_TIMEOUT,
    merge_timeout: float | timedelta = MERGE_TIMEOUT,
    default_args: dict[str, Any] | None = None,
) -> Iterator[BranchGate]:
    """Return a group of tasks that merges a branch into production only if the tasks inside
    succeed.

        with branch_gate(sync.output["branch_name"]) as gate:
            PlatformQueryOperator(task_id="count", sql=..., branch_name=gate.branch_name)

    Before the tasks inside, the group opens the branch and waits until it is built (`open`,
    `built`). After them it merges the branch and waits until production is built (`merge`), closes
    the branch (`close`) and deletes it (`delete`). `gate.branch_name` is the name to use in
    questions and queries. Tasks after the group (`gate >> publish`) run after the merge.

    After a success the branch is merged and deleted. If a task inside fails or is skipped, nothing
    is merged, and the branch is closed and kept: the log of `close` says how to open it. Opening is
    the setup of the group; closing and deleting are its teardown. They run whether the tasks inside
    succeed or fail, and their own failure does not change the state of the DAG run. If you clear a
    task inside, the group opens the branch again. The group merges a branch only at the commit that
    was checked.

    A credential can be in dev mode on only one branch at a time. With `environment="dev_mode"` a
    second gate fails with a DevModeBusyError until the first gate has closed its branch. With
    retries of its task `open`, the second gate waits for the first.

    Raises PlatformInputError for a bad argument, and for dev mode in a mapped task group.

    :param branch_name: the branch; a template or an output of a task, as of
        `PlatformDbtSyncOperator`
    :param group_id: the id of the group; the ids of its tasks begin with it
    :param merge: `on_success` merges the branch if all tasks inside succeed; `never` does not
        merge, and the last task is then `passed`
    :param delete: delete the branch `on_success`, `always` or `never`
    :param environment: see `PlatformOpenBranchOperator`
    :param into: see `PlatformMergeBranchOperator`
    :param message: the message of the merge; default: a sentence with the DAG and the task
    :param deployment_id: the deployment's id; default: the connection's
    :param platform_conn_id: the connection that opens, closes and deletes the branch
    :param merge_conn_id: the connection that merges the branch; default: `platform_conn_id`
    :param deferrable: wait for builds in the triggerer; None means Airflow's `[operators]
        default_deferrable`
    :param poll_interval: seconds (or a timedelta) between two status checks of a build
    :param timeout: seconds (or a timedelta) until the branch is built
    :param merge_timeout: seconds (or a timedelta) until production is built after the merge
    :param default_args: arguments of all tasks in the group, also of the tasks inside, as in a
        TaskGroup
    """
    arguments.choice("merge", merge, get_args(MergeWhen))
    arguments.choice("delete", delete, get_args(DeleteWhen))
    connected: dict[str, Any] = {
        "deployment_id": deployment_id,
        "platform_conn_id": platform_conn_id,
    }
    waiting: dict[str, Any] = {"deferrable": deferrable, "poll_interval": poll_interval}
    opening: dict[str, Any] = {
        "branch_name": branch_name,
        "environment": environment,
        "if_dev_mode_busy": "fail",
        "timeout": timeout,
        **connected,
        **waiting,
    }
    options: dict[str, Any] = {"default_args": default_args or {}}
    gate = BranchGate(group_id=group_id, **options)
    with gate:
        if environment == "dev_mode" and any(True for _ in gate.iter_mapped_task_groups()):
            raise PlatformInputError(
                "A branch gate in a mapped task group cannot use dev mode. The copies of the group "
                "run at the same time, but a token can be in dev mode on only one branch. Use "
                "environment='staging'.",
                field="environment",
                where=f"task group {gate.group_id!r}",
            )
        # Two tasks: after a build that failed the branch is open and must be closed.
        opened = PlatformOpenBranchOperator(task_id="open", wait_for_build=False, **opening)
        built = PlatformOpenBranchOperator(task_id="built", **opening)
        opened >> built
        setups: list[BaseOperator] = [opened, built]
        gate.branch_name = _output(built, "branch_name")
        yield gate
        inside = [task for task in gate if task not in setups]
        first = [task for task in gate.get_roots() if task not in setups]
        last = list(dict.fromkeys(gate.get_leaves()))
        passed: BaseOperator
        if merge == "never":
            passed = _PassedOperator(task_id="passed", branch_name=branch_name)
        else:
            passed = PlatformMergeBranchOperator(
                task_id="merge",
                branch_name=branch_name,
                into=into,
                message=message,
                hash=_output(built, "opened_hash"),
                timeout=merge_timeout,
                **{**connected, "platform_conn_id": merge_conn_id or platform_conn_id},
                **waiting,
            )
        for task in first:
            built.set_downstream(task)
        for task in last:
            passed.set_upstream(task)
        close = PlatformCloseBranchOperator(task_id="close", branch_name=branch_name, **connected)
        close.as_teardown(setups=setups)
        # None of the tasks inside may still be running, also where another one has failed.
        close.set_upstream([passed, *inside])
        if delete == "never":
            return
        named = _output(passed, "branch_name") if delete == "on_success" else branch_name
        gone = PlatformDeleteBranchOperator(
            task_id="delete",
            branch_name=named,
            fork=_output(opened, "branch_name"),
            **connected,
        )
        gone.as_teardown(setups=setups)
        gone.set_upstream([passed, close])


class BranchGate(TaskGroup):
    """The group of tasks that `branch_gate` returns. `branch_name` is the name to ask."""

    branch_name: Any = None


def _output(task: BaseOperator, key: str) -> Any:
    """Return one key of a task's result, as an argument of another task."""
    output: Any = task.output
    return output[key]


class _PassedOperator(BaseOperator):
    """The last task of a gate that does not merge. It succeeds if the tasks before it succeed.

    Returns `{"branch_name"}`.
    """

    template_fields = ("branch_name",)
    ui_color = "#eef3fb"

    def __init__(self, *, branch_name: str, **kwargs: Any) -> None:
        super().__init__(multiple_outputs=True, **kwargs)
        self.branch_name = branch_name

    def execute(self, context: Context) -> dict[str, str]:
        """Return the branch's name."""
        self.log.info("Branch %s passed. The gate does not merge it.", self.branch_name)
        return {"branch_name": self.branch_name}
