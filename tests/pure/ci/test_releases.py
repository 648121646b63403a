"""The package supports the releases that its tests run on: see `.ci/airflow-releases.txt`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[3]
LINES = [
    line.split()
    for line in (CHECKOUT / ".ci" / "airflow-releases.txt").read_text().splitlines()
    if not line.startswith("#")
]
DEVELOPED_ON = LINES[-1]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]


@pytest.mark.parametrize("line", LINES, ids=lambda line: line[0])
def test_each_release_has_its_packages_pinned(line: list[str]) -> None:
    release, airflow, *_ = line
    name = "constraints.txt" if line is DEVELOPED_ON else f"constraints-{release}.txt"
    pins = (CHECKOUT / name).read_text().splitlines()[1:]
    assert f"apache-airflow=={airflow}" in pins
    for pin in pins:
        assert re.match(r"[a-z0-9-]+==[\w.+]+( ; [^/]+)?$", pin), pin


def test_the_classifiers_name_the_pythons_of_the_release_it_is_developed_on() -> None:
    named = [
        name.rpartition(" ")[2]
        for name in PROJECT["classifiers"]
        if name.startswith("Programming Language :: Python :: 3.")
    ]
    assert named == DEVELOPED_ON[3:]
    systems = [name for name in PROJECT["classifiers"] if name.startswith("Operating System")]
    assert systems == ["Operating System :: POSIX :: Linux"]


def test_the_docs_name_the_releases() -> None:
    page = (CHECKOUT / "docs" / "compatibility.md").read_text()
    rows = [
        re.findall(r"[\d.]+(?:b\d)?", line)
        for line in page.splitlines()
        if re.match(r"\| 3\.", line)
    ]
    assert rows == sorted([airflow, *pythons] for _, airflow, _, *pythons in LINES)
