"""The hook's methods for the management API: which request each of them makes."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from pydantic import SecretStr

from airflow_provider_platform.client.catalogue import declared_endpoints
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operation import Operation
from airflow_provider_platform.client.program import Call
from airflow_provider_platform.hooks._base import ManagementMethods
from airflow_provider_platform.hooks._management import ManagementApi


class Asked(Exception):  # noqa: N818
    """Carries the operation that a method asked for first."""

    def __init__(self, operation: Operation[Any]) -> None:
        super().__init__(str(operation))
        self.operation = operation


class RecordingHook(ManagementApi):
    """Stops at the first operation instead of sending it."""

    def run(self, work: Any) -> Any:
        if not isinstance(work, Operation):
            effect = next(work)
            assert isinstance(effect, Call)
            work = effect.operation
        raise Asked(work)

    def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
        return int(deployment_id or 7)


def ask(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation[Any]:
    with pytest.raises(Asked) as asked:
        answer = getattr(RecordingHook(), method)(*args, **kwargs)
        if inspect.isgenerator(answer):
            next(answer)
    return asked.value.operation


D = "/v1/deployments/7"
SESSION = "0123456789abcdef0123456789abcdef"
ITEM = {"type": "REPORT", "id": 1}
INTEGRATION = {
    "name": "n",
    "type": "t",
    "auth_url": "a",
    "token_url": "t",
    "client_id": "c",
    "redirect_uri": "r",
}
INTEGRATION_BODY = {
    "name": "n",
    "type": "t",
    "authUrl": "a",
    "tokenUrl": "t",
    "clientId": "c",
    "redirectUri": "r",
}

# method, arguments, request line, query, body
CALLS: list[tuple[str, tuple[Any, ...], dict[str, Any], str, dict[str, Any], Any]] = [
    ("get_app_config", (), {}, "GET /v1/app-config", {}, None),
    ("list_user_oauth_tokens", (), {}, "GET /v1/user-oauth-tokens", {}, None),
    ("get_user_oauth_token", (3,), {}, "GET /v1/user-oauth-tokens/3", {}, None),
    ("revoke_user_oauth_token", (3,), {}, "DELETE /v1/user-oauth-tokens/3", {}, None),
    ("initiate_oauth_flow", (3,), {}, "POST /v1/user-oauth-tokens/3/initiate", {}, None),
    ("list_oauth_integrations", (), {}, "GET /v1/oauth-integrations", {}, None),
    ("get_oauth_integration", (3,), {}, "GET /v1/oauth-integrations/3", {}, None),
    (
        "create_oauth_integration",
        (),
        {**INTEGRATION, "client_secret": SecretStr("s")},
        "POST /v1/oauth-integrations",
        {},
        {**INTEGRATION_BODY, "clientSecret": "s"},
    ),
    (
        "update_oauth_integration",
        (3,),
        {**INTEGRATION, "scopes": ["a"]},
        "PUT /v1/oauth-integrations/3",
        {},
        {**INTEGRATION_BODY, "scopes": ["a"]},
    ),
    ("delete_oauth_integration", (3,), {}, "DELETE /v1/oauth-integrations/3", {}, None),
    (
        "list_agents",
        (),
        {"allow_embedding": True},
        f"GET {D}/agents",
        {"allowEmbedding": True},
        None,
    ),
    ("get_agent_skills", (), {"space": "s"}, f"GET {D}/agent-skills", {"space": "s"}, None),
    ("create_usage_analytics_token", (), {}, "POST /v1/usage-analytics/token", {}, None),
    (
        "start_dbt_sync",
        (),
        {"branch_name": "b", "ref": "r"},
        f"POST {D}/dbt-sync",
        {},
        {"branchName": "b", "ref": "r"},
    ),
    (
        "list_dbt_syncs",
        (),
        {"status": "FAILED", "trigger": "api"},
        f"GET {D}/dbt-sync",
        {"status": "FAILED", "trigger": "api"},
        None,
    ),
    ("get_dbt_sync_status", ("j",), {}, f"GET {D}/dbt-sync/j", {}, None),
    ("get_dbt_sync_result", ("j",), {}, f"GET {D}/dbt-sync/j/result", {}, None),
    ("list_dbt_sync_logs", ("j",), {}, f"GET {D}/dbt-sync/j/logs", {}, None),
    (
        "list_dbt_sync_files",
        ("j",),
        {"first": 5},
        f"GET {D}/dbt-sync/j/generated-files",
        {"first": 5},
        None,
    ),
    ("cancel_dbt_sync", ("j",), {}, f"DELETE {D}/dbt-sync/j", {}, None),
    (
        "list_deployments",
        (),
        {"creation_step": ["ready"]},
        "GET /v1/deployments",
        {"creationStep": ["ready"]},
        None,
    ),
    ("get_deployment", (), {}, f"GET {D}", {}, None),
    ("get_deployment_settings", (), {}, f"GET {D}/settings", {}, None),
    (
        "get_build_status",
        (),
        {"branch_name": "b"},
        f"GET {D}/build-status",
        {"branchName": "b"},
        None,
    ),
    (
        "create_deployment_token",
        (),
        {"expires_in": 60},
        f"POST {D}/token",
        {},
        {"expiresIn": 60},
    ),
    (
        "list_environments",
        (),
        {"type": "staging"},
        f"GET {D}/environments",
        {"type": "staging"},
        None,
    ),
    ("list_environment_tokens", (2,), {}, f"GET {D}/environments/2/tokens", {}, None),
    (
        "create_environment_token",
        (2,),
        {"security_context": {"a": 1}, "expires_in": 60},
        f"POST {D}/environments/2/tokens",
        {},
        {"security_context": {"a": 1}, "expires_in": 60},
    ),
    (
        "create_meta_sync_token",
        (2,),
        {"security_context": {}},
        f"POST {D}/environments/2/tokens-for-meta-sync",
        {},
        {"security_context": {}},
    ),
    (
        "generate_embed_session",
        (),
        {"external_id": "u", "settings": {"allowAi": True}},
        "POST /v1/embed/generate-session",
        {},
        {"deploymentId": 7, "externalId": "u", "settings": {"allowAi": True}},
    ),
    (
        "create_embed_token",
        (),
        {"session_id": SecretStr(SESSION)},
        "POST /v1/embed/session/token",
        {},
        {"sessionId": SESSION},
    ),
    (
        "revoke_embed_session",
        (),
        {"session_id": SESSION},
        "POST /v1/embed/session/revoke",
        {},
        {"sessionId": SESSION},
    ),
    ("get_embed_dashboard", ("p",), {}, "GET /v1/embed/dashboard/p", {}, None),
    (
        "update_dashboard_embedding",
        ("p",),
        {"allow_embed": True},
        "PATCH /v1/embed/dashboard/p",
        {},
        {"allowEmbed": True},
    ),
    (
        "list_embed_tenant_workbooks",
        ("acme",),
        {"access_source": "tenant"},
        f"GET {D}/embed-tenants/acme/workbooks",
        {"accessSource": "tenant"},
        None,
    ),
    (
        "list_embed_tenants",
        (),
        {"search": "a"},
        "GET /v1/embed-tenants",
        {"search": "a"},
        None,
    ),
    ("delete_embed_tenant", ("acme",), {}, "DELETE /v1/embed-tenants/acme/", {}, None),
    ("list_embed_groups", ("acme",), {}, "GET /v1/embed-tenants/acme/groups", {}, None),
    (
        "create_embed_group",
        ("acme",),
        {"name": "g"},
        "POST /v1/embed-tenants/acme/groups",
        {},
        {"name": "g"},
    ),
    ("get_embed_group", ("acme", 5), {}, "GET /v1/embed-tenants/acme/groups/5", {}, None),
    (
        "update_embed_group",
        ("acme", 5),
        {"description": "d"},
        "PATCH /v1/embed-tenants/acme/groups/5",
        {},
        {"description": "d"},
    ),
    ("delete_embed_group", ("acme", 5), {}, "DELETE /v1/embed-tenants/acme/groups/5", {}, None),
    (
        "list_embed_group_members",
        ("acme", 5),
        {"first": 9},
        "GET /v1/embed-tenants/acme/groups/5/users",
        {"first": 9},
        None,
    ),
    (
        "add_embed_group_members",
        ("acme", 5),
        {"members": [{"embedUserId": 1}]},
        "POST /v1/embed-tenants/acme/groups/5/users",
        {},
        {"members": [{"embedUserId": 1}]},
    ),
    (
        "remove_embed_group_members",
        ("acme", 5),
        {"members": ({"external_id": "u"},)},
        "DELETE /v1/embed-tenants/acme/groups/5/users",
        {},
        {"members": [{"externalId": "u"}]},
    ),
    (
        "list_embed_users",
        ("acme",),
        {"search": "a"},
        "GET /v1/embed-tenants/acme/users",
        {"search": "a"},
        None,
    ),
    (
        "provision_embed_user",
        ("acme",),
        {"external_id": "u", "user_profile": {"displayName": "U"}},
        "POST /v1/embed-tenants/acme/user",
        {},
        {"externalId": "u", "userProfile": {"displayName": "U"}},
    ),
    (
        "provision_embed_users",
        ("acme",),
        {"users": [{"externalId": "u"}]},
        "POST /v1/embed-tenants/acme/users",
        {},
        {"users": [{"externalId": "u"}]},
    ),
    (
        "start_dashboard_export",
        (),
        {"format": "png", "dashboard_id": 3},
        f"POST {D}/dashboard-exports",
        {},
        {"format": "png", "dashboardId": 3},
    ),
    ("get_dashboard_export", ("j",), {}, f"GET {D}/dashboard-exports/j", {}, None),
    (
        "download_dashboard_export",
        ("j",),
        {"filename": "f"},
        f"GET {D}/dashboard-exports/j/download",
        {"filename": "f"},
        None,
    ),
    (
        "list_notifications",
        (),
        {"recipient_email": "a@example.com", "first": 50},
        f"GET {D}/notifications",
        {"recipientEmail": "a@example.com", "first": 50},
        None,
    ),
    ("get_notification", (4,), {}, f"GET {D}/notifications/4", {}, None),
    (
        "create_notification",
        (),
        {
            "schedule_type": "DAILY",
            "dashboard_id": 3,
            "hour": 9,
            "filters": ({"member": "o.s", "operator": "is_null"},),
        },
        f"POST {D}/notifications",
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
        f"PUT {D}/notifications/4",
        {},
        {"isEnabled": False},
    ),
    ("delete_notification", (4,), {}, f"DELETE {D}/notifications/4", {}, None),
    ("list_notification_recipients", (4,), {}, f"GET {D}/notifications/4/recipients", {}, None),
    (
        "add_notification_recipients",
        (4, [{"type": "USER", "userId": 1}]),
        {},
        f"POST {D}/notifications/4/recipients",
        {},
        {"recipients": [{"type": "USER", "userId": 1}]},
    ),
    (
        "remove_notification_recipients",
        (4, [{"type": "USER", "id": 1}]),
        {},
        f"DELETE {D}/notifications/4/recipients",
        {},
        {"recipients": [{"type": "USER", "id": 1}]},
    ),
    (
        "list_reports",
        (),
        {"search": "x", "folder_id": 1, "sort_by": "name", "sort_direction": "ASC", "first": 9},
        f"GET {D}/reports",
        {"search": "x", "folderId": 1, "sortBy": "name", "sortDirection": "ASC", "first": 9},
        None,
    ),
    ("get_report", (12,), {}, f"GET {D}/reports/12", {}, None),
    ("create_report", (), {"name": "n"}, f"POST {D}/reports", {}, {"name": "n"}),
    (
        "upsert_report",
        ("AbCdEf123456",),
        {"title": "t"},
        f"PUT {D}/reports/by-public-id/AbCdEf123456",
        {},
        {"title": "t"},
    ),
    (
        "update_report",
        (12,),
        {"expected_version": 2},
        f"PUT {D}/reports/12",
        {},
        {"expectedVersion": 2},
    ),
    ("delete_report", (12,), {}, f"DELETE {D}/reports/12", {}, None),
    (
        "refresh_report",
        (12,),
        {"placement_id": "p"},
        f"PUT {D}/reports/12/refresh",
        {},
        {"placementId": "p"},
    ),
    (
        "connect_report",
        (12,),
        {"external_workbook_id": "w", "result_location": "A1", "sheet_name": "S"},
        f"PUT {D}/reports/12/connect-workbook",
        {},
        {"externalWorkbookId": "w", "resultLocation": "A1", "sheetName": "S"},
    ),
    (
        "disconnect_report",
        (12,),
        {"placement_id": "p"},
        f"DELETE {D}/reports/12/connect-workbook",
        {},
        {"placementId": "p"},
    ),
    ("get_report_file", (12,), {}, f"GET {D}/reports/12/file", {}, None),
    (
        "list_external_document_placements",
        ("w",),
        {},
        "GET /v1/external-documents/w/placements",
        {},
        None,
    ),
    ("list_workbooks", (), {"folder_id": 1}, f"GET {D}/workbooks", {"folderId": 1}, None),
    ("get_workbook", (3,), {}, f"GET {D}/workbooks/3", {}, None),
    ("create_workbook", (), {"name": "n"}, f"POST {D}/workbooks", {}, {"name": "n"}),
    (
        "upsert_workbook",
        ("sales",),
        {"name": "n"},
        f"PUT {D}/workbooks/by-slug/sales",
        {},
        {"name": "n"},
    ),
    (
        "update_workbook",
        (3,),
        {"slug": "s", "slug_takeover": True},
        f"PUT {D}/workbooks/3",
        {},
        {"slug": "s", "slugTakeover": True},
    ),
    ("delete_workbook", (3,), {}, f"DELETE {D}/workbooks/3", {}, None),
    (
        "duplicate_workbook",
        (3,),
        {"shared": True},
        f"POST {D}/workbooks/3/duplicate",
        {},
        {"shared": True},
    ),
    (
        "publish_workbook",
        (3,),
        {"title": "t"},
        f"POST {D}/workbooks/3/publish",
        {},
        {"workbookId": 3, "title": "t"},
    ),
    (
        "update_workbook_dashboard",
        (3,),
        {"dashboard_draft": {"title": "t"}},
        f"PUT {D}/workbooks/3/dashboard",
        {},
        {"dashboardDraft": {"title": "t"}},
    ),
    (
        "attach_ai_widget_thread",
        (3,),
        {"widget_id": "w", "thread_id": "t"},
        f"POST {D}/workbooks/3/dashboard/ai-widget-thread",
        {},
        {"widgetId": "w", "threadId": "t"},
    ),
    ("get_dashboard_file", (3,), {}, f"GET {D}/workbooks/3/dashboard/file", {}, None),
    ("get_embed_access", (3,), {}, f"GET {D}/workbooks/3/embed-access", {}, None),
    (
        "update_embed_access",
        (3,),
        {"action": "read", "embed_tenant_name": "acme"},
        f"PUT {D}/workbooks/3/embed-access",
        {},
        {"action": "read", "embedTenantName": "acme"},
    ),
    ("list_folders", (), {"parent_id": 1}, f"GET {D}/folders", {"parentId": 1}, None),
    ("create_folder", (), {"name": "n"}, f"POST {D}/folders", {}, {"name": "n"}),
    ("update_folder", (1,), {"position": 2}, f"PUT {D}/folders/1", {}, {"position": 2}),
    ("delete_folder", (1,), {}, f"DELETE {D}/folders/1", {}, None),
    ("list_folder_ancestors", (1,), {}, f"GET {D}/folders/1/ancestors", {}, None),
    ("list_workspace", (), {"search": "x"}, f"GET {D}/workspace", {"search": "x"}, None),
    (
        "list_shared_workspace",
        (),
        {"types": ["FOLDER"]},
        f"GET {D}/shared-workspace",
        {"types": ["FOLDER"]},
        None,
    ),
    (
        "move_workspace_object",
        ("REPORT", 1),
        {"folder_id": None},
        f"POST {D}/workspace/move",
        {},
        {**ITEM, "folderId": None},
    ),
    (
        "bulk_move_workspace_objects",
        ([ITEM],),
        {"folder_id": 4},
        f"POST {D}/workspace/bulk-move",
        {},
        {"items": [ITEM], "folderId": 4},
    ),
    (
        "bulk_delete_workspace_objects",
        (),
        {"items": [ITEM]},
        f"POST {D}/workspace/bulk-delete",
        {},
        {"items": [ITEM]},
    ),
    ("list_branches", (), {}, f"GET {D}/branches", {}, None),
    (
        "create_branch",
        ("b",),
        {"from_branch": "main"},
        f"POST {D}/branches",
        {},
        {"name": "b", "from": "main"},
    ),
    (
        "remove_branch",
        ("b",),
        {"remove_on_upstream": True},
        f"DELETE {D}/branches",
        {"branchName": "b", "removeOnUpstream": True},
        None,
    ),
    (
        "set_branch_staging_environment",
        (),
        {"enabled": True, "branch_name": "b"},
        f"PUT {D}/branches/staging-environment",
        {},
        {"enabled": True, "branchName": "b"},
    ),
    (
        "validate_data_model",
        (),
        {"branch_name": "b"},
        f"GET {D}/data-model/validate",
        {"branchName": "b"},
        None,
    ),
    ("start_dev_mode", (), {"branch_name": "b"}, f"POST {D}/dev-mode", {}, {"branchName": "b"}),
    ("stop_dev_mode", (), {}, f"DELETE {D}/dev-mode", {}, None),
    ("commit_changes", (), {"message": "m"}, f"POST {D}/commit", {}, {"message": "m"}),
    ("pull_branch", ("b",), {}, f"POST {D}/pull", {}, {"branchName": "b"}),
    (
        "merge_to_parent",
        (),
        {"branch_name": "b", "squash_commits": True},
        f"POST {D}/merge",
        {},
        {"branchName": "b", "squashCommits": True},
    ),
    (
        "merge_to_default",
        (),
        {"message": "m", "branch_id": 1},
        f"POST {D}/merge-to-default",
        {},
        {"message": "m", "branchId": 1},
    ),
]


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
    assert operation.repeatable == (operation.method in ("GET", "PUT", "DELETE"))


def methods() -> list[str]:
    base = set(dir(ManagementMethods))
    return sorted(name for name in dir(ManagementApi) if name[0] != "_" and name not in base)


def test_every_method_is_in_the_table() -> None:
    assert methods() == sorted(row[0] for row in CALLS)


def test_every_declared_operation_has_a_method() -> None:
    reached = {ask(*row[:3]).operation_id for row in CALLS}
    declared = {endpoint.operation_id for endpoint in declared_endpoints()}

    assert declared - reached == {"getSpec"}, "the contract check alone reads the specification"


@pytest.mark.parametrize("name", methods())
def test_every_method_says_what_it_does(name: str) -> None:
    assert inspect.getdoc(getattr(ManagementApi, name))


@pytest.mark.parametrize(
    "row", [row for row in CALLS if D in row[3]], ids=[row[0] for row in CALLS if D in row[3]]
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
