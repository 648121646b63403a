"""The link to the platform is a help for people: it never decides how a task ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.links import LINK_KEY, PlatformLink
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.unit.operators.remote_tasks import chat
from tests.unit.operators.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from airflow_provider_platform.triggers.chat import PlatformChatTrigger

REPORT = {
    "report_id": 101,
    "external_workbook_id": "book",
    "result_location": "Sheet1!A1",
}


def refusing(tries: TaskTries) -> Any:
    """The context of a try whose XComs cannot be stored."""
    context = tries.context()

    def refuse(key: str, value: Any) -> None:
        raise RuntimeError("API_SERVER_ERROR")

    context["ti"].xcom_push = refuse
    return context


def test_it_is_the_address_of_the_tenant(platform_sandbox: Sandbox) -> None:
    context = TaskTries().context()
    PlatformApiOperator(task_id="read", path="/v1/deployments").execute(context)
    address = context["ti"].xcoms[LINK_KEY]
    assert address.startswith("http://127.0.0.1:")
    assert not address.endswith("/api")


@pytest.mark.parametrize(
    "task",
    [
        chat,
        lambda: PlatformApiOperator(task_id="read", path="/v1/deployments"),
        lambda: PlatformConnectReportOperator(task_id="connect", **REPORT),
        lambda: PlatformReportSensor(task_id="sense", report_id=101, deferrable=False),
    ],
    ids=["chat", "api", "report", "sensor"],
)
def test_one_that_cannot_be_stored_fails_nothing(
    platform_sandbox: Sandbox,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    task: Any,
) -> None:
    assert task().execute(refusing(TaskTries())) is not None
    # A task's log is one of the standard library, from 3.1 on structlog's.
    said = caplog.text + capsys.readouterr().out
    assert "The task's link to the platform could not be stored" in said
    assert "API_SERVER_ERROR" in said


def test_nor_does_it_when_the_trigger_has_brought_the_result(platform_sandbox: Sandbox) -> None:
    tries = TaskTries()
    context = tries.context()
    waiting = deferral(chat(deferrable=True).execute, context)
    trigger: PlatformChatTrigger = waiting.trigger

    async def brought() -> Any:
        return [event.payload async for event in trigger.run()]

    [event] = asyncio.run(brought())
    context["ti"].xcom_push = refusing(tries)["ti"].xcom_push
    result = chat(deferrable=True).execute_complete(context, event=event, **waiting.kwargs)
    assert result["answer"]


def test_one_that_cannot_be_read_is_empty(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Airflow 3.0 asks for it after the task, and fails where that raises."""

    def fail(ti_key: Any, key: str) -> Any:
        raise RuntimeError("API_SERVER_ERROR")

    monkeypatch.setattr("airflow_provider_platform._airflow.get_task_xcom", fail)
    assert PlatformLink().get_link(chat(), ti_key=None) == ""
    assert "API_SERVER_ERROR" in caplog.text
