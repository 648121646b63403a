"""The hook's methods for the management API: which request each of them makes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.platform_client import PlatformClient
from airflow_provider_platform.hooks.platform import PlatformHook
from tests.support.fakes.effects import API, Call

DEPLOYMENT = "/v1/deployments/7"

Row = tuple[str, tuple[Any, ...], dict[str, Any], str, dict[str, Any], Any]
"""Method, arguments, request line, query, body."""


def methods() -> list[str]:
    verbs = ("get", "list", "start", "connect", "update", "duplicate", "attach")
    verbs += ("delete", "generate", "create")
    of_airflow = {"get_conn", "get_connection_form_widgets", "get_ui_field_behaviour"}
    own = {name for name in vars(PlatformHook) if name.startswith(verbs)}
    return sorted(
        name for name in own - of_airflow if not {"openlineage", "agent"} & set(name.split("_"))
    )


CALLS: list[Row] = [
    ("get_app_config", (), {}, "GET /v1/app-config", {}, None),
    ("list_user_oauth_tokens", (), {}, "GET /v1/user-oauth-tokens", {}, None),
    (
        "start_dbt_sync",
        (),
        {"branch_name": "b", "ref": "r"},
        f"POST {DEPLOYMENT}/dbt-sync",
        {},
        {"branchName": "b", "ref": "r"},
    ),
    (
        "list_reports",
        (),
        {"search": "x", "folder_id": 1, "sort_by": "name", "first": 9},
        f"GET {DEPLOYMENT}/reports",
        {"search": "x", "folderId": 1, "sortBy": "name", "first": 9},
        None,
    ),
    (
        "connect_report",
        (12,),
        {"external_workbook_id": "w", "result_location": "A1", "sheet_name": "S"},
        f"PUT {DEPLOYMENT}/reports/12/connect-workbook",
        {},
        {"externalWorkbookId": "w", "resultLocation": "A1", "sheetName": "S"},
    ),
    (
        "list_folders",
        (),
        {"parent_id": 1},
        f"GET {DEPLOYMENT}/folders",
        {"parentId": 1},
        None,
    ),
    (
        "update_workbook",
        (3,),
        {"slug": "s", "slug_takeover": True},
        f"PUT {DEPLOYMENT}/workbooks/3",
        {},
        {"slug": "s", "slugTakeover": True},
    ),
    (
        "duplicate_workbook",
        (3,),
        {"shared": True},
        f"POST {DEPLOYMENT}/workbooks/3/duplicate",
        {},
        {"shared": True},
    ),
    (
        "attach_ai_widget_thread",
        (3,),
        {"widget_id": "w", "thread_id": "t"},
        f"POST {DEPLOYMENT}/workbooks/3/dashboard/ai-widget-thread",
        {},
        {"widgetId": "w", "threadId": "t"},
    ),
    ("delete_embed_tenant", ("acme",), {}, "DELETE /v1/embed-tenants/acme/", {}, None),
    (
        "generate_embed_session",
        (),
        {"external_id": "u", "settings": {"allowAi": True}},
        "POST /v1/embed/generate-session",
        {},
        {"deploymentId": 7, "externalId": "u", "settings": {"allowAi": True}},
    ),
    (
        "list_notifications",
        (),
        {"recipient_email": "a@example.com", "first": 50},
        f"GET {DEPLOYMENT}/notifications",
        {"recipientEmail": "a@example.com", "first": 50},
        None,
    ),
    (
        "create_notification",
        (),
        {"schedule_type": "DAILY", "dashboard_id": 3, "hour": 9},
        f"POST {DEPLOYMENT}/notifications",
        {},
        {"scheduleType": "DAILY", "dashboardId": 3, "hour": 9},
    ),
    (
        "update_notification",
        (4,),
        {"is_enabled": False},
        f"PUT {DEPLOYMENT}/notifications/4",
        {},
        {"isEnabled": False},
    ),
]


class Asked(Exception):
    """Carries the operation that a method asked for first."""

    def __init__(self, operation: Operation[Any]) -> None:
        super().__init__(str(operation))
        self.operation = operation


class Recording:
    """Stops at the first operation instead of sending it."""

    def run(self, work: Any, on_event: Any = None) -> Any:
        if not isinstance(work, Operation):
            effect = work(API).send(None)
            assert isinstance(effect, Call)
            work = effect.operation
        raise Asked(work.in_deployment(lambda: 7))

    call = PlatformClient.call
    iterate = PlatformClient.iterate


class RecordingHook(PlatformHook):
    def open_client(self) -> Any:
        return Recording()


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
def test_each_method_makes_its_request(
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


@pytest.mark.parametrize("name", methods())
def test_every_method_has_a_description(name: str) -> None:
    assert inspect.getdoc(getattr(PlatformHook, name))


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
