"""Sensors in a DAG run against the sandbox: every mode gives the same XCom and the same error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.dbt_sync import cancel_dbt_sync
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from airflow_provider_platform.sensors.dbt_sync import PlatformDbtSyncSensor
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.support.modes import in_both_modes, is_deferred

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture
def sense(request: pytest.FixtureRequest, run_dag: RunDag, platform_sandbox: Sandbox) -> Any:
    """Run one sensor in a DAG of its own; returns its finished task."""

    def run(sensor: type, **arguments: Any) -> FinishedTask:
        arguments = {"poke_interval": 0.05, "timeout": 30, **arguments}
        with DAG(dag_id=f"sense_{sensor.__name__}") as dag:
            sensor(task_id="sense", deferrable=is_deferred(request), retries=0, **arguments)
        return run_dag(dag).task("sense")

    return run


def start_sync(**options: Any) -> str:
    return str(PlatformHook().start_dbt_sync(**options)["syncJobId"])


class TestDbtSync:
    @in_both_modes("sense")
    def test_sync_sensor_waits_for_the_end_and_returns_the_result(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.set(dbt_pace=0.05)
        sync_job_id = start_sync(branch_name="nightly")
        task = sense(PlatformDbtSyncSensor, sync_job_id=sync_job_id)
        assert task.error is None
        found = task.xcoms["return_value"]
        assert found["sync_job_id"] == sync_job_id
        assert found["status"] == "COMPLETED"
        assert found["result"]["cubeCount"] == 3

    @in_both_modes("sense")
    def test_a_sync_that_was_cancelled_fails_the_task(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.set(dbt_pace=60)
        sync_job_id = start_sync()
        PlatformHook().run(cancel_dbt_sync(sync_job_id=sync_job_id))
        task = sense(PlatformDbtSyncSensor, sync_job_id=sync_job_id)
        assert task.error.startswith("DbtSyncCancelledError")

    @in_both_modes("sense")
    def test_timeout_raises_airflow_sensor_timeout(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.set(dbt_pace=60)
        task = sense(PlatformDbtSyncSensor, sync_job_id=start_sync(), timeout=0.2)
        assert task.error.startswith("AirflowSensorTimeout")


@pytest.mark.exhaustive
def test_rescheduled_sensor_succeeds(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(dbt_pace=0.02)
    sync_job_id = start_sync(branch_name="nightly")
    with DAG(dag_id="rescheduled") as dag:
        PlatformDbtSyncSensor(
            task_id="sense",
            sync_job_id=sync_job_id,
            mode="reschedule",
            poke_interval=0.1,
            timeout=30,
            deferrable=False,
        )
    assert run_dag(dag).xcom("sense")["status"] == "COMPLETED"


class TestSoftFail:
    """Only a condition that did not come true skips a task with `soft_fail`."""

    @in_both_modes("sense")
    def test_revoked_token_fails_the_task(self, sense: Any, platform_sandbox: Sandbox) -> None:
        platform_sandbox.control.rotate_chat_key()
        task = sense(PlatformChatThreadSensor, chat_id="c", soft_fail=True)
        assert task.state == "failed"
        assert task.error.startswith("AirflowFailException")
        assert "refused the chat credential" in task.error

    @in_both_modes("sense")
    def test_failure_of_a_later_poll_fails_the_task(
        self, sense: Any, platform_sandbox: Sandbox
    ) -> None:
        fault = {"api": "management", "path": "/reports/101$"}
        platform_sandbox.control.fault("status", count=1, status=500, **fault)
        platform_sandbox.control.fault("status", count=None, status=403, **fault)
        task = sense(PlatformReportSensor, report_id=101, soft_fail=True)
        assert (task.state, "403" in task.error) == ("failed", True)

    @in_both_modes("sense")
    @pytest.mark.parametrize("soft_fail", [False, True])
    def test_wait_without_any_answer_fails_the_task(
        self, sense: Any, platform_sandbox: Sandbox, soft_fail: bool
    ) -> None:
        fault = {"api": "management", "path": "/reports/", "status": 503}
        platform_sandbox.control.fault("status", count=None, **fault)
        task = sense(PlatformReportSensor, report_id=101, timeout=0.2, soft_fail=soft_fail)
        assert task.state == "failed"
        assert task.error.startswith("PlatformDeadlineError")
        assert "503" in task.error

    @in_both_modes("sense")
    def test_wait_with_one_answer_is_skipped(self, sense: Any, platform_sandbox: Sandbox) -> None:
        task = sense(PlatformReportSensor, report_id=999, timeout=0.2, soft_fail=True)
        assert task.state == "skipped"

    @pytest.mark.parametrize(
        ("sense", "report_id"),
        [(True, 101), (False, 999)],
        ids=["success, deferred", "time-out, on the worker"],
        indirect=["sense"],
    )
    def test_link_of_a_finished_sensor_is_kept(
        self,
        sense: Any,
        platform_sandbox: Sandbox,
        monkeypatch: pytest.MonkeyPatch,
        report_id: int,
    ) -> None:
        links = {"report": "https://acme.example.com/reports/{report_id}"}
        connection = platform_sandbox.connection_json(web_links=links)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        task = sense(
            PlatformReportSensor, report_id=report_id, updated_after="2000-01-01", timeout=0.2
        )
        address = f"https://acme.example.com/reports/{report_id}"
        assert task.xcoms["platform_report_link"] == address
        assert "" not in task.xcoms.values()
