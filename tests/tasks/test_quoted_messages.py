"""Errors and logs that the documentation quotes are those of the package."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
TROUBLES = (PROJECT / "docs" / "troubleshooting.md").read_text()
WATCHED = (PROJECT / "docs" / "production.md").read_text().partition("\n## Monitoring\n")[2]
QUOTES = [
    part.strip(" .")
    for row in re.findall(r"^\| (`….*?) \|", TROUBLES, re.MULTILINE)
    for quote in re.findall(r"`([^`]*)`", row)
    for part in quote.split("…")
    if part.strip(" .")
]
OF_OTHERS = {
    "@task.platform_chat",
    "No module named 'airflow_provider_platform'",
    "dag.test()",
    "fixture 'platform_sandbox' not found",
    "is not serialized",
    "XCom not found",
    # The value that the message quotes is filled in.
    "is the literal ***",
}
"""Texts of Airflow, Python and pytest, and what is no text."""


@cache
def texts() -> str:
    """All texts of the package but the sandbox's; `#` stands for what is filled in."""
    found = []
    for file in (PROJECT / "airflow_provider_platform").rglob("*.py"):
        if "sandbox" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                found.append(node.value)
            if isinstance(node, ast.JoinedStr):
                values = node.values
                found.append(
                    "".join(str(v.value) if isinstance(v, ast.Constant) else "#" for v in values)
                )
    return "\n".join(found).casefold()


@pytest.mark.parametrize("quote", sorted({*QUOTES} - OF_OTHERS))
def test_troubleshooting_quotes_messages_of_the_package(quote: str) -> None:
    assert QUOTES
    filled = re.sub(r"\d+|\bHTML\b", "#", quote).casefold()
    assert filled in texts() or quote.casefold() in texts()


@pytest.mark.parametrize("quote", re.findall(r'"([^"]+)"', WATCHED.partition("\n##")[0]))
def test_alert_list_quotes_messages_of_the_package(quote: str) -> None:
    assert quote in texts()
