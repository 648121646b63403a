"""Which agents can be asked: each listed one, and a deployment with a service token only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.raw_client import MESSAGE, USER, Platform, answer, chat_id, records

if TYPE_CHECKING:
    import httpx


def call(
    platform: Platform, target: str, headers: dict[str, str], operation: str, **body: Any
) -> httpx.Response:
    """Call a chat operation of ``agents/{id}`` or ``deployments/{id}``."""
    base = platform.sandbox.chat_url.replace("/agents/1/", f"/{target}/")
    return platform.http.post(f"{base}/{operation}", json=body, headers=headers)


def ask(platform: Platform, target: str, headers: dict[str, str], **body: Any) -> httpx.Response:
    body = {"input": "orders per month", "sessionSettings": USER, **body}
    return call(platform, target, headers, "stream-chat-state", **body)


def token(platform: Platform) -> dict[str, str]:
    platform.control.set(service_tokens=True)
    return {"X-Service-Auth-Token": platform.sandbox.service_token()}


def test_every_listed_agent_can_be_asked(platform: Platform) -> None:
    listed = [agent["id"] for agent in platform.call("GET", "deployments/1/agents").json()]
    assert len(listed) > 1
    for number in listed:
        response = ask(platform, f"agents/{number}", platform.key)
        assert answer(records(response.content))
    asked = [run.agent for run in platform.control.state().runs]
    assert asked == [f"agents/{number}" for number in listed]


def test_a_thread_belongs_to_its_agent(platform: Platform) -> None:
    thread = chat_id(records(ask(platform, "agents/1", platform.key).content))
    other = ask(platform, "agents/2", platform.key, chatId=thread)
    body = {"chatId": thread, "sessionSettings": USER}
    stop = call(platform, "agents/2", platform.key, "abort", **body)
    assert (other.status_code, stop.status_code) == (404, 404)
    assert answer(records(ask(platform, "agents/1", platform.key, chatId=thread).content))


@pytest.mark.parametrize("operation", ["stream-chat-state", "abort"])
def test_chat_address_of_a_deployment_refuses_an_api_key(
    platform: Platform, operation: str
) -> None:
    token(platform)
    body = {"chatId": "any", "sessionSettings": USER}
    response = call(platform, "deployments/1", platform.key, operation, **body)
    assert response.status_code == 403
    assert response.json()["message"] == "agentId is required for Api-Key authentication"


def test_chat_address_of_a_deployment_accepts_a_service_token(platform: Platform) -> None:
    headers = token(platform)
    stream = records(ask(platform, "deployments/1", headers, messageId=MESSAGE).content)
    assert answer(stream)
    assert platform.control.state().runs[0].agent == "deployments/1"
    again = ask(platform, "deployments/1", headers, chatId=chat_id(stream))
    assert answer(records(again.content))
    stop = call(platform, "deployments/1", headers, "abort", chatId=chat_id(stream))
    assert stop.status_code == 204
