"""How long the parts of the UI's Airflow wait for a lock of their database."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.sandbox.demo.airflow_ui import environment

if TYPE_CHECKING:
    from pathlib import Path

BUSY_TIMEOUT = """
from airflow import settings
from sqlalchemy import text
with settings.engine.connect() as connection:
    print("waits", connection.execute(text("PRAGMA busy_timeout")).scalar(), "ms")
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(("part", "milliseconds"), [("scheduler", 120_000), ("api-server", 5_000)])
def test_only_the_api_server_has_a_short_database_timeout(
    tmp_path: Path, part: str, milliseconds: int
):
    printed = subprocess.run(
        [sys.executable, "-c", BUSY_TIMEOUT, part],
        env=environment(tmp_path, 8080),
        capture_output=True,
        text=True,
        check=True,
    )

    assert f"waits {milliseconds} ms" in printed.stdout
