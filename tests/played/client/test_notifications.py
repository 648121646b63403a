"""Scheduled notifications and their recipients: what is sent, and what the answers become."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic.alias_generators import to_camel

from airflow_provider_platform.client.errors import PlatformApiError, PlatformInputError
from airflow_provider_platform.resources.notification_recipients import (
    NotificationRecipientInput,
    add_recipients,
    remove_recipients,
)
from airflow_provider_platform.resources.notifications import (
    CreateNotificationInput,
    Notification,
    create_notification,
)
from tests.support.fakes.effects import API, Call

DAILY: dict[str, Any] = {"schedule_type": "DAILY", "hour": 9, "minute": 5, "dashboard_id": 3}


def test_creation_of_a_notification_has_the_described_body() -> None:
    body = CreateNotificationInput.build(
        schedule_type="WEEKLY",
        minute="30",
        hour="7",
        day_of_week=1,
        timezone="Europe/Berlin",
        dashboard_public_id="pub-1",
        notification_format="pdf",
        filters=[
            {"member": "orders.status", "operator": "equals", "value": ["paid"]},
            {"member": "orders.city", "operator": "is_null"},
        ],
        time_grains=[{"member": "orders.day", "grain": "week"}],
        member_switchers=[{"member": "orders.switch", "selected": "total"}],
    )

    operation = create_notification(deployment_id=7, body=body)

    assert (operation.method, operation.path) == ("POST", "/v1/deployments/7/notifications")
    assert operation.body == {
        "scheduleType": "WEEKLY",
        "minute": 30,
        "hour": 7,
        "dayOfWeek": 1,
        "timezone": "Europe/Berlin",
        "dashboardPublicId": "pub-1",
        "notificationFormat": "pdf",
        "filters": [
            {"member": "orders.status", "operator": "equals", "value": ["paid"]},
            {"member": "orders.city", "operator": "is_null"},
        ],
        "timeGrains": [{"member": "orders.day", "grain": "week"}],
        "memberSwitchers": [{"member": "orders.switch", "selected": "total"}],
    }
    assert not operation.repeatable
    assert operation.permission == "Admin"


@pytest.mark.parametrize(
    "change",
    [
        {"schedule_type": None},
        {"schedule_type": "YEARLY"},
        {"notification_format": "gif"},
        {"filters": [{"member": "status"}]},
        {"filters": {"member": "o.s"}},
        {"time_grains": [{"member": "o.s"}]},
        {"recipients": []},
        {"notification_enabled": "perhaps"},
        {"notification_enbled": True},
    ],
)
def test_creations_that_the_service_would_refuse_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        create_notification(
            deployment_id=7, body=CreateNotificationInput.build(**{**DAILY, **change})
        )


def existing(**fields: Any) -> Notification:
    given = {"cronExpression": "5 9 * * *", "timezone": "UTC", "notificationFormat": "png"}
    return Notification.model_validate({"id": 1, **given, **fields})


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        ({}, {}),
        ({}, {"cronExpression": "05 09 * * *"}),
        ({"timezone": "UTC"}, {"timezone": None}),
        ({"notification_format": "png"}, {}),
        ({"hour": None, "minute": None}, {"cronExpression": "0 8 * * *"}),
        (
            {"schedule_type": "CUSTOM", "hour": None, "minute": None, "custom_cron": "5 9 * * *"},
            {},
        ),
        (
            {
                "schedule_type": "CUSTOM",
                "hour": None,
                "minute": None,
                "custom_cron": "5 9 * * fri#2",
            },
            {"cronExpression": "5 9 * * 5#2"},
        ),
        (
            {"schedule_type": "WEEKLY", "day_of_week": 0},
            {"cronExpression": "5 9 * * SUN"},
        ),
    ],
)
def test_the_same_schedule_is_recognised(wanted: dict[str, Any], fields: dict[str, Any]) -> None:
    body = CreateNotificationInput.build(**{**DAILY, **wanted})
    assert body.describes(existing(**fields))
    assert body.is_sent_when(existing(**fields))


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        ({}, {"cronExpression": "6 9 * * *"}),
        ({}, {"cronExpression": "5 9 * * 1"}),
        ({}, {"cronExpression": "5 9 1 * *"}),
        ({}, {"cronExpression": None}),
        ({}, {"cronExpression": "@daily"}),
        ({"timezone": "Europe/Berlin"}, {}),
        ({}, {"timezone": "Europe/Berlin"}),
    ],
)
def test_schedule_with_other_times_is_the_same_notification(
    wanted: dict[str, Any], fields: dict[str, Any]
) -> None:
    body = CreateNotificationInput.build(**{**DAILY, **wanted})
    assert not body.is_sent_when(existing(**fields))
    assert body.describes(existing(**fields))


STATUS = {"member": "o.status", "operator": "equals", "value": ["paid", "new"]}
SPAN = {"member": "o.day", "operator": "between", "value": ["2026-01-01", "2026-02-01"]}


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("filters", None, []),
        ("filters", [], None),
        ("filters", [STATUS, SPAN], [SPAN, STATUS]),
        ("filters", [STATUS], [{**STATUS, "value": ["new", "paid"]}]),
        ("filters", [STATUS], [{**STATUS, "caseSensitive": False, "label": "Status"}]),
        ("filters", [SPAN], [{**SPAN, "startInclusive": True, "endInclusive": None}]),
        ("filters", [{**STATUS, "value": "EU"}], [{**STATUS, "value": ["EU"]}]),
        ("filters", [{**STATUS, "value": [5, True]}], [{**STATUS, "value": ["true", "5"]}]),
        (
            "filters",
            [{"member": "o.s", "value": "EU"}],
            [{**STATUS, "member": "o.s", "value": "EU"}],
        ),
        (
            "filters",
            [{"member": "o.s", "operator": "is_null"}],
            [{"member": "o.s", "operator": "is_null", "value": []}],
        ),
        (
            "time_grains",
            [{"member": "o.a", "grain": "day"}, {"member": "o.b", "grain": "week"}],
            [{"member": "o.b", "grain": "week"}, {"member": "o.a", "grain": "day"}],
        ),
        (
            "member_switchers",
            [{"member": "o.m", "selected": "count"}],
            [{"member": "o.m", "selected": "count"}],
        ),
    ],
)
def test_settings_of_the_same_meaning_are_the_same_schedule(
    name: str, ours: Any, theirs: Any
) -> None:
    wanted = CreateNotificationInput.build(**DAILY, **{name: ours})

    assert wanted.describes(existing(**{to_camel(name): theirs}))


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("filters", None, [STATUS]),
        ("filters", [STATUS], None),
        ("filters", [STATUS], []),
        ("filters", [STATUS], [STATUS, SPAN]),
        ("filters", [STATUS], [{**STATUS, "value": ["paid"]}]),
        ("filters", [STATUS], [{**STATUS, "operator": "not_equals"}]),
        ("filters", [STATUS], [{**STATUS, "member": "customers.status"}]),
        ("filters", [STATUS], [{**STATUS, "caseSensitive": True}]),
        ("filters", [SPAN], [{**SPAN, "value": ["2026-02-01", "2026-01-01"]}]),
        ("filters", [SPAN], [{**SPAN, "endInclusive": False}]),
        ("time_grains", [{"member": "o.a", "grain": "day"}], [{"member": "o.a", "grain": "week"}]),
        ("time_grains", None, [{"member": "o.a", "grain": "week"}]),
        (
            "member_switchers",
            [{"member": "o.m", "selected": "a"}],
            [{"member": "o.m", "selected": "b"}],
        ),
    ],
)
def test_settings_of_another_meaning_are_another_schedule(
    name: str, ours: Any, theirs: Any
) -> None:
    wanted = CreateNotificationInput.build(**DAILY, **{name: ours})

    assert wanted.describes(existing(**{to_camel(name): theirs})) is False


@pytest.mark.parametrize("reported", [{}, {"filters": "paid, new"}, {"filters": ["paid"]}], ids=str)
def test_settings_that_cannot_be_compared_neither_match_nor_differ(
    reported: dict[str, Any],
) -> None:
    wanted = CreateNotificationInput.build(**DAILY, filters=[STATUS])

    assert wanted.describes(existing(**reported)) is None


@pytest.mark.parametrize(
    ("given", "body"),
    [
        ({"type": "USER", "email": "a@example.com"}, {"type": "USER", "email": "a@example.com"}),
        ({"type": "USER", "user_id": "5"}, {"type": "USER", "userId": 5}),
        (
            {
                "type": "EMBED_USER",
                "embedTenantName": "acme",
                "externalId": "u1",
                "userAttributes": [{"name": "vip", "value": True}],
            },
            {
                "type": "EMBED_USER",
                "embedTenantName": "acme",
                "externalId": "u1",
                "userAttributes": [{"name": "vip", "value": True}],
            },
        ),
    ],
)
def test_recipient_body_has_the_described_fields(
    given: dict[str, Any], body: dict[str, Any]
) -> None:
    assert NotificationRecipientInput.build(**given).to_json() == body


@pytest.mark.parametrize(
    "given",
    [
        {"type": "USER"},
        {"type": "USER", "user_id": 1, "email": "a@example.com"},
        {"type": "EMBED_USER", "external_id": "u1"},
        {"type": "EMBED_USER", "embed_tenant_name": "acme"},
        {"type": "SLACK", "channel_id": "C1"},
        {"email": "a@example.com"},
    ],
)
def test_recipients_that_the_service_would_refuse_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError):
        NotificationRecipientInput.build(**given)


def people(count: int) -> list[dict[str, Any]]:
    return [{"type": "USER", "userId": number} for number in range(1, count + 1)]


def test_many_recipients_are_added_in_batches_and_the_answers_joined() -> None:
    program = add_recipients(API, 7, 4, people(2001))
    sizes = []
    effect = program.send(None)
    joined: Any = None
    while joined is None:
        try:
            assert isinstance(effect, Call)
            assert effect.operation.operation_id == "addRecipients"
            sizes.append(len(effect.operation.body["recipients"]))
            first = effect.operation.body["recipients"][0]
            answer = {"createdRecipients": [first], "updatedRecipients": None}
            effect = program.send(effect.operation.read(answer))
        except StopIteration as ended:
            joined = ended.value

    assert sizes == [1000, 1000, 1]
    assert joined.to_json() == {
        "createdRecipients": [
            {"type": "USER", "userId": 1},
            {"type": "USER", "userId": 1001},
            {"type": "USER", "userId": 2001},
        ],
        "updatedRecipients": [],
        "unchangedRecipients": [],
    }


def test_removing_stops_at_the_first_error() -> None:
    program = remove_recipients(API, 7, 4, [{"type": "USER", "id": n} for n in range(1500)])
    effect = program.send(None)
    assert isinstance(effect, Call)
    assert effect.operation.method == "DELETE"
    assert len(effect.operation.body["recipients"]) == 1000

    with pytest.raises(PlatformApiError):
        program.throw(PlatformApiError("refused", status=403))


@pytest.mark.parametrize(
    ("program", "good"),
    [
        (add_recipients, {"type": "USER", "userId": 1}),
        (remove_recipients, {"type": "USER", "id": 1}),
    ],
)
def test_invalid_recipient_is_refused_before_anything_is_sent(program: Any, good: Any) -> None:
    with pytest.raises(PlatformInputError) as raised:
        program(API, 7, 4, [*([good] * 1000), {"type": "USER"}]).send(None)
    assert str(raised.value.field).startswith("recipients.1000")

    with pytest.raises(PlatformInputError):
        program(API, 7, 4, []).send(None)
