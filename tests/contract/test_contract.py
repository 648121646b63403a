"""Our declarations against the table of operations, and against the service description's tables.

The table is made from the service's OpenAPI document (`.ci/operations_table.py`).
"""

from __future__ import annotations

import json
import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import TypeAdapter

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.management.account.oauth import UserOAuthToken
from airflow_provider_platform.client.management.embed.sessions import GenerateSession
from airflow_provider_platform.client.management.registry import declared_endpoints
from airflow_provider_platform.client.table.table import operations, resolved
from airflow_provider_platform.hooks.platform import PlatformHook
from tests.contract.service_table import (
    ENDPOINTS,
    REMOVED_PATHS,
    REMOVED_SESSION_FIELD,
    RESOURCES,
    TAG_GROUPS,
    USER_OAUTH_TOKEN_OPTIONAL,
    USER_OAUTH_TOKEN_REQUIRED,
    Row,
)
from tests.unit.hooks.test_management_methods import methods

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations.operation import Endpoint

PROJECT = Path(__file__).parents[2]
DECLARED = {(endpoint.method, endpoint.path): endpoint for endpoint in declared_endpoints()}
TABLE = {
    (operation.method, operation.path.rstrip("/")): operation for operation in operations().values()
}
"""Releases differ in whether one path ends with a slash."""
PREFIXES = {"management": "/api", "build": "/build/api"}
"""What precedes the path of an operation in the table."""


def test_each_declaration_has_its_own_method_and_path() -> None:
    assert len(DECLARED) == len(declared_endpoints())
    for endpoint in DECLARED.values():
        assert endpoint.description
        assert endpoint.declaration.__doc__
        assert endpoint.method != "GET" or endpoint.body is None


def schema_of(model: Any) -> dict[str, Any]:
    """The schema of an object."""
    schema = TypeAdapter(model).json_schema()
    return schema["$defs"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def names(model: Any) -> set[str]:
    """The fields of an object."""
    return set(schema_of(model).get("properties", ()))


def required(model: Any) -> set[str]:
    return set(schema_of(model).get("required", ()))


@pytest.mark.parametrize("endpoint", DECLARED.values(), ids=lambda endpoint: endpoint.operation_id)
def test_declaration_agrees_with_the_table_of_operations(endpoint: Endpoint[..., Any]) -> None:
    """The method and path exist, every field that is declared to be sent does, and what the service
    requires is required here."""
    operation = TABLE[endpoint.method, f"{PREFIXES[endpoint.api]}{endpoint.path}".rstrip("/")]
    if endpoint.query is not None:
        assert names(endpoint.query) <= set(operation.query["properties"])
        assert set(operation.query.get("required", ())) <= required(endpoint.query)
    assert (endpoint.body is None) or operation.body is not None
    if operation.body_required:
        assert endpoint.body is not None
    if endpoint.body is not None:
        sent = resolved(operation.body or {})
        if "properties" in sent:
            assert names(endpoint.body) <= set(sent["properties"])
            assert set(sent.get("required", ())) <= required(endpoint.body)


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_is_declared(row: Row) -> None:
    endpoint = DECLARED[row.method, row.path]

    assert row.query <= (names(endpoint.query) if endpoint.query else set())
    for name, values in row.values.items():
        choices = json.dumps(schema_of(endpoint.query)["properties"][name])
        enum = choices.partition('"enum": [')[2].partition("]")[0]
        assert set(re.findall(r"\w+", enum)) == values
    if row.body | row.optional_body:
        assert endpoint.body is not None
        assert row.body | row.optional_body <= names(endpoint.body)
        assert row.body <= required(endpoint.body)
        assert not row.optional_body & required(endpoint.body)
    if row.answer:
        assert row.answer <= names(endpoint.answer)


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_has_a_hook_method(row: Row) -> None:
    assert callable(getattr(PlatformHook, row.hook_method))


@pytest.mark.parametrize(("name", "where"), RESOURCES.items())
def test_every_resource_of_the_change_history_is_typed(
    name: str, where: tuple[str, frozenset[str]]
) -> None:
    module, fields = where
    model = getattr(import_module(f"airflow_provider_platform.client.{module}"), name)

    assert fields <= names(model)


def test_user_oauth_token_has_the_described_fields() -> None:
    assert required(UserOAuthToken) == USER_OAUTH_TOKEN_REQUIRED
    assert names(UserOAuthToken) == USER_OAUTH_TOKEN_REQUIRED | USER_OAUTH_TOKEN_OPTIONAL


@pytest.mark.parametrize("path", REMOVED_PATHS)
def test_removed_operations_are_not_offered(path: str) -> None:
    assert path not in {declared_path for _, declared_path in DECLARED}


def test_the_removed_field_of_sessions_is_refused() -> None:
    with pytest.raises(PlatformInputError, match="ephemeral"):
        GenerateSession.build(deployment_id=7, **{REMOVED_SESSION_FIELD: 60})


def test_the_documentation_names_every_tag_group() -> None:
    text = (PROJECT / "docs" / "management_api.md").read_text(encoding="utf-8")

    assert [group for group in TAG_GROUPS if f"| {group} |" not in text] == []
    for name in [*methods(), "aiterate"]:
        assert f"`{name}`" in text, f"{name} is not documented"


def test_the_example_of_an_added_operation_works(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (PROJECT / "docs" / "management_api.md").read_text(encoding="utf-8")
    section = text.split("## Adding an operation")[1].split("\n## ")[0]
    names: dict[str, Any] = {"__name__": "docs"}
    monkeypatch.setattr(PlatformHook, "run", lambda hook, operation: operation)

    for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
        exec(compile(block, "docs/management_api.md", "exec"), names)

    assert names["region"].path == "/v1/accounts/5/regions"
    assert names["region"].body == {"name": "eu-1"}
