"""Operators for the places of reports in spreadsheets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators.reports import (
    PlatformConnectReportOperator,
    PlatformDisconnectReportOperator,
    PlatformRefreshReportOperator,
)
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SHEET: dict[str, Any] = {
    "report_id": 101,
    "external_workbook_id": "sheet",
    "result_location": "Revenue!A1",
}
CHECKSUM = {"v": 1, "chunks": [{"from": 0, "hash": "a1"}]}


def run(operator: Any, **arguments: Any) -> Any:
    """Run the operator, and return the report's placements."""
    report = operator(task_id="task", **arguments).execute(TaskTries().context())
    assert report["id"] == 101
    return report["externalWorkbookPlacements"]


def test_connect_sends_every_field_of_a_placement(platform_sandbox: Sandbox) -> None:
    [placement] = run(
        PlatformConnectReportOperator,
        **SHEET,
        anchor_cell="A1",
        sheet_id="0",
        sheet_name="Revenue",
        end_result_cell="C20",
        host="GOOGLE_SHEETS",
        workbook_name="Monthly",
        result_checksum=CHECKSUM,
    )
    assert placement["sheetName"] == "Revenue"
    assert (placement["sheetId"], placement["anchorCell"]) == ("0", "A1")
    assert (placement["host"], placement["workbookName"]) == ("GOOGLE_SHEETS", "Monthly")
    assert placement["resultChecksum"] == CHECKSUM
    assert placement["refreshedAt"] is not None


def test_address_only_leaves_a_placement_unrefreshed(platform_sandbox: Sandbox) -> None:
    [placement] = run(PlatformConnectReportOperator, **SHEET, address_only=True)
    assert placement.get("refreshedAt") is None


@pytest.mark.parametrize("by_id", [False, True])
def test_placement_is_refreshed_and_forgotten(by_id: bool, platform_sandbox: Sandbox) -> None:
    [placement] = run(PlatformConnectReportOperator, **SHEET, address_only=True)
    named = {"report_id": 101, "placement_id": placement["id"]} if by_id else SHEET
    [refreshed] = run(PlatformRefreshReportOperator, **named, result_checksum=CHECKSUM)
    assert refreshed["refreshedAt"] is not None
    assert refreshed["resultChecksum"] == CHECKSUM
    assert run(PlatformDisconnectReportOperator, **named) == []
    assert run(PlatformDisconnectReportOperator, **named) == []


@pytest.mark.parametrize(
    ("operator", "arguments", "named"),
    [
        (PlatformDisconnectReportOperator, {"report_id": 1}, "placement_id"),
        (PlatformConnectReportOperator, {**SHEET, "host": "NUMBERS"}, "host"),
        (PlatformRefreshReportOperator, {"report_id": 1, "result_checksum": {"v": 0}}, "v"),
    ],
)
def test_wrong_arguments_are_refused_when_the_dag_is_parsed(
    operator: Any, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(PlatformInputError, match=named):
        operator(task_id="task", **arguments)
