"""Operators that run a report delivery or a scheduled task now, and pause or resume a delivery.

How a run is started and followed, and what is logged about it, is in runs/deliveries.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from airflow_provider_platform.client.choices import IfRunning
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.failures import ShortTraceback
from airflow_provider_platform.operators._base.operator import DeploymentOperator
from airflow_provider_platform.operators._submission.submit_or_reattach import RemoteRunOperator

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_platform._airflow import BaseTrigger, Context
    from airflow_provider_platform.client.operations.program import Program
    from airflow_provider_platform.operators._base.operator import Checks
    from airflow_provider_platform.runs.deliveries import DeliveryRunKind, ScheduledTaskRunKind
    from airflow_provider_platform.runs.run_kind import Ids

DELIVERY_TIMEOUT = 3900.0
"""The service ends a delivery that hangs after an hour."""
TASK_TIMEOUT = 3600.0


def _resource_id(name: str, value: Any) -> int | str:
    """An id: whether the service numbers deliveries and scheduled tasks is not documented. Raises
    PlatformInputError."""
    text = arguments.text(name, value).strip()
    return int(text) if text.isascii() and text.isdigit() and str(int(text)) == text else text


class PlatformRunDeliveryOperator(DeploymentOperator, RemoteRunOperator):
    """Run a report delivery now: the platform writes the rows of a saved report to a spreadsheet.
    The task waits until the delivery has succeeded.

    Use it after the tasks that load the report's data, with a delivery that has no schedule. The
    delivery runs with the data access and the Google account of its owner. A paused delivery runs
    too.

    Returns `{"delivery_id", "run_id", "started", "status", "run", "last_success_at"}`: `started` is
    False where the task followed a run that was going on already; `run` is the run as the service
    reports it. `status`, `run` and `last_success_at` are None where the run is not waited for. Also
    pushed key by key (with `multiple_outputs`, the default).

    A run has succeeded if it ended without an error and the delivery's `lastSuccessAt` is newer
    than before the start.

    The delivery is started once. If the answer to the start is lost, the task looks for the new run
    in the delivery's list of runs. A run that failed is started again by the retry. The service has
    no operation that stops a run: a task that is ended or too late leaves it running, and a retry
    follows it.

    Needs release v0.17.0 or later, and the feature must be activated for the account.

    :param delivery_id: the id of the delivery
    :param if_running: what to do if a run of this delivery is going on, which may have read older
        data: `follow` it (the default), `fail` with an AlreadyRunningError, which a retry can mend,
        or `skip` this task
    :param wait_for_completion: False returns after the start, with `status` None
    :param cancel_on_kill: has no effect, since nothing stops a run
    :param timeout: seconds (or a timedelta) of wall time for each try (default 3900), from the
        start or, in a retry that follows a run, from its begin; an earlier `execution_timeout`
        counts too. The service ends a run after an hour
    :param multiple_outputs: push the result key by key too, so that `deliver.output["run_id"]`
        works
    """

    checks: ClassVar[Checks] = {
        "delivery_id": _resource_id,
        "if_running": partial(arguments.choice, choices=get_args(IfRunning)),
        "wait_for_completion": arguments.boolean,
    }

    def __init__(
        self,
        *,
        delivery_id: int | str,
        if_running: IfRunning = "follow",
        wait_for_completion: bool = True,
        timeout: float | timedelta = DELIVERY_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.delivery_id: Any = delivery_id
        self.if_running: Any = if_running
        self.wait_for_completion: Any = wait_for_completion
        self.validate_known_arguments()

    def run_kind(self) -> DeliveryRunKind:
        from airflow_provider_platform.runs.deliveries import DeliveryRunKind

        return DeliveryRunKind(
            subject_id=self.delivery_id,
            if_running=self.if_running,
            wait_for_completion=self.wait_for_completion,
            deployment_id=self.deployment_id,
        )

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.deliveries import PlatformDeliveryTrigger

        return PlatformDeliveryTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )


class PlatformRunScheduledTaskOperator(DeploymentOperator, RemoteRunOperator):
    """Run a scheduled task now: the agent answers the task's saved prompt in a new chat thread.

    Use it to start a task whose result goes to people, by mail or as content in the platform. The
    run acts as the task's creator, and the thread belongs to them: a DAG cannot expect to read
    the answer. To get an answer, ask the agent with `PlatformChatOperator`. Only the creator and
    administrators may run a task.

    Returns `{"scheduled_task_id", "run_id", "started", "status", "run"}`: `started` is False where
    the task followed a run that was going on already; `run` is the run as the service reports it.
    `status` and `run` are None where the run is not waited for, and `run_id` where the service
    names none. Also pushed key by key (with `multiple_outputs`, the default).

    The task is started once. If the answer to the start is lost, the operator looks for the new run
    in the task's list of runs. A run that failed is started again by the retry. The service has no
    operation that stops a run: an Airflow task that is ended or too late leaves it running, and a
    retry follows it.

    The service refuses nothing while a run is going on. So the operator looks at the list of runs
    before the start: two Airflow tasks of one moment can both start a run.

    Needs release v0.15.0 or later, and the feature must be activated for the account.

    :param scheduled_task_id: the id of the scheduled task
    :param if_running: what to do if a run of this task is going on: `follow` it (the default),
        `fail` with an AlreadyRunningError, which a retry can mend, or `skip` this task
    :param wait_for_completion: `if_supported` waits where the tenant reports the status of the run,
        else it warns and returns after the start; True fails after the start there; False returns
        after the start
    :param cancel_on_kill: has no effect, since nothing stops a run
    :param timeout: seconds (or a timedelta) of wall time for each try (default 3600), from the
        start or, in a retry that follows a run, from its begin; an earlier `execution_timeout`
        counts too
    :param multiple_outputs: push the result key by key too, so that `run.output["run_id"]` works
    """

    checks: ClassVar[Checks] = {
        "scheduled_task_id": _resource_id,
        "if_running": partial(arguments.choice, choices=get_args(IfRunning)),
        "wait_for_completion": partial(arguments.boolean_or, choices=("if_supported",)),
    }

    def __init__(
        self,
        *,
        scheduled_task_id: int | str,
        if_running: IfRunning = "follow",
        wait_for_completion: bool | Literal["if_supported"] = "if_supported",
        timeout: float | timedelta = TASK_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.scheduled_task_id: Any = scheduled_task_id
        self.if_running: Any = if_running
        self.wait_for_completion: Any = wait_for_completion
        self.validate_known_arguments()

    def run_kind(self) -> ScheduledTaskRunKind:
        from airflow_provider_platform.runs.deliveries import ScheduledTaskRunKind

        return ScheduledTaskRunKind(
            subject_id=self.scheduled_task_id,
            if_running=self.if_running,
            wait_for_completion=self.wait_for_completion,
            deployment_id=self.deployment_id,
        )

    def trigger(self, ids: Ids, deadline: float) -> BaseTrigger:
        from airflow_provider_platform.triggers.deliveries import PlatformScheduledTaskTrigger

        return PlatformScheduledTaskTrigger(
            platform_conn_id=self.platform_conn_id,
            run=ids,
            deadline=deadline,
            poll_interval=self.poll_interval,
            cancel_on_kill=self.cancel_on_kill,
        )


class _ChangeDeliveryOperator(DeploymentOperator):
    """Base of the operators that change a delivery's schedule; to repeat the call changes
    nothing."""

    checks: ClassVar[Checks] = {"delivery_id": _resource_id}

    def __init__(self, *, delivery_id: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.delivery_id: Any = delivery_id
        self.validate_known_arguments()

    def change(self, deployment_id: int) -> Program[dict[str, Any]]:
        """The change, and what the service answers to it."""
        raise NotImplementedError

    def execute(self, context: Context) -> dict[str, Any]:
        """Change the delivery, and return what the service answers."""
        with ShortTraceback(), self.opened(context) as hook:
            deployment_id = hook.resolve_deployment_id(self.deployment_id)
            return hook.open_client().run(self.change(deployment_id))


class PlatformPauseDeliveryOperator(_ChangeDeliveryOperator):
    """Pause the schedule of a report delivery. A run that is going on is not stopped, and a paused
    delivery can be run by `PlatformRunDeliveryOperator`.

    Use it before the tasks that change the report's data, with `PlatformResumeDeliveryOperator`
    after them, as its teardown: `resume.as_teardown(setups=[pause])`.

    Returns what the service answers, `{}` if it answers nothing. Needs release v0.17.0 or later,
    and the feature must be activated for the account.

    :param delivery_id: the id of the delivery
    """

    def change(self, deployment_id: int) -> Program[dict[str, Any]]:
        from airflow_provider_platform.client.management.deliveries.pausing import pause_delivery

        return pause_delivery(deployment_id, self.delivery_id)


class PlatformResumeDeliveryOperator(_ChangeDeliveryOperator):
    """Resume the schedule of a report delivery. The service does not make up for runs that were
    missed while the delivery was paused.

    Use it after `PlatformPauseDeliveryOperator`, as its teardown.

    Returns what the service answers, `{}` if it answers nothing. Needs release v0.17.0 or later,
    and the feature must be activated for the account.

    :param delivery_id: the id of the delivery
    """

    def change(self, deployment_id: int) -> Program[dict[str, Any]]:
        from airflow_provider_platform.client.management.deliveries.pausing import resume_delivery

        return resume_delivery(deployment_id, self.delivery_id)
