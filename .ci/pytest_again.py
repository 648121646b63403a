"""Run pytest with these arguments; with FAILED_AT_FIRST set, run what fails once more, alone.

A busy machine makes a sound test fail now and then. A test that fails again, with nothing beside
it, fails the run. The names of those that pass then are added to the file FAILED_AT_FIRST, and
`.ci/run` lists them in its summary. An interrupt, an error of pytest itself or more than `AT_MOST`
failures fail the run at once. Without FAILED_AT_FIRST this is pytest and nothing else.
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
    """The exit status of pytest, of the second run where there is one."""
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
            print(f"{len(failed)} tests failed: too many to run again alone.", flush=True)
            return status
        print("\n=== what failed, once more and alone", flush=True)
        again = ["-n", "0", "--last-failed", "--last-failed-no-failures=none"]
        status = subprocess.run([*pytest, *again], check=False).returncode
        if left := failed_tests(folder):
            print(f"not passed alone either: {', '.join(left)}", flush=True)
            return status or TESTS_FAILED
    with Path(notes).open("a", encoding="utf-8") as file:
        file.writelines(f"{name}\n" for name in failed)
    return status


def failed_tests(cache: str) -> list[str]:
    """The names of the tests, or of the files that could not be read, that failed last."""
    file = Path(cache, "v", "cache", "lastfailed")
    return sorted(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
