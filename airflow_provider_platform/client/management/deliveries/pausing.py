"""Pauses a delivery, so that its schedule does not run, and resumes it."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.errors import PlatformAddressError, PlatformApiError
from airflow_provider_platform.client.management.deliveries.deliveries import (
    ChangedDelivery,
    pause_report_delivery,
    resume_report_delivery,
)
from airflow_provider_platform.client.management.deliveries.run import (
    DeliveryRuns,
    explain_missing_delivery,
)
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Program, call


def pause_delivery(deployment_id: int, delivery_id: int | str) -> Program[dict[str, Any]]:
    """Pause a delivery; what the service answers, as plain JSON. Raises FeatureNotActivatedError
    and what requests raise."""
    operation = pause_report_delivery(delivery_id=delivery_id, deployment_id=deployment_id)
    return (yield from _changed(operation, DeliveryRuns(deployment_id, delivery_id)))


def resume_delivery(deployment_id: int, delivery_id: int | str) -> Program[dict[str, Any]]:
    """Resume a delivery; what the service answers, as plain JSON. Raises FeatureNotActivatedError
    and what requests raise."""
    operation = resume_report_delivery(delivery_id=delivery_id, deployment_id=deployment_id)
    return (yield from _changed(operation, DeliveryRuns(deployment_id, delivery_id)))


def _changed(
    operation: Operation[ChangedDelivery], delivery: DeliveryRuns
) -> Program[dict[str, Any]]:
    try:
        return (yield from call(operation)).to_json()
    except (PlatformAddressError, PlatformApiError) as error:
        explained = yield from explain_missing_delivery(delivery, error, None)
        if explained is error:
            raise
        raise explained from error
