"""Which tests run where: `make test` and `make test-rest` together run each test once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
QUICK, REST = '-m "not exhaustive"', "-m exhaustive"
PLACES = ("tests/tasks/dags/test_stream_faults.py", "tests/tasks/sandbox/test_process.py")


def commands(target: str) -> str:
    """What make runs for a target, without running it."""
    make = ["make", "-n", "--no-print-directory", target, "RELEASE=", "ARGS="]
    done = subprocess.run(make, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    return " ".join(done.stdout.split("pytest_again.py", 1)[1].split())


def collected(*arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "--collect-only", "-q", *arguments, *PLACES],
        cwd=CHECKOUT,
        env=os.environ.copy(),
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in done.stdout.splitlines() if "::" in line]


def test_make_test_and_make_test_rest_together_run_what_make_test_all_runs() -> None:
    everything = commands("test-all")
    assert QUICK in commands("test")
    assert REST in commands("test-rest")
    for command, marker in (("test", QUICK), ("test-rest", REST)):
        assert commands(command).replace(f"{marker}", "").split() == everything.split()


def test_the_gate_runs_make_test_and_what_it_leaves_out() -> None:
    gate = (CHECKOUT / ".ci" / "run").read_text()
    commands = [line.split()[-1] for line in gate.splitlines() if line.startswith("step ")]
    assert {"test", "test-rest"} <= set(commands)


def test_make_test_runs_some_cases_and_leaves_out_whole_folders() -> None:
    quick = collected("-m", "not exhaustive")
    assert not [name for name in quick if name.startswith("tests/tasks/sandbox/")]
    cuts = [
        name
        for name in collected()
        if "::test_connection_cut_after_any_record_gives_the_same_answer[" in name
    ]
    assert [name for name in quick if name in cuts] == cuts[::9]
