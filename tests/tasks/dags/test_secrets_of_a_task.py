"""Secrets that a task's own calls send and receive, and that the service quotes back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

DAG_FILE = Path(__file__).parents[2] / "airflow" / "dags" / "calls_with_secrets.py"
CLIENT_SECRET = "canary-of-a-client-secret"
SESSION_ID = "5e55" * 8
QUOTING = (
    {"api": "data", "quotes": "authorization"},
    {"path": "oauth", "quotes": "body"},
    {"path": "session/token", "quotes": "body"},
    {"path": "session/revoke", "quotes": "body"},
)
"""The requests that are answered with what they sent."""


@pytest.mark.parametrize(("on_loop", "form"), [(False, "plain"), (True, "url")])
def test_secrets_are_in_no_logged_error(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    caplog: pytest.LogCaptureFixture,
    on_loop: bool,
    form: str,
) -> None:
    for match in QUOTING:
        platform_sandbox.control.fault(
            "status", status=403, message="not with", quote_form=form, **match
        )
    conf = {"platform_conn_id": "platform_default", "deferrable": on_loop}
    failed = run_dag(DAG_FILE, "secrets", conf).task("quoted_back")
    logged = caplog.text
    assert failed.error is not None
    assert failed.error.startswith("ValueError: A careless error")
    assert logged.count("The service quotes what it was sent") >= len(QUOTING)
    assert logged.count("not with ***") + logged.count("not with Bearer ***") >= 1
    # A run inside this process masks nothing by itself: the task's own careless line shows that.
    careful = [line for line in logged.splitlines() if "A careless line" not in line]
    secrets = (CLIENT_SECRET, SESSION_ID, "eyJhbGci")
    assert [line for line in careful if any(secret in line for secret in secrets)] == []
