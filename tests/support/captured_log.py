"""What a task logs, on every supported Airflow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

OURS = "airflow_provider_platform"


@dataclass
class Capture:
    """What is printed, and what is logged with the standard library."""

    printed: pytest.CaptureFixture[str]
    logged: pytest.LogCaptureFixture

    def lines(self) -> list[str]:
        """The lines of this package. Before Airflow 3.1 a task logs with the standard library
        alone; later its operator prints, and the hook and the client log."""
        printed = [line for line in self.printed.readouterr().out.splitlines() if OURS in line]
        return printed + [
            f"{record.levelname.lower()} {record.getMessage()}"
            for record in self.logged.records
            if OURS in record.name
        ]
