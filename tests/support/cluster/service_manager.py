"""Starts, ends and restarts the services of a cluster, as a service manager does; ends with all of
them when its own input ends.

`python -m tests.support.cluster.service_manager FOLDER...`, started in a session of its own with a
pipe as its input. Each line of the input is a command, as JSON: `{"start": Service}` or
`{"stop": name, "signal": 9}`. The file `services.json` in the first folder says how each service
is. When the input ends, so do all services, and the folders are removed: the pipe closes when
whoever started this is gone, however that came about, so nothing outlives the tests.
"""

from __future__ import annotations

import json
import os
import pwd
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil

from tests.support.airflow.airflow_processes import in_session

STATE_FILE = "services.json"
_LOOK_SECONDS = 0.2
_RESTART_SECONDS = 1.0
_STOP_SECONDS = 15


@dataclass(frozen=True)
class Service:
    """One service: `restart` starts it again whenever it ends by itself, `user` runs it as somebody
    else (by root only), `stop_signal` is how it ends in order at the end of all; it outlasts those
    that have none, which are killed."""

    name: str
    command: list[str]
    restart: bool = False
    user: str | None = None
    stop_signal: int | None = None
    environment: dict[str, str] = field(default_factory=dict)


@dataclass
class _Watched:
    service: Service
    process: subprocess.Popen[bytes]
    starts: int = 1
    wanted: bool = True
    ended_at: float | None = None


class Manager:
    """What runs now, and what is known of it, written down for whoever asks."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._watched: dict[str, _Watched] = {}
        self._written = ""

    def obey(self, command: dict[str, Any]) -> None:
        if "start" in command:
            service = Service(**command["start"])
            before = self._watched.get(service.name)
            starts = 1 + (before.starts if before else 0)
            self._watched[service.name] = _Watched(service, self._run(service), starts)
        else:
            one = self._watched[command["stop"]]
            one.wanted = False
            with suppress(ProcessLookupError):
                one.process.send_signal(command["signal"])

    def look(self) -> None:
        """Start again what has ended and should not have; write down how all are."""
        now = time.monotonic()
        for one in self._watched.values():
            if one.process.poll() is None:
                continue
            if one.ended_at is None:
                one.ended_at = now
            if one.wanted and one.service.restart and now - one.ended_at > _RESTART_SECONDS:
                one.process, one.ended_at = self._run(one.service), None
                one.starts += 1
        state = {
            name: {
                "pid": one.process.pid,
                "exit": one.process.returncode,
                "starts": one.starts,
                "comes_back": one.wanted and one.service.restart,
            }
            for name, one in self._watched.items()
        }
        text = json.dumps(state)
        if text != self._written:
            file = self._folder / f"{STATE_FILE}.new"
            file.write_text(text)
            file.rename(self._folder / STATE_FILE)
            self._written = text

    def end(self) -> None:
        """End everything: at once what may be killed, then in order what others depend on."""
        last = [one for one in self._watched.values() if one.service.stop_signal is not None]
        spared = {process.pid for one in last for process in _tree(one.process.pid)}
        doomed = _all_of_this()
        for process in doomed:
            if process.pid not in spared:
                with suppress(psutil.NoSuchProcess):
                    process.kill()
        for one in last:
            if one.process.poll() is None:
                one.process.send_signal(one.service.stop_signal or signal.SIGTERM)
        for one in last:
            with suppress(subprocess.TimeoutExpired):
                one.process.wait(_STOP_SECONDS)
        for process in [*doomed, *_all_of_this()]:
            with suppress(psutil.NoSuchProcess):
                process.kill()

    def _run(self, service: Service) -> subprocess.Popen[bytes]:
        user: dict[str, Any] = {}
        if service.user is not None:
            group = pwd.getpwnam(service.user).pw_gid
            user = {"user": service.user, "group": group, "extra_groups": []}
        with (self._folder / f"{service.name}.log").open("ab") as log:
            return subprocess.Popen(
                service.command,
                env={**os.environ, **service.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                **user,
            )


def _tree(pid: int) -> list[psutil.Process]:
    try:
        process = psutil.Process(pid)
        return [process, *process.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _all_of_this() -> list[psutil.Process]:
    """All processes of this session and all below it (PostgreSQL gives each of its processes a
    session of its own), without this one."""
    own = os.getpid()
    found = {process.pid: process for process in in_session(os.getsid(0))}
    for pid in list(found):
        found |= {process.pid: process for process in _tree(pid)}
    return [process for pid, process in found.items() if pid != own]


def start_command(service: Service) -> dict[str, Any]:
    return {"start": asdict(service)}


def main() -> int:
    """Manage until the input ends."""
    # Ctrl-C and a kill reach whoever started this too, which closes the input.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: os.close(0))
    folders = [Path(name) for name in sys.argv[1:]]
    manager = Manager(folders[0])
    pending = b""
    try:
        while True:
            readable, _, _ = select.select([0], [], [], _LOOK_SECONDS)
            if readable:
                read = os.read(0, 65536)
                if not read:
                    return 0
                *lines, pending = (pending + read).split(b"\n")
                for line in lines:
                    manager.obey(json.loads(line))
            manager.look()
    except (OSError, ValueError) as error:
        sys.stderr.write(f"service manager: {error}\n")
        return 1
    finally:
        manager.end()
        if "KEEP_AIRFLOW_HOME" not in os.environ:
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
