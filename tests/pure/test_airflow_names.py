"""Every name that a module takes from `_airflow` is there: its `__getattr__` hides a missing one
from the type checker."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import airflow_provider_platform
from airflow_provider_platform import _airflow

PACKAGE = Path(airflow_provider_platform.__file__).parent


MODULE = "airflow_provider_platform._airflow"


def taken(file: Path) -> set[str]:
    text = file.read_text(encoding="utf-8")
    if MODULE not in text:
        return set()
    return {
        alias.name
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ImportFrom) and node.module == MODULE
        for alias in node.names
    }


USERS = {
    str(file.relative_to(PACKAGE)): names
    for file in PACKAGE.rglob("*.py")
    if (names := taken(file))
}


@pytest.mark.parametrize("user", sorted(USERS))
def test_every_name_that_a_module_imports_exists(user: str) -> None:
    missing = {name for name in USERS[user] if not hasattr(_airflow, name)}
    assert not missing
