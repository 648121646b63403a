"""The connection form in a real browser: it stores what a user types, and hides secrets."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import EXTRA_FIELDS
from airflow_provider_platform.hooks.connection import config_from_connection

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from tests.support.browser.connection_page import ConnectionPage

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from airflow_provider_platform.sandbox import Sandbox
    from tests.browser.conftest import AirflowServer

# One API server and one browser, whatever the number of test processes.

SECTIONS = ["Standard Fields", *dict.fromkeys(field.section for field in EXTRA_FIELDS)]
DEFAULTS = {field.name: field.default for field in EXTRA_FIELDS}
TYPED: dict[str, Any] = {
    "chat_url": "https://ai.eu.example.com/api/v1/public/acme/agents/1/chat",
    "agent": "Data analyst",
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


def test_empty_field_of_the_form_means_its_default(
    page: Page, airflow_server: AirflowServer
) -> None:
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


def test_test_button_reports_both_apis(
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

    form.test(
        "tested",
        f"Management API at {platform_sandbox.management_url} works",
        f"Chat API at {platform_sandbox.chat_url} works",
    )

    platform_sandbox.control.rotate_chat_key()
    page.reload()
    form.test(
        "tested",
        f"Management API at {platform_sandbox.management_url} works",
        "does not work",
        "premium or enterprise plan",
    )
    state = platform_sandbox.control.state()
    assert (state.messages, state.runs) == ([], [])


CHATTING = {"chat_url": TYPED["chat_url"], "chat_api_key": "sk-form-secret"}


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"chat_url": "https://ai.example.com/x"}, "Chat address (chat_url) must end in /chat"),
        (
            {**CHATTING, "chat_api_key": "Bearer sk-form-secret"},
            "Chat API key (chat_api_key) must be the bare secret",
        ),
        (
            {**CHATTING, "session_settings": {"externalId": "Night Ly"}},
            "Session settings (session_settings): externalId: must be lowercase",
        ),
        (
            {**CHATTING, "proxy": "ftp://proxy.example.com"},
            "Proxy (proxy) must begin with http://, https:// or socks5://",
        ),
    ],
    ids=["chat_url", "chat_api_key", "session_settings", "proxy"],
)
def test_test_button_names_a_wrong_value_by_the_label_of_its_field(
    page: Page, airflow_server: AirflowServer, values: dict[str, Any], said: str
) -> None:
    form = ConnectionPage(page, airflow_server.url)
    conn_id = f"wrong_{list(values)[-1]}"
    form.add(conn_id)
    form.fill_standard(port="443")
    for name, value in values.items():
        form.fill(name, value)
    form.save(conn_id)
    form.test(conn_id, said)
    expect(page.get_by_text("sk-form-secret")).to_have_count(0)


def test_only_id_and_type_of_a_connection_look_required(
    page: Page, airflow_server: AirflowServer
) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("optional")
    for section in SECTIONS:
        form.open_section(section)
        expect(form.dialog.get_by_text("*", exact=True)).to_have_count(2)
    form.open_section(SECTIONS[0])
    expect(form.dialog.get_by_text("Port (optional; the Test button needs 443)")).to_be_visible()
    expect(form.dialog.locator("[name=port]")).to_have_attribute("placeholder", "")


def test_form_shows_each_field_with_its_label_and_help(
    page: Page, airflow_server: AirflowServer
) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("explained")
    for field in EXTRA_FIELDS:
        form.open_section(field.section)
        expect(form.dialog.get_by_text(field.label, exact=True)).to_be_visible()
        expect(form.dialog.get_by_text(field.description, exact=True)).to_be_visible()


def test_form_names_no_address_but_examples(page: Page, airflow_server: AirflowServer) -> None:
    form = ConnectionPage(page, airflow_server.url)
    form.add("addresses")
    for section in SECTIONS:
        form.open_section(section)
        for field in EXTRA_FIELDS:
            if field.section == section:
                expect(form.dialog.get_by_text(field.label, exact=True)).to_be_visible()
        expect(form.dialog.locator("a[href]")).to_have_count(0)
        # These names are reserved for examples, so nobody takes them for the address of a page.
        expect(
            form.dialog.get_by_text(re.compile(r"https?://(?!(\w+\.)*example\.com\b)\w"))
        ).to_have_count(0)
