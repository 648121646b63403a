"""``python -m airflow_provider_platform.sandbox``: serve the sandbox until SIGINT or SIGTERM."""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.server import LOOPBACK, Sandbox

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    sandbox = Sandbox(
        host=options.host,
        port=options.port,
        pace=options.pace,
        dbt_pace=options.dbt_pace,
        tenant=options.tenant,
        build_seconds=options.build_seconds,
        default_api_scopes=("meta", "data", "graphql", *(["jobs"] if options.jobs else [])),
    )
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    try:
        sandbox.start()
    except OSError as error:
        print(f"cannot listen on {options.host}:{options.port}: {error}", file=sys.stderr)
        return 1
    try:
        details = sandbox.control.info()
        if options.ready_file is not None:
            _write_private(options.ready_file, json.dumps(details, indent=2) + "\n")
        print(_welcome(details), flush=True)
        stop.wait()
    finally:
        sandbox.stop()
        if options.ready_file is not None:
            options.ready_file.unlink(missing_ok=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m airflow_provider_platform.sandbox",
        description="A platform in one process: both APIs over HTTP on loopback, with sample data.",
    )
    parser.add_argument("--host", default="127.0.0.1", choices=LOOPBACK)
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument(
        "--pace", type=float, default=0.1, help="seconds before each record of a chat stream"
    )
    parser.add_argument(
        "--dbt-pace", type=float, default=0.5, help="seconds a dbt sync spends in each stage"
    )
    parser.add_argument(
        "--build-seconds", type=float, default=1.0, help="seconds that a build of a branch takes"
    )
    parser.add_argument(
        "--tenant",
        choices=["described", "newest"],
        default="newest",
        help="which tenant to be: the described one starts dbt syncs and opens no branch",
    )
    parser.add_argument(
        "--jobs",
        action="store_true",
        help="give data tokens the API scope jobs too, which builds of pre-aggregations need",
    )
    parser.add_argument(
        "--ready-file", type=Path, help="write addresses and credentials here as JSON, once ready"
    )
    return parser


def _write_private(path: Path, content: str) -> None:
    """Write a file atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(content)
    draft.replace(path)


def _welcome(details: dict[str, Any]) -> str:
    connection = json.dumps(details["connection"])
    return (
        f"Sandbox at {details['url']} (loopback only; Ctrl+C stops it)\n"
        f"  management API    {details['management_url']}\n"
        f"  management token  {details['management_token']}\n"
        f"  chat API          {details['chat_url']}\n"
        f"  chat API key      {details['chat_api_key']}\n"
        f"\nexport AIRFLOW_CONN_PLATFORM_DEFAULT='{connection}'"
    )


if __name__ == "__main__":
    sys.exit(main())
