"""What `branch_gate` is made of besides the operators on branches: the group, which refuses what
would merge an unchecked branch, and its own tasks, which prove that all checks saw one commit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_platform._airflow import (
    BaseOperator,
    PlainXComArg,
    TaskGroup,
    get_succeeded,
)
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.operators._arguments import needed_by
from airflow_provider_platform.operators._base import PlatformOperator, storing_outputs

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_platform._airflow import Context


class BranchGate(TaskGroup):
    """The group of tasks that `branch_gate` returns. `branch_name` is the name to ask."""

    branch_name: Any = None


def seal(group: TaskGroup) -> None:
    """Let this group and the groups inside refuse further tasks: the gate would merge the branch
    without waiting for them."""

    def refuse(_: Any) -> Any:
        raise PlatformInputError(
            "A task was added to a branch gate after the end of its with block, so the gate would "
            "merge the branch without waiting for the task. Move the task into the with block.",
            where=f"task group {group.group_id!r}",
        )

    group.add = refuse  # type: ignore[method-assign, assignment]
    for child in group.children.values():
        if isinstance(child, TaskGroup):
            seal(child)


def is_branching(task: Any) -> bool:
    """Return whether the task chooses one of those directly after it, as `@task.branch` does, and
    skips the others, teardowns too."""
    operator: type = getattr(task, "operator_class", type(task))
    return hasattr(operator, "do_branch") or operator.__name__ == "BranchSQLOperator"


def check_inside(gate: BranchGate, checks: list[Any], conn_id: str) -> None:
    """Refuse a gate that checks nothing, or production instead of the branch. `conn_id` is the
    connection of the gate. Raises PlatformInputError."""
    where = f"task group {gate.group_id!r}"
    if not checks:
        raise PlatformInputError(
            "The branch gate has no task, so it would merge the branch unchecked. Put the tasks "
            "that check the branch into its with block.",
            where=where,
        )
    for task in checks:
        given = vars(task)
        if hasattr(task, "partial_kwargs"):
            mapped = getattr(task.expand_input, "value", None)
            defaults = {**task.dag.default_args, **task.task_group.default_args}
            own = {**task.partial_kwargs, **(mapped if isinstance(mapped, dict) else {})}
            given = {**defaults, **own}
        if given.get("no_regression") is False and given.get("threshold") is None:
            raise PlatformInputError(
                f"Task {task.task_id} of the branch gate never fails: it has no_regression=False "
                "and no threshold. Set threshold, or leave out no_regression.",
                where=where,
            )
        if name := _missing_branch(task, given, conn_id):
            raise PlatformInputError(
                f"Task {task.task_id} of the branch gate has no {name}, and without it the task "
                "would not use the branch, but most likely production, and the gate would merge "
                f"the branch unchecked. Set {name} to the branch_name of the gate. A task that is "
                "not to use the branch belongs before or after the gate.",
                where=where,
            )


def _missing_branch(task: Any, given: Mapping[str, Any], conn_id: str) -> str | None:
    """Return the argument that names the branch of a check, if it is not given. The keys that
    `expand_kwargs` gives are not known yet. An operator of Airflow's SQL provider on the connection
    of the gate is a check too."""
    is_known = not hasattr(task, "partial_kwargs") or isinstance(task.expand_input.value, dict)
    operator: type = getattr(task, "operator_class", type(task))
    if not is_known:
        return None
    params = given.get("hook_params") or {}
    is_sql = "hook_params" in task.template_fields and isinstance(params, dict)
    if is_sql and given.get("conn_id") == conn_id:
        return None if "branch_name" in params else "branch_name in hook_params"
    if not issubclass(operator, PlatformOperator):
        return None
    named = {"branch_name", "active_branch_name"} & needed_by(operator).keys()
    missing = {name for name in named if given.get(name) is None}
    return next(iter(missing), None) if given.get("is_default_branch") is None else None


def as_template(value: Any) -> Any:
    """Return an output of a task as the template that renders to it."""
    return str(value) if isinstance(value, PlainXComArg) else value


def output_of(task: BaseOperator, key: str) -> Any:
    """Return one key of a task's result, as an argument of another task."""
    output: Any = task.output
    return output[key]


class NeededOutput(PlainXComArg):
    """A part of the result of one of the gate's own tasks, without which no task may do anything:
    without a branch's name a check would ask production, and without a commit `merge` would merge
    whatever is on the branch."""

    def resolve(self, *args: Any, **kwargs: Any) -> Any:
        value = super().resolve(*args, **kwargs)
        if arguments.optional(value) is None:
            from airflow_provider_platform._airflow import AirflowFailException

            raise AirflowFailException(
                f"Nothing was sent: task {self.operator.task_id} of the branch gate has returned "
                f"no {self.key}, and without it this task would ask or merge what was not checked. "
                f"If {self.operator.task_id} did not run, or somebody marked it as successful, "
                "clear the whole gate. If the service names no commits, this does not help: use "
                "merge='never' in the gate, and merge the branch in the platform."
            )
        return value


class CommitOperator(BaseOperator):
    """Returns `{"branch_name", "branch_hash"}`: the commit that the tasks inside a gate prove, the
    built commit `now_at`.

    Fails if it is cleared and one of the `checks` (ids of tasks) is not: such a task keeps what it
    proved of an earlier commit.
    """

    template_fields: tuple[str, ...] = ("branch_name", "now_at")
    ui_color = "#eef3fb"

    def __init__(self, *, branch_name: Any, now_at: Any, **kwargs: Any) -> None:
        super().__init__(post_execute=storing_outputs(None), **kwargs)
        self.branch_name = branch_name
        self.now_at = now_at
        self.checks: list[str] = []

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the branch's name and its commit."""
        kept = get_succeeded(context["ti"], self.checks)
        if kept:
            self._refuse(f"These tasks were not cleared: {', '.join(kept)}")
        return {"branch_name": self.branch_name, "branch_hash": self.now_at}

    def _refuse(self, reason: str) -> NoReturn:
        from airflow_provider_platform._airflow import AirflowFailException

        raise AirflowFailException(
            f"{reason}. The gate needs all of its checks on one commit of branch "
            f"{quote_service(self.branch_name)}. Clear the whole gate."
        )


class PassedOperator(CommitOperator):
    """The last task of a gate that does not merge. It succeeds if the tasks before it succeed, and
    the branch is still at the commit `branch_hash`.

    Returns `{"branch_name", "branch_hash"}`.
    """

    template_fields = (*CommitOperator.template_fields, "branch_hash")

    def __init__(self, *, branch_hash: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.branch_hash = branch_hash

    def execute(self, context: Context) -> dict[str, Any]:
        """Return the branch's name and the commit that was checked."""
        if self.branch_hash != self.now_at:
            self._refuse(
                f"Some tasks checked commit {quote_service(self.branch_hash)}, others commit "
                f"{quote_service(self.now_at)}"
            )
        name = quote_service(self.branch_name)
        self.log.info("Branch %s passed. The gate does not merge it.", name)
        return {"branch_name": self.branch_name, "branch_hash": self.branch_hash}
