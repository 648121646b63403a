"""One sandbox per test process, fresh for every test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.sandbox import Sandbox
from tests.support.raw_client import Platform

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="session")
def server() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.fixture
def platform(server: Sandbox) -> Iterator[Platform]:
    server.control.reset()
    client = Platform(server)
    yield client
    client.http.close()
    server.control.reset()
