"""dbt syncs: what is sent, and what the service's answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.resources import dbt_sync
from airflow_provider_platform.resources.dbt_sync import (
    DbtSyncRun,
    StartDbtSyncInput,
    cancel_dbt_sync,
    get_dbt_sync_result,
    get_dbt_sync_status,
    list_dbt_syncs,
    start_dbt_sync,
)


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({}, {}),
        ({"branch_name": "nightly"}, {"branchName": "nightly"}),
        ({"branch_name": "b", "ref": "main"}, {"branchName": "b", "ref": "main"}),
        (
            {"source": "manifest", "manifest": {"nodes": {}}, "output": "files"},
            {"source": "manifest", "manifest": {"nodes": {}}, "output": "files"},
        ),
    ],
)
def test_body_contains_only_the_given_fields(given: dict[str, Any], body: dict[str, Any]) -> None:
    operation = start_dbt_sync(deployment_id=7, body=StartDbtSyncInput.build(**given))

    assert (operation.method, operation.path) == ("POST", "/v1/deployments/7/dbt-sync")
    assert operation.body == body
    assert not operation.repeatable


@pytest.mark.parametrize(
    "given",
    [
        {"branch_name": ""},
        {"ref": ""},
        {"source": "zip"},
        {"output": "email"},
        {"source": "manifest"},
        {"manifest": {}},
        {"source": "git", "manifest": {}},
        {"source": "manifest", "manifest": {}, "ref": "main"},
        {"branch": "x"},
    ],
)
def test_bad_starts_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        StartDbtSyncInput.build(**given)


def test_a_manifest_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dbt_sync, "MAX_START_BYTES", 100)

    with pytest.raises(PlatformInputError, match="larger than the limit of 100 bytes"):
        StartDbtSyncInput.build(source="manifest", manifest={"nodes": "x" * 100})


def test_start_of_a_sync_has_the_described_answer() -> None:
    answer = {"branchName": "nightly", "syncJobId": "job-1", "workflowId": "flow-1"}

    started = start_dbt_sync(deployment_id=7).read(answer)

    assert (started.sync_job_id, started.workflow_id, started.branch_name) == (
        "job-1",
        "flow-1",
        "nightly",
    )
    assert started.to_json() == answer


def test_a_start_without_an_id_breaks_the_contract() -> None:
    with pytest.raises(PlatformProtocolError, match="syncJobId"):
        start_dbt_sync(deployment_id=7).read({"branchName": "x"})


@pytest.mark.parametrize(
    "odd",
    [
        {"status": None},
        {"status": 5},
        {"status": {}},
        {"progress": "half"},
        {"error": {"message": "x"}},
        {"updatedAt": 5},
    ],
    ids=str,
)
def test_status_with_unexpected_field_types_is_accepted(odd: dict[str, Any]) -> None:
    answer = get_dbt_sync_status(deployment_id=1, sync_job_id="s").read({"status": "A", **odd})
    assert not isinstance(answer.status, dict)


@pytest.mark.parametrize(
    "odd",
    [{"userId": "u-1"}, {"durationMs": 1.5}, {"phases": {}}, {"stats": {"models": "x"}}],
    ids=str,
)
def test_history_entry_with_unexpected_field_types_is_accepted(odd: dict[str, Any]) -> None:
    row = {"syncJobId": "s", "status": "RUNNING", **odd}
    (run,) = list_dbt_syncs(deployment_id=1).read({"items": [row]}).rows
    assert run.to_json() == row


def test_unknown_status_is_accepted() -> None:
    status = get_dbt_sync_status(deployment_id=7, sync_job_id="j").read(
        {
            "syncJobId": "j",
            "status": "POLISHING",
            "progress": {"stage": "POLISHING", "percentComplete": "40", "message": None},
            "updatedAt": "2026-09-01T10:00:00Z",
            "mood": "good",
        }
    )

    assert status.status == "POLISHING"
    assert status.progress is not None
    assert status.to_json()["mood"] == "good"


@pytest.mark.parametrize("answer", [None, {}])
def test_an_empty_result_is_not_ready(answer: Any) -> None:
    assert not get_dbt_sync_result(deployment_id=7, sync_job_id="j").read(answer).is_ready


def test_sync_result_is_ready_with_any_field() -> None:
    result = get_dbt_sync_result(deployment_id=7, sync_job_id="j").read({"cubeCount": 3})
    assert result.is_ready
    assert result.to_json() == {"cubeCount": 3}


def test_repeated_cancellation_needs_no_response_body() -> None:
    operation = cancel_dbt_sync(deployment_id=7, sync_job_id="dbt/1")

    assert operation.path == "/v1/deployments/7/dbt-sync/dbt%2F1"
    assert operation.read(None).to_json() == {}


def test_unknown_fields_of_a_history_entry_are_kept() -> None:
    run = DbtSyncRun.model_validate(
        {
            "syncJobId": "j",
            "status": "UNKNOWN",
            "trigger": "moonlight",
            "phases": [{"phase": "dbt-deps", "durationMs": 5, "outcome": "ok"}],
            "stats": {"dbtVersion": "1.9.0", "manifestGeneratedAt": "2026-09-01"},
            "triggerContext": {"headSha": "abc"},
            "errorMessage": None,
        }
    )

    assert run.status not in dbt_sync.TERMINAL_STATUSES
    assert run.to_json()["phases"][0]["outcome"] == "ok"
