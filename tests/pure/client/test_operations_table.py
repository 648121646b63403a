"""The table of operations: what it holds, and what its checks say."""

from __future__ import annotations

import json
import os
import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from airflow_provider_platform.client import operations_table as table
from airflow_provider_platform.client.operations_table import operations

CHECKOUT = Path(__file__).parents[3]
SHIPPED = CHECKOUT / "airflow_provider_platform" / "client" / "operations.json"
DOCUMENT = Path(
    os.environ.get("PLATFORM_OPENAPI", CHECKOUT.parent / "shared/reference/platform-api.yaml")
)
ABSENT = "the service's OpenAPI document is not beside the project (set PLATFORM_OPENAPI)"
IDS = sorted(operations())


@pytest.mark.skipif(not DOCUMENT.is_file(), reason=ABSENT)
def test_shipped_table_is_what_the_script_makes() -> None:
    spec = spec_from_file_location("operations_table", CHECKOUT / ".ci" / "operations_table.py")
    assert spec is not None
    assert spec.loader is not None
    script = module_from_spec(spec)
    spec.loader.exec_module(script)
    assert SHIPPED.read_text() == script.as_text(script.read(DOCUMENT))


def test_table_has_every_operation_of_the_document_and_those_of_the_facts() -> None:
    assert len(IDS) == 125 + 4
    assert len({(one.method, one.path) for one in operations().values()}) == len(IDS)


@pytest.mark.parametrize("name", IDS)
def test_operation_names_its_path_parameters(name: str) -> None:
    operation = operations()[name]
    assert re.fullmatch(r"(/build)?/api/v1/[^?#]+", operation.path)
    assert set(operation.texts) <= set(re.findall(r"\{(\w+)\}", operation.path))
    assert (operation.paging == "cursor") == (
        {"first", "after"} <= operation.query.get("properties", {}).keys()
    )


def test_schemas_are_json_schema_and_refer_to_schemas_that_exist() -> None:
    content = SHIPPED.read_text()
    document = json.loads(content)
    for schema in document["$defs"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    assert set(re.findall(r'"#/\$defs/(\w+)"', content)) == set(document["$defs"])


def test_table_has_no_sentences() -> None:
    keys: set[str] = set()

    def collect(value: Any) -> None:
        if isinstance(value, dict):
            keys.update(name for name in value if isinstance(value[name], str))
            for one in value.values():
                collect(one)
        elif isinstance(value, list):
            for one in value:
                collect(one)

    collect(json.loads(SHIPPED.read_text()))
    assert keys <= {"method", "path", "paging", "needs", "type", "format", "pattern"} | {"$ref"}


def test_incomplete_schemas_accept_any_json() -> None:
    for name in ("createScheduledTask", "createReportDelivery", "patchReportFile"):
        assert operations()[name].body_problems({"whatever": [1]}) == []


SECRET = "hunter2 hunter2"


@pytest.mark.parametrize(
    ("name", "body", "message"),
    [
        ("createFolder", {}, "name is required"),
        ("createFolder", [], "the body must be an object"),
        ("createFolder", {"name": "a", "colour": SECRET}, "property colour should not exist"),
        ("createFolder", {"name": "a" * 256}, "name must be at most 255 characters"),
        ("createFolder", {"name": "a", "parentId": SECRET}, "parentId must be an integer"),
        ("createFolder", {"name": "a", "parentId": True}, "parentId must be an integer"),
        ("createGroup", {"name": ""}, "name must not be empty"),
        ("getFolders", {}, ""),
        ("getFolders", {"name": SECRET}, "the operation takes no body"),
        (
            "createNotification",
            {"scheduleType": SECRET},
            "scheduleType must be one of: HOURLY, DAILY, WEEKLY, MONTHLY, CUSTOM",
        ),
        (
            "createNotification",
            {"scheduleType": "DAILY", "hour": 24},
            "hour must not be greater than 23",
        ),
        ("addRecipients", {"recipients": []}, "recipients must contain at least 1 elements"),
        ("addRecipients", {"recipients": [{"type": "USER"}, {}]}, "recipients[1].type is required"),
        (
            "updateWorkbookDashboard",
            {"dashboardDraft": {"layout": SECRET}},
            "dashboardDraft.layout must be an object",
        ),
        (
            "startExport",
            {"format": "png", "filters": [{"member": "a.b", "value": {"x": SECRET}}]},
            "filters[0].value must be a string or a number or a boolean or an array",
        ),
        ("revokeSession", {"sessionId": SECRET}, "sessionId must match ^[0-9a-f]{32}$"),
        (
            "provisionEmbedUser",
            {"externalId": "a", "email": SECRET},
            "email must be an e-mail address",
        ),
        (
            "provisionEmbedUser",
            {"externalId": "a", "userProfile": {"picture": SECRET}},
            "userProfile.picture must be a URL",
        ),
    ],
)
def test_message_names_the_field_and_the_rule_and_never_the_value(
    name: str, body: Any, message: str
) -> None:
    found = operations()[name].body_problems(body)
    assert found == ([message] if message else [])
    assert SECRET not in str(found)


def test_every_broken_rule_is_reported() -> None:
    found = operations()["createFolder"].body_problems({"parentId": "x", "extra": 1})
    assert sorted(found) == [
        "name is required",
        "parentId must be an integer",
        "property extra should not exist",
    ]


def test_query_parameters_are_checked() -> None:
    folders = operations()["getFolders"].query_schema
    assert table.problems(folders, {"first": 1, "parentId": 3}) == []
    assert table.problems(folders, {"first": 0}) == ["first must not be less than 1"]
    assert table.problems(folders, {"limit": 3}) == ["property limit should not exist"]
    branch = operations()["removeBranch"].query_schema
    assert table.problems(branch, {}) == ["branchName is required"]


def test_answers_may_have_further_fields() -> None:
    answer = operations()["getDeployment"].answer
    assert answer is not None
    deployment = {"id": 1, "name": "a", "deploymentUrl": "https://a", "creationStep": "ready"}
    assert table.problems(answer, {**deployment, "new": 1}, strict=False) == []
    assert table.problems(answer, {**deployment, "id": "1"}, strict=False)
