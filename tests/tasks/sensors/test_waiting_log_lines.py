"""The log lines of a waiting sensor begin with the reason and end with ids in brackets."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.sensor_conditions import Condition

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

REPORT = {"report_id": None, "folder_id": None, "updated_after": None, "deployment_id": 1}
SCHEDULE = {"is_enabled": True, "deployment_id": 1}
TOKEN = {"integration_id": 77, "target_statuses": ["active"], "user_id": None}


@pytest.mark.parametrize(
    ("kind", "subject", "line"),
    [
        (
            "report",
            {**REPORT, "name": "Nowhere"},
            "The report does not exist yet (report 'Nowhere', deployment 1)",
        ),
        (
            "report",
            {**REPORT, "name": None, "report_id": 98765},
            "The report does not exist yet (report 98765, deployment 1)",
        ),
        (
            "notification",
            {**SCHEDULE, "notification_id": 98765},
            "The notification does not exist yet (notification 98765, deployment 1)",
        ),
        (
            "notification",
            {**SCHEDULE, "notification_id": None, "dashboard_public_id": "nowhere"},
            "A notification that matches the filters does not exist yet (deployment 1)",
        ),
        ("user_oauth_token", TOKEN, "No token exists yet (OAuth integration 77)"),
    ],
)
def test_waiting_sensor_logs_reason_before_ids(
    platform_sandbox: Sandbox, kind: str, subject: dict[str, Any], line: str
) -> None:
    with PlatformHook() as hook:
        client = hook.open_client()
        condition = Condition(kind, subject)
        events = client.events(condition.poll)
        assert [str(event) for event in events] == [line]


def test_sensor_of_a_thread_logs_reason_before_id(platform_sandbox: Sandbox) -> None:
    control = platform_sandbox.control
    control.set_breakpoint("mid_stream")
    asked = threading.Thread(target=PlatformHook().chat, args=("Revenue by country",))
    asked.start()
    [held] = control.wait_for_breakpoint("mid_stream")
    subject = {"chat_id": held.chat_id, "session_settings": None}
    with PlatformHook() as hook:
        client = hook.open_client()
        condition = Condition("chat_thread", subject)
        events = client.events(condition.poll)
        said = [str(event) for event in events]
    control.release()
    asked.join()
    assert said == [f"The thread is still streaming (chat {held.chat_id})"]
