"""`PlatformHook.test_connection`, which Airflow's Test button calls."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox


def pressed(platform: Sandbox, monkeypatch: pytest.MonkeyPatch, **changes: Any) -> tuple[bool, str]:
    document = platform.connection_json(**changes)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", document)
    return PlatformHook().test_connection()


@pytest.mark.parametrize(
    ("changes", "sides"),
    [
        ({"host": None, "password": None}, ["Chat API"]),
        ({"chat_url": None, "chat_api_key": None}, ["Management API"]),
    ],
)
def test_only_configured_apis_are_checked(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    sides: list[str],
) -> None:
    ok, message = pressed(platform_sandbox, monkeypatch, **changes)
    assert ok, message
    assert [line.partition(" at ")[0] for line in message.splitlines()] == sides


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"password": None}, "password"),
        ({"chat_service_token": "a.b.c"}, "chat_service_token"),
        ({"session_settings": {"externalId": "Two Words"}}, "session_settings"),
    ],
)
def test_a_bad_setting_is_named_and_nothing_is_sent(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    field: str,
) -> None:
    ok, message = pressed(platform_sandbox, monkeypatch, **changes)
    assert not ok
    assert field in message.partition(":")[0]
    assert platform_sandbox.control.state().requests == []


def test_setting_that_does_not_exist_is_reported(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok, message = pressed(platform_sandbox, monkeypatch, chat_adress="canary")
    assert ok, message
    assert "'chat_adress' is not a setting" in message
    assert "canary" not in message


def test_untouched_session_settings_count_as_empty(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    ok, message = pressed(platform_sandbox, monkeypatch, session_settings={"externalId": ""})
    assert ok, message
    assert "Session settings (session_settings) is empty" in message


def test_message_has_no_connection_id_because_airflow_makes_one_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_MADEUP", '{"conn_type": "platform", "host": "acme"}')
    ok, said = PlatformHook("madeup").test_connection()
    assert not ok
    assert said.startswith("Management token (password) is missing")
    assert "madeup" not in said
