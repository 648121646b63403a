"""A sandbox in a process of its own, which ends when whoever started it does.

`python -m tests.support.airflow.sandbox_server` writes what `SandboxControl.info` gives, as one
line of JSON, and serves until its input ends.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from airflow_provider_platform.sandbox import Sandbox
from airflow_provider_platform.sandbox.control.client import SandboxControl
from tests.support.airflow.airflow_server import ROOT
from tests.support.airflow.task_run import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform.sandbox.control.client import BreakpointHit
    from airflow_provider_platform.sandbox.state.journal import SandboxState


class PatientControl(SandboxControl):
    """A control that waits as long as everything here does: workers take seconds to start."""

    def wait_for_breakpoint(self, name: str, timeout: float = PATIENCE) -> list[BreakpointHit]:
        return super().wait_for_breakpoint(name, timeout)

    def wait_until(
        self, condition: Callable[[SandboxState], bool], timeout: float = PATIENCE
    ) -> SandboxState:
        return super().wait_until(condition, timeout)

    def wait_gone(self) -> None:
        """Wait until the sandbox has noticed that the client of a request has disconnected."""
        self.wait_until(
            lambda state: any(request.ended == "disconnected" for request in state.requests)
        )


@contextmanager
def running_sandbox() -> Iterator[PatientControl]:
    """Serve a sandbox for the length of a `with`."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.support.airflow.sandbox_server"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "the sandbox did not start; its error is above"
        yield PatientControl(json.loads(line)["url"])
        # Leaving the block closes the input, which ends the sandbox.


def main() -> None:
    """Serve until the input ends."""
    with Sandbox() as sandbox:
        sys.stdout.write(json.dumps(sandbox.control.info()) + "\n")
        sys.stdout.flush()
        os.read(0, 1)


if __name__ == "__main__":
    main()
