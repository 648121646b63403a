"""The page on the sandbox names every choice of it: settings, faults and breakpoints. It also names
the operations that are not simulated."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pytest

from airflow_provider_platform.client.operations_table import operations
from airflow_provider_platform.sandbox import (
    app,  # noqa: F401 - registers all handlers
    faults,
    management,
)
from airflow_provider_platform.sandbox.management import call, generic_store
from airflow_provider_platform.sandbox.state.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "sandbox.md").read_text()
IN_A_SUMMARY = {"token_lacks"}
"""Its row names the permissions by their endings."""


def table(heading: str) -> dict[str, str]:
    """The rows of the tables below a heading, by each name of their first cell."""
    part = re.split(r"^#+ ", PAGE.partition(f"### {heading}\n")[2], flags=re.MULTILINE)[0]
    rows = {}
    for line in part.splitlines():
        if line.startswith("| `"):
            first = line.strip("|").partition(" | ")[0]
            rows |= dict.fromkeys(re.findall(r"`(\w+)`", first), line)
    return rows


SETTINGS = table("Settings")
FAULTS = table("Faults")


def choices(annotation: Any) -> list[str]:
    if get_origin(annotation) is Literal:
        return [str(choice) for choice in get_args(annotation)]
    inner = [one for one in get_args(annotation) if not isinstance(one, str | int | float)]
    return [choice for one in inner for choice in choices(one)]


@pytest.mark.parametrize("name", sorted(Settings.model_fields))
def test_setting_has_a_row_with_its_default_and_every_choice(name: str) -> None:
    field = Settings.model_fields[name]
    assert name in SETTINGS, "no row"
    row = SETTINGS[name]
    if name not in IN_A_SUMMARY:
        missing = [choice for choice in choices(field.annotation) if f"`{choice}`" not in row]
        assert not missing, row
    default = field.default
    if isinstance(default, bool):
        assert str(default).lower() in row
    elif isinstance(default, float | int):
        assert f"{default:g}" in row or f"{default:,.0f}" in row, row
    elif default is None:
        assert "None" in row or "none" in row


def test_every_row_names_an_existing_setting() -> None:
    assert set(SETTINGS) == set(Settings.model_fields)


@pytest.mark.parametrize("kind", sorted(faults.ANSWER_KINDS | faults.WIRE_KINDS | faults.RUN_KINDS))
def test_fault_has_a_row_with_its_parameters(kind: str) -> None:
    row = FAULTS[kind]
    parameters = faults._PARAMETERS.get(kind, set())
    assert not [name for name in parameters if f"`{name}`" not in row], row


@pytest.mark.parametrize("name", sorted(faults.REQUEST_BREAKPOINTS | faults.RUN_BREAKPOINTS))
def test_breakpoint_has_a_row(name: str) -> None:
    assert name in table("Breakpoints")


def test_page_lists_the_operations_that_are_not_simulated() -> None:
    management.routes()
    listed = PAGE.partition("Some operations are not simulated.")[2].partition("**The agent**")[0]
    assert set(re.findall(r"`(\w+)`", listed)) == {
        name
        for name, row in operations().items()
        if name not in call._HANDLERS and not generic_store._is_stored(row.path)
    }
