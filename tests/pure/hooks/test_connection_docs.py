"""The connection page of the documentation is correct, and its examples work."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import FIELDS
from airflow_provider_platform.hooks.connection import config_from_connection
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.client.connection_fields import AnyField

ROOT = Path(__file__).parents[3]
TEXT = (ROOT / "docs" / "connection.md").read_text()
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
EXPECTED = PlatformConfig.build(
    host="https://acme.example.com/api",
    management_token="management-token",
    chat_url="https://ai.eu.example.com/api/v1/public/acme/agents/1/chat",
    chat_api_key="chat-api-key",
    session_settings={"externalId": "nightly"},
    deployment_id=1,
)


def variables(name: str) -> list[str]:
    """The values that the examples give to an environment variable."""
    words = [word for block in BLOCKS for word in shlex.split(block)]
    return [word.removeprefix(f"{name}=") for word in words if word.startswith(f"{name}=")]


@pytest.mark.parametrize("value", variables("AIRFLOW_CONN_PLATFORM_DEFAULT"))
def test_environment_variables_of_the_page_give_the_connection(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", value)
    assert PlatformHook().config == EXPECTED


def test_the_page_has_a_json_and_a_uri_example() -> None:
    values = variables("AIRFLOW_CONN_PLATFORM_DEFAULT")
    assert [value.partition(":")[0].strip() for value in values] == ['{\n  "conn_type"', "platform"]


def test_command_of_the_page_gives_the_connection() -> None:
    from airflow.cli import cli_parser

    [command] = [block for block in BLOCKS if block.startswith("airflow connections add")]
    given = cli_parser.get_parser().parse_args(shlex.split(command)[1:])
    assert (given.conn_id, given.conn_type) == ("platform_default", "platform")
    connection = SimpleNamespace(
        host=given.conn_host,
        schema=given.conn_schema,
        login=given.conn_login,
        password=given.conn_password,
        port=given.conn_port,
        extra=given.conn_extra,
    )
    assert config_from_connection(connection) == EXPECTED


def test_chat_only_example_of_the_page_gives_the_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [value] = variables("AIRFLOW_CONN_CHAT_ONLY")
    monkeypatch.setenv("AIRFLOW_CONN_CHAT_ONLY", value)
    config = PlatformHook("chat_only").config
    assert config.chat_url is not None
    assert config.management_url is None


def undocumented(text: str, fields: Iterable[AnyField]) -> list[str]:
    """The fields without a row in the tables of a text that has their label, name and default."""
    missing = []
    for field in fields:
        default = "" if field.default is None else json.dumps(field.default).strip('"')
        cell = f"`{default}`" if isinstance(field.default, str) else default
        columns = rf" *{re.escape(cell)} *\|" if field.place == "extra" else ""
        row = rf"^\| {re.escape(field.label)} \(`{field.stored_name}`\) \|{columns} *\S.*\|$"
        if not re.search(row, text, re.MULTILINE):
            missing.append(field.stored_name)
    return missing


def test_page_explains_every_field_with_its_label_and_default() -> None:
    assert undocumented(TEXT, FIELDS) == []


@pytest.mark.parametrize("text", [TEXT, README], ids=["page", "readme"])
def test_tables_call_each_field_by_its_label_and_name(text: str) -> None:
    called = {field.stored_name: field.label for field in FIELDS}
    rows = re.findall(r"^\| ([^`|]+) \(`(\w+)`\) \|", text, re.MULTILINE)
    assert rows
    for label, name in rows:
        assert called[name] == label
