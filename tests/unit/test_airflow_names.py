"""Every name that a module takes from `_airflow` is there: its `__getattr__` hides a missing one
from the type checker."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import airflow_provider_platform
from airflow_provider_platform import _airflow

PACKAGE = Path(airflow_provider_platform.__file__).parent


def taken(file: Path) -> set[str]:
    return {
        alias.name
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and node.module == "airflow_provider_platform._airflow"
        for alias in node.names
    }


USERS = {
    str(file.relative_to(PACKAGE)): names
    for file in PACKAGE.rglob("*.py")
    if (names := taken(file))
}


@pytest.mark.parametrize("user", sorted(USERS))
def test_what_a_module_takes_is_there(user: str) -> None:
    missing = {name for name in USERS[user] if not hasattr(_airflow, name)}
    assert not missing
