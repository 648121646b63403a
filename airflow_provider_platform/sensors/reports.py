"""`PlatformReportSensor`: wait until a report exists, or was updated or refreshed after a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import at_most_one, exactly_one
from airflow_provider_platform.links import ReportLink, all_links
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks


class PlatformReportSensor(DeploymentOperator, PlatformSensor):
    """Wait until a report exists, was saved after `updated_after` (if it is given), and refreshed
    after `refreshed_after` (if it is given).

    Use it to start after somebody has saved a report that your DAG reads, or has refreshed its rows
    in a spreadsheet. A refresh does not count as an update.

    Returns the report as the service describes it. A deployment that does not exist fails the task.

    :param report_id: the report's id, unless `name` is given
    :param name: the report's whole name; if several reports have it, the task fails and lists them
    :param folder_id: the folder of the report, with `name`
    :param updated_after: a datetime, or a string in ISO 8601 (UTC if it names no zone), as `{{
        dag_run.run_after }}`
    :param refreshed_after: the same for the refresh of the report's rows in a spreadsheet; a
        refresh of any of its placements counts
    """

    operator_extra_links = all_links(ReportLink)
    linked_result: ClassVar[dict[str, str]] = {"report_id": "id"}

    condition_kind = "report"
    checks: ClassVar[Checks] = {
        "report_id": arguments.optional_id,
        "name": arguments.optional_text,
        "folder_id": arguments.optional_id,
        "updated_after": arguments.moment,
        "refreshed_after": arguments.moment,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("report_id", "name"), exactly_one),
        (("report_id", "folder_id"), at_most_one),
    )

    def __init__(
        self,
        *,
        report_id: int | str | None = None,
        name: str | None = None,
        folder_id: int | str | None = None,
        updated_after: datetime | str | None = None,
        refreshed_after: datetime | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.report_id = report_id
        self.name = name
        self.folder_id = folder_id
        self.updated_after = updated_after
        self.refreshed_after = refreshed_after
        self.validate_known_arguments()
