"""What a hook sends or receives as a secret is masked in Airflow's logs from then on."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from airflow_provider_platform import _airflow
from airflow_provider_platform.client.errors import (
    ChatToolError,
    PlatformError,
    PlatformPermissionError,
)
from airflow_provider_platform.hooks import platform
from airflow_provider_platform.hooks.log_mask import MOST_MASKED, LogMask
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.deployments import create_deployment_token

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SECRET = f"{uuid4().hex}/of a client"  # known to no other test of this process


@pytest.fixture(autouse=True)
def new_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has masked nothing yet."""
    monkeypatch.setattr(platform, "LOG_MASK", LogMask())


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    return PlatformHook()


def masked(text: str) -> bool:
    """Whether a log of this process shows `***` instead."""
    try:
        from airflow.sdk.log import redact
    except ImportError:  # Airflow 3.0
        from airflow.sdk.execution_time.secrets_masker import redact
    return text not in str(redact(f"it says {text}!"))


def mint() -> Any:
    return create_deployment_token(deployment_id=1, body={"expiresIn": 60})


def integration() -> dict[str, Any]:
    """What an OAuth integration is created with."""
    urls = dict.fromkeys(("auth_url", "token_url", "redirect_uri"), "https://o.example.com")
    return {"name": "n", "type": "custom", "client_id": "c", "client_secret": SECRET, **urls}


def test_received_credential_is_masked(hook: PlatformHook) -> None:
    token = hook.run(mint()).cube_api_token.get_secret_value()
    assert masked(token)


def test_credential_received_on_an_event_loop_is_masked(hook: PlatformHook) -> None:
    async def mint_on_loop() -> Any:
        async with hook.async_client() as api:
            return await api.call("deploymentToken")

    assert masked(asyncio.run(mint_on_loop())["cubeApiToken"].get_secret_value())


def test_sent_credential_is_masked(hook: PlatformHook) -> None:
    assert not masked(SECRET)
    created = hook.call("createOAuthIntegration", body=integration())
    assert SECRET not in repr(created)
    assert masked(SECRET)


def test_data_token_is_masked(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.fault(
        "status", status=403, message="not with", quotes="authorization", api="data"
    )
    with pytest.raises(PlatformPermissionError, match=r"not with \*\*\*"):
        next(hook.run_sql("SELECT 1"))


def test_call_succeeds_although_the_log_cannot_be_masked(
    hook: PlatformHook,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert hook.config

    def fail(_: list[str]) -> None:
        raise OSError("no supervisor")

    monkeypatch.setattr(_airflow, "mask_secrets", fail)
    token = hook.run(mint()).cube_api_token.get_secret_value()
    assert len(token) > 20
    mask_calls = caplog.text + capfd.readouterr().out
    assert "could not be masked" in mask_calls
    assert token not in mask_calls


@pytest.fixture
def mask_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[list[str], bool]]:
    """What Airflow is asked to mask, and whether on an event loop."""
    calls: list[tuple[list[str], bool]] = []

    def mask(texts: list[str]) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            calls.append((texts, False))
        else:
            calls.append((texts, True))

    monkeypatch.setattr(_airflow, "mask_secrets", mask)
    return calls


def tokens(count: int) -> list[str]:
    return [f"{number:04}-{uuid4().hex}" for number in range(count)]


def test_only_the_first_hundred_credentials_are_added_to_the_mask(
    mask_calls: list[tuple[list[str], bool]], caplog: pytest.LogCaptureFixture
) -> None:
    mask, secrets = LogMask(), tokens(1000)
    for _ in range(2):
        mask.learn(secrets)
    mask.learn(tokens(5))
    assert [len(texts) for texts, _ in mask_calls] == [MOST_MASKED, 0, 0]
    assert mask_calls[0][0] == secrets[:MOST_MASKED]
    assert caplog.text.count("more than 100 credentials") == 1


def test_credentials_of_the_connection_are_always_masked(
    mask_calls: list[tuple[list[str], bool]],
) -> None:
    mask = LogMask()
    mask.learn(tokens(1000))
    mask.hide([SECRET])
    assert mask_calls[-1][0] == [SECRET]


def test_a_text_is_masked_once_and_never_on_an_event_loop(
    mask_calls: list[tuple[list[str], bool]],
) -> None:
    mask, secrets = LogMask(), tokens(2)

    async def wait_twice() -> None:
        for _ in range(2):
            await mask.hide_on_loop([SECRET])
            await mask.learn_on_loop(secrets)

    asyncio.run(wait_twice())
    assert [text for texts, _ in mask_calls for text in texts] == [SECRET, *secrets]
    assert not any(on_loop for _, on_loop in mask_calls)


def test_failed_masking_of_a_text_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def mask(texts: list[str]) -> None:
        given.append(texts)
        if len(given) == 1:
            raise OSError("no supervisor")

    monkeypatch.setattr(_airflow, "mask_secrets", mask)
    known = LogMask()
    for _ in range(2):
        known.learn([SECRET])
    assert SECRET in given[0]
    assert SECRET in given[1]


def test_key_quoted_by_a_chat_tool_is_masked(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    key = platform_sandbox.chat_api_key
    question = f'sql: SELECT * FROM "{key}"'
    with pytest.raises(ChatToolError, match=r"no such table: \*\*\*") as caught:
        hook.chat(question, poll_interval=0.05)
    assert isinstance(caught.value, PlatformError)
    assert key not in json.dumps(caught.value.to_payload())
