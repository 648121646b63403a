"""A write that the service does not confirm: the error says what came instead, whichever operator
made the request."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.branches import (
    PlatformCloseBranchOperator,
    PlatformDeleteBranchOperator,
    PlatformMergeBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformDeleteNotificationOperator,
    PlatformNotificationRecipientsOperator,
    PlatformUpdateNotificationOperator,
)
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from airflow_provider_platform.operators.reports import (
    PlatformConnectReportOperator,
    PlatformDisconnectReportOperator,
    PlatformRefreshReportOperator,
)
from airflow_provider_platform.operators.workbooks import (
    PlatformAttachAiWidgetThreadOperator,
    PlatformDuplicateWorkbookOperator,
    PlatformPublishWorkbookOperator,
    PlatformUpdateWorkbookOperator,
)
from airflow_provider_platform.resources import deliveries, notifications
from tests.pure.operators.test_vanished_values import PUBLIC
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

BRANCH = "dbt-sync/main-1"
SHEET = {"report_id": 101, "external_workbook_id": "sheet", "result_location": "Revenue!A1"}
WRITES: dict[Any, dict[str, Any]] = {
    PlatformApiOperator: {"operation": "createFolder", "body": {"name": "March"}},
    PlatformAttachAiWidgetThreadOperator: {"workbook_id": 301, "widget_id": "w", "thread_id": "t"},
    PlatformBuildPreAggregationsOperator: {"cubes": "customers"},
    PlatformChatOperator: {"prompt": "revenue by country"},
    PlatformCloseBranchOperator: {"branch_name": BRANCH},
    PlatformConnectReportOperator: SHEET,
    PlatformCreateNotificationOperator: {
        "schedule_type": "HOURLY",
        "minute": 5,
        "dashboard_id": 501,
    },
    PlatformDbtSyncOperator: {},
    PlatformDeleteBranchOperator: {"branch_name": BRANCH},
    PlatformDeleteNotificationOperator: {"notification_id": 501},
    PlatformDisconnectReportOperator: SHEET,
    PlatformDuplicateWorkbookOperator: {"workbook_id": 301},
    PlatformEvaluationOperator: {},
    PlatformExportDashboardOperator: {"dashboard_id": 501, "output_path": "/tmp/no.pdf"},
    PlatformMergeBranchOperator: {"branch_name": BRANCH},
    PlatformNotificationRecipientsOperator: {
        "notification_id": 501,
        "add": [{"type": "USER", "email": "a@example.com"}],
    },
    PlatformOpenBranchOperator: {"branch_name": BRANCH},
    PlatformPublishWorkbookOperator: {"workbook_id": 301},
    PlatformRefreshReportOperator: SHEET,
    PlatformRunDeliveryOperator: {"delivery_id": 501},
    PlatformUpdateNotificationOperator: {"notification_id": 501, "minute": 7},
    PlatformUpdateWorkbookOperator: {"workbook_id": 301, "name": "Sales"},
}
READS = {"PlatformCompareOperator", "PlatformListNotificationsOperator", "PlatformQueryOperator"}
REQUESTS = [
    *({"api": "management", "method": method} for method in ("POST", "PUT", "PATCH", "DELETE")),
    {"api": "chat"},
    {"api": "data", "path": "/pre-aggregations/jobs"},
]
"""The requests that write."""
CAME: dict[str, tuple[dict[str, Any], str]] = {
    "500": ({"kind": "status", "status": 500, "message": "no disk"}, "answered 500: no disk"),
    "502": ({"kind": "status", "status": 502, "body": "html"}, "answered 502: an HTML page"),
    "cut": ({"kind": "drop"}, "the connection broke"),
    "time-out": ({}, "no complete response within 2 seconds"),
}
"""What comes instead of a confirmation, and how an error says it."""


def test_walk_below_knows_every_operator_that_writes() -> None:
    operators = {cls.__name__ for cls in PUBLIC if ".operators." in cls.__module__}
    assert operators == READS | {cls.__name__ for cls in WRITES}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "ATTEMPT_PAUSE", 0.01)
    monkeypatch.setattr(notifications, "SECOND_POLL_AFTER", 0.01)


def failure(operator: Any, arguments: dict[str, Any]) -> str:
    task = operator(task_id="write", **arguments)
    for name in ("poll_interval", "deferrable"):
        if hasattr(task, name):
            setattr(task, name, 0.05 if name == "poll_interval" else False)
    with pytest.raises((PlatformError, AirflowFailException)) as caught:
        task.execute(TaskTries().context())
    return str(caught.value)


EACH_API = (PlatformApiOperator, PlatformChatOperator, PlatformBuildPreAggregationsOperator)
"""Writes to the management, the chat and the data API, each of which meets everything."""


@pytest.mark.parametrize(
    ("operator", "tenant", "came"),
    [
        *((operator, "newest", "cut") for operator in WRITES),
        (PlatformDbtSyncOperator, "described", "cut"),  # has no list that shows the outcome
        (PlatformPublishWorkbookOperator, "described", "cut"),
        *(
            (operator, "newest", came)
            for operator in EACH_API
            for came in ("500", "502", "time-out")
        ),
    ],
)
def test_error_of_a_write_says_what_came_instead_of_a_confirmation(
    operator: Any, tenant: str, came: str, platform_sandbox: Sandbox, monkeypatch: Any
) -> None:
    control = platform_sandbox.control
    control.add_branch(BRANCH)
    control.set(default_api_scopes=["meta", "data", "graphql", "jobs"], tenant=tenant)
    connection = json.loads(platform_sandbox.connection_json())
    connection["extra"]["max_attempts"] = 1
    if came == "time-out":
        connection["extra"] |= {"request_timeout": 2, "stream_idle_timeout": 2}
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(connection))
    fault, words = CAME[came]
    for request in REQUESTS:
        if fault:
            control.fault(**fault, **request, count=None)
        else:
            control.set_breakpoint("before_call", **request, count=None)
    message = failure(operator, WRITES[operator])
    assert words in message
    assert [other for _, other in CAME.values() if other in message] == [words]
