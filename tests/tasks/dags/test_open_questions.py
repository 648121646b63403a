"""The package gives the same result in each way that the service's documents leave open."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.resources.dbt_sync import cancel_dbt_sync
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

QUESTION = "revenue by country"


def sync(tries: TaskTries | None = None, **arguments: Any) -> Any:
    """Run a task that syncs; returns what it returns."""
    given = {"poll_interval": 0.05, "deferrable": False, "timeout": 60, **arguments}
    operator = PlatformDbtSyncOperator(task_id="sync", **given)
    return operator.execute((tries or TaskTries()).context())


def ask(**options: Any) -> Any:
    return PlatformHook().chat(QUESTION, **{"poll_interval": 0.05, "timeout": 60, **options})


@pytest.mark.parametrize("status", ["FAILED", "stage"])
def test_a_cancelled_sync_ends_the_wait(
    platform_sandbox: Sandbox, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("airflow_provider_platform.resources.dbt_sync.HISTORY_INTERVAL", 0.3)
    control = platform_sandbox.control
    control.set(dbt_pace=600)

    def cancel() -> None:
        (started,) = control.wait_until(lambda state: bool(state.syncs)).syncs
        PlatformHook().run(cancel_dbt_sync(sync_job_id=started.sync_job_id, deployment_id=1))
        later = {"method": "GET", "path": "/dbt-sync/[^/]+$", "count": None}
        if status == "404":
            control.fault("status", status=404, **later)
        elif status != "stage":
            control.fault("odd_field", field="status", value=status, **later)

    with ThreadPoolExecutor() as other:
        cancelling = other.submit(cancel)
        with pytest.raises(PlatformError) as caught:
            sync(branch_name="nightly")
        cancelling.result()
    assert "timeout" not in str(caught.value)
    assert len(control.state().syncs) == 1


def test_every_request_has_a_content_length(platform_sandbox: Sandbox) -> None:
    """Some front ends answer 411 to a request that may have a body and declares no length."""
    sync(branch_name="nightly")
    assert ask().answer
    started = sync(branch_name="other", wait_for_completion=False)
    PlatformHook().run(cancel_dbt_sync(sync_job_id=started["sync_job_id"], deployment_id=1))
    changing = [one for one in platform_sandbox.control.state().requests if one.method != "GET"]
    assert {one.method for one in changing} == {"POST", "DELETE"}
    assert all("content-length" in one.headers for one in changing)


def test_rows_sent_as_text_make_the_same_file(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    """Values in files are read by the type of their column, whatever form they come in."""
    prompt = "sql: SELECT paid_on, paid_at, fee, settled, id, note FROM payments"
    files = []
    for rows in ("values", "texts"):
        platform_sandbox.control.set(chat_rows=rows)
        task = PlatformChatOperator(
            task_id="ask",
            prompt=prompt,
            output_path=str(tmp_path / rows),
            output_format="jsonl",
            deferrable=False,
        )
        (query,) = task.execute(TaskTries().context())["queries"]
        files.append(Path(query["path"]).read_text())
    assert files[0] == files[1]
    assert len(files[0].splitlines()) == 100
