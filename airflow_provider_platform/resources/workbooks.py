"""Workbooks and their published dashboards: what publishing reads and sends.

The newest tenant publishes the saved draft if it is sent no `config`; an older tenant needs the
`config`. `publish` sends none and, if the service refuses that, sends the saved draft itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_platform.client.errors import (
    DashboardReviewRequiredError,
    PlatformBadRequestError,
    PlatformInputError,
    PlatformUnprocessableError,
)
from airflow_provider_platform.client.models import JsonObject, ResponseModel
from airflow_provider_platform.client.operation import DeploymentId, Operation, typed

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


class Dashboard(ResponseModel):
    """A published dashboard."""

    public_id: str | None = None
    allow_embed: bool | None = None
    config: JsonObject | None = None
    version_number: int | None = None
    version_id: int | None = None
    description: str | None = None
    title: str | None = None


class Workbook(ResponseModel):
    """A workbook; an older tenant reports neither the draft nor what is published."""

    dashboard_draft: JsonObject | None = None
    published_dashboard: Dashboard | None = None


class Clone(ResponseModel):
    """A cloned workbook."""

    id: int


duplicate_workbook = typed("duplicateWorkbook", Clone)
get_workbook = typed("getWorkbook", Workbook)
publish_workbook = typed("publishDashboard", Dashboard)


async def publish(
    api: Api,
    workbook_id: int | str,
    body: dict[str, Any],
    *,
    deployment_id: DeploymentId = None,
) -> Dashboard:
    """Publish the body's `config` or, without one, the workbook's saved draft.

    Raises PlatformInputError for a workbook without a saved draft, DashboardReviewRequiredError for
    a dashboard that requires review, and what the service says otherwise.
    """
    ids: dict[str, Any] = {"workbook_id": workbook_id, "deployment_id": deployment_id}
    operation = publish_workbook(body=body, rendered=True, **ids)
    try:
        return await api.call(operation)
    except (PlatformBadRequestError, PlatformUnprocessableError) as error:
        if body.get("config") is not None or isinstance(error, DashboardReviewRequiredError):
            raise
        refusal = error
    # As plain JSON: the draft goes back to the service as it came.
    reading = cast("Operation[Any]", replace(get_workbook(**ids), answer=cast("type[Any]", Any)))
    workbook = await api.call(reading)
    saved = workbook.get("dashboardDraft") if isinstance(workbook, dict) else None
    if saved is None:
        raise no_saved_draft(workbook_id) from refusal
    return await api.call(replace(operation, body={**operation.body, "config": saved}))


def no_saved_draft(workbook_id: int | str) -> PlatformInputError:
    """The error for a workbook that has nothing to publish."""
    return PlatformInputError(
        f"Nothing was published: workbook {workbook_id} has no saved draft of a dashboard. Save a "
        "draft in the workbook, or give config.",
        field="config",
    )
