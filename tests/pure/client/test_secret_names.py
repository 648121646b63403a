"""Which texts of a response are credentials, by the names of their fields."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.redaction import (
    SECRET_NAMES,
    credentials_in,
    may_hold_secrets,
    secrets_in,
)
from tests.support.typed_calls import modules

SECRET = "9f8Akq7-2Zp3mWvxyz"


@pytest.mark.parametrize(
    ("answer", "place"),
    [
        ({"clientSecret": SECRET}, "clientSecret"),
        ({"data": [{"token": SECRET}]}, "data.0.token"),
        ({"name": "apiKey", "value": SECRET}, "value"),
        ({"env": [{"key": "CUBEJS_DB_PASS", "value": SECRET}]}, "env.0.value"),
        ({"headers": [{"name": "Authorization", "text": SECRET}]}, "headers.0.text"),
        ({"tokens": [{"id": 7, "value": SECRET}]}, "tokens.0.value"),
        ({"secret": {"rawValue": SECRET, "label": "nightly"}}, "secret.rawValue"),
        ({"authorization": SECRET}, "authorization"),
        ({"connectionString": SECRET}, "connectionString"),
        ({"dbPass": SECRET}, "dbPass"),
        ({"DB_PASSWD": SECRET}, "DB_PASSWD"),
        ({"dsn": SECRET}, "dsn"),
        ({"sessionCookie": SECRET}, "sessionCookie"),
        ({"apiKeyValue": SECRET}, "apiKeyValue"),
        ({"Name": "ApiKey", "Value": SECRET}, "Value"),
        ({"signingKey": SECRET}, "signingKey"),
        ({"AccountKey": SECRET}, "AccountKey"),
    ],
)
def test_credential_is_found_by_the_field_names_around_it(answer: Any, place: str) -> None:
    assert credentials_in(answer) == {place: SECRET}
    assert list(secrets_in(answer)) == [SECRET]
    assert may_hold_secrets(json.dumps(answer).encode())


@pytest.mark.parametrize(
    "answer",
    [
        {"compass": "north by north-west", "author": "analyst@example.com"},
        {"name": "country", "value": "Germany and France"},
        {"tokens": [{"id": 7, "label": "the nightly one"}]},
        {"type": "text", "content": "the whole answer of the agent"},
        {"primaryKey": "customer_number", "sortKey": "created_at"},
        {"columns": ["token", "customer"]},
    ],
)
def test_texts_that_only_resemble_credentials_are_not_secrets(answer: Any) -> None:
    assert credentials_in(answer) == {}
    assert list(secrets_in(answer)) == []


@pytest.mark.parametrize("name", [name.removeprefix("-") for name in SECRET_NAMES])
def test_each_listed_secret_name_is_recognized_in_every_spelling(name: str) -> None:
    first, *others = name.split("_")
    camel = first + "".join(map(str.capitalize, others))
    for written in (
        name,
        name.upper(),
        camel,
        f"client_{name}",
        f"db{camel[0].upper()}{camel[1:]}",
    ):
        answer = {"data": [{written: SECRET}]}
        assert credentials_in(answer) == {f"data.0.{written}": SECRET}, written
        assert may_hold_secrets(json.dumps(answer).encode()), written


def test_each_secret_of_an_answer_has_a_name_of_the_list() -> None:
    """Only bodies that contain such a name are searched for secrets."""
    assert list(modules())
    models = [ResponseModel]
    for model in models:
        models += model.__subclasses__()
    found = {
        field.alias or name
        for model in models
        for name, field in model.model_fields.items()
        if "SecretStr" in str(field.annotation)
    }
    assert "cubeApiToken" in found
    assert [name for name in found if not may_hold_secrets(name.encode())] == []
