"""The provider metadata is valid for Airflow, complete, and cheap to read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import airflow
import pytest
from jsonschema import Draft7Validator

from airflow_provider_platform.client.config import SessionSettings
from airflow_provider_platform.client.connection_fields import (
    EXTRA_FIELDS,
    EXTRA_NAMES,
    LABELS,
    with_label,
)
from airflow_provider_platform.get_provider_info import get_provider_info

INFO = get_provider_info()
PACKAGE = Path(str(import_module("airflow_provider_platform").__file__)).parent
FOLDERS = ("operators", "sensors")
[CONNECTION_TYPE] = INFO["connection-types"]


def airflow_schema(name: str) -> dict[str, Any]:
    schema: dict[str, Any] = json.loads((Path(airflow.__file__).parent / name).read_text())
    return schema


def test_metadata_is_valid_for_the_installed_airflow() -> None:
    errors = Draft7Validator(airflow_schema("provider_info.schema.json")).iter_errors(INFO)
    assert [error.message for error in errors] == []


def test_form_is_valid_for_the_installed_airflow() -> None:
    schema = airflow_schema("provider.yaml.schema.json")["properties"]["connection-types"]
    if "conn-fields" not in schema["items"]["properties"]:
        pytest.skip("this Airflow reads the form from the hook")
    errors = Draft7Validator(schema).iter_errors(INFO["connection-types"])
    assert [error.message for error in errors] == []


@pytest.mark.parametrize("folder", FOLDERS)
def test_metadata_lists_every_module_of_a_package(folder: str) -> None:
    [listed] = INFO[folder]
    there = {
        f"airflow_provider_platform.{folder}.{file.stem}"
        for file in (PACKAGE / folder).glob("[!_]*.py")
    }
    assert set(listed["python-modules"]) == there


def test_metadata_lists_the_module_of_the_triggers() -> None:
    [listed] = INFO["triggers"]
    [name] = listed["python-modules"]
    assert import_module(name).PlatformRunTrigger


def test_every_class_in_the_metadata_exists() -> None:
    decorators = INFO["task-decorators"]
    assert all(decorator["class-name"] == decorator["path"] for decorator in decorators)
    named = [
        CONNECTION_TYPE["hook-class-name"],
        *(decorator["class-name"] for decorator in decorators),
        *INFO["extra-links"],
        *INFO.get("notifications", ()),
    ]
    for path in named:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path


def test_metadata_has_only_keys_that_airflow_reads() -> None:
    # The schema lets pass what it does not know, a mistyped name too.
    known = airflow_schema("provider_info.schema.json")["properties"]
    assert set(INFO) - {"versions"} <= set(known)


def test_integration_is_described_as_airflow_asks_for() -> None:
    schema = airflow_schema("provider.yaml.schema.json")["properties"]["integrations"]
    errors = Draft7Validator(schema).iter_errors(INFO["integrations"])
    assert [error.message for error in errors] == []
    [integration] = INFO["integrations"]
    assert set(integration) == set(schema["items"]["properties"])


def test_guides_and_logo_of_the_integration_exist() -> None:
    root = PACKAGE.parent
    [integration] = INFO["integrations"]
    guides = {root / guide.removeprefix("/") for guide in integration["how-to-guide"]}
    assert guides == set((root / "docs" / "howto").glob("*.md")) - {root / "docs/howto/index.md"}
    assert (root / "docs" / integration["logo"].removeprefix("/")).is_file()


@pytest.mark.parametrize("folder", ["decorators", "notifications"])
def test_every_decorator_and_notifier_is_listed(folder: str) -> None:
    modules = {
        f"airflow_provider_platform.{folder}.{file.stem}"
        for file in (PACKAGE / folder).glob("[!_]*.py")
    }
    listed = {
        "decorators": [decorator["path"] for decorator in INFO["task-decorators"]],
        "notifications": INFO.get("notifications", []),
    }
    assert {path.rpartition(".")[0] for path in listed[folder]} == modules


def test_metadata_lists_every_operator_link() -> None:
    from airflow_provider_platform.operators._base import PlatformOperator

    links = {
        f"{type(link).__module__}.{type(link).__name__}"
        for link in PlatformOperator.operator_extra_links
    }
    assert links <= set(INFO["extra-links"])


def test_connection_type_equals_the_hooks() -> None:
    from airflow_provider_platform.hooks.platform import PlatformHook

    assert CONNECTION_TYPE["connection-type"] == PlatformHook.conn_type
    assert CONNECTION_TYPE["hook-name"] == PlatformHook.hook_name


def test_form_has_the_public_names_of_the_fields() -> None:
    # Connections that exist keep their values under these names.
    assert list(CONNECTION_TYPE["conn-fields"]) == [
        *("deployment_id", "chat_url", "agent", "chat_api_key", "chat_service_token"),
        *("chat_service_header", "session_settings", "data_api_url", "default_row_limit"),
        *("max_row_limit", "request_timeout", "stream_idle_timeout", "max_attempts"),
        *("verify_tls", "ca_bundle", "proxy", "allow_http", "web_links"),
    ]


def test_every_field_can_be_left_empty() -> None:
    for name, field in CONNECTION_TYPE["conn-fields"].items():
        assert "null" in field["schema"]["type"], name


def test_form_hides_exactly_the_fields_that_airflow_masks() -> None:
    try:
        from airflow.sdk.log import redact
    except ImportError:  # Airflow 3.0
        from airflow.sdk.execution_time.secrets_masker import redact

    hidden = {field.name for field in EXTRA_FIELDS if field.kind == "secret"}
    masked = {name for name in EXTRA_NAMES if redact({name: "x"})[name] == "***"}
    if airflow.__version__.startswith("3.0."):
        assert masked == hidden - {"proxy"}
    else:
        assert masked == hidden


def test_the_port_is_not_hidden() -> None:
    # Without a port the Test button of Airflow 3.3 is refused.
    assert "port" not in CONNECTION_TYPE["ui-field-behaviour"]["hidden-fields"]


def test_reading_the_metadata_imports_next_to_nothing() -> None:
    code = (
        "import sys\n"
        "from airflow_provider_platform.get_provider_info import get_provider_info\n"
        "get_provider_info()\n"
        "heavy = {'airflow', 'httpx', 'pydantic', 'starlette', 'tenacity'}\n"
        "print(sorted(heavy & {name.partition('.')[0] for name in sys.modules}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.filterwarnings("ignore:ProvidersManager.hooks is deprecated")
def test_airflow_finds_the_provider_and_its_connection_type() -> None:
    from airflow.providers_manager import ProvidersManager

    manager = ProvidersManager()
    assert "airflow-provider-platform" in manager.providers
    hook = manager.hooks["platform"]
    assert hook is not None
    assert hook.hook_name == "Analytics Platform"
    assert hook.connection_id_attribute_name == "platform_conn_id"
    assert hook.connection_testable


def test_airflow_finds_the_task_decorator() -> None:
    from airflow.sdk import task

    assert callable(task.platform_chat)  # type: ignore[attr-defined]
    assert callable(task.platform_sql)  # type: ignore[attr-defined]


def test_the_hook_declares_the_form_itself() -> None:
    from airflow_provider_platform.hooks.platform import PlatformHook

    # Airflow 3.1 passes over what a hook inherits.
    assert {"get_connection_form_widgets", "get_ui_field_behaviour"} <= set(vars(PlatformHook))
    behaviour = PlatformHook.get_ui_field_behaviour()
    assert behaviour["relabeling"] == CONNECTION_TYPE["ui-field-behaviour"]["relabeling"]
    assert behaviour["hidden_fields"] == CONNECTION_TYPE["ui-field-behaviour"]["hidden-fields"]


@pytest.mark.exhaustive
def test_server_serves_every_setting_in_order() -> None:
    """What the API server hands to the browser: Airflow 3.0 and 3.1 ask the hook, later releases
    the metadata. In a process of its own: the service puts stand-ins for WTForms into
    `sys.modules` for good."""
    code = (
        "from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService\n"
        "found = [m for m in HookMetaService.hook_meta_data() if m.connection_type == 'platform']\n"
        "print('FORM' + found[0].model_dump_json())\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    [form] = [line for line in run.stdout.splitlines() if line.startswith("FORM")]
    served = json.loads(form.removeprefix("FORM"))
    if airflow.__version__.startswith("3.0.") and find_spec("wtforms") is None:
        pytest.skip("without WTForms this Airflow shows the standard fields only")
    standard = served["standard_fields"]
    assert standard["host"]["title"] == "Management API address"
    assert standard["password"]["title"] == "Management token"
    assert standard["url_schema"]["hidden"] is standard["login"]["hidden"] is True
    assert list(served["extra_fields"]) == [field.name for field in EXTRA_FIELDS]
    for field in EXTRA_FIELDS:
        schema = served["extra_fields"][field.name]["schema"]
        assert schema["title"] == field.label
        assert served["extra_fields"][field.name]["description"] == field.description
        assert (schema.get("format") == "password") == (field.kind == "secret")
        assert schema.get("enum") == (list(field.choices) or None)
        assert "null" in schema["type"]


CONNECTION_PAGE = (PACKAGE.parent / "docs" / "connection.md").read_text()


SESSION_SETTINGS = [
    name
    for name in map(SessionSettings.caller_name, SessionSettings.model_fields)
    if name != "publicDashboardId"  # the platform does not document its effect
]


@pytest.mark.parametrize("name", SESSION_SETTINGS)
def test_page_explains_every_session_setting(name: str) -> None:
    assert re.search(rf"^\| .*`{name}`.* \| .+ \|$", CONNECTION_PAGE, re.MULTILINE)


def test_help_of_session_settings_is_short_and_has_an_example() -> None:
    description = CONNECTION_TYPE["conn-fields"]["session_settings"]["description"]
    assert len(description) < 300
    [example] = re.findall(r"\{.*\}", description)
    assert set(json.loads(example)) <= set(SESSION_SETTINGS)


def test_deployment_stands_before_the_chat_and_its_help_says_where_to_find_it() -> None:
    fields = CONNECTION_TYPE["conn-fields"]
    assert next(iter(fields)) == "deployment_id"
    assert fields["deployment_id"]["schema"]["section"] == "Management API"
    assert "click Test" in fields["deployment_id"]["description"]


@pytest.mark.parametrize("name", LABELS)
def test_error_begins_with_the_label_of_the_form_and_the_setting(name: str) -> None:
    label = LABELS[name]
    assert with_label(f"{name} is bad.") == f"{label} ({name}) is bad."
    assert with_label(f"{name}: must be good.") == f"{label} ({name}): must be good."


def test_form_says_that_a_port_is_optional() -> None:
    """And shows no number that looks as if it were entered: an empty port fails Airflow's Test."""
    behaviour = CONNECTION_TYPE["ui-field-behaviour"]
    assert "optional" in behaviour["relabeling"]["port"]
    assert behaviour["placeholders"]["port"] == ""
