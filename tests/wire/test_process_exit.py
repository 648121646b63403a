"""A script, a notebook or a console ends, whatever it has left open: real processes, one for each
way of leaving something open."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

BEGIN = """
import gc, os, sys, threading, time, warnings
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
from airflow_provider_platform.resources.sql.response import SqlRows
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.operation import raw_operation
from airflow_provider_platform.client.platform_client import PlatformClient
url, token = sys.argv[1:]
config = PlatformConfig.build(host=url, management_token=token, deployment_id=1)
LIST = raw_operation("GET", "/v1/deployments")

def query(client):
    def begin():
        query = SqlQuery(
            "SELECT id FROM orders", deployment_id=1, deadline=client.clock() + 60
        )
        return client.events(lambda api: run_sql(api, query))
    return SqlRows(begin, lambda _: None)
"""

SHAPES = {
    "a result at module level": "rows = query(PlatformClient(config)); print(next(iter(rows))[0])",
    "a client that was dropped": """
client = PlatformClient(config)
rows = query(client)
print(next(rows)[0])
del client
gc.collect()
assert next(rows)
del rows
gc.collect()
until = time.monotonic() + 60
while any(t.name == "platform-client" for t in threading.enumerate()):
    assert time.monotonic() < until
    time.sleep(0.01)
""",
    "an exception": """
rows = query(PlatformClient(config))
print(next(rows)[0], flush=True)
raise ValueError("on purpose")
""",
    "a thread": """
kept = []
def work():
    rows = query(PlatformClient(config))
    kept.append(rows)
    print(next(rows)[0])
thread = threading.Thread(target=work)
thread.start()
thread.join()
""",
    "a daemon in the middle of a call": """
from airflow_provider_platform.client.errors import PlatformClosedError
begun = threading.Event()
async def forever(api):
    begun.set()
    await api.sleep(1000)
client = PlatformClient(config)
def work():
    try:
        client.run(forever)
    except PlatformClosedError:
        pass
threading.Thread(target=work, daemon=True).start()
begun.wait()
print(1)
""",
    "credentials that are read again forever": """
begun = threading.Event()
def reload():
    begun.set()
    time.sleep(1000)
config = PlatformConfig.build(host=url, management_token="refused", deployment_id=1)
client = PlatformClient(config, reload=reload)
threading.Thread(target=client.run, args=(LIST,), daemon=True).start()
begun.wait()
threading.excepthook = lambda args: None
client.close()
print(1)
""",
    "a forked process": """
client = PlatformClient(config)
rows = query(client)
print(next(rows)[0], flush=True)
pid = os.fork()
if pid == 0:
    client.run(LIST)
    from airflow_provider_platform.client.errors import PlatformClosedError
    try:
        list(rows)
    except PlatformClosedError as error:
        assert "in another process (the parent of this one" in str(error)
        sys.exit(0)
    sys.exit(9)
assert os.waitpid(pid, 0)[1] == 0
assert len(list(rows)) > 200
""",
    "an event loop": """
import asyncio
from airflow_provider_platform.client.platform_client import AsyncPlatformClient
client = AsyncPlatformClient(config)
async def main():
    await client.run(LIST)
asyncio.run(main())
print(1)
""",
}
CODES = {"an exception": 1}


@pytest.mark.exhaustive
@pytest.mark.parametrize("shape", SHAPES)
def test_process_ends_although_a_client_is_left_open(shape: str, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_chunk_rows=100)
    ended = subprocess.run(
        [
            sys.executable,
            # From 3.12 on Python warns of every fork of a process that has threads.
            "-Wignore:This process:DeprecationWarning",
            "-c",
            BEGIN + SHAPES[shape],
            platform_sandbox.management_url,
            platform_sandbox.management_token,
        ],
        env=dict(os.environ),
        capture_output=True,
        text=True,
        timeout=180,
        check=False,
    )
    assert ended.stdout.startswith("1")
    assert ended.returncode == CODES.get(shape, 0), ended.stderr
    errors = ended.stderr.partition("ValueError: on purpose")[2 if shape in CODES else 0]
    assert errors.strip() == "", ended.stderr
