"""``python -m airflow_provider_platform.sandbox.demo.airflow_ui``: the demo's runs in Airflow's UI.

Serves the sandbox, and beside it Airflow's own ``airflow standalone``, on loopback until Ctrl-C.
The form of each example DAG is filled in with ids of the sandbox, which is new: the links of
earlier runs lead to pages that it does not have.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.demo.home import (
    DAG_ID,
    FOLDER,
    UI_COMMAND,
    DemoError,
    free_port,
    prepared,
    shown,
    store_connections,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LOG = FOLDER / "airflow-ui.log"
_PARTS = ("metadatabase", "scheduler", "dag_processor", "triggerer")


def main() -> int:
    """Serve until interrupted. The exit code is 1 if Airflow does not start, or ends by itself."""
    argparse.ArgumentParser(prog=UI_COMMAND, description=__doc__).parse_args()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        with prepared() as (sandbox, new):
            print(f"Preparing Airflow{', and making its database' if new else ''} ...", flush=True)
            os.environ["AIRFLOW__LOGGING__LOGGING_LEVEL"] = "WARNING"  # in this process
            dag_runs.ensure_database()
            store_connections(sandbox)
            _serve(sandbox.url)
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; nothing is left running. The runs are kept.", file=sys.stderr)
    return 0


def _interrupt(*_: object) -> NoReturn:
    os.write(2, b"\nStopping ...\n")
    raise KeyboardInterrupt


def _serve(sandbox_url: str) -> None:
    url = f"http://127.0.0.1:{free_port(8080)}"
    command = [str(Path(sys.executable).with_name("airflow")), "standalone"]
    began = told = time.monotonic()
    print(f"Starting Airflow (about 20 s), log: {shown(_LOG)} ...", flush=True)
    with (
        _LOG.open("w") as log,
        # At SIGTERM standalone leaves its parts running.
        running(command, env=_environment(url), stdout=log, stop_signal=signal.SIGINT) as process,
    ):
        while process.poll() is None and (missing := _missing(url)):
            if time.monotonic() > told + 15:
                told = time.monotonic()
                print(f"  ... {told - began:.0f} s, waiting for {', '.join(missing)}", flush=True)
            time.sleep(0.5)
        if process.poll() is None:
            print(
                f"\nAirflow's UI  {url}/dags/{DAG_ID} (no login)\n"
                f"Sandbox       {sandbox_url}, the address in the connection platform_default\n"
                "Ctrl-C stops both.",
                flush=True,
            )
            process.wait()
    raise DemoError(f"Airflow has ended. Its log ({shown(_LOG)}) ends:\n{_LOG.read_text()[-2000:]}")


def _environment(url: str) -> dict[str, str]:
    scripts = Path(sys.executable).parent
    return {
        **os.environ,
        # Standalone starts its parts as plain `airflow`.
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}",
        "AIRFLOW__API__BASE_URL": url,
        # Without it the page of the configuration shows an error.
        "AIRFLOW__API__EXPOSE_CONFIG": "non-sensitive-only",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": url.rpartition(":")[2],
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{url}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "INFO",
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        # Tasks that the last UI left start before the API server answers. They wait for it.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "10",
    }


def _missing(url: str) -> list[str]:
    """The parts of Airflow that its health page does not call healthy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(f"{url}/api/v2/monitor/health", timeout=15) as response:
            health = json.load(response)
    except (OSError, ValueError):
        return ["the API server"]
    return [part for part in _PARTS if (health.get(part) or {}).get("status") != "healthy"]


@contextmanager
def running(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    stdout: Any = None,
    stop_signal: signal.Signals = signal.SIGTERM,
) -> Iterator[subprocess.Popen[str]]:
    """Run a command in a session of its own, so that Ctrl-C reaches only this process, which then
    stops the command and kills what is left of its session."""
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        text=True,
        errors="replace",
    )
    try:
        yield process
    finally:
        try:
            process.send_signal(stop_signal)
            with suppress(subprocess.TimeoutExpired):
                process.wait(15)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            if process.stdout is not None:
                process.stdout.close()


if __name__ == "__main__":
    sys.exit(main())
