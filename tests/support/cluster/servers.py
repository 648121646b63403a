"""PostgreSQL and Redis for a cluster: on loopback, with passwords, their data in folders of the
cluster's own."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
import redis

from tests.support.airflow.airflow_server import free_port
from tests.support.cluster.service_manager import Service

if TYPE_CHECKING:
    from collections.abc import Callable

_START_SECONDS = 60
_HOST = "127.0.0.1"


class MissingServers(Exception):
    """What keeps the servers from running here, in words for whoever runs the tests."""


def postgres_programs() -> Path | None:
    """The folder of PostgreSQL's programs; Debian keeps those of the server off the PATH."""
    found = shutil.which("postgres")
    if found:
        return Path(found).resolve().parent
    versions = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    return versions[-1].parent if versions else None


def check_installed() -> None:
    """Raises `MissingServers`."""
    missing = [] if shutil.which("redis-server") else ["redis-server"]
    if postgres_programs() is None:
        missing.append("postgresql")
    if missing:
        raise MissingServers(f"{' and '.join(missing)} are not installed")


@dataclass(frozen=True)
class Postgres:
    """A PostgreSQL server for Airflow's metadata and the results of Celery."""

    folder: Path
    user: str | None
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @classmethod
    def prepare(cls, folder: Path) -> Postgres:
        """Make the data folder in an empty folder. PostgreSQL refuses to run as root: there, it
        runs as Debian's user for it. Raises `MissingServers` when that one cannot get there."""
        server = cls(folder, "postgres" if os.geteuid() == 0 else None)
        programs = postgres_programs()
        assert programs is not None
        secret = folder / "password"
        secret.write_text(server.password)
        if server.user is not None:
            account = pwd.getpwnam(server.user)
            for path in (folder, secret):
                os.chown(path, account.pw_uid, account.pw_gid)
            if server._as_user(["test", "-w", str(folder)]).returncode != 0:
                raise MissingServers(
                    f"PostgreSQL runs as the user {server.user}, who cannot enter {folder}: move "
                    "the project to a folder that others may enter, or run the tests as a user"
                )
        done = server._as_user(
            [
                *(str(programs / "initdb"), "--pgdata", str(folder / "data")),
                *("--username", "airflow", "--auth", "scram-sha-256", "--pwfile", str(secret)),
                *("--encoding", "UTF8", "--locale", "C", "--no-sync"),
            ]
        )
        secret.unlink()
        assert done.returncode == 0, done.stdout.decode()
        return server

    @property
    def url(self) -> str:
        return f"airflow:{self.password}@{_HOST}:{self.port}/postgres"

    @property
    def service(self) -> Service:
        programs = postgres_programs()
        assert programs is not None
        settings = {
            "listen_addresses": _HOST,
            "port": self.port,
            "unix_socket_directories": "",
            "max_connections": 200,
            # What a crash of the machine would lose is of no worth here.
            "fsync": "off",
        }
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        command = [str(programs / "postgres"), "-D", str(self.folder / "data"), *options]
        return Service("postgres", command, user=self.user, stop_signal=signal.SIGQUIT)

    def wait(self) -> None:
        """Wait until it answers. Raises TimeoutError."""

        def answers() -> None:
            psycopg2.connect(f"postgresql://{self.url}", connect_timeout=5).close()

        _wait("PostgreSQL", answers, psycopg2.Error)

    def _as_user(self, command: list[str]) -> subprocess.CompletedProcess[bytes]:
        group = None if self.user is None else pwd.getpwnam(self.user).pw_gid
        return subprocess.run(
            command,
            cwd="/",
            user=self.user,
            group=group,
            extra_groups=None if self.user is None else [],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )


@dataclass(frozen=True)
class Redis:
    """A Redis server: Celery's broker. It keeps what it was given over a restart."""

    folder: Path
    port: int = field(default_factory=free_port)
    password: str = field(default_factory=lambda: secrets.token_urlsafe(16))

    @classmethod
    def prepare(cls, folder: Path) -> Redis:
        server = cls(folder)
        settings = {
            "bind": _HOST,
            "port": server.port,
            "requirepass": server.password,
            "dir": f'"{folder}"',
            "appendonly": "yes",
            "save": '""',
        }
        file = folder / "redis.conf"
        file.write_text("".join(f"{name} {value}\n" for name, value in settings.items()))
        file.chmod(0o600)
        return server

    @property
    def url(self) -> str:
        return f"redis://:{self.password}@{_HOST}:{self.port}/0"

    @property
    def service(self) -> Service:
        command = ["redis-server", str(self.folder / "redis.conf")]
        return Service("redis", command, stop_signal=signal.SIGTERM)

    def wait(self) -> None:
        """Wait until it answers. Raises TimeoutError."""
        with redis.Redis(host=_HOST, port=self.port, password=self.password) as client:
            _wait("Redis", client.ping, redis.RedisError)


def _wait(name: str, ask: Callable[[], object], error: type[Exception]) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            ask()
        except (OSError, error) as failure:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{name} does not answer: {failure}") from failure
            time.sleep(0.2)
        else:
            return
