"""Both clients as one fixture. Attempts follow each other without pauses."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client import repeats
from airflow_provider_platform.client.errors import PlatformError
from tests.support.wire.calls import Run, run_async, run_sync


@pytest.fixture(autouse=True)
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeats, "FIRST_PAUSE", 0.001)


@pytest.fixture(
    params=[
        pytest.param(run_sync, id="sync", marks=pytest.mark.exhaustive),
        pytest.param(run_async, id="async"),
    ]
)
def run(request: pytest.FixtureRequest) -> Run:
    """Both clients: every test that uses it holds for the two. Quick runs leave out the
    synchronous one, which runs the same calls in a thread of its own: see `test_programs.py`."""
    client: Run = request.param

    def checked(*args: Any, **options: Any) -> Any:
        try:
            return client(*args, **options)
        except PlatformError as error:
            shown = f"{error!r} {error} {error.to_payload()} {error.__cause__!r}"
            assert "canary" not in shown
            raise

    return checked
