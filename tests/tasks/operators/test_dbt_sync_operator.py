"""dbt syncs: how a later try continues a start that an earlier try made or lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformDeadlineError,
    PlatformInputError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.resources import dbt_sync as dbt_run
from airflow_provider_platform.sensors.dbt_sync import PlatformDbtSyncSensor
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.captured_log import Capture


def sync(**arguments: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(
        task_id="sync",
        **{"branch_name": "b1", "poll_interval": 0.05, "deferrable": False, **arguments},
    )


@pytest.mark.parametrize("phase", ["done", "running"])
@pytest.mark.parametrize("tenant", ["described", "newest"])
def test_sync_without_waiting_returns_the_started_sync(
    platform_sandbox: Sandbox, phase: str, tenant: str
) -> None:
    platform_sandbox.control.set(tenant=tenant, dbt_pace=60.0)
    waiting = {"wait_for_completion": "if_supported" if tenant == "described" else False}
    tries = TaskTries()
    first = sync(**waiting).execute(tries.context())
    tries.store[STORE_KEY]["phase"] = phase
    assert sync(**waiting).execute(tries.context()) == first
    assert len(platform_sandbox.control.state().syncs) == 1


def test_last_try_says_why_the_lost_start_was_not_found(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT", platform_sandbox.connection_json(max_attempts=1)
    )
    failing = {"method": "GET", "path": "/dbt-sync", "status": 500, "nth": 2, "count": 50}
    platform_sandbox.control.fault("status", **failing)
    platform_sandbox.control.fault("drop", method="POST", path="/dbt-sync$")
    tries = TaskTries(max_tries=1)
    with pytest.raises(PlatformTransportError, match=r"could not be read: .* 500"):
        sync().execute(tries.context())
    with pytest.raises(PlatformServerError):
        sync().execute(tries.context())
    assert tries.store[STORE_KEY]["phase"] == "intent"


@pytest.fixture
def one_attempt(platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses between repeats."""
    connection = platform_sandbox.connection_json(max_attempts=1)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)


HISTORY: dict[str, Any] = {"method": "GET", "path": "/dbt-sync$", "count": None}


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("answer", ["400", "500"])
@pytest.mark.parametrize("waits", [True, "if_supported", False])
def test_nothing_is_started_while_the_history_fails(
    platform_sandbox: Sandbox, answer: str, waits: Any
) -> None:
    platform_sandbox.control.fault("status", status=int(answer), **HISTORY)
    with pytest.raises(Exception, match=f"list dbt syncs.*{answer}"):
        sync(wait_for_completion=waits).execute(TaskTries().context())
    assert platform_sandbox.control.state().syncs == []


def test_ref_that_the_tenant_keeps_is_accepted(
    platform_sandbox: Sandbox,
) -> None:
    kept = sync(branch_name=None, ref="feature/returns").execute(TaskTries().context())
    assert kept["branch_name"].startswith("dbt-sync/feature-returns-")
    named = sync(branch_name="b1", ref="feature/returns").execute(TaskTries().context())
    assert named["branch_name"] == "b1"


MANIFEST: dict[str, Any] = {"source": "manifest", "manifest": {"nodes": {}}}


def test_sync_to_a_read_only_deploy_branch_is_not_retried(platform_sandbox: Sandbox) -> None:
    read_only = {"status": 400, "message": "the deploy branch main is read-only"}
    platform_sandbox.control.fault("status", method="POST", path="/dbt-sync$", **read_only)
    with pytest.raises(AirflowFailException, match="the deploy branch main is read-only"):
        sync(branch_name="main").execute(TaskTries().context())
    assert platform_sandbox.control.state().syncs == []


@pytest.mark.parametrize(
    "asked",
    [
        MANIFEST,
        {"output_mode": "files"},
        {"ref": "release"},
        {"ref": "release", "branch_name": "nightly"},
        {"ref": "release", "branch_name": "nightly", "wait_for_completion": False},
        {"if_running": "follow"},
        {"wait_for_completion": True},
    ],
    ids=["source", "output", "ref", "into a branch", "without a wait", "if_running", "wait"],
)
@pytest.mark.parametrize("answer", ["html", "403"])
def test_arguments_that_a_tenant_without_a_history_ignores_start_nothing(
    platform_sandbox: Sandbox, asked: dict[str, Any], answer: str
) -> None:
    if answer == "html":
        platform_sandbox.control.set(tenant="described")
    else:
        platform_sandbox.control.fault("status", status=int(answer), **HISTORY)
    first = next(iter(asked))
    with pytest.raises(AirflowFailException, match=f"Nothing was started: {first}=") as caught:
        sync(**asked).execute(TaskTries().context())
    assert "GET /v1/deployments/1/dbt-sync" in str(caught.value)
    assert platform_sandbox.control.state().syncs == []


@pytest.mark.usefixtures("one_attempt")
@pytest.mark.parametrize("asked", [{}, {"ref": "release"}], ids=str)
@pytest.mark.parametrize("wrong", ["address", "deployment"])
def test_wrong_address_or_deployment_is_not_reported_as_a_missing_history(
    platform_sandbox: Sandbox, asked: dict[str, Any], wrong: str
) -> None:
    if wrong == "address":
        platform_sandbox.control.fault("html", path="/v1/deployments/", count=None)
        words = "Check the address in the connection"
    else:
        asked, words = {**asked, "deployment_id": 9}, "Deployment 9 not found"
    with pytest.raises(AirflowFailException, match=words):
        sync(**asked).execute(TaskTries().context())
    assert platform_sandbox.control.state().syncs == []


@pytest.mark.parametrize("way", ["operator", "sensor"])
def test_sync_whose_outcome_the_service_has_lost_fails_after_a_few_looks(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(dbt_run, "HISTORY_INTERVAL", 0.1)
    monkeypatch.setattr(dbt_run, "UNKNOWN_PAUSE", 0.1)
    platform_sandbox.control.set(dbt_outcome="UNKNOWN")
    tries = TaskTries()
    if way == "operator":
        with pytest.raises(
            AirflowFailException, match="lost the outcome of the dbt sync"
        ) as caught:
            sync(branch_name="nightly", poll_interval=0.05).execute(tries.context())
        assert "Look at the sync's branch, nightly" in str(caught.value)
        assert tries.store[STORE_KEY]["phase"] == "lost"
        return
    started = sync(wait_for_completion=False).execute(tries.context())
    sensor = PlatformDbtSyncSensor(task_id="wait", sync_job_id=started["sync_job_id"])
    with pytest.raises(AirflowFailException, match="lost the outcome of the dbt sync"):
        sensor.execute(TaskTries().context())


class TestEqualSync:
    """What `if_running` does with a sync of the same branch and ref that is going on."""

    @pytest.fixture(autouse=True)
    def _slow_syncs(self, platform_sandbox: Sandbox) -> None:
        platform_sandbox.control.set(dbt_pace=300.0)

    @staticmethod
    def start_elsewhere(**arguments: Any) -> str:
        result = sync(wait_for_completion=False, **arguments).execute(TaskTries().context())
        sync_job_id: str = result["sync_job_id"]
        return sync_job_id

    @staticmethod
    def syncs(sandbox: Sandbox) -> int:
        return len(sandbox.control.state().syncs)

    @pytest.mark.parametrize("ref", [None, "feature"])
    def test_an_equal_sync_is_followed(self, platform_sandbox: Sandbox, ref: str | None) -> None:
        running = self.start_elsewhere(ref=ref)
        result = sync(if_running="follow", ref=ref, wait_for_completion=False).execute(
            TaskTries().context()
        )
        assert (result["sync_job_id"], result["workflow_id"]) == (running, None)
        assert result["branch_name"] == "b1"
        assert self.syncs(platform_sandbox) == 1

    def test_followed_sync_continues_after_the_tasks_deadline(
        self, platform_sandbox: Sandbox
    ) -> None:
        running = self.start_elsewhere()
        tries = TaskTries()
        for _ in range(2):
            with pytest.raises(PlatformDeadlineError):
                sync(if_running="follow", timeout=0.4).execute(tries.context())
        (entry,) = platform_sandbox.control.state().syncs
        assert (entry.sync_job_id, entry.cancelled_at) == (running, None)

    def test_own_sync_is_cancelled_after_the_tasks_deadline(
        self, platform_sandbox: Sandbox
    ) -> None:
        with pytest.raises(PlatformDeadlineError):
            sync(if_running="follow", timeout=0.4).execute(TaskTries().context())
        (entry,) = platform_sandbox.control.state().syncs
        assert entry.cancelled_at is not None

    @pytest.mark.parametrize(
        ("if_running", "error"),
        [("fail", AlreadyRunningError), ("skip", AirflowSkipException)],
    )
    def test_an_equal_sync_fails_or_skips_the_task(
        self, platform_sandbox: Sandbox, if_running: str, error: type[Exception]
    ) -> None:
        running = self.start_elsewhere()
        tries = TaskTries()
        with pytest.raises(error, match=running):
            sync(if_running=if_running).execute(tries.context())
        assert self.syncs(platform_sandbox) == 1
        assert STORE_KEY not in tries.store or tries.store[STORE_KEY]["phase"] == "failed"

    @pytest.mark.parametrize(
        "other", [{"branch_name": "b2"}, {"ref": "feature"}, {"branch_name": None}]
    )
    def test_a_sync_of_another_branch_or_ref_is_not_followed(
        self, platform_sandbox: Sandbox, other: dict[str, Any], capture: Capture
    ) -> None:
        running = self.start_elsewhere(**other)
        result = sync(if_running="follow", wait_for_completion=False).execute(TaskTries().context())
        assert result["sync_job_id"] != running
        assert self.syncs(platform_sandbox) == 2
        assert ("starts its own" in "\n".join(capture.lines())) == ("ref" in other)

    @pytest.mark.parametrize(
        "arguments",
        [
            {"branch_name": None},
            {"source": "manifest", "manifest": {"nodes": {}}},
            {"output_mode": "files"},
        ],
    )
    def test_settings_that_the_history_does_not_show_are_refused_at_parse_time(
        self, arguments: dict[str, Any]
    ) -> None:
        with pytest.raises(PlatformInputError) as caught:
            sync(if_running="follow", **arguments)
        assert caught.value.field == "if_running"
