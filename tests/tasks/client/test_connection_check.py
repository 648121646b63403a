"""The connection test over HTTP, against the sandbox, which reads the same contract
independently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.platform_client import PlatformClient
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.connection_check import check_connection, summary

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox


class TestOverHttp:
    """Against the sandbox, which reads the same contract independently."""

    def check(self, platform: Sandbox, **changes: Any) -> tuple[bool, str]:
        fields = {
            "host": platform.management_url,
            "management_token": platform.management_token,
            "chat_url": platform.chat_url,
            "chat_api_key": platform.chat_api_key,
            "session_settings": {"externalId": "nightly"},
            "deployment_id": 1,
            **changes,
        }
        config = PlatformConfig.build(**fields)
        with PlatformClient(config) as client:
            ok, message = summary(client.run(check_connection))
        for secret in config.secrets:
            assert secret not in message
        state = platform.control.state()
        assert (state.messages, state.runs) == ([], [])
        return ok, message

    def test_check_passes_if_both_apis_work(self, platform_sandbox: Sandbox) -> None:
        ok, message = self.check(platform_sandbox)
        assert ok, message
        assert message.count(" works: ") == 2
        assert len(platform_sandbox.control.state().requests) == 2

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"management_token": "wrong"}, "answered 401"),
            ({"deployment_id": 99}, "Deployment 99 not found"),
            ({"chat_api_key": "wrong"}, "refused the chat credential"),
            ({"chat_api_key": "wrong", "session_settings": None}, "refused the chat credential"),
        ],
    )
    def test_check_reports_the_api_that_does_not_work(
        self, platform_sandbox: Sandbox, changes: dict[str, Any], words: str
    ) -> None:
        ok, message = self.check(platform_sandbox, **changes)
        assert not ok
        assert words in message
        assert message.count(" does not work: ") == 1


@pytest.mark.parametrize("kind", ["agents", "deployments"])
def test_address_as_the_admin_area_shows_it_reaches_the_agent(
    platform_sandbox: Sandbox, kind: str
) -> None:
    platform_sandbox.control.set(service_tokens=True)
    shown = platform_sandbox.chat_url.removesuffix("/agents/1/chat")
    config = PlatformConfig.build(
        chat_url=f"{shown}/{kind}/1/chat/stream-chat-state",
        chat_service_token=platform_sandbox.control.service_token(externalId="nightly"),
    )
    with PlatformClient(config) as client:
        ok, message = summary(client.run(check_connection))
    assert ok, message


def test_agent_of_the_connection_is_looked_up_without_a_chat_run(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check(name: str) -> tuple[bool, str]:
        connection = platform_sandbox.connection_json(agent=name)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
        return PlatformHook().test_connection()

    assert check("Data analyst")[0]
    ok, message = check("Data analysts")
    assert not ok
    assert "no agent has the name 'Data analysts'" in message
    assert platform_sandbox.control.state().runs == []
