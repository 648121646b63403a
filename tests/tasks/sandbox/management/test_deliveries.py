"""Report deliveries: starts, refusals, and who sees which runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

DELIVERIES = "deployments/1/report-deliveries"


def get(platform: Platform, path: str, **parameters: Any) -> Any:
    response = platform.call("GET", path, **({"params": parameters} if parameters else {}))
    assert response.status_code == 200, response.text
    return response.json()


def test_a_run_that_hangs_is_failed_after_an_hour(platform: Platform) -> None:
    platform.control.set(delivery_outcome="hangs")
    run_id = platform.call("POST", f"{DELIVERIES}/501/runs").json()["runId"]
    platform.control.advance(3590)
    assert get(platform, f"{DELIVERIES}/501/runs/{run_id}")["status"] == "running"
    platform.control.advance(20)
    run = get(platform, f"{DELIVERIES}/501/runs/{run_id}")
    assert (run["status"], run["error"]) == ("failed", "The delivery did not end within an hour")
