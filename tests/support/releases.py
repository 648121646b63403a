"""What a release of Airflow has that tests need."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import pytest
from airflow.sdk import __version__ as sdk_version

_sdk = tuple(map(int, sdk_version.split(".")[:2]))
_before_3_3 = _sdk < (1, 3)
needs_store = pytest.mark.skipif(
    _before_3_3, reason="Airflow before 3.3 has no task state store: a retry begins again"
)
needs_new_tries = pytest.mark.skipif(
    _before_3_3, reason="`DAG.test` of Airflow 3.0 begins a retry where a deferred try would go on"
)
needs_forwarding = pytest.mark.skipif(
    _sdk >= (1, 4), reason="on SIGTERM, the supervisor of Airflow 3.4 lets its task end"
)
# The scheduler of 3.4.0b2 ends on a unique constraint when it misses the heartbeat of a task.
needs_missed_heartbeats = pytest.mark.skipif(
    _sdk >= (1, 4) and "b" in sdk_version, reason="this beta's scheduler ends at a lost worker"
)


def airflow_httpx() -> Any:
    """Return the library that Airflow itself sends with: httpx2 from Airflow 3.4 on."""
    client = import_module("airflow.sdk.api.client")
    return getattr(client, "httpx2", None) or client.httpx
