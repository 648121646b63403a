"""What a type checker, and so an editor, knows of declared operations: checked by `make types`.

Nothing here runs. A line with `type: ignore` is a mistake that must be found: strict checking
reports an ignore that nothing needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_type

from airflow_provider_platform.client.management.reports.reports import (
    Report,
    ReportsQuery,
    UpdateReportInput,
    get_report,
    list_reports,
    update_report,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.http.client import AsyncPlatformClient
    from airflow_provider_platform.hooks.platform import PlatformHook


def of_the_hook(hook: PlatformHook) -> None:
    assert_type(hook.run(get_report(report_id=12)), Report)
    assert_type(next(hook.iterate(list_reports(query=ReportsQuery(search="x")))), Report)
    assert_type(
        hook.run(update_report(report_id=12, body=UpdateReportInput(title="t"))).title, str | None
    )


async def on_a_loop(hook: PlatformHook, client: AsyncPlatformClient) -> None:
    assert_type(await client.run(get_report(deployment_id=7, report_id=12)), Report)
    assert_type(await hook.arun(get_report(report_id="12")), Report)
    assert_type(await anext(hook.aiterate(list_reports())), Report)
    async for report in client.iterate(list_reports()):
        assert_type(report, Report)


def wrong_arguments(hook: PlatformHook) -> None:
    get_report()  # type: ignore[call-arg]
    get_report(report_id=[12])  # type: ignore[arg-type]
    get_report(report=12)  # type: ignore[call-arg]
    update_report(report_id=12, body=ReportsQuery())  # type: ignore[arg-type]
    hook.iterate(get_report(report_id=12))  # type: ignore[arg-type]
    hook.run(get_report)  # type: ignore[arg-type]
    UpdateReportInput(titel="t")  # type: ignore[call-arg]
    UpdateReportInput(title=7)  # type: ignore[arg-type]
