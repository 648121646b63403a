"""A folder in which a sandbox keeps its address, its credentials and its state between two runs.

The state is pickled. It consists of the process's own objects, and the folder belongs to the user
who runs the sandbox. Another version of the sandbox does not read the state: it starts with new
data, at the same address and with the same credentials, so that stored connections stay valid.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from functools import cache
from pathlib import Path

from airflow_provider_platform.sandbox.state.credentials import Credentials
from airflow_provider_platform.sandbox.state.server_state import ServerState

_SANDBOX = Path(__file__).resolve().parents[1]


class KeptFolder:
    """The folder. It is created when something is first written."""

    def __init__(self, folder: Path) -> None:
        self._address = folder / "address.json"
        self._memory = folder / "memory"

    def read_address(self) -> tuple[int, Credentials] | None:
        """Return the port and the credentials of the last run; None if there was no run."""
        try:
            document = json.loads(self._address.read_text())
            return int(document.pop("port")), Credentials(**document)
        except (OSError, ValueError, TypeError, LookupError):
            return None

    def write_address(self, port: int, credentials: Credentials) -> None:
        write_private(self._address, json.dumps({"port": port, **vars(credentials)}).encode())

    def read_memory(self, server: ServerState) -> bool:
        """Load the state of the last run into ``server``. Return False if nothing could be read."""
        try:
            with self._memory.open("rb") as file:
                if file.readline().decode().strip() != _code():
                    return False
                server.remember(pickle.load(file))  # noqa: S301
        except Exception:  # noqa: BLE001
            # Whatever the error is, the file cannot be used.
            return False
        return True

    def write_memory(self, server: ServerState) -> None:
        write_private(self._memory, _code().encode() + b"\n" + pickle.dumps(server.memory()))


def write_private(path: Path, content: bytes) -> None:
    """Write a file atomically, readable only by its owner."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(path)


@cache
def _code() -> str:
    """Return a hash of the code whose objects are stored."""
    packages = ("chat", "faults", "management", "state")
    mark = hashlib.sha256()
    for package in packages:
        for file in sorted((_SANDBOX / package).rglob("*.py")):
            mark.update(file.read_bytes())
    return mark.hexdigest()
