"""Users that chat requests create: ephemeral users end, and their threads with them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.sandbox.raw_client import USER, Platform, answer, chat_id, records

WEEK = 7 * 86400


@pytest.mark.parametrize(("settings", "lifetime"), [({}, WEEK), ({"ephemeralTtlSeconds": 60}, 60)])
def test_threads_end_with_their_ephemeral_user(
    platform: Platform, settings: dict[str, Any], lifetime: int
) -> None:
    user = {**USER, **settings}
    thread = chat_id(platform.ask("orders per month", sessionSettings=user))
    platform.control.advance(lifetime - 10)
    assert answer(platform.ask("orders per month", chatId=thread, sessionSettings=user))

    platform.control.advance(20)
    assert platform.chat("abort", chatId=thread).status_code == 404
    assert platform.chat(chatId=thread, sessionSettings=user).status_code == 404
    gone = platform.chat(input="orders per month", chatId=thread, sessionSettings=user)
    assert gone.status_code == 404
    assert answer(platform.ask("orders per month", sessionSettings=user))
    assert platform.chat(chatId=thread, sessionSettings=user).status_code == 404


@pytest.mark.parametrize(
    "settings", [{**USER, "isEphemeral": False}, {"internalId": "analyst@acme.example.com"}]
)
def test_threads_of_permanent_users_are_kept(platform: Platform, settings: dict[str, Any]) -> None:
    thread = chat_id(platform.ask("orders per month", sessionSettings=settings))
    platform.control.advance(10 * WEEK)
    assert answer(platform.ask("orders per month", chatId=thread, sessionSettings=settings))


def test_a_user_can_be_persisted_later(platform: Platform) -> None:
    thread = chat_id(platform.ask("orders per month"))
    lasting = {**USER, "isEphemeral": False}
    assert answer(platform.ask("orders per month", chatId=thread, sessionSettings=lasting))
    platform.control.advance(10 * WEEK)
    assert answer(platform.ask("orders per month", chatId=thread))


def test_user_of_a_service_token_is_always_ephemeral(
    platform: Platform,
) -> None:
    platform.control.set(service_tokens=True)
    url = f"{platform.sandbox.chat_url}/stream-chat-state"
    body = {"input": "orders per month", "sessionSettings": {"isEphemeral": False}}
    token = {"X-Service-Auth-Token": platform.sandbox.service_token(exp=None)}
    stream = records(platform.http.post(url, json=body, headers=token).content)
    platform.control.advance(WEEK + 1)
    gone = platform.http.post(url, json={"chatId": chat_id(stream)}, headers=token)
    assert gone.status_code == 404


def test_an_internal_user_is_matched_lowercased_and_trimmed(platform: Platform) -> None:
    loose = {"internalId": " Analyst@acme.example.com "}
    thread = chat_id(platform.ask("orders per month", sessionSettings=loose))
    exact = {"internalId": "analyst@acme.example.com"}
    assert answer(platform.ask("orders per month", chatId=thread, sessionSettings=exact))
