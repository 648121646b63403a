"""What the transport sends, and with which credentials."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformConfigError,
    PlatformInputError,
)
from airflow_provider_platform.client.operation import raw_operation
from airflow_provider_platform.resources.chat.thread import abort
from tests.support.wire.calls import (
    GET,
    KEY,
    POST,
    TOKEN,
    Run,
    config_for,
    reading,
    run_sync,
)
from tests.support.wire.http_server import answer, serving
from tests.support.wire.keep_alive_server import Connection, keeping, plain


def test_management_request_has_encoded_path_query_and_body(run: Run) -> None:
    query = {"first": 5, "all": True, "no": None, "ids": [1, "b c", None], "q": "é&="}
    operation = raw_operation("POST", "/v1/a%2Fb/c", query=query, body={"name": "Zürich"})
    with serving(answer(body=b'{"id": 1}')) as server:
        assert run(config_for(server), operation) == {"id": 1}
    [request] = server.requests
    expected = "/api/v1/a%2Fb/c?first=5&all=true&ids=1&ids=b%20c&q=%C3%A9%26%3D"
    assert (request.method, request.target.replace("b+c", "b%20c")) == ("POST", expected)
    assert json.loads(request.body) == {"name": "Zürich"}
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"] == "airflow-provider-platform"
    assert KEY not in str(request.headers)


def test_own_header_replaces_the_clients_in_any_case(run: Run) -> None:
    own = {"user-AGENT": "nightly", "ACCEPT": "text/plain"}
    heads: list[bytes] = []

    def reply(connection: Connection, request: bytes) -> bytes:
        heads.append(request.lower())
        return plain()(connection, request)

    with keeping(reply) as server:
        assert run(config_for(server), GET.with_headers(own)) == [1]
    [head] = heads
    assert head.count(b"user-agent:") == head.count(b"accept:") == 1
    assert b"user-agent: nightly" in head
    assert b"accept: text/plain" in head


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_request_without_a_body_has_a_content_length(method: str) -> None:
    with serving(answer()) as server:
        run_sync(config_for(server), raw_operation(method, "/v1/x"))
    assert server.requests[0].headers["content-length"] == "0"
    assert "content-type" not in server.requests[0].headers


def test_a_get_has_no_body() -> None:
    with serving(answer()) as server:
        run_sync(config_for(server), GET)
    assert "content-length" not in server.requests[0].headers


@pytest.mark.parametrize(
    ("fields", "header", "value"),
    [
        ({}, "authorization", f"Api-Key {KEY}"),
        ({"chat_service_token": "canary.jwt"}, "x-service-auth-token", "canary.jwt"),
        (
            {"chat_service_token": "canary.jwt", "chat_service_header": "X-Cube-Auth-Token"},
            "x-cube-auth-token",
            "canary.jwt",
        ),
    ],
)
def test_a_chat_request_carries_exactly_one_credential(
    run: Run, fields: dict[str, Any], header: str, value: str
) -> None:
    with serving(answer(204, b"")) as server:
        run(config_for(server, **fields), lambda api: abort(api, "c1", None))
    [request] = server.requests
    assert (request.method, request.target) == ("POST", "/agents/7/chat/abort")
    assert json.loads(request.body) == {"chatId": "c1"}
    credentials = ["authorization", "x-service-auth-token", "x-cube-auth-token"]
    assert {k: v for k, v in request.headers.items() if k in credentials} == {header: value}


@pytest.mark.parametrize("body", [{"a": float("nan")}, {"a": object()}, {"a": "\ud800"}])
def test_body_that_json_cannot_represent_is_not_sent(run: Run, body: Any) -> None:
    with serving() as server:
        with pytest.raises(PlatformInputError, match="nothing was sent"):
            run(config_for(server), raw_operation("POST", "/v1/x", body=body))
        with pytest.raises(PlatformInputError, match="nothing was sent"):
            run(config_for(server), reading(body))
    assert server.requests == []


def test_call_to_an_api_that_is_not_configured_names_the_field(run: Run) -> None:
    management = PlatformConfig.build(host="http://127.0.0.1:9", management_token=TOKEN)
    with pytest.raises(PlatformConfigError, match=r"chat_url.*premium or enterprise") as caught:
        run(management, lambda api: abort(api, "c1", None))
    assert caught.value.field == "chat_url"
    chat = PlatformConfig.build(chat_url="http://127.0.0.1:9/chat", chat_api_key=KEY)
    with pytest.raises(PlatformConfigError, match="management API") as caught:
        run(chat, GET)
    assert caught.value.field == "host"


def test_a_rotated_token_is_read_again(run: Run) -> None:
    with serving(answer(401), answer(body=b"[1]")) as server:
        fresh = config_for(server).model_copy(
            update={"management_token": type(config_for(server).management_token)("canary-new")}
        )
        assert run(config_for(server), POST, reload=lambda: fresh) == [1]
    tokens = [request.headers["authorization"] for request in server.requests]
    assert tokens == [f"Bearer {TOKEN}", "Bearer canary-new"]


def test_credentials_that_did_not_change_are_not_tried_again(run: Run) -> None:
    with serving(answer(401)) as server:
        config = config_for(server)
        with pytest.raises(PlatformAuthenticationError):
            run(config, GET, reload=lambda: config)
    assert len(server.requests) == 1


def test_changed_address_gets_no_request_of_a_running_call(run: Run) -> None:
    with serving() as other, serving(answer(401)) as server:
        moved = PlatformConfig.build(host=other.url, management_token="canary-new")
        with pytest.raises(PlatformAuthenticationError):
            run(config_for(server), GET, reload=lambda: moved)
    assert other.requests == []
