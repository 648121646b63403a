"""What ends the wait of a sensor for reports and for tokens, as the worker polls."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform._airflow import AirflowSensorTimeout
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.sensors.account import PlatformUserOAuthTokenSensor
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.support.task_context import TaskTries

pytestmark = pytest.mark.usefixtures("platform_sandbox")


def found(sensor: type[Any], **arguments: Any) -> Any:
    """What the sensor returns."""
    task = sensor(task_id="sense", deferrable=False, **{"timeout": 30, **arguments})
    context = TaskTries().context()
    task.render_template_fields(context)
    return task.execute(context)


def waits(sensor: type[Any], **arguments: Any) -> None:
    """Check that the first poll does not end the wait."""
    with pytest.raises(AirflowSensorTimeout):
        found(sensor, timeout=0, **arguments)


def test_report_sensor_finds_a_report_by_name() -> None:
    assert found(PlatformReportSensor, name="Top products", folder_id="11")["id"] == 103


def test_report_sensor_sees_the_refresh_of_a_placement() -> None:
    refreshed = {"report_id": 101, "refreshed_after": "2026-07-20T00:00:00Z"}
    place = {"externalWorkbookId": "w", "resultLocation": "A!1"}
    PlatformHook().call(
        "connectReportToWorkbook", report_id=101, body={**place, "addressOnly": True}
    )
    waits(PlatformReportSensor, **refreshed)
    PlatformHook().call("refreshReport", report_id=101, body=place)
    assert found(PlatformReportSensor, **refreshed)["id"] == 101


@pytest.mark.parametrize(
    "condition",
    [{"target_statuses": ["ACTIVE", "refreshed"]}, {"expires_within": 1e9}],
    ids=str,
)
def test_token_sensor_returns_the_token_of_its_condition(condition: dict[str, Any]) -> None:
    token = found(PlatformUserOAuthTokenSensor, integration_id=3, **condition)
    assert token["userId"] == 7


@pytest.mark.parametrize(
    "condition",
    [
        {"expires_within": 1.0},
        {"expires_within": 1e9, "target_statuses": "no"},
        {"target_statuses": "active", "user_id": 8},
    ],
    ids=str,
)
def test_token_sensor_waits_for_another_token(
    condition: dict[str, Any],
) -> None:
    waits(PlatformUserOAuthTokenSensor, integration_id=3, **condition)
