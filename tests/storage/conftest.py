"""An S3 server in a process of its own, and the connection to it."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.storage.breaking_proxy import BreakingProxy
from tests.support.storage.refusing_proxy import RefusingProxy

if TYPE_CHECKING:
    from collections.abc import Iterator

NEEDED = ("moto", "s3fs", "pyarrow")
MISSING = [name for name in NEEDED if find_spec(name) is None]
BUCKET = "lake"
collect_ignore_glob = ["test_*.py"] if MISSING else []


def pytest_report_header() -> str | None:
    """Why nothing of this folder runs, where nothing does."""
    return f"tests/storage: not here, {MISSING} missing (make test-storage)" if MISSING else None


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of a running server."""
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert server.stdout is not None
        for line in server.stdout:
            if "Running on http://127.0.0.1:" in line:
                break
        address = line.split("Running on ")[1].split()[0]
        yield address
    finally:
        server.kill()
        server.wait()


@pytest.fixture
def s3(s3_server: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A client of the server, whose bucket is there and empty; Airflow has a connection to it."""
    import botocore.session

    urllib.request.urlopen(
        urllib.request.Request(f"{s3_server}/moto-api/reset", method="POST"), timeout=10
    ).close()
    monkeypatch.setenv("AIRFLOW_CONN_S3", connection(s3_server))
    client = botocore.session.get_session().create_client(
        "s3",
        endpoint_url=s3_server,
        region_name="us-east-1",
        aws_access_key_id="someone",
        aws_secret_access_key="secret",
    )
    client.create_bucket(Bucket=BUCKET)
    return client


@pytest.fixture(scope="session")
def proxy(s3_server: str) -> Iterator[BreakingProxy]:
    """One for all tests: Airflow keeps what it has found for a connection."""
    with BreakingProxy(s3_server) as proxy:
        yield proxy


@pytest.fixture
def breaking_proxy(s3: Any, proxy: BreakingProxy, monkeypatch: pytest.MonkeyPatch) -> BreakingProxy:
    """A way to the server that can be broken; Airflow's connection `s3_broken` goes there."""
    proxy.breaks_after, proxy.broken = None, 0
    monkeypatch.setenv("AIRFLOW_CONN_S3_BROKEN", connection(proxy.address))
    return proxy


@pytest.fixture(scope="session")
def refusing_proxy(s3_server: str) -> Iterator[RefusingProxy]:
    """One for all tests: Airflow keeps what it has found for a connection."""
    with RefusingProxy(s3_server) as proxy:
        yield proxy


@pytest.fixture
def proxy_with_refusals(
    s3: Any, refusing_proxy: RefusingProxy, monkeypatch: pytest.MonkeyPatch
) -> RefusingProxy:
    """A way to the server that refuses chosen requests; Airflow's connection `s3_refusing` goes
    there."""
    refusing_proxy.refusals, refusing_proxy.refused = [], 0
    monkeypatch.setenv("AIRFLOW_CONN_S3_REFUSING", connection(refusing_proxy.address))
    return refusing_proxy


def connection(address: str) -> str:
    """An Airflow connection to an S3 server."""
    config = {"retries": {"max_attempts": 1, "mode": "standard"}, "connect_timeout": 2}
    return json.dumps(
        {
            "conn_type": "aws",
            "login": "someone",
            "password": "secret",
            "extra": {
                "endpoint_url": address,
                "region_name": "us-east-1",
                "config_kwargs": {**config, "read_timeout": 10},
            },
        }
    )
