"""Scheduled tasks: saved prompts that the deployment's agent answers by a schedule or on demand.

The service's document names few properties of a task and none of its runs. Those that are inferred
(`id`, `status`, `error`) may be missing, and what else the service sends is kept.
"""

from __future__ import annotations

from airflow_provider_platform.client.management.shared.runs_now import RunNow, StartedRunNow
from airflow_provider_platform.client.operations.models import ResponseModel, Timestamp
from airflow_provider_platform.client.operations.operation import DeploymentId, endpoint
from airflow_provider_platform.client.operations.paging import Page, PageQuery

SINCE = "v0.15.0"
"""The first release with scheduled tasks."""


class ScheduledTask(ResponseModel):
    """A scheduled task; `user_id` is its creator, as whom every run acts."""

    id: int | str | None = None
    user_id: int | None = None
    next_run_at: Timestamp | None = None
    notification_enabled: bool | None = None


_TASKS = "/v1/deployments/{deploymentId}/scheduled-tasks"
_TASK = _TASKS + "/{taskId}"
_LOOK = "access to the deployment (the feature scheduled tasks must be enabled for the account)"


@endpoint("GET", _TASKS, operation_id="listScheduledTasks", permission=_LOOK)
def list_scheduled_tasks(
    *, deployment_id: DeploymentId = None, query: PageQuery | None = None
) -> Page[ScheduledTask]:
    """The scheduled tasks of a deployment. Raises PlatformPermissionError unless the feature is
    enabled for the account."""


@endpoint("GET", _TASK, operation_id="getScheduledTask", permission=_LOOK)
def get_scheduled_task(*, task_id: int | str, deployment_id: DeploymentId = None) -> ScheduledTask:
    """One scheduled task. Raises PlatformNotFoundError, PlatformPermissionError."""


@endpoint(
    "POST",
    f"{_TASK}/run",
    operation_id="runScheduledTask",
    permission="a token of the task's creator or of an administrator",
)
def run_scheduled_task(*, task_id: int | str, deployment_id: DeploymentId = None) -> StartedRunNow:
    """Run a scheduled task now. The run acts as the task's creator and writes a new chat thread.

    Every call starts a run, so it is never repeated when its outcome is unknown. Raises
    PlatformPermissionError."""


@endpoint("GET", f"{_TASK}/runs", operation_id="listScheduledTaskRuns", permission=_LOOK)
def list_scheduled_task_runs(
    *, task_id: int | str, deployment_id: DeploymentId = None, query: PageQuery | None = None
) -> Page[RunNow]:
    """The runs of a scheduled task; the service keeps the newest 50."""
