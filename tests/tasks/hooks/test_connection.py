"""Every way to make an Airflow connection gives the same configuration, through Airflow's code."""

from __future__ import annotations

import json
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformConfigError, PlatformInputError
from airflow_provider_platform.hooks.connection import config_from_connection, unknown_settings
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow.models import Connection

TOKEN = "tok/1+2=:@?#%"
EXTRAS: dict[str, Any] = {
    "chat_url": "https://ai.eu.example.com/api/v1/public/acme/agents/1/chat",
    "chat_api_key": "sk-1+2/3=",
    "session_settings": {"externalId": "nightly", "groups": ["ops", "finance"]},
    "deployment_id": 7,
    "data_api_url": "https://data.example.com/cubejs-api",
    "default_row_limit": 20_000,
    "max_row_limit": 100_000,
    "request_timeout": 30,
    "stream_idle_timeout": 90,
    "max_attempts": 3,
    "verify_tls": False,
    "ca_bundle": __file__,
    "proxy": "http://user:pass@proxy.example.com:3128",
    "allow_http": True,
}
EXPECTED = PlatformConfig.build(
    host="https://acme.example.com/api", management_token=TOKEN, **EXTRAS
)

AS_TEXT = {
    name: value if isinstance(value, str) else json.dumps(value) for name, value in EXTRAS.items()
}
QUERY = urlencode(AS_TEXT)
WHOLE_EXTRA = urlencode({"__extra__": json.dumps(EXTRAS)})
SECRET = quote(TOKEN, safe="")
ENCODED_ADDRESS = quote("https://acme.example.com/api", safe="")
FORM_EXTRA = {"chat_service_token": None, "chat_service_header": "X-Service-Auth-Token", **EXTRAS}

URIS = {
    "path in the URI": f"platform://:{SECRET}@acme.example.com/api?{QUERY}",
    "path and port": f"platform://:{SECRET}@acme.example.com:443/api?{QUERY}",
    "no path": f"platform://:{SECRET}@acme.example.com/?{QUERY}",
    "scheme as path": f"platform://:{SECRET}@acme.example.com/https?{QUERY}",
    "address encoded": f"platform://:{SECRET}@{ENCODED_ADDRESS}/?{QUERY}",
    "two schemes": f"platform://https://:{SECRET}@acme.example.com/api?{QUERY}",
    "extra as one JSON": f"platform://:{SECRET}@acme.example.com/api?{WHOLE_EXTRA}",
}
STANDARD = {"conn_type": "platform", "host": "https://acme.example.com/api", "password": TOKEN}
DOCUMENTS: dict[str, dict[str, Any]] = {
    "extra as object": {**STANDARD, "extra": EXTRAS},
    "extra as text": {**STANDARD, "extra": json.dumps(EXTRAS)},
    "values as text": {**STANDARD, "extra": AS_TEXT},
    "port zero": {**STANDARD, "port": 0, "extra": EXTRAS},
    "port as text": {**STANDARD, "port": "443", "extra": EXTRAS},
    "empty values": {**STANDARD, "login": "", "schema": "", "port": None, "extra": FORM_EXTRA},
    "bare host": {**STANDARD, "host": "acme.example.com", "extra": EXTRAS},
    "scheme in schema": {
        **STANDARD,
        "host": "acme.example.com",
        "schema": "https",
        "extra": EXTRAS,
    },
    "path in schema": {**STANDARD, "host": "https://acme.example.com/", "schema": "/api/"}
    | {"extra": EXTRAS},
}


@pytest.fixture
def config_from_environment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The configuration that the hook makes of the value of an `AIRFLOW_CONN_...` variable."""

    def read(value: str) -> PlatformConfig:
        monkeypatch.setenv("AIRFLOW_CONN_FROM_ENVIRONMENT", value)
        return PlatformHook("from_environment").config

    return read


def plain(**fields: Any) -> Any:
    """A connection that has the standard fields and nothing that Airflow adds to them: on an
    event loop nothing else may be touched."""
    names = ("host", "schema", "login", "password", "port", "extra")
    return SimpleNamespace(**{**dict.fromkeys(names), **fields})


@pytest.mark.parametrize("uri", URIS.values(), ids=URIS.keys())
def test_uri_in_the_environment_gives_the_connection(
    uri: str, config_from_environment: Any
) -> None:
    assert config_from_environment(uri) == EXPECTED


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_json_in_the_environment_gives_the_connection(
    document: dict[str, Any], config_from_environment: Any
) -> None:
    assert config_from_environment(json.dumps(document)) == EXPECTED


@pytest.mark.exhaustive
@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS.keys())
def test_uri_generated_by_airflow_gives_the_same_connection(
    document: dict[str, Any], config_from_environment: Any
) -> None:
    # The Test button of the connection form takes this way.
    from airflow.models import Connection

    connection = Connection.from_json(json.dumps(document), conn_id="made")
    assert config_from_environment(connection.get_uri()) == EXPECTED


class TestCommandLine:
    """`airflow connections add`, into a real metadata database."""

    @pytest.fixture
    def connection_from_cli(self, airflow_db: None) -> Any:
        from airflow.cli import cli_parser
        from airflow.models import Connection
        from airflow.utils.session import create_session
        from sqlalchemy import delete, select

        def add(*options: str) -> Connection:
            command = ["connections", "add", "from_cli", *options]
            arguments = cli_parser.get_parser().parse_args(command)
            arguments.func(arguments)
            with create_session() as session:
                found: Connection = session.scalars(
                    select(Connection).where(Connection.conn_id == "from_cli")
                ).one()
                session.expunge(found)
            return found

        yield add
        with create_session() as session:
            session.execute(delete(Connection).where(Connection.conn_id == "from_cli"))

    def test_cli_fields_and_extra_give_the_connection(self, connection_from_cli: Any) -> None:
        connection = connection_from_cli(
            "--conn-type=platform",
            "--conn-host=https://acme.example.com/api",
            f"--conn-password={TOKEN}",
            f"--conn-extra={json.dumps(EXTRAS)}",
        )
        assert connection.conn_type == "platform"
        assert config_from_connection(connection) == EXPECTED

    def test_cli_uri_gives_the_connection(self, connection_from_cli: Any) -> None:
        uri = URIS["path in the URI"]
        assert config_from_connection(connection_from_cli(f"--conn-uri={uri}")) == EXPECTED


def test_connection_may_configure_only_the_chat_api() -> None:
    extra = {
        "chat_url": EXTRAS["chat_url"],
        "chat_service_token": "a.b.c",
        "chat_service_header": "x-cube-auth-token",
        "session_settings": {},
        "deployment_id": "",
    }
    config = config_from_connection(plain(host="", password="", port=0, extra=json.dumps(extra)))
    assert config.management_url is None
    assert config.chat_service_header == "X-Cube-Auth-Token"


def test_host_may_have_a_path_before_the_api(config_from_environment: Any) -> None:
    expected = "https://acme.example.com/analytics/api"
    for uri in (
        f"platform://:{SECRET}@acme.example.com/analytics/api",
        f"platform://https://:{SECRET}@acme.example.com/analytics",
    ):
        assert config_from_environment(uri).management_url == expected


def test_plain_http_to_this_machine_by_scheme_and_port() -> None:
    config = config_from_connection(
        plain(host="127.0.0.1", schema="http", port=8080, password=TOKEN)
    )
    assert config.management_url == "http://127.0.0.1:8080/api"


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({}, "host", "empty"),
        ({"host": "acme.example.com"}, "password", "Management token"),
        ({"host": "acme.example.com", "login": "canary"}, "password", "platform://:TOKEN@host"),
        ({"schema": "api", "password": "canary"}, "host", "schema is set, but"),
        (
            {"host": "https://acme.example.com", "schema": "http", "password": "canary"},
            "schema",
            "begins with another protocol",
        ),
        ({"host": "acme.example.com", "password": "***"}, "password", "literal"),
        ({"extra": "{'chat_url': canary}"}, "extra", "JSON object"),
        ({"extra": '["canary"]'}, "extra", "JSON object"),
        ({"extra": "[" * 100_000}, "extra", "JSON object"),
    ],
)
def test_errors_about_a_connection_name_the_field_but_not_the_value(
    fields: dict[str, Any], field: str, words: str
) -> None:
    with pytest.raises(PlatformConfigError) as caught:
        config_from_connection(plain(**fields))
    assert caught.value.field == field
    assert words in str(caught.value)
    assert "canary" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [
        ("chat_api_kye", "did you mean 'chat_api_key'"),
        ("Chat-URL", "did you mean 'chat_url'"),
        ("extra__platform__chat_url", "did you mean 'chat_url'"),
        ("timeout", "did you mean 'request_timeout'"),
        ("token", "enter its value in the connection's password"),
        ("management_url", "enter its value in the connection's host"),
    ],
)
def test_unknown_extra_gets_a_suggestion(name: str, suggestion: str) -> None:
    [sentence] = unknown_settings({name: "canary"})
    assert repr(name) in sentence
    assert suggestion in sentence
    assert "canary" not in sentence


def test_empty_and_known_extras_are_not_warned_about() -> None:
    assert unknown_settings({"colour": None, "shape": "", **FORM_EXTRA}) == []


def test_unknown_extra_is_ignored_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    extra = json.dumps({**EXTRAS, "retries": "canary"})
    connection = plain(host="https://acme.example.com/api", password=TOKEN, extra=extra)
    with caplog.at_level(logging.WARNING, "airflow_provider_platform"):
        assert config_from_connection(connection) == EXPECTED
    [record] = caplog.records
    assert "'retries'" in record.getMessage()
    assert "canary" not in caplog.text


@pytest.mark.parametrize(
    ("connection", "words"),
    [
        (
            {"conn_type": "http", "host": "https://acme.example.com"},
            "connection type is 'http'",
        ),
        (
            {"conn_type": "http", "host": "https://acme.example.com", "password": "canary"},
            "must be 'platform' (Analytics Platform). Check platform_conn_id",
        ),
        ({"conn_type": "platform"}, "The connection is empty"),
        ({"conn_type": "platform", "host": "acme.example.com"}, "Management token (password) is"),
    ],
)
def test_errors_about_a_connection_name_its_id(
    monkeypatch: pytest.MonkeyPatch, connection: dict[str, Any], words: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_NIGHTLY", json.dumps(connection))
    with pytest.raises(PlatformConfigError) as caught:
        PlatformHook("nightly").read_config()
    assert words in str(caught.value)
    assert str(caught.value).endswith("(connection 'nightly')")
    assert "canary" not in str(caught.value)


def test_setting_missing_for_a_call_names_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_NIGHTLY",
        json.dumps({"conn_type": "platform", "host": "acme.example.com", "password": TOKEN}),
    )
    hook = PlatformHook("nightly")
    with pytest.raises(PlatformConfigError, match="chat credential in connection 'nightly'"):
        hook.config.require_chat_url()
    with pytest.raises(PlatformInputError, match=r"\(deployment_id\) in connection 'nightly'"):
        hook.resolve_deployment_id()
    with pytest.raises(PlatformInputError, match="whole number, got 'seven'"):
        hook.resolve_deployment_id("seven")
    with pytest.raises(PlatformInputError, match=r"\(session_settings\) of connection 'nightly'"):
        hook.config.resolve_session_settings(None)
