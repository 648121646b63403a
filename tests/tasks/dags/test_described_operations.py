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
        assert isinstance(token["status"], str)
        assert token["integrationId"]
    own = hook.call("getUserOAuthToken", integration_id=tokens[0]["integrationId"])
    assert own["id"] in [token["id"] for token in tokens]


def test_dbt_sync_is_started_and_read(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    started = hook.start_dbt_sync(branch_name="b1")
    assert started["branchName"] == "b1"
    platform_sandbox.control.wait_until(lambda state: state.syncs[0].ended_at is not None)
    job = started["syncJobId"]
    assert hook.call("getDbtSyncStatus", sync_job_id=job)["status"] == "COMPLETED"
    assert hook.call("getDbtSyncResult", sync_job_id=job)["cubeCount"]
    assert [run["syncJobId"] for run in hook.iterate("listDbtSyncs")] == [job]
    assert list(hook.iterate("getDbtSyncLogs", sync_job_id=job))


def test_cancelled_dbt_sync_shows_in_the_history(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(dbt_pace=60.0)
    started = hook.start_dbt_sync()
    hook.call("cancelDbtSync", sync_job_id=started["syncJobId"])
    cancelled = hook.iterate("listDbtSyncs", query={"status": "CANCELLED"})
    assert [run["status"] for run in cancelled] == ["CANCELLED"]


def test_report_is_connected_and_disconnected(hook: PlatformHook) -> None:
    connected = hook.connect_report(101, external_workbook_id="w1", result_location="A!1")
    (placement,) = connected["externalWorkbookPlacements"]
    assert placement["resultLocation"] == "A!1"
    assert [report["id"] for report in hook.list_reports(external_workbook_id="w1")] == [101]
    body = {"externalWorkbookId": "w1"}
    gone = hook.call("disconnectReportFromWorkbook", report_id=101, body=body)
    assert not gone["externalWorkbookPlacements"]


def test_ai_widget_thread_is_attached(hook: PlatformHook) -> None:
    asked = hook.chat("revenue by country")
    dashboard = hook.attach_ai_widget_thread(301, widget_id="ai-1", thread_id=asked.chat_id)
    assert dashboard["id"] == 501


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
    assert [tenant["name"] for tenant in hook.iterate("listEmbedTenants")] == ["acme-retail"]
    hook.delete_embed_tenant("acme-retail")
    assert list(hook.iterate("listEmbedTenants")) == []


def test_app_config_is_read(hook: PlatformHook) -> None:
    assert hook.get_app_config()


def test_reports_are_listed_changed_and_deleted(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(page_size=2)
    everything = [report["id"] for report in hook.list_reports()]
    assert everything == sorted(set(everything))
    assert len(everything) > 2
    names = [report["name"] for report in hook.list_reports(sort_by="name", search="by")]
    assert names == sorted(names)
    assert list(hook.list_reports(sort_by="lastViewedAt"))
    assert hook.call("getReport", report_id=101)["name"] == "Revenue by country"
    made = hook.call("createReport", body={"name": "Mine"})["id"]
    assert hook.call("updateReport", report_id=made, body={"name": "Ours"})["name"] == "Ours"
    hook.call("deleteReport", report_id=made)
    with pytest.raises(PlatformNotFoundError, match=f"report {made}"):
        hook.call("getReport", report_id=made)


@pytest.mark.parametrize("lists", ["legacy", "unpaged"])
def test_lists_are_read_from_tenants_of_every_release(
    hook: PlatformHook, platform_sandbox: Sandbox, lists: str
) -> None:
    expected = list(hook.list_reports())
    if lists == "legacy":
        platform_sandbox.control.set(lists=lists)
    else:
        platform_sandbox.control.fault("odd_field", path="/reports$", field="pageInfo")
    assert list(hook.list_reports()) == expected


def test_a_cursor_that_repeats_is_an_error(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=2)
    repeated = {"field": "pageInfo.endCursor", "value": "aXRlbTox", "count": None}
    platform_sandbox.control.fault("odd_field", path="/reports$", **repeated)
    with pytest.raises(PlatformProtocolError, match="cursor"):
        list(hook.list_reports())


def test_folder_is_created_and_a_report_moved_into_it(hook: PlatformHook) -> None:
    made = hook.call("createFolder", body={"name": "Nightly"})["id"]
    assert made in [folder["id"] for folder in hook.list_folders()]
    hook.call("updateReport", report_id=101, body={"folderId": made})
    assert [report["id"] for report in hook.list_reports(folder_id=made)] == [101]


def test_notifications_and_recipients_are_managed(hook: PlatformHook) -> None:
    created = hook.create_notification(dashboard_id=501, schedule_type="DAILY", hour=3, minute=0)
    made = created["id"]
    assert hook.call("getNotification", id=made)["id"] == made
    people = {"recipients": [{"type": "USER", "email": "analyst@acme.example.com"}]}
    hook.call("addRecipients", id=made, body=people)
    (recipient,) = hook.iterate("getRecipients", id=made)
    assert recipient["type"] == "USER"
    by_mail = hook.list_notifications(recipient_email="analyst@acme.example.com")
    assert [one["id"] for one in by_mail] == [made]
    hook.update_notification(made, hour=4)
    hook.call("deleteNotification", id=made)
    assert list(hook.list_notifications(dashboard_public_id="dash00000501")) == []


def test_notifications_need_an_administrator(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(token_lacks=["Admin"])
    with pytest.raises(PlatformPermissionError, match="requires: Admin"):
        list(hook.list_notifications())


def test_workbooks_are_cloned_changed_and_published(hook: PlatformHook) -> None:
    assert {workbook["id"] for workbook in hook.iterate("getWorkbooks")} >= {301, 302}
    clone = hook.duplicate_workbook(301)["id"]
    hook.update_workbook(clone, slug="nightly-clone")
    assert hook.call("getWorkbook", workbook_id=clone)["slug"] == "nightly-clone"
    hook.call("publishDashboard", workbook_id=clone)
    hook.update_workbook(302, slug="nightly-clone", slug_takeover=True)
    assert hook.call("getWorkbook", workbook_id=302)["slug"] == "nightly-clone"


def test_embed_session_is_created_and_gives_a_token(hook: PlatformHook) -> None:
    session = hook.generate_embed_session(
        external_id="shopper",
        embed_tenant_name="acme-retail",
        embed_tenant_profile={"displayName": "Acme Retail"},
        creator_mode=True,
        tenant_groups=["shop-berlin"],
    )
    assert isinstance(session["sessionId"], SecretStr)
    token = hook.call("postTokenBySessionId", body={"sessionId": session["sessionId"]})
    assert session["sessionId"].get_secret_value() not in str(token)
    assert isinstance(token["token"], SecretStr)


def test_deployments_environments_and_tokens_are_read(hook: PlatformHook) -> None:
    assert [one["id"] for one in hook.iterate("getDeployments")][:1] == [1]
    assert hook.call("getDeployment")["id"] == 1
    environment = next(hook.iterate("getDeploymentEnvironments"))["id"]
    body = {"security_context": {}, "scopes": ["meta"]}
    made = hook.call("createDeploymentEnvironmentToken", environment_id=environment, body=body)
    assert "eyJ" not in str(made)
    minted = hook.call("deploymentToken")
    assert isinstance(minted["cubeApiToken"], SecretStr)


def test_run_sql_returns_rows_beyond_the_chat_limit(hook: PlatformHook) -> None:
    asked = hook.chat("list all orders")
    (query,) = asked.queries
    assert query.truncated
    assert len(list(hook.run_sql(query.sql))) == query.total_rows
