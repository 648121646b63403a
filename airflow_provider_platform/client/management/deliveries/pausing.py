"""Pauses a delivery, so that its schedule does not run, and resumes it.

All raise FeatureNotActivatedError if the tenant has no deliveries, and what requests raise.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from airflow_provider_platform.client.errors import PlatformAddressError, PlatformApiError
from airflow_provider_platform.client.management.deliveries.deliveries import (
    ReportDelivery,
    get_report_delivery,
    pause_report_delivery,
    resume_report_delivery,
)
from airflow_provider_platform.client.management.deliveries.run import (
    Delivery,
    explain_missing_delivery,
)
from airflow_provider_platform.client.operations.models import EmptiableResponse
from airflow_provider_platform.client.operations.operation import Operation

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.api import Api

T = TypeVar("T")


async def read_delivery(api: Api, deployment_id: int, delivery_id: int | str) -> ReportDelivery:
    """Return the delivery."""
    delivery = Delivery(deployment_id, delivery_id)
    return await _explained(api, delivery, get_report_delivery(**delivery.ids))


async def pause_delivery(api: Api, deployment_id: int, delivery_id: int | str) -> EmptiableResponse:
    """Pause a delivery, and return what the service answers."""
    delivery = Delivery(deployment_id, delivery_id)
    return await _explained(api, delivery, pause_report_delivery(**delivery.ids))


async def resume_delivery(
    api: Api, deployment_id: int, delivery_id: int | str
) -> EmptiableResponse:
    """Resume a delivery, and return what the service answers."""
    delivery = Delivery(deployment_id, delivery_id)
    return await _explained(api, delivery, resume_report_delivery(**delivery.ids))


async def _explained(api: Api, delivery: Delivery, operation: Operation[T]) -> T:
    try:
        return await api.call(operation)
    except (PlatformAddressError, PlatformApiError) as error:
        explained = await explain_missing_delivery(api, delivery, error, None)
        if explained is error:
            raise
        raise explained from error
