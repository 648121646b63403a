"""`PlatformConnectReportOperator`: record the place of a report in a spreadsheet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.links import Links, ReportLink
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.failures import ShortTraceback, airflow_errors
from airflow_provider_platform.operators._base.operator import DeploymentOperator

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.operators._base.operator import Checks


class PlatformConnectReportOperator(DeploymentOperator):
    """Connect a report to a workbook outside the platform: record where the report is placed there.

    Use it after your own code has written a report's rows into a spreadsheet. The platform then
    knows where the rows are and offers to refresh them. This operator writes no cells.

    A repeated call does not create a second placement. The user needs only read access to the
    report. Returns the report as the service describes it.

    :param report_id: the report's id
    :param external_workbook_id: the spreadsheet's id at its host
    :param result_location: the first cell of the result, as in `Revenue!A1`
    :param end_result_cell: the last cell of the result
    """

    operator_extra_links = Links(ReportLink)

    checks: ClassVar[Checks] = {
        "report_id": arguments.identifier,
        "external_workbook_id": arguments.text,
        "result_location": arguments.text,
        "end_result_cell": arguments.optional_text,
    }

    def __init__(
        self,
        *,
        report_id: int | str,
        external_workbook_id: str,
        result_location: str,
        end_result_cell: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.report_id = report_id
        self.external_workbook_id = external_workbook_id
        self.result_location = result_location
        self.end_result_cell = end_result_cell
        self.validate_known_arguments()

    def execute(self, context: Context) -> dict[str, Any]:
        """Record the placement and return the report."""
        with ShortTraceback(), airflow_errors():
            self.coerce_arguments()
            hook = self.hook()
            self.store_link(context, hook.config)
            report = hook.connect_report(
                self.report_id,
                deployment_id=self.deployment_id,
                external_workbook_id=self.external_workbook_id,
                result_location=self.result_location,
                **arguments.given(end_result_cell=self.end_result_cell),
            )
        self.log.info(
            "Connected report %s to workbook %s at %s",
            self.report_id,
            self.external_workbook_id,
            self.result_location,
        )
        return report.to_json()
