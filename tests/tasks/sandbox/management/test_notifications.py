"""Notifications: schedules, filters of the list, recipients, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

PATH = "deployments/1/notifications"
DAILY = {"scheduleType": "DAILY", "hour": 6, "minute": 30, "timezone": "Europe/Berlin"}
ANALYST = {"type": "USER", "email": "analyst@acme.example.com"}
BERLIN = {"type": "EMBED_USER", "embedTenantName": "acme-retail", "externalId": "shop-berlin"}


def create(platform: Platform, dashboard: int = 501, **fields: Any) -> dict[str, Any]:
    body = {"dashboardId": dashboard, **DAILY, **fields}
    response = platform.call("POST", PATH, json=body)
    assert response.status_code == 200, response.text
    return dict(response.json())


def add(platform: Platform, notification: int, *recipients: dict[str, Any]) -> dict[str, Any]:
    path = f"{PATH}/{notification}/recipients"
    response = platform.call("POST", path, json={"recipients": list(recipients)})
    assert response.status_code == 200, response.text
    return dict(response.json())


def listed(platform: Platform, query: str = "") -> list[int]:
    response = platform.call("GET", f"{PATH}?{query}")
    assert response.status_code == 200, response.text
    return [item["id"] for item in response.json()["items"]]


def test_creating_twice_makes_two_schedules(platform: Platform) -> None:
    first, second = create(platform), create(platform)
    assert first["id"] != second["id"]
    assert {**first, "id": 0} == {**second, "id": 0}
    created = platform.control.state().changed("notifications")
    assert [entry.id for entry in created] == [first["id"], second["id"]]
    assert created[0].at <= created[1].at
    assert created[0].deployment_id == 1
    assert "timezone" in created[0].fields


def test_a_lost_answer_leaves_the_schedule_behind(platform: Platform) -> None:
    platform.control.fault("lost_response", method="POST", path="notifications$")
    with pytest.raises(Exception, match="disconnected"):
        create(platform)
    assert len(listed(platform)) == 1


def test_recipients_are_added_and_removed_idempotently(platform: Platform) -> None:
    path = f"{PATH}/{create(platform)['id']}/recipients"
    notification = int(path.split("/")[3])
    outcome = add(platform, notification, ANALYST, BERLIN)
    assert [one["type"] for one in outcome["createdRecipients"]] == ["USER", "EMBED_USER"]
    assert outcome["createdRecipients"][0]["userId"] == 7
    again = add(platform, notification, {"type": "USER", "userId": 7}, {**BERLIN, "groups": ["a"]})
    assert [one["userId"] for one in again["unchangedRecipients"]] == [7]
    assert [one["externalId"] for one in again["updatedRecipients"]] == ["shop-berlin"]
    assert again["createdRecipients"] == []
    embed_user = outcome["createdRecipients"][1]["embedUserId"]
    gone = {"type": "EMBED_USER", "id": embed_user, "embedTenantName": "acme-retail"}
    for _ in range(2):
        body = {"recipients": [gone, {"type": "SLACK", "id": "C1"}]}
        assert platform.call("DELETE", path, json=body).status_code == 204
    page = platform.call("GET", f"{path}?first=5").json()
    assert [one["type"] for one in page["items"]] == ["USER"]
