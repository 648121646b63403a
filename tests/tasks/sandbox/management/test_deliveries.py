"""Report deliveries: starts, refusals, and who sees which runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

DELIVERIES = "deployments/1/report-deliveries"


def get(platform: Platform, path: str, **parameters: Any) -> Any:
    response = platform.call("GET", path, **({"params": parameters} if parameters else {}))
    assert response.status_code == 200, response.text
    return response.json()


def test_delivery_is_running_until_it_has_succeeded(platform: Platform) -> None:
    platform.control.set(delivery_seconds=60)
    started = platform.call("POST", f"{DELIVERIES}/501/runs")
    assert started.status_code == 202
    run_id = started.json()["runId"]
    path = f"{DELIVERIES}/501/runs/{run_id}"
    assert get(platform, path)["status"] == "running"
    assert get(platform, f"{DELIVERIES}/501")["status"] == "running"
    assert platform.call("POST", f"{DELIVERIES}/501/runs").status_code == 409
    platform.control.advance(61)
    assert get(platform, path)["status"] == "succeeded"
    delivery = get(platform, f"{DELIVERIES}/501")
    assert delivery["lastSuccessAt"] > delivery["lastRunAt"]
    (row,) = get(platform, f"{DELIVERIES}/501/runs")["items"]
    assert row["id"] == run_id


def test_failed_run_does_not_change_the_last_success(platform: Platform) -> None:
    platform.call("POST", f"{DELIVERIES}/501/runs")
    before = get(platform, f"{DELIVERIES}/501")["lastSuccessAt"]
    platform.control.advance(10)
    platform.control.set(delivery_outcome="failed")
    run_id = platform.call("POST", f"{DELIVERIES}/501/runs").json()["runId"]
    run = get(platform, f"{DELIVERIES}/501/runs/{run_id}")
    assert (run["status"], run["error"]) == (
        "failed",
        "The delivery would overwrite filled cells (Revenue!A1:C40)",
    )
    assert get(platform, f"{DELIVERIES}/501")["lastSuccessAt"] == before


def test_the_runs_are_listed_newest_first(platform: Platform) -> None:
    ids = []
    for _ in range(3):
        ids.append(platform.call("POST", f"{DELIVERIES}/501/runs").json()["runId"])
        platform.control.advance(1)
    rows = get(platform, f"{DELIVERIES}/501/runs")["items"]
    assert [row["id"] for row in rows] == ids[::-1]


def test_a_paused_delivery_runs_and_is_resumed(platform: Platform) -> None:
    assert platform.call("POST", f"{DELIVERIES}/502/pause").json()["status"] == "paused"
    assert [one["id"] for one in get(platform, DELIVERIES, status="paused")["items"]] == [502]
    assert platform.call("POST", f"{DELIVERIES}/502/runs").status_code == 202
    assert platform.call("POST", f"{DELIVERIES}/502/pause").status_code == 200
    assert platform.call("POST", f"{DELIVERIES}/502/resume").json()["status"] == "active"


@pytest.mark.parametrize("permission", ["ReportRead", "ReportEdit"])
def test_reading_and_changing_deliveries_need_their_permissions(
    platform: Platform, permission: str
) -> None:
    platform.control.set(token_lacks=[permission])
    looked = platform.call("GET", DELIVERIES).status_code
    changed = platform.call("POST", f"{DELIVERIES}/501/runs").status_code
    assert (looked, changed) == ((403, 202) if permission == "ReportRead" else (200, 403))


def test_a_run_that_hangs_is_failed_after_an_hour(platform: Platform) -> None:
    platform.control.set(delivery_outcome="hangs")
    run_id = platform.call("POST", f"{DELIVERIES}/501/runs").json()["runId"]
    platform.control.advance(3590)
    assert get(platform, f"{DELIVERIES}/501/runs/{run_id}")["status"] == "running"
    platform.control.advance(20)
    run = get(platform, f"{DELIVERIES}/501/runs/{run_id}")
    assert (run["status"], run["error"]) == ("failed", "The delivery did not end within an hour")
