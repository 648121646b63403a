"""Every test that `docs/faults.md` names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

TESTS = Path(__file__).parents[1]
PAGE = TESTS.parent / "docs" / "faults.md"
ROWS = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
FIRST_TABLE = "| fault |"
"""The tables above it say what words mean."""
FUNCTIONS = set(
    re.findall(
        r"^ *(?:async )?def (test_\w+)",
        "\n".join(path.read_text() for path in TESTS.rglob("test_*.py")),
        re.MULTILINE,
    )
)
NAMED = sorted(set(re.findall(r"`(test_\w+)`", PAGE.read_text())))
FILES = sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE.read_text())))


@pytest.mark.parametrize("name", NAMED)
def test_test_that_the_faults_page_names_exists(name: str) -> None:
    assert name in FUNCTIONS


@pytest.mark.parametrize("name", FILES)
def test_file_that_the_faults_page_names_exists(name: str) -> None:
    assert (TESTS / name).is_file()


def test_every_fault_of_the_page_names_a_test() -> None:
    start = next(at for at, row in enumerate(ROWS) if row.startswith(FIRST_TABLE))
    faults = [
        row for row in ROWS[start:] if not re.match(r"\| (fault|what ends the task|---)", row)
    ]
    without = [row for row in faults if "test_" not in row]
    assert len(faults) > 40
    assert len(without) <= 1, without
