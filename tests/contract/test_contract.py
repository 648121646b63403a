"""Our declarations against an OpenAPI document, and against the service description's tables.

The document is `operations.json`, the facts of the service's document, which each clone has.
"""

from __future__ import annotations

import json
import os
import re
import runpy
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import TypeAdapter

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.management.account.oauth import UserOAuthToken
from airflow_provider_platform.client.management.embed.sessions import GenerateSession
from airflow_provider_platform.client.management.registry import declared_endpoints
from airflow_provider_platform.contract.compare import Difference, compare
from airflow_provider_platform.contract.document import read_document
from airflow_provider_platform.contract.explanations import known_explanations, sort_out
from airflow_provider_platform.contract.schemas import Shape
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

PROJECT = Path(__file__).parents[2]
SNAPSHOT = Path(__file__).parent / "operations.json"
REFERENCE = PROJECT.parent / "shared" / "reference" / "platform-api.yaml"
DECLARED = {(endpoint.method, endpoint.path): endpoint for endpoint in declared_endpoints()}


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    """The document of PLATFORM_OPENAPI (a file or a management address), else the snapshot."""
    if source := os.environ.get("PLATFORM_OPENAPI"):
        return read_document(source, token=os.environ.get("PLATFORM_TOKEN"))
    return json.loads(SNAPSHOT.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def differences(document: dict[str, Any]) -> list[Difference]:
    return compare(declared_endpoints(), document)


def test_snapshot_equals_the_scripts_output() -> None:
    if not REFERENCE.exists():
        pytest.skip("the service's document is not beside this checkout")
    script = runpy.run_path(str(PROJECT / ".ci" / "operations_snapshot.py"))
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    facts = script["snapshot"](yaml.load(REFERENCE.read_text(encoding="utf-8"), loader))

    assert SNAPSHOT.read_text(encoding="utf-8") == script["as_text"](facts)


def test_snapshot_contains_no_prose() -> None:
    def texts(value: Any) -> list[str]:
        if isinstance(value, dict):
            return [*value, *(text for item in value.values() for text in texts(item))]
        if isinstance(value, list):
            return [text for item in value for text in texts(item)]
        return [value] if isinstance(value, str) else []

    found = texts(json.loads(SNAPSHOT.read_text(encoding="utf-8")))
    assert [text for text in found if " " in text] == []


def test_every_declaration_agrees_with_the_document(differences: list[Difference]) -> None:
    findings, _ = sort_out(differences, known_explanations())

    assert not findings, "\n".join(map(str, findings))


def test_every_explanation_explains_a_difference(differences: list[Difference]) -> None:
    if os.environ.get("PLATFORM_OPENAPI"):
        pytest.skip("the explanations are written for the document of the snapshot")

    _, unneeded = sort_out(differences, known_explanations())

    assert not unneeded


def test_every_explanation_names_its_source() -> None:
    for explanation in known_explanations():
        assert explanation.because
        assert explanation.source


def test_each_declaration_has_its_own_method_and_path() -> None:
    assert len(DECLARED) == len(declared_endpoints())
    for endpoint in DECLARED.values():
        assert endpoint.description
        assert endpoint.declaration.__doc__
        assert endpoint.method != "GET" or endpoint.body is None


def shape(model: Any) -> Shape:
    schema = TypeAdapter(model).json_schema()
    return Shape(schema, schema)


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_is_declared(row: Row) -> None:
    endpoint = DECLARED[row.method, row.path]
    query = shape(endpoint.query).properties if endpoint.query else {}
    body = shape(endpoint.body) if endpoint.body else None

    assert row.query <= set(query)
    for name, values in row.values.items():
        assert query[name].enum == values
    if row.body | row.optional_body:
        assert body is not None
        assert row.body | row.optional_body <= set(body.properties)
        assert row.body <= body.required
        assert not row.optional_body & body.required
    if row.answer:
        assert row.answer <= set(shape(endpoint.answer).properties)


@pytest.mark.parametrize("row", ENDPOINTS, ids=lambda row: row.hook_method)
def test_every_row_of_the_description_has_a_hook_method(row: Row) -> None:
    assert callable(getattr(PlatformHook, row.hook_method))


@pytest.mark.parametrize(("name", "where"), RESOURCES.items())
def test_every_resource_of_the_change_history_is_typed(
    name: str, where: tuple[str, frozenset[str]]
) -> None:
    module, fields = where
    model = getattr(import_module(f"airflow_provider_platform.client.{module}"), name)

    assert fields <= set(shape(model).properties)


def test_user_oauth_token_has_the_described_fields() -> None:
    token = shape(UserOAuthToken)

    assert token.required == USER_OAUTH_TOKEN_REQUIRED
    assert set(token.properties) == USER_OAUTH_TOKEN_REQUIRED | USER_OAUTH_TOKEN_OPTIONAL


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
