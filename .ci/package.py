"""Builds the wheel and the source distribution, and tries them as a user would: from elsewhere.

The wheel is installed into an environment of its own, without this checkout; there Airflow must
find the provider, and every module and class that the metadata names must be there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = "airflow_provider_platform"
WORK = PROJECT / ".cache" / "package"
DIST = WORK / "dist"


def main() -> int:
    """Build, look into what was built, install it and try it; 0 when all is well."""
    shutil.rmtree(WORK, ignore_errors=True)
    DIST.mkdir(parents=True)
    run([sys.executable, "-m", "hatchling", "build", "-d", str(DIST)])
    (wheel,) = DIST.glob("*.whl")
    (source,) = DIST.glob("*.tar.gz")
    check_wheel(wheel)
    check_source(source)
    try_installed(wheel)
    print(f"{wheel.name} and {source.name} are as they should be")
    return 0


def check_wheel(wheel: Path) -> None:
    """Nothing is in the wheel but the package, all of it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    present = {
        str(file.relative_to(PROJECT))
        for file in (PROJECT / PACKAGE).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    demand(packaged == present, f"the wheel differs from the package: {packaged ^ present}")
    demand(f"{PACKAGE}/py.typed" in packaged, "the wheel has no py.typed")
    demand(any(name.endswith("licenses/LICENSE") for name in names), "the wheel has no LICENSE")


def check_source(source: Path) -> None:
    """What the wheel is built from is in the source distribution."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    needed = {"LICENSE", "README.md", "pyproject.toml", f"{PACKAGE}/py.typed"}
    demand(needed <= names, f"the source distribution lacks {needed - names}")


def try_installed(wheel: Path) -> None:
    """Install the wheel in an environment of its own and use it there."""
    environment = WORK / "environment"
    python = environment / "bin" / "python"
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    uv = Path(sys.executable).parent / "uv"
    install = [str(uv), "pip", "install", "--quiet", "--python", str(python)]
    run([*install, "-c", str(PROJECT / "constraints.txt"), f"{wheel}[sandbox]", "pytest"])
    home = WORK / "airflow"
    home.mkdir()
    run([str(python), str(PROJECT / ".ci" / "try_installed.py")], cwd=home, AIRFLOW_HOME=str(home))


def run(command: list[str], cwd: Path = PROJECT, **variables: str) -> None:
    """Run a command; what it printed is shown when it fails. Raises `SystemExit`."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AIRFLOW_", "PYTHONPATH"))
    }
    env = inherited | {"UV_CACHE_DIR": str(PROJECT / ".cache" / "uv")} | variables
    done = subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    demand(
        done.returncode == 0,
        f"{' '.join(command)} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}",
    )


def demand(truth: bool, otherwise: str) -> None:
    if not truth:
        raise SystemExit(f"package: {otherwise}")


if __name__ == "__main__":
    sys.exit(main())
