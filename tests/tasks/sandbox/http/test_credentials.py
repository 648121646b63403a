"""Which chat keys, service tokens and management tokens are accepted, and their rotation."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from tests.support.raw_client import USER, Platform, answer, chat_id, records

if TYPE_CHECKING:
    import httpx


def ask(platform: Platform, headers: dict[str, str], **body: Any) -> httpx.Response:
    url = f"{platform.sandbox.chat_url}/stream-chat-state"
    return platform.http.post(url, json={"input": "orders per month", **body}, headers=headers)


@pytest.fixture
def with_service_tokens(platform: Platform) -> Platform:
    """A deployment that has switched service tokens on."""
    platform.control.set(service_tokens=True)
    return platform


def refused(response: httpx.Response) -> bool:
    """Whether it is a JSON-RPC error under HTTP 200."""
    document = response.json() if response.content.count(b"\n") < 2 else {}
    return response.status_code == 200 and document.get("jsonrpc") == "2.0" and "error" in document


@pytest.mark.parametrize("header", ["X-Service-Auth-Token", "X-Cube-Auth-Token"])
def test_service_token_identifies_its_user(with_service_tokens: Platform, header: str) -> None:
    platform = with_service_tokens
    token = platform.sandbox.service_token(externalId="Robot-7")
    response = ask(platform, {header: token}, sessionSettings={"whatever": True})
    assert answer(records(response.content))
    assert platform.control.state().runs[0].identity == "external:robot-7"
    same = platform.control.service_token(externalId=None, sub="ROBOT-7")
    thread = chat_id(records(response.content))
    assert answer(records(ask(platform, {header: same}, chatId=thread).content))


@pytest.mark.parametrize(
    "claims",
    [
        {"scope": None},
        {"scope": ["meta"]},
        {"scope": "chat"},
        {"externalId": None},
        {"exp": int(time.time()) - 5},
    ],
)
def test_invalid_service_tokens_are_refused(
    with_service_tokens: Platform, claims: dict[str, Any]
) -> None:
    platform = with_service_tokens
    token = platform.sandbox.service_token(**claims)
    assert refused(ask(platform, {"X-Service-Auth-Token": token}))
    assert platform.control.state().runs == []


def test_tampered_service_token_is_refused(with_service_tokens: Platform) -> None:
    platform = with_service_tokens
    head, payload, signature = platform.sandbox.service_token().split(".")
    flipped = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert refused(ask(platform, {"X-Service-Auth-Token": f"{head}.{payload}.{flipped}"}))
    assert refused(ask(platform, {"X-Service-Auth-Token": "nonsense"}))
    unsigned = jwt.encode({"scope": ["chat"], "externalId": "a"}, None, algorithm="none")
    assert "HS256" in ask(platform, {"X-Service-Auth-Token": unsigned}).text


def test_service_tokens_are_off_until_the_deployment_switches_them_on(platform: Platform) -> None:
    assert refused(ask(platform, {"X-Service-Auth-Token": platform.sandbox.service_token()}))


def test_authorization_header_takes_precedence_over_a_service_token(platform: Platform) -> None:
    both = {"X-Service-Auth-Token": platform.sandbox.service_token()}
    assert refused(ask(platform, {**both, "Authorization": "Api-Key wrong"}))
    good = ask(platform, {**both, **platform.key}, sessionSettings={"externalId": "by-key"})
    assert answer(records(good.content))
    assert platform.control.state().runs[0].identity == "external:by-key"


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Api-Key wrong"}, {"Authorization": "x"}]
)
def test_invalid_chat_keys_are_refused(platform: Platform, headers: dict[str, str]) -> None:
    assert refused(ask(platform, headers, sessionSettings=USER))


def test_chat_key_is_not_accepted_as_a_bearer_token(platform: Platform) -> None:
    bearer = {"Authorization": f"Bearer {platform.sandbox.chat_api_key}"}
    assert refused(ask(platform, bearer, sessionSettings=USER))


@pytest.mark.parametrize("scheme", ["Api-Key", "Basic", ""])
def test_management_api_accepts_only_a_bearer_token(platform: Platform, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {platform.sandbox.management_token}".strip()}
    url = f"{platform.sandbox.management_url}/v1/deployments"
    assert platform.http.get(url, headers=headers).status_code == 401
    assert platform.http.get(url).status_code == 401


def test_rotated_credentials_replace_the_old_ones(platform: Platform) -> None:
    token = platform.control.rotate_management_token()
    assert platform.call("GET", "deployments").status_code == 401
    platform.bearer = {"Authorization": f"Bearer {token}"}
    assert platform.call("GET", "deployments").status_code == 200

    key = platform.control.rotate_chat_key()
    assert refused(ask(platform, platform.key, sessionSettings=USER))
    platform.key = {"Authorization": f"Api-Key {key}"}
    assert answer(platform.ask("orders per month"))
    assert platform.control.connection()["password"] == token
    assert platform.control.connection(deployment_id=2)["extra"]["chat_api_key"] == key

    platform.control.reset()
    assert platform.control.info()["management_token"] == platform.sandbox.management_token


def test_no_secret_is_kept_in_the_state(platform: Platform) -> None:
    platform.ask("orders per month")
    platform.call("GET", "deployments")
    kept = repr(platform.control.state())
    assert "authorization" in kept
    assert platform.sandbox.chat_api_key not in kept
    assert platform.sandbox.management_token not in kept
