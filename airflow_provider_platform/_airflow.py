"""Every name of Airflow that this package uses, from wherever the installed release keeps it.

Another release is supported by changing this module. It imports nothing that a DAG file has not
loaded already; what only running tasks need is reached through functions.
"""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

from airflow.sdk import BaseOperator, BaseOperatorLink, BaseSensorOperator, TaskGroup
from airflow.sdk import __version__ as _sdk_version
from airflow.sdk.bases.decorator import DecoratedOperator, task_decorator_factory
from airflow.sdk.bases.operator import BaseOperatorMeta
from airflow.sdk.definitions._internal.types import SET_DURING_EXECUTION
from airflow.sdk.definitions.xcom_arg import PlainXComArg

if TYPE_CHECKING:
    from airflow.sdk import (
        BaseHook,
        Connection,
        Context,
        ObjectStoragePath,
        PokeReturnValue,
        Variable,
        conf,
    )
    from airflow.sdk.bases.decorator import TaskDecorator, determine_kwargs
    from airflow.sdk.bases.notifier import BaseNotifier
    from airflow.sdk.exceptions import (
        AirflowFailException,
        AirflowNotFoundException,
        AirflowSensorTimeout,
        AirflowSkipException,
        AirflowTaskTimeout,
    )
    from airflow.triggers.base import BaseTrigger, TaskSuccessEvent, TriggerEvent

_PLACES = {
    "AirflowFailException": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "AirflowNotFoundException": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "AirflowSensorTimeout": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "AirflowSkipException": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "AirflowTaskTimeout": ("airflow.sdk.exceptions", "airflow.exceptions"),
    "BaseHook": ("airflow.sdk", "airflow.hooks.base"),
    "BaseNotifier": ("airflow.sdk.bases.notifier", "airflow.notifications.basenotifier"),
    "BaseTrigger": ("airflow.triggers.base",),
    "Connection": ("airflow.sdk",),
    "Context": ("airflow.sdk",),
    "ObjectStoragePath": ("airflow.sdk",),
    "PokeReturnValue": ("airflow.sdk",),
    "TaskDecorator": ("airflow.sdk.bases.decorator",),
    "TaskSuccessEvent": ("airflow.triggers.base",),
    "TriggerEvent": ("airflow.triggers.base",),
    "Variable": ("airflow.sdk",),
    "conf": ("airflow.sdk", "airflow.configuration"),
    "determine_kwargs": ("airflow.sdk.bases.decorator", "airflow.utils.operator_helpers"),
}

__all__ = [
    "SET_DURING_EXECUTION",
    "XCOM_TAKES_NONE",
    "AirflowFailException",
    "AirflowNotFoundException",
    "AirflowSensorTimeout",
    "AirflowSkipException",
    "AirflowTaskTimeout",
    "BaseHook",
    "BaseNotifier",
    "BaseOperator",
    "BaseOperatorLink",
    "BaseOperatorMeta",
    "BaseSensorOperator",
    "BaseTrigger",
    "Connection",
    "Context",
    "DecoratedOperator",
    "ObjectStoragePath",
    "PlainXComArg",
    "PokeReturnValue",
    "TaskDecorator",
    "TaskGroup",
    "TaskSuccessEvent",
    "TriggerEvent",
    "Variable",
    "conf",
    "determine_kwargs",
    "task_decorator_factory",
]

_SDK = tuple(int(part) for part in _sdk_version.split(".")[:2])

XCOM_TAKES_NONE = _SDK >= (1, 1)
"""Whether an XCom of None can be stored. In Airflow 3.0 (task SDK 1.0) the API server takes the
`null` for a missing value, answers 422, and the task fails. It is the server that cannot, so that
a worker has but the version to tell by."""

MOVED_TRIGGER_IS_KILLED = _SDK < (1, 4)
"""Whether a trigger's `on_kill` is also called if the trigger moves to another triggerer. From
Airflow 3.4 on it is called only if the task was marked or cleared. A clear drops the task state
there, unless the user keeps it, so that the next try does not know the run."""


def __getattr__(name: str) -> Any:
    """The first place that has the name, looked up when it is first needed."""
    from importlib import import_module

    for module in _PLACES.get(name, ()):
        try:
            value = getattr(import_module(module), name)
        except (ImportError, AttributeError):
            continue
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def mask_secrets(secrets: list[str]) -> None:
    """Have every log of this process show the secrets as `***`; not for an event loop."""
    if secrets:
        _masking_module().mask_secret(secrets)


def _masking_module() -> Any:
    from importlib import import_module

    try:
        return import_module("airflow.sdk.log")
    except ImportError:
        return import_module("airflow.sdk.execution_time.secrets_masker")


async def get_connection_on_loop(hook: type[BaseHook], conn_id: str) -> Connection:
    """Look a connection up from an event loop.

    Before Airflow 3.3.2 the asynchronous look-up masks secrets with a blocking call; the
    synchronous one then runs in a thread (`Connection.aextra_dejson` came with the mending).
    """
    from airflow.sdk import Connection as SdkConnection

    lookup = getattr(hook, "aget_connection", None)
    if lookup is not None and hasattr(SdkConnection, "aextra_dejson"):
        connection: Connection = await lookup(conn_id)
        return connection
    from asgiref.sync import sync_to_async

    return await sync_to_async(hook.get_connection)(conn_id)


def get_run_xcom(*, dag_id: str, run_id: str, task_id: str, key: str) -> Any:
    """A value that a task of a run has stored, None where there is none; not for an event loop."""
    from airflow.sdk.execution_time.xcom import XCom

    return XCom.get_one(dag_id=dag_id, run_id=run_id, task_id=task_id, key=key)


def redacted(text: str) -> str:
    """The text with `***` for every secret that this process has had masked."""
    from importlib import import_module

    # Airflow 3.0 has the module of 3.1 without this function.
    for place in ("airflow.sdk.log", "airflow.sdk.execution_time.secrets_masker"):
        try:
            redact = import_module(place).redact
        except (ImportError, AttributeError):
            continue
        return str(redact(text))
    return text


def resumes(context: Context) -> bool:
    """Whether the task goes on after a deferral."""
    server_context = getattr(context.get("ti"), "_ti_context_from_server", None)
    return bool(getattr(server_context, "next_method", None))


def retry_policy_action(task: Any, error: BaseException, context: Context) -> str | None:
    """What the task's retry policy (Airflow 3.3+) answers to this error, as "fail" (no retry
    follows) or "reschedule" (Airflow 3.4+: the same try goes on later, also without a retry left);
    None without a policy. Airflow asks the policy again itself; a policy that raises counts as no
    answer there and here."""
    policy = getattr(task, "retry_policy", None)
    ti: Any = context.get("ti")
    if policy is None or ti is None:
        return None
    try:
        decision = policy.evaluate(
            exception=error, try_number=ti.try_number, max_tries=ti.max_tries, context=context
        )
    except Exception:  # noqa: BLE001 - as Airflow does, which then retries as usual
        return None
    action = str(getattr(decision.action, "value", decision.action))
    if action == "reschedule" and _was_rescheduled_enough(ti, decision, context):
        return "default"
    return action


def _was_rescheduled_enough(ti: Any, decision: Any, context: Context) -> bool:
    """Whether this try has reached a bound of the decision. Airflow then retries as usual."""
    count: Any = context.get("task_reschedule_count") or 0
    if decision.max_reschedules is not None and count >= decision.max_reschedules:
        return True
    first = ti.get_first_reschedule_date(context) if decision.reschedule_timeout else None
    return first is not None and datetime.now(UTC) - first >= decision.reschedule_timeout


def count_resumable_job(what: str, task: Any, ti: Any) -> None:
    """Count what a try does with the run of an earlier try, by the names and tags with which
    Airflow's own operators count it (Airflow 3.3+)."""
    if _SDK < (1, 3):
        return
    from airflow.sdk.observability.stats import incr

    tags = {"operator": type(task).__name__}
    if team := (getattr(ti, "stats_tags", None) or {}).get("team_name"):
        tags["team_name"] = team
    incr(f"resumable_job.{what}", tags=tags)


def loop_pass(context: Context) -> str | None:
    """Return the pass of a task loop (Airflow 3.4+) that a task instance belongs to, as
    `loop-1a2b3c4d-0`: a digest of the loop's region, then the number of the pass, or in a mapped
    task its index. None outside a loop. All passes have one DAG, run, task and map index."""
    ti: Any = context.get("ti")
    region = getattr(ti, "region_id", None)
    # A mapped task has a region of its own, also without a loop.
    if context.get("loop") is None or not isinstance(region, UUID) or region.int == 0:
        return None
    return f"loop-{sha256(region.bytes).hexdigest()[:8]}-{ti.region_index}"


def get_task_states(ti: Any) -> str | None:
    """The state of a task instance as Airflow has it now, "removed" for one that is gone and None
    for one that has none (it was cleared and has not begun).

    Blocks, also on a request of this process that is under way. Raises what the look-up raises.
    """
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id, task_ids=[ti.task_id], run_ids=[ti.run_id], map_index=ti.map_index
    )
    states_of_run = states.get(ti.run_id, {})
    name = ti.task_id if ti.map_index < 0 else f"{ti.task_id}_{ti.map_index}"
    state = states_of_run.get(name, states_of_run.get(ti.task_id, "removed"))
    return None if state is None else str(getattr(state, "value", state))


def get_succeeded(ti: Any, task_ids: list[str]) -> list[str]:
    """Return which of these tasks of the same DAG run have succeeded, `name_3` for index 3 of a
    mapped one; of a task in a mapped group only the index of `ti`. Blocks. Raises what the look-up
    raises."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    if not task_ids:
        return []
    states = RuntimeTaskInstance.get_task_states(
        dag_id=ti.dag_id,
        task_ids=task_ids,
        run_ids=[ti.run_id],
        map_index=ti.map_index if ti.map_index >= 0 else None,
    )
    return [
        name
        for name, state in states.get(ti.run_id, {}).items()
        if str(getattr(state, "value", state)) == "success"
    ]


def get_failed(dag_id: str, run_id: str) -> list[str]:
    """Return which tasks of a DAG run have failed, `name_3` for index 3 of a mapped one. Blocks.
    Raises what the look-up raises."""
    from airflow.sdk.execution_time.task_runner import RuntimeTaskInstance

    states = RuntimeTaskInstance.get_task_states(dag_id=dag_id, run_ids=[run_id]).get(run_id, {})
    return [
        name for name, state in states.items() if str(getattr(state, "value", state)) == "failed"
    ]


async def get_task_states_on_loop(ti: Any) -> str | None:
    """`get_task_states` for a trigger's event loop."""
    from asgiref.sync import sync_to_async

    return await sync_to_async(get_task_states)(ti)
