"""A credential that the service quotes in its answer is not in the error that comes of it."""

from __future__ import annotations

import traceback
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.chat_call import ChatCall
from airflow_provider_platform.client.chat_program import Patience
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    ChatRpcError,
    PlatformAuthenticationError,
    PlatformError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.ndjson import parse_line
from airflow_provider_platform.client.oauth import LIST_USER_OAUTH_TOKENS
from airflow_provider_platform.client.platform_client import PlatformClient

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox


@pytest.fixture
def config(platform_sandbox: Sandbox) -> PlatformConfig:
    return PlatformConfig.build(
        host=platform_sandbox.management_url,
        management_token=platform_sandbox.management_token,
        chat_url=platform_sandbox.chat_url,
        chat_api_key=platform_sandbox.chat_api_key,
        session_settings={"externalId": "tests"},
    )


def check_hidden(config: PlatformConfig, error: PlatformError) -> None:
    shown = "".join(traceback.format_exception(error)) + repr(error) + str(error.to_payload())
    assert "the token *** is refused" in str(error)
    assert not [secret for secret in config.secrets if secret in shown]


def test_in_the_error_of_a_management_call(
    platform_sandbox: Sandbox, config: PlatformConfig
) -> None:
    said = f"the token {platform_sandbox.management_token} is refused"
    platform_sandbox.control.fault("status", status=401, message=said, api="management", count=None)
    with (
        PlatformClient(config) as client,
        pytest.raises(PlatformAuthenticationError) as caught,
    ):
        client.run(LIST_USER_OAUTH_TOKENS())
    check_hidden(config, caught.value)


@pytest.mark.parametrize("length", [8, 20, 200])
def test_where_the_limit_on_quoted_text_has_cut_it(length: int) -> None:
    secret = "secret-" + "0123456789abcdef" * 20
    error = PlatformError(f"the service said: {secret[:length]}…", said=secret[:length])
    error.hide([secret])
    assert str(error) == "the service said: ***…"
    assert error.details == {"said": "***"}


def test_what_only_begins_alike_stays() -> None:
    error = PlatformError("platform-wide error of platform-7, see platf")
    error.hide(["platform-7f3a9c"])
    assert str(error) == "platform-wide error of platform-7, see platf"


def test_in_the_beginning_of_a_line_that_is_no_json() -> None:
    secret = "secret-" + "0123456789abcdef" * 20
    with pytest.raises(PlatformProtocolError) as caught:
        parse_line(b"refused: " + secret.encode(), 1)
    caught.value.hide([secret])
    assert "secret-0" not in str(caught.value)
    assert "'refused: ***…'" in str(caught.value)


def test_in_the_error_of_a_chat_run(platform_sandbox: Sandbox, config: PlatformConfig) -> None:
    said = f"the token {platform_sandbox.chat_api_key} is refused"
    platform_sandbox.control.fault("jsonrpc", message=said, api="chat", count=None)
    with PlatformClient(config) as client:
        call = ChatCall.prepare(config, "revenue by country", Patience(client.clock() + 30))
        with pytest.raises(ChatRpcError) as caught:
            client.run(call.ask_to_end(client.clock))
    check_hidden(config, caught.value)
