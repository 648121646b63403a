"""The steps of `.ci/run`: each is counted, whether it runs by itself or beside another one."""

from __future__ import annotations

import subprocess
from pathlib import Path

STEPS = Path(__file__).parents[3] / ".ci" / "step_functions.sh"


def gate(folder: Path, *steps: str) -> tuple[int, str]:
    """The exit status of these steps and what they print."""
    script = "\n".join(["set -eu", f'. "{STEPS}"', *steps, "finish"])
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_gate_fails_if_one_of_two_parallel_steps_fails(tmp_path: Path) -> None:
    status, printed = gate(
        tmp_path, 'beside "first" sh -c "echo broken; exit 3"', 'step "second" true', "joined"
    )
    assert status == 1
    assert "\n=== first\nbroken\n" in printed
    assert "FAILED (exit code 3)" in printed
    assert "1 steps passed, 1 failed, 0 not run" in printed


def test_gate_fails_if_a_step_is_killed(tmp_path: Path) -> None:
    status, printed = gate(tmp_path, 'beside "killed" sh -c "kill -9 -$$"', "joined")
    assert status == 1
    assert "0 steps passed, 1 failed" in printed


def test_summary_names_the_steps_that_failed_first(tmp_path: Path) -> None:
    note = 'sh -c \'echo "tests/test_x.py::test_late[a b]" >"$FAILED_AT_FIRST"\''
    status, printed = gate(
        tmp_path, f'beside "first" {note}', f'step "second" {note}', "joined", 'step "third" true'
    )
    assert status == 0
    summary = printed.partition("=== summary")[2]
    assert (
        summary.count(
            "note: failed at first, then passed when run alone: tests/test_x.py::test_late[a b]"
        )
        == 2
    )
    assert "3 steps passed, 0 failed" in summary
