"""Operators for branches of the data model: open a branch, merge, close and delete it; and
`branch_gate`, a group of tasks that does all of this around the checks of a branch.

How a task waits for a build, and what is logged about it: resources/branch_opening.py (open) and
resources/merges.py (merge).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform._airflow import (
    BaseOperator,
    get_task_states,
)
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import POLL_INTERVAL, IfUnsupported, MergeTarget
from airflow_provider_platform.client.errors import OperationMissingError, PlatformError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import BranchLink, all_links
from airflow_provider_platform.operators._base import (
    DEFAULT_CONN_ID,
    DeploymentOperator,
    ShortTraceback,
    deployment_of,
)
from airflow_provider_platform.operators._gate_tasks import (
    BranchGate,
    CommitOperator,
    NeededOutput,
    PassedOperator,
    as_template,
    check_inside,
    is_branching,
    output_of,
    seal,
)
from airflow_provider_platform.operators._remote_run import RemoteRunOperator, StoppableRunOperator

BUILD_TIMEOUT = 900.0
MERGE_TIMEOUT = 1800.0
MergeWhen = Literal["on_success", "never"]
DeleteWhen = Literal["on_success", "always", "never"]

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks


class PlatformOpenBranchOperator(DeploymentOperator, StoppableRunOperator):
    """Open a branch of the data model and wait until it is built, so that it answers questions and
    queries.

    Use it between a dbt sync and the tasks that ask or query the branch of the sync.

    Questions and queries on a branch fail until its staging environment is switched on. Everybody
    can use the open branch, and it stays open until somebody closes it
    (`PlatformCloseBranchOperator`). Opening a branch again changes nothing, so a retry opens it
    again and continues to wait. The task starts a branch that has stopped because nobody queried it
    for ten minutes.

    Returns `{"branch_name", "opened_branch", "url", "hash", "status"}`. `opened_branch` is the
    branch, but None if it was open before this task: give it to `PlatformCloseBranchOperator`,
    which then closes only what this task opened. `url` is the branch's data API address, None if it
    is not known. `hash` is the commit that was built; give it to
    `PlatformMergeBranchOperator(hash=...)`. If the task did not wait, `hash` is the branch's
    commit. It is None if the service does not report the commit. `status` is `built`, or None if
    the task did not wait.

    If the build fails, the task fails with the service's message and, if the tenant provides it,
    the end of the build's log. If the task fails, it closes the branch, unless the branch was open
    before. Opening needs the permission SchemaRead, and SchemaUpdate or
    SchemaUpdateDevBranches. Waiting needs DeploymentRead.

    :param branch_name: the branch to open
    :param if_unsupported: on a tenant that cannot open branches: `fail`
        the task, or `skip` it
    :param wait_for_build: wait until the branch is built
    :param cancel_on_kill: close the branch if the task is stopped or fails, unless the branch was
        open before. A branch whose build fails is closed also with False
    :param durable: record in Airflow's task state store (Airflow 3.3 and later) whether the branch
        was open before (None means True). Without the record, a retry after a lost worker treats a
        branch that the earlier try opened as one that was open before, so nobody closes it
    :param timeout: seconds (or a timedelta) of wall time until the branch is built; an earlier
        `execution_timeout` counts too
    :param multiple_outputs: push the result key by key too, so that `open.output["branch_name"]`
        works
    """

    kind_path = "branch_opening.BranchRunKind"
    operator_extra_links = all_links(BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"branch_name": "branch_name"}

    checks: ClassVar[Checks] = {
        "branch_name": arguments.branch,
        "if_unsupported": partial(arguments.choice, choices=get_args(IfUnsupported)),
        "wait_for_build": arguments.boolean,
    }

    def __init__(
        self,
        *,
        branch_name: str,
        if_unsupported: IfUnsupported = "fail",
        wait_for_build: bool | str = True,
        timeout: float | timedelta = BUILD_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.branch_name = branch_name
        self.if_unsupported = if_unsupported
        self.wait_for_build: Any = wait_for_build
        self.validate_known_arguments()

    def skips_after(self, error: PlatformError) -> bool:
        unsupported = isinstance(error, OperationMissingError)
        return super().skips_after(error) or (unsupported and self.if_unsupported == "skip")


class PlatformCloseBranchOperator(DeploymentOperator):
    """Close an open branch: switch its staging environment off, for everybody.

    The task succeeds if there is nothing to close: the branch no longer exists, or the tenant
    cannot open branches. Any other failure fails the task.

    Use it after the tasks that asked the branch, as a teardown, so that the state of the DAG run
    stays the state of those tasks: `close.as_teardown(setups=open)`. Give it the output
    `opened_branch` of `PlatformOpenBranchOperator`: it renders to nothing if the branch was open
    before, and the task then leaves the branch open.

    Returns `{"branch_name", "closed"}`; `closed` is False if there was nothing to close, and True
    also for a branch that was closed before.

    :param branch_name: the branch to close; if it renders to nothing, the task closes nothing
    """

    operator_extra_links = all_links(BranchLink)
    checks: ClassVar[Checks] = {"branch_name": arguments.optional_branch}

    def __init__(self, *, branch_name: str | None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Close the branch."""
        from airflow_provider_platform.resources.branches import (
            close_branch,
        )

        nothing: str | None = "this DAG run has opened no branch, or the branch was open before"
        with ShortTraceback(), self.opened(context) as hook:
            if (branch_name := self.branch_name) is not None:
                deployment_id = hook.resolve_deployment_id(self.deployment_id)
                nothing = hook.open_client().run(
                    lambda api: close_branch(api, deployment_id, branch_name)
                )
        if nothing is None:
            self.log.info(
                "Closed branch %s. Closing deletes nothing: to open the branch again, use the "
                "platform or PlatformOpenBranchOperator.",
                quote_service(self.branch_name),
            )
        else:
            self.log.info("Nothing to close: %s.", quote_service(nothing))
        return {"branch_name": self.branch_name, "closed": nothing is None}


class PlatformMergeBranchOperator(DeploymentOperator, RemoteRunOperator):
    """Merge a branch into production, and wait until production is built from the merge.

    Use it after the tasks that check the branch, and before the tasks that read production.

    Until that build is over, production uses the previous data model. In deploy mode `cli` a merge
    into production does not build it, so the task fails and merges nothing. If production is at the
    branch's commit, or has the same files as the branch (which must be open for this comparison),
    there is nothing to merge: the task waits for production's build and succeeds with `merged`
    False.

    The branch is merged once. If the response to a merge is lost, the task compares the commits of
    both branches. If the merge was not made, the try fails, and a retry sends it. If the commits do
    not show it and the branch has not changed, the task sends the merge once more. If the outcome
    stays unknown, the task fails without a retry. A cleared task does not repeat a merge that it
    has recorded (`durable`).

    Returns `{"branch_name", "branch_hash", "into", "merged", "branch_deleted", "hash", "status"}`.
    `branch_hash` is the merged commit of the branch, None if the service does not report it. `into`
    is the name of the target. `merged` is False if there was nothing to merge. `hash` is the commit
    that production was built from, and `status` is `built`. Both are None if the task did not wait
    for a build.

    The task fails without a retry if the service reports a conflict, if it merges nothing for
    another reason than those above, or if the branch no longer exists. If production's build fails,
    the try fails; start the build again in the platform, and a retry waits for it. Merging into
    production needs the permissions SchemaUpdate, SchemaRead and DeploymentRead.

    :param branch_name: the branch to merge
    :param into: `default` (the production branch) or `parent` (the branch from which it was
        created). Only a merge into production starts a build, for which the task waits
    :param message: the message of the merge; default: a sentence with the DAG and the task
    :param delete_branch: delete the branch with the merge. It may remain if there is nothing to
        merge
    :param hash: the commit that was checked, which `PlatformOpenBranchOperator` returns; if the
        branch has another commit now, the task fails and merges nothing
    :param wait_for_build: wait until production is built from the merge
    :param timeout: seconds (or a timedelta) of wall time for each try until production is built; an
        earlier `execution_timeout` counts too
    :param durable: record the merge in Airflow's task state store (Airflow 3.3 and later), so that
        a retry does not repeat it (None means True). Without the record, a retry or a cleared
        task sends the merge again, and can fail because the service then merges nothing
    :param multiple_outputs: push the result key by key too, so that `merge.output["hash"]` works
    """

    kind_path = "merges.MergeRunKind"
    operator_extra_links = all_links(BranchLink)
    cancel_on_kill = False  # a merge cannot be undone

    checks: ClassVar[Checks] = {
        "branch_name": arguments.branch,
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
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            timeout=timeout,
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

    def derived_arguments(self) -> dict[str, Any]:
        message = f"Merged by Airflow: DAG {self.dag_id}, task {self.task_id}"
        return {"message": self.message or message}


class PlatformDeleteBranchOperator(DeploymentOperator):
    """Delete a branch.

    Use it after all tasks that use the branch. If one of them fails, the branch is kept, so that a
    person can read it.

    If the branch no longer exists, the task succeeds. If the tenant's API cannot delete branches,
    or the branch is at another commit than `hash`, the task logs a warning and succeeds. The
    service refuses to delete the production branch.

    Returns `{"branch_name", "deleted"}`; `deleted` says whether this try deleted the branch.

    :param branch_name: the branch to delete; if it renders to nothing, the task deletes nothing
    :param hash: delete the branch only if it is at this commit, for example the `branch_hash` that
        `PlatformMergeBranchOperator` has merged; default: at any commit
    :param remove_on_upstream: delete the branch in the connected Git repository too
    """

    checks: ClassVar[Checks] = {
        "branch_name": arguments.optional_branch,
        "hash": arguments.optional_text,
        "remove_on_upstream": arguments.boolean,
    }

    def __init__(
        self,
        *,
        branch_name: str | None,
        hash: str | None = None,
        remove_on_upstream: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.branch_name = branch_name
        self.hash = hash
        self.remove_on_upstream: Any = remove_on_upstream
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Delete the branch."""
        with ShortTraceback(), self.opened(context) as hook:
            deleted = self._delete(hook)
        return {"branch_name": self.branch_name, "deleted": deleted}

    def _delete(self, hook: PlatformHook) -> bool:
        from airflow_provider_platform.resources.branches import (
            delete_branch,
        )

        if (branch_name := self.branch_name) is None:
            self.log.info("No branch name was given, so no branch is deleted.")
            return False
        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        not_deleted = hook.open_client().run(
            lambda api: delete_branch(
                api,
                deployment_id,
                branch_name,
                remove_on_upstream=bool(self.remove_on_upstream),
                commit=self.hash,
            )
        )
        if not_deleted is None:
            self.log.info("Deleted branch %s", quote_service(self.branch_name))
            return True
        say = self.log.warning if not_deleted.exists else self.log.info
        say("Branch %s was not deleted: %s.", quote_service(self.branch_name), not_deleted.reason)
        return False


# The edges of a gate, and what each is for:
#
#   open >> built                     two tasks: after a build that failed, the branch is open
#   built >> commit                   `commit` keeps the commit that all tasks inside prove
#   commit >> the first tasks inside  nothing asks the branch before it is built
#   each task inside >> merge         every task counts, also before a last task that runs after a
#                                     failure (`trigger_rule="all_done"`); only teardowns do not
#   merge, each task inside >> close  no task may still use the branch when it is closed
#   merge, close >> delete
#   open, built -> close, delete      setups and teardowns: these run after a failure too
#
# `commit` is no setup: Airflow runs setups again if one task inside is cleared, but the other tasks
# inside then keep what they proved of the commit before. So `commit` runs again only with all tasks
# inside, and `merge` refuses a branch that has moved since.
#
# After a failure the branch is kept, so that a person can look at it. `delete` runs then too, as
# every teardown does, but deletes nothing: it deletes only if `merge` has succeeded, and only the
# commit that was merged. The XCom of `merge` alone would not show this: Airflow keeps the XCom
# when the gate is cleared and `merge` does not run again. Neither would the state alone: a task
# that somebody marked as successful has no commit.
#
# The gate's own tasks set each argument on which the gate relies, or `default_args` would set it:
# `trigger_rule` (a merge after a failure), `do_xcom_push` and `multiple_outputs` (a check without
# the branch's name asks production), `wait_for_build`, `delete_branch`, and for the teardowns
# `depends_on_past` (nobody closes the branch). Connection and deployment are the same for all
# tasks, as `default_args` or the gate gives them: or the checks prove one deployment, and `merge`
# merges in another. Branches of two deployments can have one name, so the deployment of the task
# that returns the name comes before the connection's.
@contextmanager
def branch_gate(
    branch_name: Any,
    *,
    group_id: str = "branch_gate",
    merge: MergeWhen = "on_success",
    delete: DeleteWhen | None = None,
    if_unsupported: IfUnsupported = "fail",
    into: MergeTarget = "default",
    message: str | None = None,
    remove_on_upstream: bool | str = False,
    deployment_id: Any = None,
    platform_conn_id: str | None = None,
    merge_conn_id: str | None = None,
    deferrable: bool | None = None,
    poll_interval: float | timedelta = POLL_INTERVAL,
    timeout: float | timedelta = BUILD_TIMEOUT,
    merge_timeout: float | timedelta = MERGE_TIMEOUT,
    default_args: dict[str, Any] | None = None,
) -> Iterator[BranchGate]:
    """Make a group of tasks that merges a branch into production only if the tasks inside succeed.

        with branch_gate(sync.output["branch_name"]) as gate:
            PlatformCompareOperator(task_id="sums", queries=..., branch_name=gate.branch_name)

    Before the tasks inside, the group opens the branch and waits until it is built (`open`,
    `built`, `commit`). After them it merges the branch and waits until production is built
    (`merge`), closes the branch (`close`) and deletes it (`delete`). `gate.branch_name` is the name
    to use in questions and queries. Tasks after the group (`gate >> publish`) run after the merge.

    After a success the branch is merged and deleted. If any task inside other than a
    teardown fails or is skipped, even if a task after it ignores that (`trigger_rule`), nothing is
    merged, and the branch is closed and kept (with `delete="always"`: deleted). The log of `close`
    says how to open it. A branch that was open before the gate is not closed.

    Opening is the setup of the group; closing and deleting are its teardown. The teardown runs
    whether the tasks inside succeed or fail, and its failure does not change the state of the DAG
    run. If you clear a task inside, the group opens the branch again, unless it was deleted. If the
    branch has got a new commit since the tasks inside checked it, the group does not merge it:
    clear the whole group.

    Raises PlatformInputError for a bad argument, for a group without a task that checks the branch,
    and for an operator inside, of this package or for SQL on the gate's connection, that could name
    a branch and names none.

    :param branch_name: the branch; a template or an output of a task, such as
        `sync.output["branch_name"]`
    :param group_id: the id of the group; the ids of its tasks begin with it
    :param merge: `on_success` merges the branch if all tasks inside succeed; `never` does not
        merge: a task `passed` takes the place of `merge`
    :param delete: delete the branch `on_success`, `always` or `never`; default: `on_success`, and
        `never` with `merge="never"`
    :param if_unsupported: see `PlatformOpenBranchOperator`; `skip` skips the whole group
    :param into: see `PlatformMergeBranchOperator`
    :param message: the message of the merge; default: a sentence with the DAG and the task
    :param remove_on_upstream: see `PlatformDeleteBranchOperator`
    :param deployment_id: the deployment's id, also of this package's operators inside that give
        none. By default, the first of these gives it: the gate's `default_args`; the task that
        returns `branch_name`, if it has the same connection; the DAG's `default_args`; the
        connection
    :param platform_conn_id: the connection that opens, closes and deletes the branch, also of this
        package's operators inside that give none; default: that of `default_args`, else
        `platform_default`
    :param merge_conn_id: the connection that merges the branch; default: `platform_conn_id`. With
        another connection, the gate needs a `deployment_id`
    :param deferrable: wait for builds in the triggerer; None means Airflow's `[operators]
        default_deferrable`
    :param poll_interval: seconds (or a timedelta) between two status checks of a build
    :param timeout: seconds (or a timedelta) until the branch is built
    :param merge_timeout: seconds (or a timedelta) until production is built after the merge
    :param default_args: arguments of all tasks in the group, as in a TaskGroup. For the group's own
        tasks, the gate's parameters give `deferrable`, `poll_interval` and `timeout`
    """
    arguments.choice("merge", merge, get_args(MergeWhen))
    if delete is None:
        delete = "on_success" if merge == "on_success" else "never"
    arguments.choice("delete", delete, get_args(DeleteWhen))
    options: dict[str, Any] = {"default_args": default_args or {}}
    gate = BranchGate(group_id=group_id, **options)
    inherited = {**getattr(gate.dag, "default_args", {}), **gate.default_args}
    conn_id = platform_conn_id or inherited.get("platform_conn_id", DEFAULT_CONN_ID)
    if deployment_id is None and gate.default_args.get("deployment_id") is None:
        deployment_id = deployment_of(branch_name, conn_id)
    known = inherited.get("deployment_id") if deployment_id is None else deployment_id
    if merge == "on_success" and known is None and merge_conn_id not in (None, conn_id):
        raise arguments.refuse(
            "deployment_id",
            "is needed with merge_conn_id: the two connections can have different deployments",
        )
    connected = arguments.given(deployment_id=deployment_id, platform_conn_id=platform_conn_id)
    own: dict[str, Any] = {
        "trigger_rule": "all_success",
        "do_xcom_push": True,
        "multiple_outputs": True,
    }
    waiting: dict[str, Any] = {
        "deferrable": deferrable,
        "poll_interval": poll_interval,
        **own,
    }
    opening: dict[str, Any] = {
        "cancel_on_kill": True,
        "branch_name": branch_name,
        "if_unsupported": if_unsupported,
        "timeout": timeout,
        **connected,
        **waiting,
    }
    ending: dict[str, Any] = {"depends_on_past": False, "wait_for_downstream": False, **connected}
    # Airflow copies default_args for each group inside; a copied output has another DAG.
    plain = {name: as_template(value) for name, value in connected.items()}
    gate.default_args.update(plain)
    with gate:
        opened = PlatformOpenBranchOperator(task_id="open", wait_for_build=False, **opening)
        built = PlatformOpenBranchOperator(task_id="built", wait_for_build=True, **opening)
        setups: list[BaseOperator] = [opened, built]
        now_at = output_of(built, "hash")
        commit = CommitOperator(
            task_id="commit", branch_name=NeededOutput(built, "branch_name"), now_at=now_at, **own
        )
        checked: Any = NeededOutput(commit, "branch_hash")
        gate.branch_name = NeededOutput(commit, "branch_name")
        opened >> built >> commit
        before = [*setups, commit]
        yield gate
        inside = [task for task in gate if task not in before]
        first = [task for task in gate.get_roots() if task not in before]
        checks = [task for task in inside if not task.is_teardown]
        commit.checks = [task.task_id for task in checks if task.trigger_rule != "always"]
        passed: BaseOperator
        if merge == "never":
            passed = PassedOperator(
                task_id="passed",
                branch_name=gate.branch_name,
                now_at=now_at,
                branch_hash=output_of(commit, "branch_hash"),
                **own,
            )
        else:
            passed = PlatformMergeBranchOperator(
                task_id="merge",
                branch_name=gate.branch_name,
                into=into,
                message=message,
                delete_branch=False,
                hash=checked,
                wait_for_build=True,
                timeout=merge_timeout,
                **{**connected, **arguments.given(platform_conn_id=merge_conn_id)},
                **waiting,
            )
        commit.set_downstream(first)
        passed.set_upstream([commit, *checks])
        close = PlatformCloseBranchOperator(
            task_id="close", branch_name=output_of(opened, "opened_branch"), **ending
        )
        close.as_teardown(setups=setups)
        # Directly after a branching task, `close` would be skipped, and the branch would stay open.
        close.set_upstream([passed, *(task for task in inside if not is_branching(task))])
        if delete != "never":
            gone = _delete_task(branch_name, passed, delete, remove_on_upstream, ending)
            gone.as_teardown(setups=setups)
            gone.set_upstream([passed, close])
        check_inside(gate, checks, opened.platform_conn_id)
        seal(gate)


def _delete_task(
    branch_name: Any,
    passed: BaseOperator,
    delete: DeleteWhen,
    remove_on_upstream: bool | str,
    ending: dict[str, Any],
) -> PlatformDeleteBranchOperator:
    """Return the task that deletes the branch: always, or if the task `passed` has succeeded."""
    if delete == "always":
        return PlatformDeleteBranchOperator(
            task_id="delete",
            branch_name=branch_name,
            hash=None,
            remove_on_upstream=remove_on_upstream,
            **ending,
        )
    return _DeletePassedOperator(
        task_id="delete",
        passed_task_id=passed.task_id,
        branch_name=branch_name,
        hash=output_of(passed, "branch_hash"),
        remove_on_upstream=remove_on_upstream,
        **ending,
    )


class _DeletePassedOperator(PlatformDeleteBranchOperator):
    """Deletes the branch if the task `passed_task_id` has succeeded in this pass of the gate and
    names the commit that it let pass: a task that somebody marked as successful names none."""

    def __init__(self, *, passed_task_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.passed_task_id = passed_task_id

    def execute(self, context: Context) -> dict[str, Any]:
        """Delete the branch."""
        if self.hash is None or not self._has_passed(context):
            self.log.info(
                "Task %s has not succeeded, or names no commit, so branch %s is kept.",
                self.passed_task_id,
                quote_service(self.branch_name),
            )
            return {"branch_name": self.branch_name, "deleted": False}
        return super().execute(context)

    def _has_passed(self, context: Context) -> bool:
        ti: Any = context["ti"]
        passed = SimpleNamespace(
            dag_id=ti.dag_id,
            run_id=ti.run_id,
            map_index=ti.map_index,
            task_id=self.passed_task_id,
        )
        return get_task_states(passed) == "success"
