"""Every file that `docs/architecture.md` names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "airflow_provider_platform"
NAMED = re.findall(r"`([\w/]+(?:\.py|/))`", (PROJECT / "docs" / "architecture.md").read_text())
FOLDERS = (
    PACKAGE,
    PACKAGE / "charts",
    PACKAGE / "client" / "management",
    PROJECT,
    PROJECT / "tests" / "support" / "airflow",
)


@pytest.mark.parametrize("name", sorted(set(NAMED)))
def test_file_that_the_architecture_page_names_exists(name: str) -> None:
    assert any((folder / name).exists() for folder in FOLDERS)


def test_architecture_page_names_many_files() -> None:
    assert len(set(NAMED)) > 40
