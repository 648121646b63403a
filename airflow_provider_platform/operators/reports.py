"""Operators for the places of reports in spreadsheets: record, refresh and forget them.

None of them writes a cell.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import ReportLink, all_links
from airflow_provider_platform.operators._arguments import described, stored
from airflow_provider_platform.operators._base import DeploymentOperator, ShortTraceback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks

__all__ = [
    "PlatformConnectReportOperator",
    "PlatformDisconnectReportOperator",
    "PlatformRefreshReportOperator",
]

HOSTS = ("GOOGLE_SHEETS", "EXCEL")


_checksum = partial(described, schema="ReportPlacementResultChecksumInput")


def _names_a_placement(*, placement_id: Any, external_workbook_id: Any) -> None:
    """A rule: one of them says which placement is meant."""
    if placement_id is None and external_workbook_id is None:
        raise ValueError("placement_id or external_workbook_id is needed")


class PlacementOperator(DeploymentOperator):
    """Base of the operators on one placement of a report.

    The user needs only read access to the report. Returns the report, with its placements, as the
    service describes it.

    :param report_id: the report's id
    :param report: instead of `report_id`: the report's name, looked up when the task runs
    :param placement_id: the placement's id, which the report lists. Without it, the spreadsheet and
        the range identify the placement
    :param external_workbook_id: the spreadsheet's id at its host
    :param result_location: the first cell of the result, as in `Revenue!A1`
    :param anchor_cell: the first cell without its sheet, as in `A1`
    :param sheet_id: the id of the sheet at its host
    :param sheet_name: the name of the sheet
    """

    operator_extra_links = all_links(ReportLink)
    named = ("report",)
    rules: ClassVar[Sequence[Rule]] = ((("report_id", "report"), arguments.exactly_one),)
    operation: ClassVar[str]
    """The operation's id, whose body are the given arguments."""
    done: ClassVar[str]
    """What the task did, for the log."""
    checks: ClassVar[Checks] = {
        "report_id": arguments.optional_id,
        "report": arguments.optional_text,
        "placement_id": arguments.optional_text,
        "external_workbook_id": arguments.optional_text,
        "result_location": arguments.optional_text,
        "anchor_cell": arguments.optional_text,
        "sheet_id": arguments.optional_text,
        "sheet_name": arguments.optional_text,
    }

    def __init__(
        self,
        *,
        report_id: int | str | None = None,
        report: str | None = None,
        placement_id: str | None = None,
        external_workbook_id: str | None = None,
        result_location: str | None = None,
        anchor_cell: str | None = None,
        sheet_id: str | None = None,
        sheet_name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.report_id: Any = report_id
        self.report = report
        self.placement_id = placement_id
        self.external_workbook_id = external_workbook_id
        self.result_location = result_location
        self.anchor_cell = anchor_cell
        self.sheet_id = sheet_id
        self.sheet_name = sheet_name

    def execute(self, context: Context) -> dict[str, Any]:
        """Make the call and return the report."""
        with ShortTraceback(), self.opened(context) as hook:
            names = [
                name for name in self.checks if name not in ("report_id", "report", "deployment_id")
            ]
            fields = arguments.given(**{name: getattr(self, name) for name in names})
            ids = {"report_id": self.report_id, "deployment_id": self.deployment_id}
            answer = hook.call(self.operation, body=fields, **ids)
            report: dict[str, Any] = stored(answer)
        place = self.placement_id or " ".join(
            filter(None, (self.external_workbook_id, self.result_location))
        )
        named = quote_service(self.report_id), quote_service(place or "no placement named")
        self.log.info("%s report %s: %s", self.done, *named)
        return report


class PlatformConnectReportOperator(PlacementOperator):
    """Connect a report to a spreadsheet: record which range shows the report.

    Use it after your own code has written a report's rows into a spreadsheet. The platform then
    knows where the rows are and offers to refresh them. This operator writes no cells.

    A repeated call does not create a second placement. The user needs only read access to the
    report. Returns the report as the service describes it.

    :param external_workbook_id: the spreadsheet's id at its host
    :param result_location: the first cell of the result, as in `Revenue!A1`
    :param end_result_cell: the last cell of the result
    :param host: GOOGLE_SHEETS or EXCEL
    :param workbook_name: the name of the spreadsheet
    :param address_only: record only the address; the placement does not count as refreshed
    :param result_checksum: checksums of the rows that were written: `{"v", "chunks", "payload"}`
    """

    operation = "connectReportToWorkbook"
    done = "Connected"
    template_fields_renderers: ClassVar[dict[str, str]] = {"result_checksum": "json"}
    checks: ClassVar[Checks] = {
        "external_workbook_id": arguments.text,
        "result_location": arguments.text,
        "end_result_cell": arguments.optional_text,
        "host": partial(arguments.optional_choice, choices=HOSTS),
        "workbook_name": arguments.optional_text,
        "address_only": arguments.optional_boolean,
        "result_checksum": _checksum,
    }

    def __init__(
        self,
        *,
        external_workbook_id: str,
        result_location: str,
        end_result_cell: str | None = None,
        host: str | None = None,
        workbook_name: str | None = None,
        address_only: bool | str | None = None,
        result_checksum: dict[str, Any] | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            external_workbook_id=external_workbook_id, result_location=result_location, **kwargs
        )
        self.end_result_cell = end_result_cell
        self.host = host
        self.workbook_name = workbook_name
        self.address_only: Any = address_only
        self.result_checksum: Any = result_checksum
        self.validate_known_arguments()


class PlatformRefreshReportOperator(PlacementOperator):
    """Record that the rows of a placement were written again.

    Use it after your own code has refreshed a connected spreadsheet. The platform then shows when
    and by whom.

    Name the placement: the service does not say what a call without one changes. A repeated call
    only records a later time. The user needs only read access to the report. Returns the report as
    the service describes it.

    :param result_checksum: checksums of the rows that were written: `{"v", "chunks", "payload"}`
    """

    operation = "refreshReport"
    done = "Refreshed"
    template_fields_renderers: ClassVar[dict[str, str]] = {"result_checksum": "json"}
    checks: ClassVar[Checks] = {"result_checksum": _checksum}

    def __init__(
        self, *, result_checksum: dict[str, Any] | str | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.result_checksum: Any = result_checksum
        self.validate_known_arguments()


class PlatformDisconnectReportOperator(PlacementOperator):
    """Remove a placement of a report from the platform's list. The spreadsheet does not change.

    Use it when a connected spreadsheet is deleted or no longer shows the report.

    If the placement does not exist, the task succeeds. The user needs only read access to the
    report. Returns the report as the service describes it.
    """

    operation = "disconnectReportFromWorkbook"
    done = "Disconnected"
    rules: ClassVar[Sequence[Rule]] = (
        (("placement_id", "external_workbook_id"), _names_a_placement),
    )

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.validate_known_arguments()
