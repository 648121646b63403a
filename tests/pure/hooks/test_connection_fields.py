"""What the connection's table declares is in the form, in the checked value and in the docs."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import SecretStr, create_model

from airflow_provider_platform.client.config import PlatformConfig, model_fields_of
from airflow_provider_platform.client.connection_fields import (
    FIELDS,
    ConnectionField,
    ConnectionFields,
    fields_of,
)
from airflow_provider_platform.client.errors import PlatformConfigError
from airflow_provider_platform.hooks.connection_type import connection_type
from tests.pure.hooks.test_connection_docs import TEXT, undocumented

SECRET = "canary-5f2b"
HOST = {"host": "https://acme.example.com/api", "management_token": "t"}


class MoreFields(ConnectionFields):
    audit_token: ConnectionField[SecretStr | None] = ConnectionField(
        label="Audit token", description="Where calls are recorded.", section="Audit", kind="secret"
    )
    audit_share: ConnectionField[float] = ConnectionField(
        label="Audit share",
        description="How much is recorded.",
        section="Audit",
        kind="integer",
        default=7,
        above=0,
        maximum=9,
    )


ADDED = fields_of(MoreFields)[len(FIELDS) :]
Config: Any = create_model("Config", __base__=PlatformConfig, **model_fields_of(MoreFields))


def test_added_field_is_in_the_form() -> None:
    drawn = connection_type(fields_of(MoreFields))["conn-fields"]
    assert drawn["audit_token"] == {
        "label": "Audit token",
        "description": "Where calls are recorded.",
        "schema": {"type": ["string", "null"], "section": "Audit", "format": "password"},
    }
    assert drawn["audit_share"]["schema"] == {
        "type": ["integer", "null"],
        "section": "Audit",
        "default": 7,
        "minimum": 1,
        "maximum": 9,
    }


@pytest.mark.parametrize("share", ["2.5", 2.5])
def test_added_field_is_a_checked_value(share: Any) -> None:
    config = Config.build(**HOST, audit_token=f" {SECRET}\n", audit_share=share)
    assert config.audit_token == SecretStr(SECRET)
    assert config.audit_share == 2.5
    assert Config.build(**HOST, audit_share="").audit_share == 7
    assert Config.build(**HOST).audit_token is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"audit_share": 0}, "audit_share must be above 0."),
        ({"audit_share": 10}, "audit_share must be at most 9."),
        ({"audit_share": "nan"}, "audit_share must be a finite number."),
        ({"audit_share": True}, "audit_share must be a number."),
    ],
)
def test_error_about_an_added_field_does_not_show_its_value(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(PlatformConfigError) as caught:
        Config.build(**HOST, **given)
    assert caught.value.message.startswith(message)
    assert [caught.value.field] == list(given)
    assert SECRET not in repr(caught.value) + json.dumps(caught.value.to_payload())


def test_field_without_a_row_on_the_page_is_found() -> None:
    assert undocumented(TEXT, fields_of(MoreFields)) == ["audit_token", "audit_share"]
    page = f"{TEXT}\n| Audit token (`audit_token`) | | Where calls are recorded |\n"
    assert undocumented(page, ADDED) == ["audit_share"]
    wrong_default = f"{page}| Audit share (`audit_share`) | 8 | How much is recorded |\n"
    assert undocumented(wrong_default, ADDED) == ["audit_share"]
