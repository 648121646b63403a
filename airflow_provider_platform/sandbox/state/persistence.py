"""A folder in which a sandbox keeps its address, its credentials and its memory between two runs.

The memory is pickled: it is the process's own objects, and the folder belongs to whoever runs the
sandbox. Another version of the sandbox does not read it and begins anew, at the same address and
with the same credentials, so that stored connections stay true.
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
    """The folder; made when something is first written."""

    def __init__(self, folder: Path) -> None:
        self._address = folder / "address.json"
        self._memory = folder / "memory"

    def read_address(self) -> tuple[int, Credentials] | None:
        """The port and the credentials of the last run; None where there was none."""
        try:
            document = json.loads(self._address.read_text())
            return int(document.pop("port")), Credentials(**document)
        except (OSError, ValueError, TypeError, LookupError):
            return None

    def write_address(self, port: int, credentials: Credentials) -> None:
        write_private(self._address, json.dumps({"port": port, **vars(credentials)}).encode())

    def read_memory(self, server: ServerState) -> bool:
        """Give ``server`` what the last run remembered; False where nothing could be read."""
        try:
            with self._memory.open("rb") as file:
                if file.readline().decode().strip() != _code():
                    return False
                server.remember(pickle.load(file))  # noqa: S301
        except Exception:  # noqa: BLE001
            # Whatever is wrong with it, it is of no use.
            return False
        return True

    def write_memory(self, server: ServerState) -> None:
        write_private(self._memory, _code().encode() + b"\n" + pickle.dumps(server.memory()))


def write_private(path: Path, content: bytes) -> None:
    """Write in one step, so that a reader never sees half of it, for the owner's eyes only."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_bytes(content)
    draft.replace(path)


@cache
def _code() -> str:
    """A mark of the code whose objects are kept."""
    packages = ("chat", "faults", "management", "state")
    mark = hashlib.sha256()
    for package in packages:
        for file in sorted((_SANDBOX / package).rglob("*.py")):
            mark.update(file.read_bytes())
    return mark.hexdigest()
