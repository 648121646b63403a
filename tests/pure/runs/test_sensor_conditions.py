"""The conditions of sensors, checked on resources as the service describes them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from airflow_provider_platform.client.errors import ChatRpcError, ChatStreamError
from airflow_provider_platform.resources.chat.thread import read_streaming
from airflow_provider_platform.resources.notifications import Notification
from airflow_provider_platform.resources.reports import Report
from airflow_provider_platform.resources.sensor_conditions import (
    UserOAuthToken,
    expires_by,
    has_status,
    is_fresh,
    is_refreshed,
    is_switched,
)

NOON = datetime(2026, 7, 20, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)


@pytest.mark.parametrize(
    ("updated_at", "updated_after", "fresh"),
    [
        (None, None, True),
        (None, NOON, False),
        ("2026-07-20T12:00:00Z", NOON, False),
        ("2026-07-20T12:00:00Z", NOON - SECOND, True),
        ("2026-07-20T14:00:01+02:00", NOON, True),
        ("2026-07-20", NOON, False),
        ("2026-07-21", NOON, True),
    ],
)
def test_a_report_is_fresh_once_it_was_updated_later(
    updated_at: str | None, updated_after: datetime | None, fresh: bool
) -> None:
    report = Report.model_validate({"id": 1, "updatedAt": updated_at})
    assert is_fresh(report, updated_after) is fresh


@pytest.mark.parametrize(
    ("refreshed_at", "refreshed_after", "refreshed"),
    [
        ([], NOON, False),
        ([], None, True),
        ([None], NOON, False),
        (["2026-07-20T12:00:00Z"], NOON, False),
        ([None, "2026-07-20T12:00:01Z"], NOON, True),
    ],
)
def test_a_report_is_refreshed_if_one_of_its_placements_was(
    refreshed_at: list[str | None], refreshed_after: datetime | None, refreshed: bool
) -> None:
    placements = [{"workbookId": "w", "refreshedAt": one} for one in refreshed_at]
    report = Report.model_validate({"id": 1, "externalWorkbookPlacements": placements})
    assert is_refreshed(report, refreshed_after) is refreshed


@pytest.mark.parametrize(
    ("access", "refresh", "expires"),
    [
        (None, None, False),
        ("2026-07-20T12:00:00Z", None, True),
        ("2026-07-20T12:00:01Z", None, False),
        ("2026-07-20T11:00:00Z", "2026-08-20", False),
        ("2026-07-21", "2026-07-20T11:59:59Z", True),
    ],
)
def test_refresh_token_says_when_a_token_expires(
    access: str | None, refresh: str | None, expires: bool
) -> None:
    names = {"accessTokenExpiresAt": access, "refreshTokenExpiresAt": refresh}
    token = UserOAuthToken.model_validate({"userId": 1, "integrationId": 1, "status": "x", **names})
    assert expires_by(token, NOON.timestamp()) is expires
    assert expires_by(token, None)


@pytest.mark.parametrize(
    ("status", "wanted", "found"),
    [
        ("active", ["active"], True),
        ("Active ", ["refreshed", "ACTIVE"], True),
        ("inactive", ["active"], False),
        ("active", [], False),
    ],
)
def test_the_status_of_a_token_is_free_text(status: str, wanted: list[str], found: bool) -> None:
    token = UserOAuthToken.model_validate(
        {
            "id": 1,
            "userId": 7,
            "integrationId": 3,
            "status": status,
            "createdAt": "2026-07-20",
            "updatedAt": "2026-07-20",
        }
    )
    assert has_status(token, wanted) is found


def test_a_notification_is_switched_as_wanted() -> None:
    off = Notification.model_validate({"id": 1, "isEnabled": False})
    assert is_switched(off, None)
    assert is_switched(off, False)
    assert not is_switched(off, True)
    assert not is_switched(Notification.model_validate({"id": 1}), True)


@pytest.mark.parametrize(
    ("record", "streaming"),
    [
        ({"id": "__cutoff__", "state": {"isStreaming": True}}, True),
        ({"id": "__cutoff__", "state": {"isStreaming": False}}, False),
        ({"id": "__cutoff__", "state": {}}, None),
        ({"id": "__state__", "state": {"isStreaming": True}}, True),
        ({"id": "__state__"}, False),
        ({"id": "__aborted__", "role": "assistant"}, None),
        ({"id": "1", "role": "user", "content": "q"}, None),
        ({"error": "Streaming for thread is in progress"}, True),
        (["unknown"], None),
    ],
)
def test_record_says_whether_the_thread_is_streaming(record: Any, streaming: bool | None) -> None:
    assert read_streaming("t", record) is streaming


def test_each_kind_of_thread_error_has_its_own_class() -> None:
    with pytest.raises(ChatStreamError, match="broken"):
        read_streaming("t", {"error": "broken"})
    with pytest.raises(ChatRpcError, match="denied"):
        read_streaming("t", {"jsonrpc": "2.0", "error": {"code": -32000, "message": "denied"}})
