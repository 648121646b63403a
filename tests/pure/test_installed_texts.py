"""No text of the package refers to a file that is only in a clone of the project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.exhaustive

PROJECT = Path(__file__).parents[2]
PACKAGE = PROJECT / "airflow_provider_platform"
TARGETS = re.findall(r"^([a-z][a-z-]*):.*##", (PROJECT / "Makefile").read_text(), re.MULTILINE)
OWN_FOLDERS = ("benchmarks", "docs", "tests", r"\.ci")
"""Folders that are not installed. The example DAGs are, inside the package."""
POINTERS = re.compile(
    rf"\bmake (?:{'|'.join(TARGETS)})\b"
    rf"|(?<![\w./-])/?(?:{'|'.join(OWN_FOLDERS)})/[\w./-]+"
    r"|\bMakefile\b|\bpyproject\.toml\b"
)
KNOWS_THE_CLONE = (PACKAGE / "sandbox" / "demo" / "home.py", PACKAGE / "get_provider_info.py")
"""Says `make demo` in a clone only; names guides as Airflow's schema asks."""
FILES = [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.html"), *(PROJECT / "example_dags").glob("*.py")]


def pointers(text: str) -> list[str]:
    """What a text names that is not installed: commands of the Makefile, files of the project."""
    pages = [page for page in re.findall(r"\b[\w/]+\.md\b", text) if _is_of_the_project(page)]
    return [*POINTERS.findall(text), *pages]


def _is_of_the_project(page: str) -> bool:
    return (PROJECT / page).exists() or (PROJECT / "docs" / page).exists()


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PROJECT)))
def test_text_of_the_package_names_only_installed_files(file: Path) -> None:
    if file not in KNOWS_THE_CLONE:
        assert pointers(file.read_text()) == []


@pytest.mark.parametrize(
    "text",
    [
        "see docs/connection.md",
        "run `make demo`",
        "/docs/start.md",
        "README.md, chapter",
        "runs.md",
    ],
)
def test_a_text_that_points_into_the_clone_is_found(text: str) -> None:
    assert pointers(text)


@pytest.mark.parametrize(
    "text", ["writes answer.md", "to make a test", "example_dags", "s3://docs"]
)
def test_texts_without_a_path_are_not_reported(text: str) -> None:
    assert not pointers(text)
