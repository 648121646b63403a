"""dbt syncs: what is sent, and what the service's answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.dbt_sync import (
    DbtSyncRunKind,
    cancel_dbt_sync,
    get_dbt_sync_result,
    start_dbt_sync,
)


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({}, {}),
        ({"branch_name": "nightly"}, {"branchName": "nightly"}),
        ({"branch_name": "b", "ref": "main"}, {"branchName": "b", "ref": "main"}),
        (
            {"source": "manifest", "manifest": {"nodes": {}}, "output_mode": "files"},
            {"source": "manifest", "manifest": {"nodes": {}}, "output": "files"},
        ),
    ],
)
def test_body_contains_only_the_given_fields(given: dict[str, Any], body: dict[str, Any]) -> None:
    operation = start_dbt_sync(deployment_id=7, body=DbtSyncRunKind(**given).body)

    assert (operation.method, operation.path) == ("POST", "/v1/deployments/7/dbt-sync")
    assert operation.body == body
    assert not operation.repeatable


def test_start_without_an_id_says_what_the_service_sent() -> None:
    sent = {"syncJobId": "", "branchName": "x" * 9000}
    words = r'syncJobId is missing, the service sent {"syncJobId": "", "branchName": "xxx'
    with pytest.raises(PlatformProtocolError, match=words) as caught:
        start_dbt_sync(deployment_id=7).read(sent)
    assert len(str(caught.value)) < 2000


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
