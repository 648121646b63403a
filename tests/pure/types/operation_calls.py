"""What a type checker, and so an editor, knows of calls of operations: checked by `make types`.

Nothing here runs. A line with `type: ignore` is a mistake that must be found: strict checking
reports an ignore that nothing needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

if TYPE_CHECKING:
    from airflow_provider_platform.client.platform_client import AsyncPlatformClient
    from airflow_provider_platform.hooks.platform import PlatformHook


def of_the_hook(hook: PlatformHook) -> None:
    assert_type(hook.call("getReport", report_id=12), Any)
    for report in hook.iterate("getReports", query={"search": "x"}):
        assert_type(report, Any)
    hook.call(operation="getReport")  # type: ignore[call-arg]
    hook.call("getReports", query="x")  # type: ignore[arg-type]


async def on_a_loop(client: AsyncPlatformClient) -> None:
    assert_type(await client.call("getReport", deployment_id=7, report_id=12), Any)
    async for report in client.iterate("getReports"):
        assert_type(report, Any)
