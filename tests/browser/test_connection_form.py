"""The connection form in a real browser: what is typed is what is stored, and secrets stay."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.settings.connection_fields import EXTRA_FIELDS
from airflow_provider_platform.hooks.connection import config_from_connection

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from tests.browser.connection_page import ConnectionPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from airflow_provider_platform.sandbox import Sandbox
    from tests.browser.conftest import AirflowServer

# One API server and one browser, whatever the number of test processes.

DEFAULTS = {field.name: field.default for field in EXTRA_FIELDS}
TYPED: dict[str, Any] = {
    "chat_url": "https://ai.eu.example.com/api/v1/public/acme/agents/1/chat",
    "chat_api_key": "sk-form-secret",
    "chat_service_header": "X-Cube-Auth-Token",
    "session_settings": {"externalId": "nightly", "groups": ["ops"]},
    "deployment_id": 7,
    "data_api_url": "https://data.example.com/cubejs-api",
    "default_row_limit": 20_000,
    "max_row_limit": 100_000,
    "request_timeout": 30,
    "stream_idle_timeout": 90,
    "max_attempts": 3,
    "verify_tls": False,
    "ca_bundle": __file__,
    "proxy": "http://user:secret@proxy.example.com:3128",
    "allow_http": True,
    "web_links": {"thread": "https://acme.example.com/chats/{chat_id}"},
}


def config_of(stored: dict[str, Any]) -> PlatformConfig:
    """The configuration of an exported connection, read by Airflow's own class."""
    from airflow.models import Connection

    return config_from_connection(Connection(conn_id="stored", **stored))


def test_everything_that_is_typed_is_stored(page: Page, airflow_server: AirflowServer) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("typed")
    form.fill_standard(host="https://acme.example.com/api", password="form-token", port="443")
    for name, value in TYPED.items():
        form.fill(name, value)
    form.save("typed")

    stored = airflow_server.stored("typed")
    assert stored["conn_type"] == "platform"
    assert stored["host"] == "https://acme.example.com/api"
    assert (stored["password"], stored["port"]) == ("form-token", 443)
    given = {name: value for name, value in json.loads(stored["extra"]).items() if value}
    assert given == {name: value for name, value in TYPED.items() if value}
    assert config_of(stored) == PlatformConfig.build(
        host="https://acme.example.com/api", management_token="form-token", **TYPED
    )


def test_secrets_are_not_shown_and_survive_an_edit(
    page: Page, airflow_server: AirflowServer
) -> None:
    airflow_server.create(
        connection_id="edited",
        conn_type="platform",
        host="https://acme.example.com/api",
        password="form-token",
        port=443,
        extra=json.dumps(TYPED),
    )
    form = ConnectionPage(page, airflow_server.url)
    form.edit("edited")
    secrets = {field.name for field in EXTRA_FIELDS if field.kind == "secret"}
    form.expect_shown(
        {
            name: "***" if name in secrets else str(value) if type(value) is int else value
            for name, value in TYPED.items()
        }
    )
    form.fill("deployment_id", 8)
    form.save("edited")

    stored = airflow_server.stored("edited")
    assert stored["password"] == "form-token"
    assert config_of(stored) == PlatformConfig.build(
        host="https://acme.example.com/api",
        management_token="form-token",
        **{**TYPED, "deployment_id": 8},
    )


def test_an_untouched_field_means_its_default(page: Page, airflow_server: AirflowServer) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("untouched")
    form.fill_standard(host="acme.example.com", password="form-token")
    form.save("untouched")

    stored = airflow_server.stored("untouched")
    assert config_of(stored) == PlatformConfig.build(
        host="acme.example.com", management_token="form-token"
    )
    form.edit("untouched")
    form.expect_shown({"verify_tls": True, "request_timeout": str(DEFAULTS["request_timeout"])})


def test_the_test_button_tells_of_both_sides(
    page: Page, airflow_server: AirflowServer, platform_sandbox: Sandbox
) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("tested")
    form.fill_standard(
        host=platform_sandbox.management_url, password=platform_sandbox.management_token, port="443"
    )
    form.fill("chat_url", platform_sandbox.chat_url)
    form.fill("chat_api_key", platform_sandbox.chat_api_key)
    form.type_external_id("nightly")
    form.save("tested")

    said = form.test("tested")
    assert f"Management API at {platform_sandbox.management_url} works" in said
    assert f"Chat API at {platform_sandbox.chat_url} works" in said

    platform_sandbox.control.rotate_chat_key()
    page.reload()
    said = form.test("tested")
    assert f"Management API at {platform_sandbox.management_url} works" in said
    assert "does not work" in said
    assert "premium or enterprise plan" in said
    state = platform_sandbox.control.state()
    assert (state.messages, state.runs) == ([], [])
