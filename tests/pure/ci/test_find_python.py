"""Which Python the environments use, and what the script reports when it finds none."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

FIND_PYTHON = Path(__file__).parents[3] / ".ci" / "find-python.sh"


class Machine:
    """A machine with nothing on PATH but what a test puts there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def has(self, name: str, version: tuple[int, int, int] | None) -> str:
        """Put a Python there that takes itself for `version`; without one, it does not start."""
        file = self.folder / name
        if version is None:
            file.write_text("#!/bin/sh\nexit 127\n")
        else:
            file.write_text(
                f'#!/bin/sh\nexec "{sys.executable}" -c "import sys; '
                f'sys.version_info = {version}; exec(sys.argv[1])" "$2"\n'
            )
        file.chmod(0o755)
        return str(file)

    def find(self, *versions: str, **variables: str) -> subprocess.CompletedProcess[str]:
        shell = shutil.which("sh")
        assert shell is not None
        return subprocess.run(
            [shell, str(FIND_PYTHON), *versions],
            env={"PATH": str(self.folder), **variables},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_python_3_11_is_preferred(machine):
    machine.has("python3.11", (3, 11, 7))
    machine.has("python3.12", (3, 12, 1))
    machine.has("python3", (3, 13, 0))

    assert machine.find().stdout == "python3.11\n"


def test_python_that_does_not_start_is_skipped(machine):
    machine.has("python3.11", None)
    machine.has("python3.12", (3, 12, 1))

    assert machine.find().stdout == "python3.12\n"


def test_plain_python_is_used_if_it_is_new_enough(machine):
    machine.has("python3", (3, 13, 0))

    assert machine.find().stdout == "python3\n"


@pytest.mark.parametrize("version", [(3, 10, 13), (3, 14, 0)])
def test_unsupported_python_is_named_with_its_version(machine, version):
    machine.has("python3", version)

    found = machine.find()

    assert found.returncode == 1
    assert found.stdout == ""
    assert f"the python3 found here is {'.'.join(map(str, version))}" in found.stderr
    assert "Python 3.11 or 3.12 or 3.13 is needed" in found.stderr
    assert "make PYTHON=/path/to/python3.11" in found.stderr


def test_an_older_airflow_needs_an_older_python(machine):
    machine.has("python3", (3, 13, 0))

    found = machine.find("3.11", "3.12")

    assert (found.returncode, found.stdout) == (1, "")
    assert "Python 3.11 or 3.12 is needed; the python3 found here is 3.13.0" in found.stderr
    assert machine.find("3.13").stdout == "python3\n"


def test_python_of_pyenv_is_found(machine):
    machine.has("python3.13", None)
    folder = machine.folder / "versions" / "3.13.1" / "bin"
    folder.mkdir(parents=True)
    python = shutil.move(machine.has("python", (3, 13, 1)), folder)

    assert machine.find("3.13").returncode == 1
    assert machine.find("3.13", PYENV_ROOT=str(machine.folder)).stdout == f"{python}\n"


def test_missing_python_is_reported(machine):
    found = machine.find()

    assert found.returncode == 1
    assert "no Python 3 was found on PATH" in found.stderr


def test_variable_python_sets_the_interpreter(machine):
    machine.has("python3.11", (3, 11, 7))
    other = machine.has("mine", (3, 12, 1))

    assert machine.find(PYTHON=other).stdout == f"{other}\n"


def test_unsupported_python_in_the_variable_is_refused(machine):
    machine.has("python3.11", (3, 11, 7))
    old = machine.has("old", (3, 9, 18))

    found = machine.find(PYTHON=old)

    assert (found.returncode, found.stdout) == (1, "")
    assert "found: 3.9.18" in found.stderr
    assert "does not start" in machine.find(PYTHON="/nowhere/python").stderr
