"""The hook's methods for the management API: which request each of them makes."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Call
from airflow_provider_platform.hooks._management import ManagementMethods

DEPLOYMENT = "/v1/deployments/7"

# method, arguments, request line, query, body
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str, dict[str, Any], Any]] = [
    ("get_app_config", (), {}, "GET /v1/app-config", {}, None),
    ("list_user_oauth_tokens", (), {}, "GET /v1/user-oauth-tokens", {}, None),
    (
        "start_dbt_sync",
        (),
        {"branch_name": "b", "ref": "r"},
        "POST /v1/deployments/7/dbt-sync",
        {},
        {"branchName": "b", "ref": "r"},
    ),
    (
        "generate_embed_session",
        (),
        {"external_id": "u", "settings": {"allowAi": True}},
        "POST /v1/embed/generate-session",
        {},
        {"deploymentId": 7, "externalId": "u", "settings": {"allowAi": True}},
    ),
    ("delete_embed_tenant", ("acme",), {}, "DELETE /v1/embed-tenants/acme/", {}, None),
    (
        "list_notifications",
        (),
        {"recipient_email": "a@example.com", "first": 50},
        "GET /v1/deployments/7/notifications",
        {"recipientEmail": "a@example.com", "first": 50},
        None,
    ),
    ("get_notification", (4,), {}, "GET /v1/deployments/7/notifications/4", {}, None),
    (
        "create_notification",
        (),
        {
            "schedule_type": "DAILY",
            "dashboard_id": 3,
            "hour": 9,
            "filters": ({"member": "o.s", "operator": "is_null"},),
        },
        "POST /v1/deployments/7/notifications",
        {},
        {
            "scheduleType": "DAILY",
            "dashboardId": 3,
            "hour": 9,
            "filters": [{"member": "o.s", "operator": "is_null"}],
        },
    ),
    (
        "update_notification",
        (4,),
        {"is_enabled": False},
        "PUT /v1/deployments/7/notifications/4",
        {},
        {"isEnabled": False},
    ),
    ("delete_notification", (4,), {}, "DELETE /v1/deployments/7/notifications/4", {}, None),
    (
        "list_notification_recipients",
        (4,),
        {},
        "GET /v1/deployments/7/notifications/4/recipients",
        {},
        None,
    ),
    (
        "add_notification_recipients",
        (4, [{"type": "USER", "userId": 1}]),
        {},
        "POST /v1/deployments/7/notifications/4/recipients",
        {},
        {"recipients": [{"type": "USER", "userId": 1}]},
    ),
    (
        "remove_notification_recipients",
        (4, [{"type": "USER", "id": 1}]),
        {},
        "DELETE /v1/deployments/7/notifications/4/recipients",
        {},
        {"recipients": [{"type": "USER", "id": 1}]},
    ),
    (
        "list_reports",
        (),
        {"search": "x", "folder_id": 1, "sort_by": "name", "sort_direction": "ASC", "first": 9},
        "GET /v1/deployments/7/reports",
        {"search": "x", "folderId": 1, "sortBy": "name", "sortDirection": "ASC", "first": 9},
        None,
    ),
    (
        "connect_report",
        (12,),
        {"external_workbook_id": "w", "result_location": "A1", "sheet_name": "S"},
        "PUT /v1/deployments/7/reports/12/connect-workbook",
        {},
        {"externalWorkbookId": "w", "resultLocation": "A1", "sheetName": "S"},
    ),
    ("get_workbook", (3,), {}, "GET /v1/deployments/7/workbooks/3", {}, None),
    (
        "update_workbook",
        (3,),
        {"slug": "s", "slug_takeover": True},
        "PUT /v1/deployments/7/workbooks/3",
        {},
        {"slug": "s", "slugTakeover": True},
    ),
    (
        "duplicate_workbook",
        (3,),
        {"shared": True},
        "POST /v1/deployments/7/workbooks/3/duplicate",
        {},
        {"shared": True},
    ),
    (
        "publish_workbook",
        (3,),
        {"title": "t"},
        "POST /v1/deployments/7/workbooks/3/publish",
        {},
        {"workbookId": 3, "title": "t"},
    ),
    (
        "attach_ai_widget_thread",
        (3,),
        {"widget_id": "w", "thread_id": "t"},
        "POST /v1/deployments/7/workbooks/3/dashboard/ai-widget-thread",
        {},
        {"widgetId": "w", "threadId": "t"},
    ),
    ("list_folders", (), {"parent_id": 1}, "GET /v1/deployments/7/folders", {"parentId": 1}, None),
]


class Asked(Exception):
    """Carries the operation that a method asked for first."""

    def __init__(self, operation: Operation[Any]) -> None:
        super().__init__(str(operation))
        self.operation = operation


class RecordingHook(ManagementMethods):
    """Stops at the first operation instead of sending it."""

    def run(self, work: Any) -> Any:
        if not isinstance(work, Operation):
            effect = next(work)
            assert isinstance(effect, Call)
            work = effect.operation
        raise Asked(work.in_deployment(self.resolve_deployment_id))

    def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
        return int(deployment_id or 7)


def ask(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation[Any]:
    try:
        answer = getattr(RecordingHook(), method)(*args, **kwargs)
        next(answer)
    except Asked as asked:
        return asked.operation
    raise AssertionError(f"{method} asked for nothing")


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "line", "query", "body"), CALLS, ids=[row[0] for row in CALLS]
)
def test_the_request_of_each_method(
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    line: str,
    query: dict[str, Any],
    body: Any,
) -> None:
    operation = ask(method, args, kwargs)

    assert f"{operation.method} {operation.path}" == line
    assert operation.query == query
    assert operation.body == body


def methods() -> list[str]:
    helpers = {"run", "iterate", "resolve_deployment_id"}
    return sorted(name for name in dir(ManagementMethods) if name[0] != "_" and name not in helpers)


def test_every_method_is_in_the_table() -> None:
    assert methods() == sorted(row[0] for row in CALLS)


@pytest.mark.parametrize("name", methods())
def test_every_method_says_what_it_does(name: str) -> None:
    assert inspect.getdoc(getattr(ManagementMethods, name))


@pytest.mark.parametrize(
    "row",
    [row for row in CALLS if DEPLOYMENT in row[3]],
    ids=[row[0] for row in CALLS if DEPLOYMENT in row[3]],
)
def test_methods_of_a_deployment_take_another_deployment(row: Any) -> None:
    operation = ask(row[0], row[1], {**row[2], "deployment_id": "8"})

    assert operation.path.startswith("/v1/deployments/8")


def test_a_list_is_checked_before_it_is_read() -> None:
    with pytest.raises(PlatformInputError):
        RecordingHook().list_reports(sort_by="lastViewedAt", first=5)


def test_a_list_asks_for_nothing_until_it_is_read() -> None:
    RecordingHook().list_reports()


def test_a_list_is_read_page_by_page() -> None:
    class TwoPages(RecordingHook):
        asked = 0

        def run(self, work: Any) -> Any:
            self.asked += 1
            more = "after" not in work.query
            return work.read(
                {
                    "items": [{"id": self.asked}],
                    "pageInfo": {"hasNextPage": more, "endCursor": "c"},
                }
            )

    hook = TwoPages()
    reports = hook.list_reports()

    assert next(reports).id == 1
    assert hook.asked == 1
    assert [report.id for report in reports] == [2]


def test_the_methods_import_the_client_only_when_they_are_called() -> None:
    code = (
        "import sys, airflow_provider_platform.hooks._management\n"
        "print([m for m in sys.modules if m.startswith('airflow_provider_platform.client')])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == "[]"
