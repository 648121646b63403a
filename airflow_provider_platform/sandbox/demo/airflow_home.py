"""The environment variables of an Airflow that has nothing to do with the caller's own."""

from __future__ import annotations

import base64
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def isolated(variables: Mapping[str, str], home: Path, dags: Path) -> dict[str, str]:
    """``variables`` for an Airflow with its home in ``home`` and its DAG files in ``dags``.

    Every Airflow setting and connection of the caller is dropped: the caller's may lead to a
    production database. Requests to loopback pass by the caller's proxies.
    """
    isolated = {name: value for name, value in variables.items() if not _is_airflow(name)}
    bypassed = [
        entry for name in ("NO_PROXY", "no_proxy") for entry in [variables.get(name)] if entry
    ]
    no_proxy = ",".join((*bypassed, *_LOOPBACK))
    return isolated | {
        "AIRFLOW_HOME": os.fspath(home),
        "AIRFLOW__CORE__DAGS_FOLDER": os.fspath(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


def kept(variables: Mapping[str, str], home: Path, dags: Path) -> dict[str, str]:
    """As `isolated`, for a home that is used again: what one process stores, the next can read."""
    return isolated(variables, home, dags) | {
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # A newcomer should not wait Airflow's five minutes for a second try.
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "3",
        "AIRFLOW__CORE__FERNET_KEY": _fernet_key(home),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
    }


def _fernet_key(home: Path) -> str:
    """The key that encrypts the home's stored connections."""
    file = home / "fernet.key"
    if not file.exists():
        home.mkdir(parents=True, exist_ok=True)
        file.touch(mode=0o600)
        file.write_text(base64.urlsafe_b64encode(os.urandom(32)).decode())
    return file.read_text()


def _is_airflow(name: str) -> bool:
    return name.startswith(("AIRFLOW_", "_AIRFLOW_", "__AIRFLOW_"))
