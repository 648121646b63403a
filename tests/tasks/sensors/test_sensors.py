"""Sensors poke by poke, over HTTP: the result, tolerated failures, and deferral."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

import pytest
from airflow.exceptions import TaskDeferred
from airflow.sdk import Asset

from airflow_provider_platform._airflow import (
    XCOM_TAKES_NONE,
    AirflowFailException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskSuccessEvent,
)
from airflow_provider_platform.client.errors import (
    PlatformInputError,
    PlatformPermissionError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.sensors.account import PlatformUserOAuthTokenSensor
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from airflow_provider_platform.sensors.dbt_sync import PlatformDbtSyncSensor
from airflow_provider_platform.sensors.notifications import PlatformNotificationSensor
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from airflow_provider_platform.triggers import PlatformSensorTrigger
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from airflow_provider_platform.sensors._base import PlatformSensor

DAILY: dict[str, Any] = {"schedule_type": "DAILY", "hour": 6, "dashboard_id": 501}


def sensor(kind: type[PlatformSensor], **arguments: Any) -> PlatformSensor:
    return kind(task_id="sense", **{"deferrable": False, "poke_interval": 0.01, **arguments})


def seen(found: Any) -> Any:
    """What a poke gave: the XCom of a sensor that is done, None of one that waits on."""
    return found.xcom_value if found else None


def poke(kind: type[PlatformSensor], **arguments: Any) -> Any:
    return seen(sensor(kind, **arguments).poke(TaskTries().context()))


class TestNotification:
    def test_notification_sensor_waits_until_a_notification_exists(
        self, platform_sandbox: Sandbox
    ) -> None:
        assert poke(PlatformNotificationSensor, dashboard_id=501) is None
        number = PlatformHook().create_notification(**DAILY)["id"]
        assert poke(PlatformNotificationSensor, dashboard_id=501)["id"] == number
        assert poke(PlatformNotificationSensor, notification_id=str(number))["id"] == number
        assert poke(PlatformNotificationSensor, dashboard_id=502) is None

    def test_notification_sensor_waits_until_the_notification_is_switched_on_or_off(
        self, platform_sandbox: Sandbox
    ) -> None:
        number = PlatformHook().create_notification(**DAILY)["id"]
        off = {"notification_id": number, "is_enabled": "False"}
        assert poke(PlatformNotificationSensor, **off) is None
        PlatformHook().update_notification(number, is_enabled=False)
        assert poke(PlatformNotificationSensor, **off)["isEnabled"] is False

    def test_notification_sensor_waits_for_the_recipient(self, platform_sandbox: Sandbox) -> None:
        number = PlatformHook().create_notification(**DAILY)["id"]
        analyst = {"recipient_email": "analyst@acme.example.com"}
        assert poke(PlatformNotificationSensor, **analyst) is None
        user = {"type": "USER", "email": analyst["recipient_email"]}
        PlatformHook().call("addRecipients", id=number, body={"recipients": [user]})
        assert poke(PlatformNotificationSensor, **analyst)["id"] == number


class TestChatThread:
    def test_thread_sensor_waits_until_the_thread_stops_streaming(
        self, platform_sandbox: Sandbox
    ) -> None:
        control = platform_sandbox.control
        control.set_breakpoint("mid_stream")
        asked = threading.Thread(target=PlatformHook().chat, args=("Revenue by country",))
        asked.start()
        [held] = control.wait_for_breakpoint("mid_stream")
        assert poke(PlatformChatThreadSensor, chat_id=held.chat_id) is None
        control.release()
        asked.join()
        found = poke(PlatformChatThreadSensor, chat_id=held.chat_id)
        assert found == {"chat_id": held.chat_id, "is_streaming": False}
        assert len(control.state().runs) == 1

    def test_thread_sensor_needs_the_owner_of_the_thread(self, platform_sandbox: Sandbox) -> None:
        chat_id = PlatformHook().chat("Revenue by country").chat_id
        other = {"chat_id": chat_id, "session_settings": {"externalId": "somebody-else"}}
        with pytest.raises(AirflowFailException, match="404"):
            poke(PlatformChatThreadSensor, **other)


class TestFailures:
    SYNC = "/dbt-sync/"

    def test_rescheduled_sensor_counts_failures_across_processes(
        self, platform_sandbox: Sandbox
    ) -> None:
        sync_job_id = PlatformHook().start_dbt_sync()["syncJobId"]
        platform_sandbox.control.fault("status", path=self.SYNC, status=500, count=None)
        context = TaskTries().context()
        arguments = {"sync_job_id": sync_job_id, "mode": "reschedule"}
        for _ in range(5):
            assert not sensor(PlatformDbtSyncSensor, **arguments).poke(context)
        with pytest.raises(PlatformServerError):
            sensor(PlatformDbtSyncSensor, **arguments).poke(context)

    def test_failure_count_is_written_only_when_it_changes(self, platform_sandbox: Sandbox) -> None:
        tries = TaskTries()
        written: list[int] = []

        def note(key: str, value: Any) -> None:
            written.append(value["failures"])
            tries.store[key] = value

        tries.store.set = note  # type: ignore[method-assign]
        context = tries.context()
        arguments = {"report_id": 999, "mode": "reschedule"}
        for _ in range(3):
            assert not sensor(PlatformReportSensor, **arguments).poke(context)
        assert written == []
        platform_sandbox.control.fault("status", path="/reports/", status=500)
        for _ in range(3):
            assert not sensor(PlatformReportSensor, **arguments).poke(context)
        assert written == [1, 0]

    @pytest.mark.parametrize("broken", ["get", "set"])
    def test_failing_store_does_not_change_the_outcome_of_a_sensor(
        self,
        platform_sandbox: Sandbox,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
        broken: str,
    ) -> None:
        tries = TaskTries()
        context = tries.context()

        def refuse(*arguments: Any) -> None:
            raise RuntimeError("API_SERVER_ERROR")

        monkeypatch.setattr(tries.store, broken, refuse, raising=False)
        platform_sandbox.control.fault("status", path="/reports/", status=500)
        arguments = {"report_id": 101, "mode": "reschedule"}
        assert not sensor(PlatformReportSensor, **arguments).poke(context)
        assert seen(sensor(PlatformReportSensor, **arguments).poke(context))["id"] == 101
        assert "API_SERVER_ERROR" in caplog.text + capsys.readouterr().out
        platform_sandbox.control.rotate_management_token()
        with pytest.raises(AirflowFailException, match="Management token"):
            sensor(PlatformReportSensor, **arguments).poke(context)

    def test_result_of_a_sync_names_its_branch(self, platform_sandbox: Sandbox) -> None:
        """The status of a sync does not name it, the history does."""
        started = PlatformHook().start_dbt_sync()
        value = poke(PlatformDbtSyncSensor, sync_job_id=started["syncJobId"])
        assert value is not None
        assert value["branch_name"] == started["branchName"]

    def test_a_sync_that_was_just_started_may_be_unknown(self, platform_sandbox: Sandbox) -> None:
        assert poke(PlatformDbtSyncSensor, sync_job_id="unknown") is None


class TestDeferred:
    """What `dag.test()` does not show: the trigger's arguments, its events, those of others."""

    def deferred(self, **arguments: Any) -> tuple[PlatformSensor, TaskDeferred]:
        waiting = sensor(PlatformReportSensor, deferrable=True, **arguments)
        with pytest.raises(TaskDeferred) as caught:
            waiting.execute(TaskTries().context())
        return waiting, caught.value

    def fire(self, trigger: PlatformSensorTrigger) -> dict[str, Any]:
        _, arguments = trigger.serialize()
        again = PlatformSensorTrigger(**arguments)

        async def first() -> Any:
            async for event in again.run():
                return event.payload
            return None

        payload: dict[str, Any] = asyncio.run(first())
        return payload

    def test_deferrable_sensor_does_not_defer_if_the_condition_holds(
        self, platform_sandbox: Sandbox
    ) -> None:
        waiting = sensor(PlatformReportSensor, deferrable=True, report_id=101)
        assert waiting.execute(TaskTries().context())["id"] == 101

    def test_sensor_trigger_arguments_are_plain_and_without_secrets(
        self, platform_sandbox: Sandbox
    ) -> None:
        _, deferral = self.deferred(report_id=999, exponential_backoff=True, max_wait=600)
        path, arguments = deferral.trigger.serialize()
        assert path == "airflow_provider_platform.triggers.PlatformSensorTrigger"
        assert arguments["poll_interval"] == {
            "interval": 0.01,
            "exponential_backoff": True,
            "max_wait": 600.0,
        }
        assert platform_sandbox.management_token not in str(arguments)
        assert deferral.method_name == "execute_complete"

    def test_timeout_in_the_triggerer_fails_the_sensor(self, platform_sandbox: Sandbox) -> None:
        waiting, deferral = self.deferred(report_id=999, timeout=0.1)
        event = self.fire(deferral.trigger)
        with pytest.raises(AirflowSensorTimeout):
            waiting.execute_complete(TaskTries().context(), event)

    def test_non_retryable_error_in_the_triggerer_fails_the_sensor(
        self, platform_sandbox: Sandbox
    ) -> None:
        waiting, deferral = self.deferred(report_id=999)
        platform_sandbox.control.rotate_management_token()
        event = self.fire(deferral.trigger)
        with pytest.raises(AirflowFailException, match="Management token"):
            waiting.execute_complete(TaskTries().context(), event)
        skipping = sensor(PlatformReportSensor, report_id=999, never_fail=True)
        with pytest.raises(AirflowSkipException):
            skipping.execute_complete(TaskTries().context(), event)

    def test_a_silent_sensor_waits_on_after_a_failure_that_may_pass(
        self,
        platform_sandbox: Sandbox,
        caplog: pytest.LogCaptureFixture,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        failures = {
            True: PlatformTransportError("The connection was lost."),
            False: PlatformPermissionError("The token may not read reports.", status=403),
        }
        for passing, error in failures.items():
            waiting, deferral = self.deferred(report_id=999, silent_fail=True)
            event = {"status": "error", "error": error.to_payload(), **deferral.kwargs}
            with pytest.raises(TaskDeferred if passing else AirflowFailException):
                waiting.execute_complete(TaskTries().context(), event, **deferral.kwargs)
        assert (
            "Sensor poke failed: The connection was lost." in caplog.text + capsys.readouterr().out
        )

    def test_the_event_of_another_wait_is_ignored(self, platform_sandbox: Sandbox) -> None:
        waiting, deferral = self.deferred(report_id=999)
        _, other = self.deferred(report_id=998, timeout=0.1)
        event = self.fire(other.trigger)
        with pytest.raises(TaskDeferred):
            waiting.execute_complete(TaskTries().context(), event, **deferral.kwargs)

    @pytest.mark.parametrize(
        ("arguments", "ends"),
        [
            ({}, True),
            ({"end_from_trigger": "True"}, True),
            ({"end_from_trigger": False}, False),
            ({"multiple_outputs": True}, False),
            ({"outlets": [Asset("platform://reports")]}, False),
            ({"post_execute": lambda context, result: None}, False),
            ({"do_xcom_push": False}, False),
        ],
        ids=lambda value: next(iter(value), "default") if isinstance(value, dict) else "",
    )
    def test_wait_ends_in_the_triggerer_if_the_worker_has_nothing_to_do(
        self, platform_sandbox: Sandbox, arguments: dict[str, Any], ends: bool
    ) -> None:
        _, deferral = self.deferred(
            **{"name": "New", "timeout": 30, "end_from_trigger": True, **arguments}
        )
        platform_sandbox.control.change("reports", 101, name="New")

        async def first() -> Any:
            return [event async for event in deferral.trigger.run()]

        (event,) = asyncio.run(first())
        ends = ends and XCOM_TAKES_NONE  # in Airflow 3.0 the worker ends each wait
        assert isinstance(event, TaskSuccessEvent) is ends
        value = event.xcoms["return_value"] if ends else event.payload["value"]
        assert (value["id"], value["name"]) == (101, "New")

    def test_wait_that_must_end_in_the_triggerer_fails_on_a_worker(
        self, platform_sandbox: Sandbox
    ) -> None:
        waiting, deferral = self.deferred(report_id=999, timeout=0.1, end_from_trigger=True)
        with pytest.raises(AirflowSensorTimeout):
            waiting.execute_complete(TaskTries().context(), self.fire(deferral.trigger))

    def test_value_too_large_for_an_event_is_read_again_by_the_worker(
        self, platform_sandbox: Sandbox
    ) -> None:
        waiting, deferral = self.deferred(name="Big", timeout=30)
        platform_sandbox.control.change("reports", 101, name="Big", meta={"text": "x" * 300_000})
        event = self.fire(deferral.trigger)
        assert (event["status"], event["value"]) == ("success", None)
        found = waiting.execute_complete(TaskTries().context(), event)
        assert len(found["meta"]["text"]) == 300_000


def test_report_sensor_fails_if_two_reports_have_the_name(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.change("reports", 102, name="Revenue by country")
    with pytest.raises(AirflowFailException, match=r"2 reports have the name .*\(101\).*\(102\)"):
        poke(PlatformReportSensor, name="Revenue by country")


@pytest.mark.parametrize(
    ("kind", "arguments", "field"),
    [
        (PlatformDbtSyncSensor, {"sync_job_id": ""}, "sync_job_id"),
        (PlatformDbtSyncSensor, {"sync_job_id": "1", "deployment_id": "x"}, "deployment_id"),
        (PlatformChatThreadSensor, {"chat_id": None}, "chat_id"),
        (
            PlatformChatThreadSensor,
            {"chat_id": "c", "session_settings": {"externalId": "A B"}},
            "externalId",
        ),
        (PlatformReportSensor, {}, "report_id"),
        (PlatformReportSensor, {"report_id": 1, "name": "a"}, "report_id"),
        (PlatformReportSensor, {"report_id": 1, "folder_id": 2}, "report_id"),
        (PlatformReportSensor, {"report_id": 1, "updated_after": "today"}, "updated_after"),
        (
            PlatformNotificationSensor,
            {"notification_id": 1, "dashboard_id": 2},
            "notification_id",
        ),
        (PlatformNotificationSensor, {"recipient_external_id": "u"}, "recipient_embed_tenant_name"),
        (
            PlatformUserOAuthTokenSensor,
            {"integration_id": 3, "target_statuses": []},
            "target_statuses",
        ),
        (
            PlatformUserOAuthTokenSensor,
            {"integration_id": "x", "target_statuses": "active"},
            "integration_id",
        ),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    kind: type[PlatformSensor], arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        kind(task_id="sense", **arguments)
    assert str(caught.value.field).endswith(field)
