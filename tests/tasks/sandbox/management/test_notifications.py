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


@pytest.mark.parametrize(
    ("schedule", "cron"),
    [
        ({"scheduleType": "HOURLY", "minute": 5}, "5 * * * *"),
        ({"scheduleType": "DAILY", "hour": 6, "minute": 30}, "30 6 * * *"),
        ({"scheduleType": "WEEKLY", "hour": 6, "minute": 0, "dayOfWeek": 0}, "0 6 * * 0"),
        ({"scheduleType": "MONTHLY", "hour": 6, "minute": 0, "dayOfMonth": 31}, "0 6 31 * *"),
        ({"scheduleType": "CUSTOM", "customCron": "*/15 8-18 * * mon-fri"}, None),
        ({"scheduleType": "CUSTOM", "customCron": "0 9 * NOV-FEB FRI-MON"}, None),
        ({"scheduleType": "DAILY"}, "0 9 * * *"),
    ],
)
def test_schedule_becomes_a_cron_expression(
    platform: Platform, schedule: dict[str, Any], cron: str | None
) -> None:
    body = {"dashboardPublicId": "dash00000501", **schedule}
    made = platform.call("POST", PATH, json=body).json()
    assert made["cronExpression"] == (cron or schedule["customCron"])
    assert made["dashboardId"] == 501
    assert made["timezone"] == "UTC"
    assert made["isEnabled"] is made["notificationEnabled"] is True


def test_update_changes_only_the_given_fields(platform: Platform) -> None:
    filters = [{"member": "orders.status", "operator": "equals", "value": "delivered"}]
    notification = create(platform, filters=filters)
    add(platform, notification["id"], ANALYST)
    path = f"{PATH}/{notification['id']}"
    changed = platform.call("PUT", path, json={"hour": 7, "isEnabled": False}).json()
    assert (changed["cronExpression"], changed["timezone"]) == ("30 7 * * *", "Europe/Berlin")
    assert changed["isEnabled"] is False
    assert changed["filters"] == filters
    assert platform.call("PUT", path, json={"filters": []}).json()["filters"] == []
    assert platform.call("GET", path).json()["cronExpression"] == "30 7 * * *"
    assert len(platform.call("GET", f"{path}/recipients").json()["items"]) == 1


def test_deleted_notification_is_gone(platform: Platform) -> None:
    path = f"{PATH}/{create(platform)['id']}"
    assert platform.call("DELETE", path).status_code == 204
    assert platform.call("DELETE", path).status_code == 404
    assert platform.call("GET", f"{path}/recipients").status_code == 404
    assert len(platform.control.state().changed("notifications", "deleted")) == 1


def test_the_list_is_filtered_newest_first_and_paged(platform: Platform) -> None:
    first, second, third = (create(platform, d)["id"] for d in (501, 502, 501))
    add(platform, first, ANALYST)
    add(platform, second, BERLIN)
    assert listed(platform) == [third, second, first]
    assert listed(platform, "dashboardId=501") == [third, first]
    assert listed(platform, "dashboardPublicId=dash00000502") == [second]
    assert listed(platform, "recipientEmail=Analyst@acme.example.com") == [first]
    assert listed(platform, "recipientUserId=7") == [first]
    assert listed(platform, "recipientUserId=8") == []
    embed = "recipientEmbedTenantName=acme-retail&recipientExternalId="
    assert listed(platform, f"{embed}shop-berlin") == [second]
    assert listed(platform, f"{embed}shop-paris&dashboardId=502") == []
    page = platform.call("GET", f"{PATH}?first=2").json()
    assert page["pageInfo"]["hasNextPage"] is True
    assert listed(platform, f"first=2&after={page['pageInfo']['endCursor']}") == [first]
    assert platform.call("GET", "deployments/2/notifications").json()["items"] == []


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


@pytest.mark.parametrize(
    ("recipient", "words"),
    [
        ({"type": "SLACK", "channelId": "C1"}, "Slack channel"),
        ({"type": "USER"}, "exactly one of userId and email"),
        ({"type": "USER", "userId": 99}, "no user of this account"),
        ({"type": "EMBED_USER", "externalId": "shop-berlin"}, "needs embedTenantName"),
        ({**BERLIN, "externalId": "shop-rome"}, "no user of the embed tenant"),
        ({**BERLIN, "externalId": "shop-paris"}, "has no e-mail address"),
        ({"type": "EMAIL", "email": "a@b.example.com"}, "must be one of"),
        ({"email": "a@b.example.com"}, "type is required"),
    ],
)
def test_one_invalid_recipient_refuses_the_whole_batch(
    platform: Platform, recipient: dict[str, Any], words: str
) -> None:
    path = f"{PATH}/{create(platform)['id']}/recipients"
    response = platform.call("POST", path, json={"recipients": [ANALYST, recipient]})
    assert response.status_code == 400
    assert words in str(response.json()["message"])
    assert platform.call("GET", path).json()["items"] == []


@pytest.mark.parametrize("number", [0, 1001])
def test_batch_of_recipients_is_limited(platform: Platform, number: int) -> None:
    path = f"{PATH}/{create(platform)['id']}/recipients"
    for verb, one in (("POST", ANALYST), ("DELETE", {"type": "USER", "id": 7})):
        body = {"recipients": [one] * number}
        assert platform.call(verb, path, json=body).status_code == 400


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({}, "scheduleType is required"),
        (DAILY, "exactly one of dashboardId and dashboardPublicId"),
        ({**DAILY, "dashboardId": 501, "dashboardPublicId": "dash00000501"}, "exactly one of"),
        ({**DAILY, "dashboardId": "501"}, "dashboardId must be an integer"),
        ({**DAILY, "dashboardId": 501, "hour": 24}, "hour must not be greater than 23"),
        ({**DAILY, "dashboardId": 501, "dayOfWeek": 7}, "dayOfWeek must not be greater than 6"),
        ({**DAILY, "dashboardId": 501, "timezone": "Berlin"}, "IANA"),
        ({**DAILY, "dashboardId": 501, "notificationFormat": "svg"}, "notificationFormat"),
        ({**DAILY, "dashboardId": 501, "recipients": []}, "recipients should not exist"),
        ({"scheduleType": "CUSTOM", "dashboardId": 501}, "customCron is required"),
        ({"scheduleType": "CUSTOM", "dashboardId": 501, "customCron": "* * *"}, "five fields"),
        ({"scheduleType": "CUSTOM", "dashboardId": 501, "customCron": "0 25 * * *"}, "five"),
        ({**DAILY, "dashboardId": 501, "filters": [{"member": "status"}]}, "must match"),
        (
            {**DAILY, "dashboardId": 501, "filters": [{"member": "a.b", "operator": "eq"}]},
            "filters[0].operator must be one of",
        ),
        ({**DAILY, "dashboardId": 501, "timeGrains": [{"member": "a.b"}]}, "grain is required"),
    ],
)
def test_invalid_notification_bodies_are_refused(
    platform: Platform, body: dict[str, Any], words: str
) -> None:
    response = platform.call("POST", PATH, json=body)
    assert response.status_code == 400
    assert words in str(response.json()["message"])
    assert listed(platform) == []


def test_notification_needs_an_administrator_and_an_existing_dashboard(platform: Platform) -> None:
    for dashboard in ({"dashboardId": 601}, {"dashboardPublicId": "dash00000601"}):
        assert platform.call("POST", PATH, json={**DAILY, **dashboard}).status_code == 404
    platform.control.set(token_lacks=["Admin"])
    for verb, path in (("GET", PATH), ("POST", PATH), ("GET", f"{PATH}/1/recipients")):
        response = platform.call(verb, path)
        assert response.status_code == 403
        assert "Admin" in response.json()["message"]
