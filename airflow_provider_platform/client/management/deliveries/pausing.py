"""Pauses a delivery, so that its schedule does not run, and resumes it.

All raise FeatureNotActivatedError if the tenant has no deliveries, and what requests raise.
"""

from __future__ import annotations

from typing import TypeVar

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
from airflow_provider_platform.client.operations.program import Program, call

T = TypeVar("T")


def read_delivery(deployment_id: int, delivery_id: int | str) -> Program[ReportDelivery]:
    """Return the delivery."""
    delivery = Delivery(deployment_id, delivery_id)
    return (yield from _explained(delivery, get_report_delivery(**delivery.ids)))


def pause_delivery(deployment_id: int, delivery_id: int | str) -> Program[EmptiableResponse]:
    """Pause a delivery, and return what the service answers."""
    delivery = Delivery(deployment_id, delivery_id)
    return (yield from _explained(delivery, pause_report_delivery(**delivery.ids)))


def resume_delivery(deployment_id: int, delivery_id: int | str) -> Program[EmptiableResponse]:
    """Resume a delivery, and return what the service answers."""
    delivery = Delivery(deployment_id, delivery_id)
    return (yield from _explained(delivery, resume_report_delivery(**delivery.ids)))


def _explained(delivery: Delivery, operation: Operation[T]) -> Program[T]:
    try:
        return (yield from call(operation))
    except (PlatformAddressError, PlatformApiError) as error:
        explained = yield from explain_missing_delivery(delivery, error, None)
        if explained is error:
            raise
        raise explained from error
