"""`PlatformDbtSyncSensor`: wait until a dbt sync that somebody else started is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from airflow_provider_platform.operators._base import Checks


class PlatformDbtSyncSensor(DeploymentOperator, PlatformSensor):
    """Wait until a dbt sync is complete. A sync that failed or was cancelled fails the task.
    A retry asks about the same sync, so it fails too.

    Use it for a sync that another DAG, a person or a trigger of the platform started.

    Returns `{"sync_job_id", "branch_name", "status", "result"}`; `branch_name` is None if the
    history of syncs does not name it, and `result` if the service has none. If the tenant does not
    report the status of a sync, the task fails.

    :param sync_job_id: the sync's id, which `PlatformDbtSyncOperator` returns
    """

    condition_kind = "dbt_sync"
    checks: ClassVar[Checks] = {
        "sync_job_id": arguments.text,
    }

    def __init__(self, *, sync_job_id: str, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.sync_job_id = sync_job_id
        self.validate_known_arguments()
