"""Reports, workbooks and dashboards by the names that people know."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.compare import PlatformCompareOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.notifications import (
    PlatformCreateNotificationOperator,
    PlatformListNotificationsOperator,
)
from airflow_provider_platform.operators.reports import (
    PlatformConnectReportOperator,
    PlatformRefreshReportOperator,
)
from airflow_provider_platform.operators.workbooks import (
    PlatformDuplicateWorkbookOperator,
    PlatformPublishWorkbookOperator,
    PlatformUpdateWorkbookOperator,
)
from airflow_provider_platform.resources.names import choose_named
from airflow_provider_platform.sensors.notifications import PlatformNotificationSensor
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


def run(operator: Any, **given: Any) -> Any:
    return operator(task_id="t", **given).execute(TaskTries().context())


def changes(sandbox: Sandbox) -> list[str]:
    return [one.path for one in sandbox.control.state().requests if one.method != "GET"]


@pytest.mark.parametrize("name", ["Revenue by country", "revenue BY country"])
def test_report_is_found_by_its_name(name: str, platform_sandbox: Sandbox) -> None:
    assert run(PlatformRefreshReportOperator, report=name)["id"] == 101


def test_name_of_digits_is_not_the_id_of_another_report(platform_sandbox: Sandbox) -> None:
    PlatformHook().call("updateReport", report_id=103, body={"name": "101"})
    assert run(PlatformRefreshReportOperator, report="101")["id"] == 103


def test_workbook_is_found_by_its_name(platform_sandbox: Sandbox) -> None:
    name = PlatformHook().call("getWorkbook", workbook_id=301)["name"]
    run(PlatformUpdateWorkbookOperator, workbook=name, meta={"a": 1})
    assert PlatformHook().call("getWorkbook", workbook_id=301)["meta"] == {"a": 1}
    assert run(PlatformDuplicateWorkbookOperator, workbook=name)["id"] != 301


def test_dashboard_is_found_by_its_title(platform_sandbox: Sandbox) -> None:
    published = run(PlatformPublishWorkbookOperator, workbook_id=301, title="Sales of the month")
    made = run(
        PlatformCreateNotificationOperator,
        dashboard="sales of the month",
        schedule_type="DAILY",
        hour=7,
    )
    assert made["dashboardId"] == published["id"]


def test_schedules_of_a_dashboard_are_found_by_its_title(platform_sandbox: Sandbox) -> None:
    daily = {"schedule_type": "DAILY", "hour": 7}
    run(PlatformCreateNotificationOperator, dashboard_id=501, **daily)
    made = run(PlatformCreateNotificationOperator, dashboard_id=502, **daily)
    listed = run(PlatformListNotificationsOperator, dashboard="customer health")
    assert [one["id"] for one in listed] == [made["id"]]
    waited = {"dashboard": "Customer health", "deferrable": False}
    assert run(PlatformNotificationSensor, **waited)["id"] == made["id"]


def test_reports_of_a_workbook_are_compared_by_its_name(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch("nightly")
    found = run(PlatformCompareOperator, branch_name="nightly", workbook="sales overview")
    assert (len(found["queries"]), found["verdict"]) == (2, "same")


@pytest.mark.parametrize(
    ("operator", "given", "words"),
    [
        (PlatformRefreshReportOperator, {"report": "Revenu"}, r"no report has the name 'Revenu'.*"),
        (PlatformDuplicateWorkbookOperator, {"workbook": "none"}, "no workbook has the name"),
        (
            PlatformCreateNotificationOperator,
            {"dashboard": "none", "schedule_type": "DAILY"},
            "no dashboard has the name",
        ),
        (
            PlatformExportDashboardOperator,
            {"dashboard": "none", "output_path": "/tmp/never.pdf"},
            r"no dashboard has the name .*'Sales overview' \(501\)",
        ),
        (PlatformListNotificationsOperator, {"dashboard": "none"}, "no dashboard has the name"),
        (PlatformNotificationSensor, {"dashboard": "none"}, "no dashboard has the name"),
        (
            PlatformCompareOperator,
            {"workbook": "none", "branch_name": "nightly"},
            "no workbook has the name",
        ),
    ],
)
def test_unknown_name_lists_what_there_is_and_changes_nothing(
    operator: Any, given: dict[str, Any], words: str, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException, match=f"Nothing was sent: {words}"):
        run(operator, **given)
    assert changes(platform_sandbox) == []


def test_name_of_two_reports_lists_both_and_changes_nothing(platform_sandbox: Sandbox) -> None:
    PlatformHook().call("updateReport", report_id=103, body={"name": "Revenue by country"})
    before = len(changes(platform_sandbox))
    with pytest.raises(AirflowFailException, match=r"2 reports have the name .*\(101\).*\(103\)"):
        run(PlatformRefreshReportOperator, report="Revenue by country")
    assert len(changes(platform_sandbox)) == before


def test_name_and_id_together_and_neither_are_refused() -> None:
    place = {"external_workbook_id": "w", "result_location": "A!1"}
    for given in ({}, {"report": "a", "report_id": 1}):
        with pytest.raises(PlatformInputError, match="give exactly one of report_id and report"):
            PlatformConnectReportOperator(task_id="t", **place, **given)


def test_thing_without_a_name_is_listed_by_its_id() -> None:
    with pytest.raises(PlatformInputError, match=r"no report has the name 'a'.*'' \(7\)"):
        choose_named("report", "a", {7: (None,)})
