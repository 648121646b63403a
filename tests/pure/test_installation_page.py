"""The installation page lists what can be installed, and the releases that it names are tested."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[2]
PAGE = (PROJECT / "docs" / "installation.md").read_text()
METADATA = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
SECOND_NAMES = {"parquet"}


def rows(section: str) -> dict[str, str]:
    """The rows of a section's table: the first cell, and the second as text."""
    text = PAGE.split(f"## {section}\n")[1].split("\n## ")[0]
    found = re.findall(r"^\| `([\w-]+)` \| (.*?) \|", text, re.MULTILINE)
    return dict(found)


def test_the_page_lists_every_extra() -> None:
    extras = METADATA["optional-dependencies"].keys()
    assert rows("Extras").keys() == extras - SECOND_NAMES


def test_the_page_names_what_an_extra_installs() -> None:
    for extra, stated in rows("Extras").items():
        packages = METADATA["optional-dependencies"][extra]
        names = {re.split(r"[<>=\[]", package)[0] for package in packages}
        assert {name.strip().lower() for name in stated.split(",")} == names, extra


def test_the_page_names_the_pythons_and_airflows_of_the_metadata() -> None:
    releases = (PROJECT / ".ci" / "airflow-releases.txt").read_text()
    newest = re.findall(r"^[\d.]+ +([\d.]+) ", releases, re.MULTILINE)[-1]
    assert set(re.findall(r"apache-airflow==([\d.]+)|apache/airflow:([\d.]+)", PAGE)) <= {
        (newest, ""),
        ("", newest),
    }
    pythons = [
        name.rpartition(" ")[2] for name in METADATA["classifiers"] if "Python :: 3." in name
    ]
    stated = re.search(r"Airflow 3\.0 or later, Python ([\d., or]+), Linux", PAGE)
    assert stated is not None
    assert re.findall(r"3\.\d+", stated[1]) == pythons


def test_the_readme_begins_with_the_two_commands_that_do_all_the_set_up() -> None:
    readme = (PROJECT / "README.md").read_text()
    assert "\n    make demo\n    make test\n" in readme.split("## A question")[0]
