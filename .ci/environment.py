"""Makes a virtual environment of the project, unless the one that is there is still right.

It is right when its stamp, written last, was made of the same Python, constraints, project metadata
and folder: what was interrupted half way or has changed since is made anew. Everything, the caches
of pip and uv included, stays inside the project folder. Standard library only: this runs before
anything is installed.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PROJECT = Path(__file__).resolve().parent.parent
CACHE = PROJECT / ".cache"
NEEDED_BYTES = 1_000_000_000
STAMP = "environment-stamp"
# Settings of the caller that would send an installation elsewhere or pull other code into it.
FOREIGN_VARIABLES = (
    "CONDA_PREFIX",
    "PIP_CONSTRAINT",
    "PIP_PREFIX",
    "PIP_TARGET",
    "PIP_USER",
    "PYTHONHOME",
    "PYTHONPATH",
    "UV_BUILD_CONSTRAINT",
    "UV_CONSTRAINT",
    "UV_OVERRIDE",
    "UV_PROJECT_ENVIRONMENT",
    "VIRTUAL_ENV",
)


class Failure(Exception):
    """The environment cannot be made; the text says why and what to do."""


def main() -> int:
    """Make the environment that the command line asks for; the exit code is 0 when it is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="the environment, relative to the project, as in .venv")
    parser.add_argument("constraints", help="the constraints file, as in constraints.txt")
    parser.add_argument("extras", help="extras of the project to install, as in dev")
    arguments = parser.parse_args()
    environment = Environment(
        PROJECT / arguments.folder, PROJECT / arguments.constraints, arguments.extras
    )
    try:
        if not environment.is_right():
            with one_at_a_time(environment):
                if not environment.is_right():
                    environment.make()
    except Failure as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"\nThe environment {arguments.folder} could not be made: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; the next run makes the environment anew.", file=sys.stderr)
        return 130
    return 0


class Environment:
    """One virtual environment: where it is, what goes into it, and how it is made."""

    def __init__(self, folder: Path, constraints: Path, extras: str) -> None:
        self.folder = folder
        self.constraints = constraints
        self.extras = extras
        self.python = folder / "bin" / "python"
        self.log = CACHE / f"{folder.name.lstrip('.')}.log"

    @property
    def name(self) -> str:
        return self.folder.name

    def fingerprint(self) -> str:
        """A digest of everything that the environment depends on."""
        digest = hashlib.sha256()
        for text in (sys.version, sys.base_prefix, str(PROJECT), self.extras):
            digest.update(text.encode() + b"\0")
        version = PROJECT / "airflow_provider_platform" / "__init__.py"
        for file in (self.constraints, PROJECT / "pyproject.toml", version, Path(__file__)):
            digest.update(file.read_bytes() + b"\0")
        return digest.hexdigest()

    def is_right(self) -> bool:
        try:
            stamp = (self.folder / STAMP).read_text()
        except OSError:
            return False
        return stamp == self.fingerprint() and self.python.exists()

    def make(self) -> None:
        """Make the environment from nothing. Raises `Failure`."""
        check_room()
        check_venv_module()
        started = time.monotonic()
        version = ".".join(map(str, sys.version_info[:3]))
        print(f"Making the environment {self.name} with Python {version} (once; a minute or so)")
        (self.folder / STAMP).unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.log.write_text("")
        self.run([sys.executable, "-m", "venv", str(self.folder)], "preparing the folder")
        if not (self.installed_with_uv() or self.installed_with_pip()):
            raise Failure(self.explain_failed_install())
        written = self.folder / f"{STAMP}.new"
        written.write_text(self.fingerprint())
        written.rename(self.folder / STAMP)
        print(f"The environment {self.name} is ready ({time.monotonic() - started:.0f} s)")

    def installed_with_uv(self) -> bool:
        """Install with uv, several times faster than pip; whether it worked."""
        pip = [str(self.python), "-m", "pip", "install", "--retries", "2"]
        if not self.run([*pip, "-c", str(self.constraints), "uv"], "installing uv"):
            print("  uv could not be installed: trying pip alone")
            return False
        uv = [str(self.folder / "bin" / "uv"), "pip", "install", "--python", str(self.python)]
        constraints = ["-c", str(self.constraints), "--build-constraints", str(self.constraints)]
        command = [*uv, *constraints, *self.project()]
        if not self.run(command, "installing Airflow and the tools", self.settings_for_uv()):
            print("  uv could not install everything: trying pip")
            return False
        return True

    def installed_with_pip(self) -> bool:
        """Install with pip, which obeys the machine's pip configuration; whether it worked."""
        # The variable, unlike `-c`, also holds for what the package is built with. It is a list
        # separated by spaces, which the path of the project may contain.
        variables = {"PIP_CONSTRAINT": str(self.constraints.relative_to(PROJECT))}
        pip = [str(self.python), "-m", "pip", "install", "--retries", "2"]
        return self.run(
            [*pip, *self.project()], "installing Airflow and the tools with pip", variables
        )

    def project(self) -> list[str]:
        return ["--editable", f"{PROJECT}[{self.extras}]"]

    def settings_for_uv(self) -> dict[str, str]:
        """Where pip is configured to install from, in the variables that uv reads."""
        command = [str(self.python), "-m", "pip", "config", "list"]
        listing = subprocess.run(
            command, env=variables_for_tools(), capture_output=True, text=True, check=False
        )
        settings = {}
        # Lines as global.index-url='...'; the environment (:env:.), listed first, wins.
        for line in reversed(listing.stdout.splitlines()):
            key, _, value = line.partition("=")
            settings[key.rpartition(".")[2]] = value.strip("'\"")
        translated = {"UV_DEFAULT_INDEX": "index-url", "SSL_CERT_FILE": "cert"}
        return {
            variable: settings[name]
            for variable, name in translated.items()
            if name in settings and variable not in os.environ
        }

    def run(
        self, command: Sequence[str], what: str, variables: dict[str, str] | None = None
    ) -> bool:
        """Run a command, its output going to the log; whether it worked.

        While it takes longer, a line every 15 seconds says so.
        """
        print(f"  {what} ...", flush=True)
        started = time.monotonic()
        with self.log.open("a") as log:
            log.write(f"\n$ {' '.join(command)}\n")
            log.flush()
            process = subprocess.Popen(
                command,
                cwd=PROJECT,
                env=variables_for_tools() | (variables or {}),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                while True:
                    try:
                        return process.wait(timeout=15) == 0
                    except subprocess.TimeoutExpired:
                        seconds = time.monotonic() - started
                        print(f"  ... still {what} ({seconds:.0f} s)", flush=True)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()

    def explain_failed_install(self) -> str:
        output = self.log.read_text(errors="replace")
        tail = "\n".join(f"    {line}" for line in output.rstrip().splitlines()[-12:])
        lowered = output.lower()
        if "no space left" in lowered or "disk quota" in lowered:
            hint = "The disk is full: make room and run the command again."
        elif any(sign in lowered for sign in NETWORK_SIGNS):
            hint = (
                "The package index cannot be reached; the first run needs it. Check the network,\n"
                "the proxy (HTTPS_PROXY) or pip's configuration (`pip config list`), and run the\n"
                "command again."
            )
        else:
            hint = "The end of the log above says why."
        return (
            f"The packages could not be installed into {self.name}. The log ends:\n\n{tail}\n\n"
            f"{hint}\nThe whole log: {self.log.relative_to(PROJECT)}"
        )


NETWORK_SIGNS = (
    "connection refused",
    "connection reset",
    "dns error",
    "name resolution",
    "network is unreachable",
    "newconnectionerror",
    "proxyerror",
    "temporary failure",
    "timed out",
    "tunnel error",
)


def variables_for_tools() -> dict[str, str]:
    """What venv, pip and uv run with: the caller's variables, caches inside the project folder."""
    variables = {key: value for key, value in os.environ.items() if key not in FOREIGN_VARIABLES}
    temporary = CACHE / "tmp"
    temporary.mkdir(parents=True, exist_ok=True)
    return variables | {
        "PIP_CACHE_DIR": str(CACHE / "pip"),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_INPUT": "1",
        "TMPDIR": str(temporary),
        "UV_CACHE_DIR": str(CACHE / "uv"),
        "UV_NO_PROGRESS": "1",
    }


@contextmanager
def one_at_a_time(environment: Environment) -> Iterator[None]:
    """Hold the lock of this environment, waiting for another run that makes it."""
    CACHE.mkdir(exist_ok=True)
    with (CACHE / f"{environment.name.lstrip('.')}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"Waiting for another run that makes {environment.name} ...", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def check_room() -> None:
    free = shutil.disk_usage(PROJECT).free
    if free < NEEDED_BYTES:
        raise Failure(
            f"The environment needs about {NEEDED_BYTES / 1e9:.0f} GB of disk space in {PROJECT};"
            f" {free / 1e9:.1f} GB are free. Make room and run the command again."
        )


def check_venv_module() -> None:
    try:
        import ensurepip
        import venv
    except ImportError as error:
        minor = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise Failure(
            f"{sys.executable} cannot make virtual environments ({error}).\n"
            f"Install the missing part (Debian and Ubuntu: apt install python{minor}-venv),"
            f" or name another Python: make PYTHON=/path/to/python{minor} ..."
        ) from error
    del ensurepip, venv


if __name__ == "__main__":
    sys.exit(main())
