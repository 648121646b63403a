"""Reports and their places in spreadsheets: what is sent, and what the answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.management.reports.placements import (
    ConnectReportToWorkbookInput,
    DisconnectReportFromWorkbookInput,
    ExternalDocumentPlacement,
    RefreshReportInput,
)
from airflow_provider_platform.client.management.reports.reports import (
    CreateReportInput,
    Report,
    ReportsQuery,
    UpdateReportInput,
    connect_report,
    create_report,
    delete_report,
    disconnect_report,
    get_report,
    list_reports,
    upsert_report,
)
from airflow_provider_platform.client.management.workbooks.dashboards import ReportSnapshot

PLACEMENT = {"workbookId": "sheet-1", "resultLocation": "Sheet1!A1", "endResultCell": "D9"}


def test_a_report_has_the_described_fields() -> None:
    sent = {
        "id": 12,
        "publicId": "AbCdEf123456",
        "name": "Revenue",
        "canEdit": True,
        "canManage": False,
        "externalWorkbookPlacements": [PLACEMENT],
        "createdAt": "2026-07-20",
        "updatedAt": "2026-07-21T08:00:00.000Z",
        "type": "HOLOGRAM",
        "user": {"email": "a@example.com"},
        "pivotItems": {"columns": [], "measures": ["m"], "rows": [], "filters": []},
        "tomorrow": {"field": 1},
    }

    report = Report.model_validate(sent)

    assert (report.can_edit, report.can_manage) == (True, False)
    assert report.external_workbook_placements is not None
    placement = report.external_workbook_placements[0]
    assert (placement.workbook_id, placement.result_location, placement.end_result_cell) == (
        "sheet-1",
        "Sheet1!A1",
        "D9",
    )
    assert report.created_at is not None
    assert report.updated_at is not None
    assert report.updated_at > report.created_at
    assert report.to_json() == sent


def test_report_snapshot_has_the_described_fields() -> None:
    snapshot = ReportSnapshot.model_validate(
        {
            "id": 1,
            "fillMissingRows": {"member": "orders.day", "excludedDimensions": ["orders.city"]},
            "spec": {"mark": "bar"},
            "kind": "sankey",
            "periodComparisons": [{"measure": "m", "offset": {"amount": 1, "unit": "month"}}],
        }
    )

    assert snapshot.fill_missing_rows is not None
    assert snapshot.fill_missing_rows.member == "orders.day"
    assert snapshot.fill_missing_rows.excluded_dimensions == ["orders.city"]


def test_a_report_without_an_id_breaks_the_contract() -> None:
    with pytest.raises(PlatformProtocolError, match="id"):
        get_report(deployment_id=7, report_id=12).read({"name": "x"})


def test_the_described_list_query() -> None:
    query = ReportsQuery.build(
        first=10,
        after="c",
        sort_by="updatedAt",
        search="rev",
        folder_id="3",
        external_workbook_id="sheet-1",
    )

    assert list_reports(deployment_id=7, query=query).query == {
        "first": 10,
        "after": "c",
        "sortBy": "updatedAt",
        "search": "rev",
        "folderId": 3,
        "externalWorkbookId": "sheet-1",
    }


def test_connecting_sends_the_described_body() -> None:
    body = ConnectReportToWorkbookInput.build(
        external_workbook_id="sheet-1", result_location="Sheet1!A1", end_result_cell="D9"
    )

    operation = connect_report(deployment_id=7, report_id="12", body=body)

    assert (operation.method, operation.path) == (
        "PUT",
        "/v1/deployments/7/reports/12/connect-workbook",
    )
    assert operation.body == {
        "externalWorkbookId": "sheet-1",
        "resultLocation": "Sheet1!A1",
        "endResultCell": "D9",
    }
    assert operation.repeatable


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"external_workbook_id": "x"}, "result_location"),
        ({"result_location": "A1"}, "external_workbook_id"),
        ({"external_workbook_id": "", "result_location": "A1"}, "external_workbook_id"),
        ({"external_workbook_id": "x", "result_location": "A1", "host": "ABACUS"}, "host"),
        ({"external_workbook_id": "x", "result_location": "A1", "cell": "B2"}, "cell"),
    ],
)
def test_bad_connections_are_refused(given: dict[str, Any], field: str) -> None:
    with pytest.raises(PlatformInputError) as raised:
        ConnectReportToWorkbookInput.build(**given)

    assert raised.value.field == field


def test_disconnecting_sends_a_body_with_the_delete() -> None:
    body = DisconnectReportFromWorkbookInput.build(placement_id="p-1")

    operation = disconnect_report(deployment_id=7, report_id=12, body=body)

    assert operation.method == "DELETE"
    assert operation.body == {"placementId": "p-1"}


def test_checksums_have_the_services_names() -> None:
    body = RefreshReportInput.build(
        placement_id="p-1",
        result_checksum={"v": 1, "chunks": [{"from": 0, "hash": "h"}], "payload": "p"},
    )

    assert body.to_json() == {
        "placementId": "p-1",
        "resultChecksum": {"v": 1, "chunks": [{"from": 0, "hash": "h"}], "payload": "p"},
    }


def test_creation_sends_the_given_fields_once() -> None:
    body = CreateReportInput.build(
        name="Revenue",
        workbook_id=3,
        pivot_items={"columns": [], "measures": ["m"], "rows": ["r"], "filters": []},
        source="PLAYGROUND",
    )

    operation = create_report(deployment_id=7, body=body)

    assert operation.body == {
        "name": "Revenue",
        "workbookId": 3,
        "pivotItems": {"columns": [], "measures": ["m"], "rows": ["r"], "filters": []},
        "source": "PLAYGROUND",
    }
    assert not operation.repeatable
    assert upsert_report(deployment_id=7, public_id="AbCdEf123456", body=body).repeatable


@pytest.mark.parametrize(
    "given",
    [
        {"name": "x" * 256},
        {"title": "x" * 256},
        {"public_id": "short"},
        {"public_id": "AbCdEf12345!"},
        {"pivot_items": {"columns": []}},
    ],
)
def test_bad_reports_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError):
        CreateReportInput.build(**given)


def test_update_can_name_the_expected_version() -> None:
    body = UpdateReportInput.build(name="New", expected_version=4)

    assert body.to_json() == {"name": "New", "expectedVersion": 4}
    with pytest.raises(PlatformInputError, match="source"):
        UpdateReportInput.build(source="EXCEL")


def test_deletion_returns_none() -> None:
    assert delete_report(deployment_id=7, report_id=1).read({"ok": True}) is None


@pytest.mark.parametrize("report_id", ["", "  ", "..", ".", None])
def test_report_without_a_valid_id_is_not_requested(report_id: Any) -> None:
    with pytest.raises(PlatformInputError) as raised:
        get_report(deployment_id=7, report_id=report_id)

    assert raised.value.field == "report_id"


def test_report_id_is_one_path_segment() -> None:
    assert get_report(deployment_id=7, report_id="a/../b").path == (
        "/v1/deployments/7/reports/a%2F..%2Fb"
    )


def test_placement_without_access_has_its_ids() -> None:
    placement = ExternalDocumentPlacement.model_validate(
        {"access": "DENIED", "reportId": 3, "reportName": None, "deploymentId": "7"}
    )

    assert (placement.access, placement.report_name, placement.deployment_id) == ("DENIED", None, 7)
