"""``python -m airflow_provider_platform.sandbox.demo.ui``: Airflow's UI over what the demo left.

Serves the sandbox and a whole Airflow (scheduler, API server, triggerer) on loopback until Ctrl-C,
with the metadata database of the last demo run, so that its XComs can be looked at and the pipeline
started again.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from airflow_provider_platform.sandbox.demo.airflow_home import isolated
from airflow_provider_platform.sandbox.demo.checkout import DAG_FILE, DAG_ID, FOLDER, HOME, shown
from airflow_provider_platform.sandbox.demo.processes import (
    DemoError,
    only_one,
    running,
    running_sandbox,
    stop_on_signals,
)

if TYPE_CHECKING:
    import subprocess

_LOG = FOLDER / "airflow-ui.log"
_HEALTHY_SECONDS = 180


def main() -> int:
    """Serve until interrupted; the exit code is 1 when it cannot be served."""
    stop_on_signals()
    try:
        with only_one(FOLDER), running_sandbox(FOLDER) as sandbox:
            _serve(json.dumps(sandbox["connection"]))
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 0
    return 0


def _serve(connection: str) -> None:
    HOME.mkdir(parents=True, exist_ok=True)
    port = _free_port(8080)
    scripts = Path(sys.executable).parent
    # Standalone starts its parts as plain `airflow`.
    env = isolated(os.environ, HOME, DAG_FILE.parent) | {
        "PATH": f"{scripts}{os.pathsep}{os.environ.get('PATH', '')}",
        "AIRFLOW_CONN_PLATFORM_DEFAULT": connection,
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(_free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(_free_port()),
    }
    print("Starting Airflow (about 20 s) ...", flush=True)
    command = [str(scripts / "airflow"), "standalone"]
    with (
        _LOG.open("w") as log,
        # SIGTERM would leave its parts running.
        running(command, env=env, stdout=log, stop_signal=signal.SIGINT) as process,
    ):
        _wait_until_healthy(process, port)
        print(f"Airflow's UI: http://127.0.0.1:{port}/dags/{DAG_ID} (no login; Ctrl-C stops it)")
        print("The connection platform_default leads to the sandbox.", flush=True)
        process.wait()
        raise DemoError(f"Airflow has ended by itself; its log: {shown(_LOG)}")


def _wait_until_healthy(process: subprocess.Popen[str], port: int) -> None:
    url = f"http://127.0.0.1:{port}/api/v2/monitor/health"
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + _HEALTHY_SECONDS
    while True:
        try:
            with opener.open(url, timeout=5):
                return
        except (urllib.error.URLError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                tail = _LOG.read_text()[-2000:]
                raise DemoError(
                    f"Airflow did not start; its log ({shown(_LOG)}) ends:\n\n{tail}"
                ) from None
            time.sleep(0.5)


def _free_port(wanted: int = 0) -> int:
    """``wanted`` if it is free, else a port that is."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
