"""Operators that run a report delivery now, and pause or resume its schedule.

How a run is started and followed, and what is logged about it, is in resources/deliveries.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client.choices import IfRunning, OnNotActivated
from airflow_provider_platform.client.errors import FeatureNotActivatedError, PlatformError
from airflow_provider_platform.operators import _arguments as arguments
from airflow_provider_platform.operators._base import DeploymentOperator, ShortTraceback
from airflow_provider_platform.operators._remote_run import RemoteRunOperator
from airflow_provider_platform.operators._retry_or_clear import read_record
from airflow_provider_platform.operators._single_call import SingleCallOperator

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.models import ResponseModel
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.deliveries import ReportDelivery

DELIVERY_TIMEOUT = 3900.0
"""The service ends a delivery that hangs after an hour."""


def _resource_id(name: str, value: Any) -> int | str:
    """An id: whether the service numbers deliveries is not documented. Raises
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
    :param on_not_activated: what the task does if the tenant has no deliveries (release before
        v0.17.0, or not activated for the account): `fail` (FeatureNotActivatedError; Airflow does
        not retry the task) or `skip`
    :param wait_for_completion: False returns after the start, with `status` None
    :param timeout: seconds (or a timedelta) of wall time for each try (default 3900), from the
        start or, in a retry that follows a run, from its begin; an earlier `execution_timeout`
        counts too. The service ends a run after an hour
    :param multiple_outputs: push the result key by key too, so that `deliver.output["run_id"]`
        works
    """

    kind_path = "deliveries.DeliveryRunKind"
    checks: ClassVar[Checks] = {
        "delivery_id": _resource_id,
        "if_running": partial(arguments.choice, choices=get_args(IfRunning)),
        "on_not_activated": partial(arguments.choice, choices=get_args(OnNotActivated)),
        "wait_for_completion": arguments.boolean,
    }

    def __init__(
        self,
        *,
        delivery_id: int | str,
        if_running: IfRunning = "follow",
        on_not_activated: OnNotActivated = "fail",
        wait_for_completion: bool = True,
        timeout: float | timedelta = DELIVERY_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.delivery_id: Any = delivery_id
        self.if_running: Any = if_running
        self.on_not_activated: Any = on_not_activated
        self.wait_for_completion: Any = wait_for_completion
        self.validate_known_arguments()

    def skips_after(self, error: PlatformError) -> bool:
        not_activated = isinstance(error, FeatureNotActivatedError)
        return super().skips_after(error) or (not_activated and self.on_not_activated == "skip")


class PlatformPauseDeliveryOperator(DeploymentOperator, SingleCallOperator):
    """Pause the schedule of a report delivery. A run that is going on is not stopped, and a paused
    delivery can be run by `PlatformRunDeliveryOperator`.

    Use it before the tasks that change the report's data, with `PlatformResumeDeliveryOperator`
    after them, as its teardown: `resume.as_teardown(setups=[pause])`.

    Returns `{"delivery_id", "was_paused", "delivery"}`: `was_paused` is True if the delivery was
    paused before this task; `delivery` is what the service answers. Also pushed key by key (with
    `multiple_outputs`, the default), so that `pause.output["was_paused"]` works.

    If the answer is lost, the task reads whether the delivery is paused. If the service does not
    say this either, a retry finds out. After the last try, the log says that the delivery may be
    paused.

    Needs release v0.17.0 or later, and the feature must be activated for the account.

    :param delivery_id: the id of the delivery
    """

    checks: ClassVar[Checks] = {"delivery_id": _resource_id}

    def __init__(self, *, delivery_id: int | str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.delivery_id: Any = delivery_id
        self._was_paused = self._may_be_paused_by_this_task = False
        self.validate_known_arguments()

    def idempotency_key(self, config: PlatformConfig) -> str:
        return self.fingerprint(config, type(self).__name__, self.delivery_id)

    def execute_once(self, context: Context, hook: PlatformHook) -> Any:
        """Pause once, and tell an earlier pause by this task from a pause by others."""
        record = read_record(context)
        if record is not None and record.key == self.idempotency_key(hook.config):
            was_paused = record.ids.get("result", record.ids).get("was_paused")
            self._may_be_paused_by_this_task = was_paused is False
        elif context.get("task_state_store") is None:
            self._may_be_paused_by_this_task = context["ti"].try_number > 1
        return super().execute_once(context, hook)

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        paused = self._read(hook).is_paused
        self._was_paused = paused and not self._may_be_paused_by_this_task
        return {"was_paused": self._was_paused}

    def call(self, hook: PlatformHook) -> Any:
        from airflow_provider_platform.resources.deliveries import pause_delivery

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        return self._describe(
            hook.run(lambda api: pause_delivery(api, deployment_id, self.delivery_id))
        )

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """Return the result if the delivery is paused."""
        try:
            delivery = self._read(hook)
        except PlatformError:
            self.log.warning(
                "The service did not confirm the pause, so the delivery may be paused. A retry "
                "checks this. If no retry follows, check the delivery in the platform."
            )
            raise
        self._was_paused = ids["was_paused"]
        return self._describe(delivery) if delivery.is_paused else None

    def _read(self, hook: PlatformHook) -> ReportDelivery:
        from airflow_provider_platform.resources.deliveries import read_delivery

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        return hook.run(lambda api: read_delivery(api, deployment_id, self.delivery_id))

    def _describe(self, delivery: ResponseModel) -> dict[str, Any]:
        return {
            "delivery_id": self.delivery_id,
            "was_paused": self._was_paused,
            "delivery": delivery.to_json(),
        }


class PlatformResumeDeliveryOperator(DeploymentOperator):
    """Resume the schedule of a report delivery. The service does not make up for runs that were
    missed while the delivery was paused.

    Use it after `PlatformPauseDeliveryOperator`, as its teardown. To leave a delivery paused that
    somebody else had paused before, set `was_paused=pause.output["was_paused"]`.

    Returns `{"delivery_id", "resumed", "delivery"}`: `delivery` is what the service answers,
    None if the delivery stays paused. Also pushed key by key (with `multiple_outputs`, the
    default).

    Needs release v0.17.0 or later, and the feature must be activated for the account.

    :param delivery_id: the id of the delivery
    :param was_paused: True leaves the delivery as it is, because it was paused before the DAG run
    """

    checks: ClassVar[Checks] = {
        "delivery_id": _resource_id,
        "was_paused": arguments.boolean,
    }

    def __init__(
        self,
        *,
        delivery_id: int | str,
        was_paused: bool | str = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.delivery_id: Any = delivery_id
        self.was_paused: Any = was_paused
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Resume the delivery, unless it was paused before."""
        from airflow_provider_platform.resources.deliveries import resume_delivery

        with ShortTraceback(), self.opened(context) as hook:
            delivery = None
            if self.was_paused:
                self.log.info("The delivery was paused before this DAG run, so it stays paused.")
            else:
                deployment_id = hook.resolve_deployment_id(self.deployment_id)
                delivery = hook.run(
                    lambda api: resume_delivery(api, deployment_id, self.delivery_id)
                ).to_json()
        return {
            "delivery_id": self.delivery_id,
            "resumed": not self.was_paused,
            "delivery": delivery,
        }
