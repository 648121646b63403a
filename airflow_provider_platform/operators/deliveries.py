"""An operator that runs a report delivery now.

How a run is started and followed, and what is logged about it, is in resources/deliveries.py.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import IfRunning, OnNotActivated
from airflow_provider_platform.client.errors import OperationMissingError, PlatformError
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.operators._remote_run import RemoteRunOperator

if TYPE_CHECKING:
    from datetime import timedelta

    from airflow_provider_platform.operators._base import Checks

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
    False if the task followed a run that was already active; `run` is the run as the service
    reports it (None above 16 KB). `status`, `run` and `last_success_at` are None if the task did
    not wait.

    A run has succeeded if it ended without an error and the delivery's `lastSuccessAt` is newer
    than before the start.

    The delivery is started once. If the response to the start is lost, the task searches the
    delivery's list of runs for the new run. After a run that failed, a retry starts a new run. The
    service cannot stop a run: if the task ends early, the run continues, and a retry waits for it.

    The platform's support must activate deliveries for the account.

    :param delivery_id: the id of the delivery
    :param if_running: what to do if a run of this delivery is active, which may have read older
        data: `follow` it, `fail` with AlreadyRunningError, after which a retry tries
        again, or `skip` this task
    :param on_not_activated: what the task does if deliveries are not activated for the account:
        `fail` (OperationMissingError; Airflow does not retry the task) or `skip`
    :param wait_for_completion: False returns after the start, with `status` None
    :param timeout: seconds (or a timedelta) of wall time for each try, from the
        start of the run or of the retry. An earlier `execution_timeout` counts too. The service
        ends a run after an hour
    :param durable: record the run in Airflow's task state store (Airflow 3.3 and later), so that a
        retry finds it (None means True). Without the record, a retry finds the run only while the
        run is active, and only with `if_running="follow"`
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
        not_activated = isinstance(error, OperationMissingError)
        return super().skips_after(error) or (not_activated and self.on_not_activated == "skip")
