"""`PlatformExportDashboardOperator`: render a published dashboard into a file."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import exactly_one
from airflow_provider_platform.client.choices import EXPORT_LIFETIME, ExportFormat, ExportLayout
from airflow_provider_platform.links import DashboardLink, ExportLink, FileLink, all_links
from airflow_provider_platform.operators._arguments import described
from airflow_provider_platform.operators._base import DeploymentOperator
from airflow_provider_platform.operators._output_arguments import output_path as check_output_path
from airflow_provider_platform.operators._output_arguments import output_target, storage_path
from airflow_provider_platform.operators._remote_run import RemoteRunOperator
from airflow_provider_platform.operators.notifications import dashboard_settings

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import ObjectStoragePath
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.exports import ExportIds, ExportOutcome
    from airflow_provider_platform.resources.run_kind import Ids

CONTENT_TYPES = {"png": "image/png", "pdf": "application/pdf"}


def _print_is_pdf(layout: str | None, format: str) -> None:
    """A rule: the layout `print` needs the format `pdf`."""
    if layout == "print" and format != "pdf":
        raise ValueError("layout='print' needs format='pdf'")


class PlatformExportDashboardOperator(DeploymentOperator, RemoteRunOperator):
    """Render a published dashboard as an image or a PDF, and write it to a file.

    Use it if a task needs a picture of a dashboard, for example to send or to archive it. To send a
    dashboard to people regularly, use a scheduled notification.

    Returns `{"path": str, "size": int, "content_type": str, "job_id": str}`; `size` is in bytes.
    The service keeps an export for five minutes after its start and cannot stop an export. A second
    export changes nothing, so if the response to a start is lost, a retry starts the export again.

    :param output_path: the file to write: a local path, or a URL of a storage that Airflow knows,
        such as `s3://my_conn@bucket/dashboard.pdf`. Each index of a mapped task needs its own path,
        for example with `{{ ti.map_index }}` in the name
    :param format: `png` or `pdf` (the default, whatever `output_path` ends in)
    :param dashboard_id: the id of the dashboard, unless `dashboard_public_id` or `dashboard` is
        given
    :param dashboard_public_id: the public id of the dashboard
    :param dashboard: instead of an id: the title of the published dashboard, looked up when the
        task runs
    :param filters: the filters of the dashboard: a list of `{"member", "operator", "value"}`
    :param time_grains: a list of `{"member", "grain"}`
    :param member_switchers: a list of `{"member", "selected"}`
    :param render_as: the user whose permissions the export uses: `{"type": "USER", "email"}` or
        `{"type": "EMBED_USER", "embed_tenant_name", "external_id"}`
    :param layout: `screenshot` or `print` (a PDF with pages)
    :param timeout: seconds (or a timedelta) of wall time from submission; at most 300, because the
        service drops the export then
    """

    kind_path = "exports.ExportRunKind"
    named = ("dashboard",)
    operator_extra_links = all_links(ExportLink, FileLink, DashboardLink)
    linked_result: ClassVar[dict[str, str]] = {"path": "path", "job_id": "job_id"}

    template_fields_renderers: ClassVar[dict[str, str]] = {
        "filters": "json",
        "time_grains": "json",
        "member_switchers": "json",
        "render_as": "json",
    }
    checks: ClassVar[Checks] = {
        "output_path": check_output_path,
        "format": partial(arguments.choice, choices=get_args(ExportFormat)),
        "dashboard_id": arguments.optional_id,
        "dashboard_public_id": arguments.optional_text,
        "dashboard": arguments.optional_text,
        "filters": dashboard_settings,
        "time_grains": dashboard_settings,
        "member_switchers": dashboard_settings,
        "render_as": partial(described, schema="ExportSubjectInput"),
        "layout": partial(arguments.optional_choice, choices=get_args(ExportLayout)),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("dashboard_id", "dashboard_public_id", "dashboard"), exactly_one),
        (("layout", "format"), _print_is_pdf),
    )

    def __init__(
        self,
        *,
        output_path: str | os.PathLike[str] | ObjectStoragePath,
        format: str = "pdf",
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        dashboard: str | None = None,
        filters: Sequence[Any] | str | None = None,
        time_grains: Sequence[Any] | str | None = None,
        member_switchers: Sequence[Any] | str | None = None,
        render_as: dict[str, Any] | str | None = None,
        layout: str | None = None,
        timeout: float | timedelta = EXPORT_LIFETIME,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, **kwargs)
        self.output_path: Any = output_path
        self.format = format
        self.dashboard_id: Any = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.dashboard = dashboard
        self.filters = filters
        self.time_grains = time_grains
        self.member_switchers = member_switchers
        self.render_as = render_as
        self.layout = layout
        self.validate_known_arguments()

    def check_before(self, attempt: Attempt) -> None:
        output_target("output_path", self.output_path)

    def finish(self, attempt: Attempt, ids: Ids, outcome: ExportOutcome) -> dict[str, Any]:
        """Download the file and write it. The record keeps what was written."""
        from airflow_provider_platform.files.whole_files import write_whole

        run = cast("ExportIds", ids)
        if "written" not in run:
            data: bytes = self.read(attempt, ids, outcome)
            path = storage_path("output_path", self.output_path)
            write_whole(path, data)
            self.log.info("Wrote %s bytes to %s", len(data), self.output_path)
            run["written"] = {
                "path": str(self.output_path),
                "size": len(data),
                "content_type": outcome.content_type or CONTENT_TYPES[self.format],
                "job_id": run["job_id"],
            }
        return dict(run["written"])
