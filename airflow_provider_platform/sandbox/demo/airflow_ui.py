"""Airflow's UI with the runs of the demos: ``python -m …sandbox.demo.airflow_ui``.

Serves the sandbox and a whole Airflow (scheduler, API server, triggerer) on loopback until Ctrl-C,
with the home of the demos: their runs, logs, XComs and connection can be looked at, and the
pipeline can be started again. What is done there is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
import sys
import time
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_platform.sandbox.demo.airflow_home import kept
from airflow_provider_platform.sandbox.demo.airflow_parts import SANDBOX, AirflowParts
from airflow_provider_platform.sandbox.demo.checkout import (
    DAG_FILE,
    DAG_ID,
    FOLDER,
    HOME,
    UI_COMMAND,
    shown,
)
from airflow_provider_platform.sandbox.demo.processes import (
    DemoError,
    only_one,
    running,
    running_sandbox,
    stop_on_signals,
    write_connection,
)

if TYPE_CHECKING:
    import subprocess

_LOG = FOLDER / "airflow-ui.log"
_HEALTHY_SECONDS = 600
_STILL_SECONDS = 30
_SCRIPTS = Path(sys.executable).parent
_WATCH_SECONDS = 10
_UNANSWERED = 3
"""So many unanswered looks in a row mean that the API server is gone, not that it is busy."""
_PATIENCE = "airflow_provider_platform.sandbox.demo.sqlite_patience.CONNECT_ARGS"


def main() -> int:
    """Serve until interrupted; the exit code is 1 when it cannot be served."""
    argparse.ArgumentParser(prog=UI_COMMAND, description=__doc__).parse_args()
    stop_on_signals()
    try:
        with only_one(FOLDER):
            print("Starting the sandbox ...", flush=True)
            with running_sandbox(FOLDER) as sandbox:
                _serve(sandbox)
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("Stopped; nothing is left running. What was done there is kept.", file=sys.stderr)
        return 0
    return 0


def _serve(sandbox: dict[str, Any]) -> None:
    port = free_port(8080)
    env = environment(HOME, port)
    with _LOG.open("w") as log:
        _prepare_database(sandbox["connection"], env, log)
        print("Starting Airflow (about 20 s) ...", flush=True)
        command = [str(_SCRIPTS / "airflow"), "standalone"]
        # SIGTERM would leave its parts running.
        with running(command, env=env, stdout=log, stop_signal=signal.SIGINT) as process:
            addresses = (
                f"Airflow's UI  http://127.0.0.1:{port}/dags/{DAG_ID} (no login)\n"
                f"Sandbox       {sandbox['url']}, which the connection platform_default leads to\n"
                f"Connection    its values, to copy: {shown(HOME / 'connection.json')}\n"
                "Ctrl-C stops both."
            )
            _follow(process, port, addresses, sandbox["url"])
            raise DemoError(f"Airflow has ended by itself; its log: {shown(_LOG)}")


def environment(home: Path, port: int) -> dict[str, str]:
    """The environment variables of the UI's Airflow with its home in ``home``."""
    # Standalone starts its parts as plain `airflow`.
    return kept(os.environ, home, DAG_FILE.parent) | {
        "PATH": f"{_SCRIPTS}{os.pathsep}{os.environ.get('PATH', '')}",
        "AIRFLOW__API__BASE_URL": f"http://127.0.0.1:{port}",
        # Else the page of the configuration is an error in red.
        "AIRFLOW__API__EXPOSE_CONFIG": "non-sensitive-only",
        "AIRFLOW__API__HOST": "127.0.0.1",
        "AIRFLOW__API__PORT": str(port),
        "AIRFLOW__API__WORKERS": "1",
        "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"http://127.0.0.1:{port}/execution/",
        "AIRFLOW__CORE__PARALLELISM": "4",
        "AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS": "True",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": _PATIENCE,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": _PATIENCE,
        "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(free_port()),
        "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(free_port()),
        # Tasks that the last UI left start before the API server answers: they wait for it.
        "AIRFLOW__WORKERS__EXECUTION_API_RETRIES": "10",
    }


def _prepare_database(connection: dict[str, Any], env: dict[str, str], log: Any) -> None:
    """Make the database and store the connection, unless the last demo has done both."""
    stored = HOME / "connection.json"
    if (HOME / "airflow.db").exists() and stored.exists():
        if json.loads(stored.read_text()) == connection:
            return
        print("Storing the connection to the sandbox ...", flush=True)
    else:
        print("No demo has run here yet; preparing Airflow's database ...", flush=True)
    file = write_connection(HOME, connection)
    command = [sys.executable, "-m", "airflow_provider_platform.sandbox.demo.stored_settings"]
    with running([*command, str(file)], env=env, stdout=log) as process:
        if process.wait():
            file.unlink()
            raise DemoError(f"The database could not be prepared; the log: {shown(_LOG)}")


def _follow(process: subprocess.Popen[str], port: int, addresses: str, sandbox_url: str) -> None:
    """Tell until Airflow ends: each part as it comes up, is lost or comes back, and the addresses
    as soon as they can be opened. Raises `DemoError` when Airflow does not start."""
    parts = AirflowParts(shown(FOLDER))
    began = told = time.monotonic()
    opened, unanswered = False, 0
    while process.poll() is None:
        health = _health(port)
        if health:
            health[SANDBOX] = {"status": "healthy" if _listens(sandbox_url) else "silent"}
        unanswered = 0 if health else unanswered + 1
        news = parts.news(health) if health or unanswered >= _UNANSWERED else []
        for line in news:
            print(f"  {line}", flush=True)
        if health and not opened:
            opened = True
            print(f"\n{addresses}\n", flush=True)
        now = time.monotonic()
        told = now if news else told
        if not (missing := parts.missing()):
            time.sleep(_WATCH_SECONDS)
            continue
        if now > began + _HEALTHY_SECONDS:
            raise _not_started(f"After {_HEALTHY_SECONDS} s Airflow has no {missing}")
        if now > told + _STILL_SECONDS:
            told = now
            print(f"  ... still waiting for {missing} ({now - began:.0f} s)", flush=True)
        time.sleep(0.5)
    if parts.missing():
        raise _not_started("Airflow has ended before it was up")


def _health(port: int) -> dict[str, Any]:
    """What Airflow's health page answers; empty if it does not answer."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        url = f"http://127.0.0.1:{port}/api/v2/monitor/health"
        with opener.open(url, timeout=15) as response:
            health: dict[str, Any] = json.load(response)
    except (OSError, ValueError):
        return {}
    return health


def _listens(url: str) -> bool:
    """Whether a server accepts connections at the address."""
    address = urlsplit(url)
    try:
        socket.create_connection((address.hostname, address.port), timeout=15).close()
    except OSError:
        return False
    return True


def _not_started(what: str) -> DemoError:
    tail = _LOG.read_text()[-2000:]
    return DemoError(f"{what}. Start it again. Its log ({shown(_LOG)}) ends:\n\n{tail}")


def free_port(wanted: int = 0) -> int:
    """``wanted`` if it is free, else a port that is."""
    with socket.socket() as probe:
        # As servers do: else the port of the last UI is taken for a minute after its end.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
