"""Every row of the service description's endpoint table, and its neighbours, over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic import SecretStr

from airflow_provider_platform.client.errors import (
    PlatformNotFoundError,
    PlatformPermissionError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.management.account import oauth
from airflow_provider_platform.client.management.dbt_sync import syncs as dbt_sync
from airflow_provider_platform.client.management.deployments import deployments
from airflow_provider_platform.client.management.deployments.environments import (
    CreateDeploymentEnvironmentTokenInput,
    create_environment_token,
    list_environments,
)
from airflow_provider_platform.client.management.embed.sessions import (
    PostTokenBySessionIdInput,
    create_embed_token,
)
from airflow_provider_platform.client.management.embed.tenants import list_embed_tenants
from airflow_provider_platform.client.management.reports import reports
from airflow_provider_platform.client.management.reports.placements import (
    DisconnectReportFromWorkbookInput,
)
from airflow_provider_platform.client.management.workbooks.workbooks import list_workbooks
from airflow_provider_platform.client.management.workspace.folders import (
    CreateFolderInput,
    create_folder,
)
from airflow_provider_platform.client.management.workspace.objects import (
    MoveWorkspaceObjectInput,
    WorkspaceQuery,
    list_workspace,
    move_workspace_object,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    return PlatformHook()


def test_oauth_tokens_are_read_with_the_described_fields(hook: PlatformHook) -> None:
    tokens = list(hook.list_user_oauth_tokens())
    assert tokens
    for token in tokens:
        assert isinstance(token.status, str)
        assert token.integration_id
    own = hook.run(oauth.get_user_oauth_token(integration_id=tokens[0].integration_id))
    assert own.id in [token.id for token in tokens]


def test_dbt_sync_is_started_and_read(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    started = hook.start_dbt_sync(branch_name="b1")
    assert started.branch_name == "b1"
    platform_sandbox.control.wait_until(lambda state: state.syncs[0].ended_at is not None)
    job = started.sync_job_id
    assert hook.run(dbt_sync.get_dbt_sync_status(sync_job_id=job)).status == "COMPLETED"
    assert hook.run(dbt_sync.get_dbt_sync_result(sync_job_id=job)).cube_count
    assert [run.sync_job_id for run in hook.iterate(dbt_sync.list_dbt_syncs())] == [job]
    assert list(hook.iterate(dbt_sync.list_dbt_sync_logs(sync_job_id=job)))


def test_cancelled_dbt_sync_shows_in_the_history(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(dbt_pace=60.0)
    started = hook.start_dbt_sync()
    hook.run(dbt_sync.cancel_dbt_sync(sync_job_id=started.sync_job_id))
    cancelled = dbt_sync.list_dbt_syncs(query=dbt_sync.DbtSyncQuery(status="CANCELLED"))
    assert [run.status for run in hook.iterate(cancelled)] == ["CANCELLED"]


def test_report_is_connected_and_disconnected(hook: PlatformHook) -> None:
    connected = hook.connect_report(101, external_workbook_id="w1", result_location="A!1")
    (placement,) = connected.external_workbook_placements or []
    assert placement.result_location == "A!1"
    assert [report.id for report in hook.list_reports(external_workbook_id="w1")] == [101]
    body = DisconnectReportFromWorkbookInput(external_workbook_id="w1")
    gone = hook.run(reports.disconnect_report(report_id=101, body=body))
    assert not gone.external_workbook_placements


def test_ai_widget_thread_is_attached(hook: PlatformHook) -> None:
    asked = hook.chat("revenue by country")
    dashboard = hook.attach_ai_widget_thread(301, widget_id="ai-1", thread_id=asked.chat_id)
    assert dashboard.id == 501


@pytest.mark.parametrize("path", ["slash", "plain"])
@pytest.mark.parametrize("other", ["404", "405", "redirect"])
def test_embed_tenant_is_deleted_under_either_path(
    hook: PlatformHook, platform_sandbox: Sandbox, path: str, other: str
) -> None:
    end = "retail$" if path == "slash" else "retail/$"
    refused = {"method": "DELETE", "path": f"embed-tenants/acme-{end}"}
    if other != "redirect":
        platform_sandbox.control.fault("status", status=int(other), **refused)
    elif other == "redirect":
        platform_sandbox.control.fault("redirect", status=308, **refused)
    assert [tenant.name for tenant in hook.iterate(list_embed_tenants())] == ["acme-retail"]
    hook.delete_embed_tenant("acme-retail")
    assert list(hook.iterate(list_embed_tenants())) == []


def test_app_config_is_read(hook: PlatformHook) -> None:
    assert hook.get_app_config().to_json()


def test_reports_are_listed_changed_and_deleted(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(page_size=2)
    everything = [report.id for report in hook.list_reports()]
    assert everything == sorted(set(everything))
    assert len(everything) > 2
    names = [report.name for report in hook.list_reports(sort_by="name", search="by")]
    assert names == sorted(names)
    assert list(hook.list_reports(sort_by="lastViewedAt"))
    assert hook.run(reports.get_report(report_id=101)).name == "Revenue by country"
    made = hook.run(reports.create_report(body=reports.CreateReportInput(name="Mine")))
    body = reports.UpdateReportInput(name="Ours")
    assert hook.run(reports.update_report(report_id=made.id, body=body)).name == "Ours"
    hook.run(reports.delete_report(report_id=made.id))
    with pytest.raises(PlatformNotFoundError, match=f"report {made.id}"):
        hook.run(reports.get_report(report_id=made.id))


@pytest.mark.parametrize("lists", ["legacy", "unpaged"])
def test_lists_are_read_from_tenants_of_every_release(
    hook: PlatformHook, platform_sandbox: Sandbox, lists: str
) -> None:
    expected = [report.id for report in hook.list_reports()]
    if lists == "legacy":
        platform_sandbox.control.set(lists=lists)
    else:
        platform_sandbox.control.fault("odd_field", path="/reports$", field="pageInfo")
    assert [report.id for report in hook.list_reports()] == expected


def test_a_cursor_that_repeats_is_an_error(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=2)
    repeated = {"field": "pageInfo.endCursor", "value": "aXRlbTox", "count": None}
    platform_sandbox.control.fault("odd_field", path="/reports$", **repeated)
    with pytest.raises(PlatformProtocolError, match="cursor"):
        list(hook.list_reports())


def test_folder_is_created_and_an_item_moved_into_it(hook: PlatformHook) -> None:
    made = hook.run(create_folder(body=CreateFolderInput(name="Nightly")))
    assert made.id in [folder.id for folder in hook.list_folders()]
    body = MoveWorkspaceObjectInput(type="REPORT", id=101, folder_id=made.id)
    hook.run(move_workspace_object(body=body))
    moved = list_workspace(query=WorkspaceQuery(folder_id=made.id))
    assert [item.id for item in hook.iterate(moved)] == [101]


def test_notifications_and_recipients_are_managed(hook: PlatformHook) -> None:
    made = hook.create_notification(dashboard_id=501, schedule_type="DAILY", hour=3, minute=0)
    assert hook.get_notification(made.id).id == made.id
    hook.add_notification_recipients(
        made.id, [{"type": "USER", "email": "analyst@acme.example.com"}]
    )
    (recipient,) = hook.list_notification_recipients(made.id)
    assert recipient.type == "USER"
    by_mail = hook.list_notifications(recipient_email="analyst@acme.example.com")
    assert [one.id for one in by_mail] == [made.id]
    hook.update_notification(made.id, hour=4)
    hook.delete_notification(made.id)
    assert list(hook.list_notifications(dashboard_public_id="dash00000501")) == []


def test_notifications_need_an_administrator(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(token_lacks=["Admin"])
    with pytest.raises(PlatformPermissionError, match="administrator"):
        list(hook.list_notifications())


def test_workbooks_are_cloned_changed_and_published(hook: PlatformHook) -> None:
    assert {workbook.id for workbook in hook.iterate(list_workbooks())} >= {301, 302}
    clone = hook.duplicate_workbook(301)
    hook.update_workbook(clone.id, slug="nightly-clone")
    assert hook.get_workbook(clone.id).slug == "nightly-clone"
    hook.publish_workbook(clone.id)
    hook.update_workbook(302, slug="nightly-clone", slug_takeover=True)
    assert hook.get_workbook(302).slug == "nightly-clone"


def test_embed_session_is_created_and_gives_a_token(hook: PlatformHook) -> None:
    session = hook.generate_embed_session(
        external_id="shopper",
        embed_tenant_name="acme-retail",
        embed_tenant_profile={"displayName": "Acme Retail"},
        creator_mode=True,
        tenant_groups=["shop-berlin"],
    )
    assert isinstance(session.session_id, SecretStr)
    body = PostTokenBySessionIdInput(session_id=session.session_id)
    token = hook.run(create_embed_token(body=body))
    assert session.session_id.get_secret_value() not in str(token.to_json())


def test_deployments_environments_and_tokens_are_read(hook: PlatformHook) -> None:
    assert [one.id for one in hook.iterate(deployments.list_deployments())][:1] == [1]
    assert hook.run(deployments.get_deployment()).id == 1
    environment = next(hook.iterate(list_environments()))
    body = CreateDeploymentEnvironmentTokenInput(security_context={}, scopes=["meta"])
    made = hook.run(create_environment_token(environment_id=environment.id, body=body))
    assert "eyJ" not in str(made.to_json())
    minted = hook.run(deployments.create_deployment_token())
    assert isinstance(minted.cube_api_token, SecretStr)


def test_run_sql_returns_rows_beyond_the_chat_limit(hook: PlatformHook) -> None:
    asked = hook.chat("list all orders")
    (query,) = asked.queries
    assert query.truncated
    assert len(list(hook.run_sql(query.sql))) == query.total_rows
