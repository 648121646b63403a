"""What a release of Airflow has that tests need."""

from __future__ import annotations

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
