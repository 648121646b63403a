"""A connection that was read before is read again with patience: Airflow cannot tell a look-up that
failed on its way from a connection that does not exist."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformConfigError, PlatformTransportError
from airflow_provider_platform.hooks import connection as _connection
from airflow_provider_platform.hooks import platform
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.resources.deployments import get_deployment
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.support.remote_tasks import deferral_while_stopped
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.sandbox.server import Sandbox

    Outage = Callable[..., list[Exception]]


@pytest.fixture
def outage(monkeypatch: pytest.MonkeyPatch) -> Outage:
    """`outage(*errors)`: the next look-ups of a connection fail so; returns what is still to come.
    Airflow's API server cannot be made to fail here, so the hook's own look-ups are replaced."""
    monkeypatch.setattr(_connection, "FIRST_PAUSE", 0.0)
    to_come: list[Exception] = []
    look_up, look_up_on_loop = PlatformHook.get_connection, platform.get_connection_on_loop

    def failing(conn_id: str) -> Any:
        if to_come:
            raise to_come.pop(0)
        return look_up(conn_id)

    async def failing_on_loop(hook: Any, conn_id: str) -> Any:
        if to_come:
            raise to_come.pop(0)
        return await look_up_on_loop(hook, conn_id)

    monkeypatch.setattr(PlatformHook, "get_connection", staticmethod(failing))
    monkeypatch.setattr(platform, "get_connection_on_loop", failing_on_loop)

    def begin(*errors: Exception) -> list[Exception]:
        to_come.extend(errors)
        return to_come

    return begin


def undefined(times: int = _connection.READ_ATTEMPTS - 1) -> list[Exception]:
    return [RuntimeError("The conn_id `platform_default` isn't defined") for _ in range(times)]


def rotate(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.control.rotate_management_token()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(sandbox.control.connection()))


def test_rotated_token_is_read_although_airflow_fails_for_a_moment(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, outage: Outage
) -> None:
    hook = PlatformHook()
    with hook.client():
        assert list(hook.list_reports())
        rotate(platform_sandbox, monkeypatch)
        to_come = outage(*undefined())
        assert list(hook.list_reports())
    assert to_come == []


def test_rotated_token_is_read_on_an_event_loop_although_airflow_fails(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, outage: Outage
) -> None:
    async def ask_after_rotation() -> int:
        async with PlatformHook().async_client() as client:
            rotate(platform_sandbox, monkeypatch)
            outage(*undefined())
            return (await client.run(get_deployment(deployment_id=1))).id

    assert asyncio.run(ask_after_rotation()) == 1


@pytest.mark.exhaustive
def test_missing_connection_is_reported_after_the_retries(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, outage: Outage
) -> None:
    hook = PlatformHook()
    hook.config  # noqa: B018 - read once
    rotate(platform_sandbox, monkeypatch)
    outage(*undefined(100))
    with pytest.raises(PlatformTransportError, match=r"'platform_default' can no longer be read"):
        list(hook.list_reports())


@pytest.mark.parametrize(
    "error", [PlatformConfigError("bad address"), PermissionError("denied")], ids=["bad", "denied"]
)
def test_permanent_error_of_the_connection_is_not_retried(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, outage: Outage, error: Exception
) -> None:
    hook = PlatformHook()
    hook.config  # noqa: B018 - read once
    rotate(platform_sandbox, monkeypatch)
    outage(error)
    with pytest.raises(type(error), match=str(error)):
        list(hook.list_reports())


def test_trigger_starts_although_airflow_fails_for_a_moment(
    platform_sandbox: Sandbox, outage: Outage
) -> None:
    operator = PlatformChatOperator(task_id="ask", prompt="revenue by country", deferrable=True)
    context = TaskTries().context()
    trigger = deferral_while_stopped(platform_sandbox.control, operator.execute, context).trigger
    outage(*undefined())
    event = asyncio.run(anext(trigger.run()))
    assert event.payload["status"] == "success"


def test_sensor_trigger_starts_although_airflow_fails_for_a_moment(
    platform_sandbox: Sandbox, outage: Outage
) -> None:
    sensor = PlatformReportSensor(task_id="wait", report_id=999, timeout=0.1, deferrable=True)
    trigger = deferral(sensor.execute, TaskTries().context()).trigger
    outage(*undefined())
    event = asyncio.run(anext(trigger.run()))
    assert event.payload["status"] == "timeout"


def test_connection_that_cannot_be_read_at_first_fails_at_once(
    platform_sandbox: Sandbox, outage: Outage
) -> None:
    outage(*undefined(1))
    with pytest.raises(RuntimeError, match="isn't defined"):
        PlatformHook().config  # noqa: B018
