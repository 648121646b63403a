"""Run pytest with these arguments. If FAILED_AT_FIRST is set, run failed tests once more, alone.

On a busy machine, a correct test fails now and then. If a test fails again when it runs alone, the
run fails. If it passes then, its name is added to the file FAILED_AT_FIRST, and `.ci/run` lists it
in its summary. An interrupt, an error of pytest itself or more than `AT_MOST` failures fail the run
at once. Without FAILED_AT_FIRST, this script only runs pytest.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

TESTS_FAILED = 1
AT_MOST = 20


def main(arguments: list[str]) -> int:
    """Return the exit status of pytest; if it ran twice, of the second run."""
    pytest = [sys.executable, "-m", "pytest", *arguments]
    notes = os.environ.get("FAILED_AT_FIRST")
    if not notes:
        os.execv(pytest[0], pytest)
    with tempfile.TemporaryDirectory(prefix="pytest-cache-") as folder:
        pytest += ["-o", f"cache_dir={folder}"]
        status = subprocess.run(pytest, check=False).returncode
        failed = failed_tests(folder)
        if status != TESTS_FAILED or not failed:
            return status
        if len(failed) > AT_MOST:
            print(f"{len(failed)} tests failed. That is too many to run again alone.", flush=True)
            return status
        print("\n=== running the failed tests once more, alone", flush=True)
        again = ["-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        status = subprocess.run([*pytest, *again], check=False).returncode
        if left := failed_tests(folder):
            print(f"failed again when run alone: {', '.join(left)}", flush=True)
            return status or TESTS_FAILED
    with Path(notes).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in failed)
    return status


def failed_tests(cache: str) -> list[str]:
    """Return the names of the tests that failed last, and of files that could not be imported."""
    file = Path(cache, "v", "cache", "lastfailed")
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
