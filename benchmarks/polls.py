"""The processor time of one poll of a deferred dbt sync, beside that of dbt Cloud's own trigger.

Both wait in a process of their own, one after the other in each round, for the same server: so many
triggers at once, each with a poll a second. Counted is the processor time of the process after the
start, for each poll that the server saw. The best round of each counts. dbt Cloud's trigger speaks
plain HTTP here, as ours does: it would otherwise make a TLS handshake for each poll.

`make bench` installs dbt Cloud's provider for this benchmark (`.ci/dbt-cloud.txt`).
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

WAITS = 200
POLL_INTERVAL = 1.0
STARTING = 3.0
"""Seconds after which the start is taken to be over."""
SECONDS = 10.0
ROUNDS = 3
MOST = 2.0
"""What a poll may cost, as a multiple of theirs."""
ROOT = Path(__file__).parents[1]


def main() -> None:
    """Print microseconds and the ratio."""
    herd = str(Path(__file__).with_name("herd.py"))
    server = subprocess.Popen([sys.executable, herd, "serve"], stdout=subprocess.PIPE)
    best: dict[str, float] = {}
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        for _ in range(ROUNDS):
            for name in ("ours", "theirs"):
                spent = measured(name, port)
                best[name] = min(spent, best.get(name, spent))
    finally:
        server.kill()
        server.wait()
    ratio = best["ours"] / best["theirs"]
    print(f"a poll of a dbt sync:          {best['ours']:.0f} us")
    print(f"a poll of dbt Cloud's trigger: {best['theirs']:.0f} us")
    print(f"ratio: {ratio:.2f} (at most {MOST:g})")
    if ratio > MOST:
        sys.exit("a poll costs too much")


def measured(name: str, port: int) -> float:
    """Return the microseconds of processor time of a poll, from a process of its own."""
    ours = {
        "conn_type": "platform",
        "host": f"http://127.0.0.1:{port}/api",
        "password": "token-of-a-benchmark",
    }
    theirs = {"conn_type": "dbt_cloud", "host": f"127.0.0.1:{port}", "login": "1", "password": "t"}
    path = os.pathsep.join([str(ROOT), str(ROOT / ".cache" / "dbt-cloud")])
    with tempfile.TemporaryDirectory() as home:
        environment = {
            **os.environ,
            "PYTHONPATH": path,
            "AIRFLOW_HOME": home,
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
            "AIRFLOW_CONN_PLATFORM_DEFAULT": json.dumps(ours),
            "AIRFLOW_CONN_DBT_CLOUD_DEFAULT": json.dumps(theirs),
        }
        done = subprocess.run(
            [sys.executable, __file__, name, str(port)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=300,
        )
    return float(done.stdout.split()[-1])


def our_triggers() -> list[Any]:
    """Deferred dbt syncs."""
    from airflow_provider_platform.triggers import PlatformRunTrigger

    return [
        PlatformRunTrigger(
            kind="dbt_sync.DbtSyncRunKind",
            run={"deployment_id": 1, "sync_job_id": f"job-{n}", "branch_name": "b", "waits": True},
            platform_conn_id="platform_default",
            deadline=time.time() + 3600,
            poll_interval=POLL_INTERVAL,
        )
        for n in range(WAITS)
    ]


def their_triggers() -> list[Any]:
    """Deferred jobs of dbt Cloud."""
    from airflow.providers.dbt.cloud.hooks.dbt import DbtCloudHook
    from airflow.providers.dbt.cloud.triggers.dbt import DbtCloudRunJobTrigger

    def plain(tenant: str, endpoint: str, *_: Any, **__: Any) -> tuple[str, dict[str, Any]]:
        return f"http://{tenant}/api/v2/accounts/{endpoint}", {}

    DbtCloudHook.get_request_url_params = staticmethod(plain)
    return [
        DbtCloudRunJobTrigger(
            conn_id="dbt_cloud_default",
            run_id=n,
            end_time=time.time() + 3600,
            poll_interval=POLL_INTERVAL,
            account_id=1,
        )
        for n in range(WAITS)
    ]


async def wait(name: str, port: int) -> None:
    """Start every trigger at once, and print what a poll costs."""
    triggers = our_triggers() if name == "ours" else their_triggers()
    tasks = [asyncio.create_task(anext(trigger.run())) for trigger in triggers]
    await asyncio.sleep(STARTING)
    polls, worked = polls_so_far(port), time.process_time()
    await asyncio.sleep(SECONDS)
    worked, polls = time.process_time() - worked, polls_so_far(port) - polls
    for task in tasks:
        if task.done():
            sys.exit(f"a wait has ended, so that this measured nothing: {task.result()}")
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    print(worked / polls * 1e6)


def polls_so_far(port: int) -> int:
    """How many polls the service has seen."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/polls") as answer:
        return int(answer.read())


if __name__ == "__main__":
    asyncio.run(wait(sys.argv[1], int(sys.argv[2])))
