"""The settings and faults of the sandbox say what they do: their page is made of these sentences.
The page on the sandbox names the operations that are not simulated."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

from airflow_provider_platform.client.operations_table import operations
from airflow_provider_platform.sandbox import (
    SandboxControl,
    app,  # noqa: F401 - registers all handlers
    faults,
    management,
)
from airflow_provider_platform.sandbox.management import call, generic_store
from airflow_provider_platform.sandbox.state.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_every_setting_says_what_it_does(name: str) -> None:
    assert Settings.model_fields[name].description


@pytest.mark.parametrize("kind", sorted(faults.ANSWER_KINDS | faults.WIRE_KINDS | faults.RUN_KINDS))
def test_fault_names_its_parameters_and_their_choices(kind: str) -> None:
    text = (faults.ANSWER_KINDS | faults.WIRE_KINDS | faults.RUN_KINDS)[kind]
    for name in faults._PARAMETERS.get(kind, set()):
        assert f"`{name}`" in text
        for choice in re.findall(r"'(\w+)'", faults.Fault.__annotations__[name]):
            assert f"`{choice}`" in text


def test_page_shows_each_method_of_the_control_as_it_can_be_called() -> None:
    table = PAGE.partition("\n## Control\n")[2].partition("\n### ")[0]
    shown = re.findall(r"`(\w+)\(([^`]*)\)`(?=[^|]*\|[^|]*\|\n)", table)
    assert {"answer", "add_branch", "report_build", "reset"} <= {name for name, _ in shown}
    for name, arguments in shown:
        positional = [one for one in arguments.partition("*")[0].split(",") if one.strip()]
        inspect.signature(getattr(SandboxControl, name)).bind(None, *positional)


def test_page_lists_the_operations_that_are_not_simulated() -> None:
    management.routes()
    page = " ".join(PAGE.split())
    listed = page.partition("Some operations are not simulated.")[2].partition("**The agent**")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {
        name
        for name, row in operations().items()
        if name not in call._HANDLERS and not generic_store._is_stored(row.path)
    }
