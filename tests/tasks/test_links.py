"""Links to the platform help people. They never decide how a task ends."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowSensorTimeout
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.links import LINK_KEY, ThreadLink
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.branches import PlatformDeleteBranchOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.notifications import PlatformDeleteNotificationOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator
from airflow_provider_platform.operators.workbooks import PlatformDuplicateWorkbookOperator
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.support.remote_tasks import chat, deferral_while_stopped
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox

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


def test_link_is_the_web_address_of_the_tenant(platform_sandbox: Sandbox) -> None:
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
def test_link_that_cannot_be_stored_does_not_fail_the_task(
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


def test_a_chat_links_to_its_thread_agent_and_branch(platform_sandbox: Sandbox) -> None:
    context = TaskTries().context()
    task = chat(active_branch_name="dev")
    result = task.execute(context)
    xcoms = context["ti"].xcoms
    pages = f"{platform_sandbox.url}/app"
    links = {key: value for key, value in xcoms.items() if key.endswith("_link")}
    assert links == {
        "platform_link": platform_sandbox.url,
        "platform_agent_link": f"{pages}?agent=1#threads",
        "platform_branch_link": f"{pages}?branch=dev#syncs",
        "platform_thread_link": f"{pages}/threads/{result['chat_id']}",
    }
    # Airflow stores them again under the same keys when the task ends.
    stored = {one.xcom_key: one.get_link(task, ti_key=None) for one in task.operator_extra_links}
    assert stored == links


def test_chat_that_reloads_its_result_links_to_its_thread(platform_sandbox: Sandbox) -> None:
    tries = TaskTries()
    result = chat().execute(tries.context())
    context = tries.context()
    assert chat().execute(context)["chat_id"] == result["chat_id"]
    assert context["ti"].xcoms["platform_thread_link"].endswith(result["chat_id"])
    assert len(platform_sandbox.control.state().messages) == 1


def test_a_deferred_chat_has_its_links_before_it_waits(platform_sandbox: Sandbox) -> None:
    context = TaskTries().context()
    waiting = deferral_while_stopped(
        platform_sandbox.control, chat(deferrable=True).execute, context
    )
    thread = context["ti"].xcoms["platform_thread_link"]
    assert thread.endswith(waiting.kwargs["run"]["chat_id"])


def test_unknown_url_has_no_link(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = platform_sandbox.connection_json(web_links=None)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", bare)
    context = TaskTries().context()
    task = chat()
    task.execute(context)
    assert [key for key in context["ti"].xcoms if key.endswith("_link")] == [LINK_KEY]
    assert [link.name for link in task.operator_extra_links] == ["Analytics Platform"]
    assert ThreadLink().get_link(task, ti_key=None) == ""


def test_a_task_that_has_not_begun_has_all_links_of_its_class(platform_sandbox: Sandbox) -> None:
    names = [link.name for link in chat().operator_extra_links]
    assert names == ["Analytics Platform", "Thread", "Agent", "Branch", "File"]
    mapped = type(chat()).partial(task_id="many").expand(prompt=["a", "b"])
    assert [link.name for link in mapped.operator_extra_links] == names


def test_operator_links_to_the_created_object(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    context = TaskTries().context()
    clone = PlatformDuplicateWorkbookOperator(task_id="clone", workbook_id=301).execute(context)
    assert (
        context["ti"].xcoms["platform_workbook_link"].endswith(f"?workbook={clone['id']}#changes")
    )

    context = TaskTries().context()
    export = PlatformExportDashboardOperator(
        task_id="export", dashboard_id=501, output_path=str(tmp_path / "x.pdf"), deferrable=False
    ).execute(context)
    xcoms = context["ti"].xcoms
    assert xcoms["platform_export_link"].endswith(f"?export={export['job_id']}#changes")


def test_link_of_a_file_is_its_path_in_the_template_or_its_own_web_address() -> None:
    config = PlatformConfig.build(
        host="https://acme.example.com",
        management_token="canary-of-a-token",
        web_links={"file": "https://files.example.com/{path}?download=1"},
    )

    def address(path: str) -> str | None:
        return config.web_addresses({"path": path}).get("file")

    expected = "https://files.example.com/s3%3A//bucket/x%20y.csv?download=1"
    assert address("s3://bucket/x y.csv") == expected
    assert address("https://a.example/x") == "https://a.example/x"
    assert address("") is None


def test_task_that_deletes_a_notification_or_a_branch_does_not_link_to_it() -> None:
    for task in (
        PlatformDeleteNotificationOperator(task_id="delete", notification_id=1),
        PlatformDeleteBranchOperator(task_id="delete", branch_name="dev"),
    ):
        assert [link.name for link in task.operator_extra_links] == ["Analytics Platform"]


def test_sensor_links_to_the_report_it_found(platform_sandbox: Sandbox) -> None:
    context = TaskTries().context()
    PlatformReportSensor(task_id="sense", name="Revenue by country", deferrable=False).execute(
        context
    )
    assert context["ti"].xcoms["platform_report_link"].endswith("?report=101#changes")


def test_sensor_links_to_the_report_that_its_trigger_found(platform_sandbox: Sandbox) -> None:
    tries = TaskTries()
    sensor = PlatformReportSensor(
        task_id="sense", name="Written later", deferrable=True, poke_interval=0.05
    )
    deferred = deferral(sensor.execute, tries.context())
    platform_sandbox.control.change("reports", 101, name="Written later")
    context = tries.context()

    async def only_event() -> Any:
        [event] = [event async for event in deferred.trigger.run()]
        return event.payload

    sensor.execute_complete(context, asyncio.run(only_event()), **(deferred.kwargs or {}))
    assert context["ti"].xcoms["platform_report_link"].endswith("?report=101#changes")


def test_sensor_that_waited_in_vain_links_to_the_report(platform_sandbox: Sandbox) -> None:
    """Airflow resumes a new sensor, and stores an empty text for a link that it does not know."""
    tries = TaskTries()
    first, resumed = (
        PlatformReportSensor(task_id="sense", report_id=999, timeout=0.0, deferrable=True)
        for _ in range(2)
    )
    deferred = deferral(first.execute, tries.context())
    context, wait = tries.context(), deferred.kwargs or {}
    with pytest.raises(AirflowSensorTimeout):
        resumed.execute_complete(context, {"status": "timeout", **wait}, **wait)
    assert context["ti"].xcoms["platform_report_link"].endswith("?report=999#changes")
