"""The table of operations, our models and the hook against the service description's tables."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import operation
from airflow_provider_platform.client.operations_table import definition, operations, resolved
from airflow_provider_platform.client.pages import Page
from airflow_provider_platform.hooks.platform import PlatformHook
from tests.played.hooks.test_management_methods import methods
from tests.support.service_table import (
    ENDPOINTS,
    REMOVED_PATHS,
    REMOVED_SESSION_FIELD,
    RESOURCES,
    TAG_GROUPS,
    USER_OAUTH_TOKEN_OPTIONAL,
    USER_OAUTH_TOKEN_REQUIRED,
    Row,
)
from tests.support.typed_calls import typed_calls

PROJECT = Path(__file__).parents[3]
TABLE = {(one.method, one.path.removeprefix("/api")): one for one in operations().values()}


TYPED = typed_calls()


@pytest.mark.parametrize("name", sorted(TYPED))
def test_typed_call_is_of_an_operation_and_reads_described_fields(name: str) -> None:
    row, model = operations()[name], TYPED[name]
    if not (isinstance(model, type) and issubclass(model, ResponseModel)):
        return
    answer = resolved(row.answer or {})
    if issubclass(model, Page):
        assert row.is_list
        model = model.model_fields["items"].annotation.__args__[0].__args__[0]
        items = answer.get("properties", {}).get("items", answer)
        answer = resolved(items.get("items", {}))
    known = set(answer.get("properties", ()))
    read = {field.alias or one for one, field in model.model_fields.items()}
    assert not known or read <= known


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_is_in_the_table(row: Row) -> None:
    found = TABLE[row.method, row.path]
    query = found.query.get("properties", {})
    body = resolved(found.body or {})
    answer = resolved(found.answer or {})
    assert row.query <= query.keys()
    for name, values in row.values.items():
        assert set(query[name]["enum"]) - {None} == values
    assert row.body | row.optional_body <= body.get("properties", {}).keys()
    assert row.body <= set(body.get("required", ()))
    assert not row.optional_body & set(body.get("required", ()))
    assert row.answer <= answer.get("properties", {}).keys()


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_has_a_hook_method(row: Row) -> None:
    assert callable(getattr(PlatformHook, row.hook_method))


def test_hook_has_a_method_for_nothing_else() -> None:
    assert methods() == sorted(row.hook_method for row in ENDPOINTS)


@pytest.mark.parametrize(("name", "fields"), RESOURCES.items())
def test_every_resource_of_the_change_history_is_described(
    name: str, fields: frozenset[str]
) -> None:
    assert fields <= definition(name)["properties"].keys()


def test_user_oauth_token_has_the_described_fields() -> None:
    token = definition("UserOAuthToken")
    assert set(token["required"]) == USER_OAUTH_TOKEN_REQUIRED
    assert token["properties"].keys() == USER_OAUTH_TOKEN_REQUIRED | USER_OAUTH_TOKEN_OPTIONAL


@pytest.mark.parametrize("path", REMOVED_PATHS)
def test_removed_operations_are_not_offered(path: str) -> None:
    assert path not in {known for _, known in TABLE}


def test_the_removed_field_of_sessions_is_refused() -> None:
    with pytest.raises(PlatformInputError, match=f"{REMOVED_SESSION_FIELD} is not a known field"):
        operation("generateSession", body={REMOVED_SESSION_FIELD: 60})


def test_the_documentation_names_every_tag_group() -> None:
    text = " ".join((PROJECT / "docs" / "management_api.md").read_text(encoding="utf-8").split())

    assert [group for group in TAG_GROUPS if re.search(rf"\b{group}\b", text) is None] == []
    for name in methods():
        assert f"`{name}`" in text, f"{name} is not documented"
