"""What a release of Airflow has that tests need."""

from __future__ import annotations

import pytest
from airflow.sdk import __version__ as sdk_version

needs_store = pytest.mark.skipif(
    tuple(map(int, sdk_version.split(".")[:2])) < (1, 3),
    reason="Airflow before 3.3 has no task state store: a retry begins again",
)
