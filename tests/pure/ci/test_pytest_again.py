"""A test that fails once and passes alone does not fail the gate. The gate names it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

AGAIN = Path(__file__).parents[3] / ".ci" / "pytest_again.py"
SOUND = "def test_sound():\n    pass\n"
BROKEN = "def test_broken():\n    assert False\n"
LATE = """
from pathlib import Path

def test_late():
    tries = Path("tries.txt")
    tries.write_text(tries.read_text() + "x" if tries.exists() else "x")
    assert tries.read_text() == "xx"
"""
INTERRUPTED = "def test_interrupted():\n    raise KeyboardInterrupt\n"


def run_gate(folder: Path, *tests: str) -> tuple[int, str, list[str]]:
    """The exit status, what is printed, and the names noted, of these tests in the gate."""
    (folder / "test_some.py").write_text("\n".join(tests))
    (folder / "pytest.ini").write_text("[pytest]\n")
    notes = folder / "notes"
    done = subprocess.run(
        [sys.executable, str(AGAIN), "-n", "2", "-p", "no:hypothesispytest", "test_some.py"],
        cwd=folder,
        env=os.environ | {"FAILED_AT_FIRST": str(notes)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, notes.read_text().split() if notes.exists() else []


def test_a_test_that_passes_alone_is_noted_and_the_run_passes(tmp_path: Path) -> None:
    status, printed, noted = run_gate(tmp_path, SOUND, LATE)
    assert (status, noted) == (0, ["test_some.py::test_late"]), printed


def test_a_test_that_fails_again_fails_the_run(tmp_path: Path) -> None:
    status, printed, noted = run_gate(tmp_path, SOUND, LATE, BROKEN)
    assert (status, noted) == (1, []), printed
    assert "failed again when run alone: test_some.py::test_broken" in printed


@pytest.mark.parametrize("tests", [[LATE, INTERRUPTED], []], ids=["interrupted", "no tests"])
def test_interrupted_run_stays_failed(tmp_path: Path, tests: list[str]) -> None:
    status, printed, noted = run_gate(tmp_path, *tests)
    assert status > 1, printed
    assert noted == []
    assert "once more" not in printed
