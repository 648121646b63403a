"""When an environment is made again, and what the script reports when it cannot make one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib import util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

CHECKOUT = Path(__file__).parents[3]
FILES = (
    ".ci/environment.py",
    "airflow_provider_platform/__init__.py",
    "constraints.txt",
    "pyproject.toml",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A copy of what the environment script reads, in a folder with a space in its name."""
    folder = tmp_path / "a project"
    for name in FILES:
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(CHECKOUT / name, target)
    return folder


@pytest.fixture
def script(project: Path) -> ModuleType:
    spec = util.spec_from_file_location("environment", project / ".ci" / "environment.py")
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make(project: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run the script in the copy, cut off from every package index."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PIP_", "UV_", "PYTHON"))
    }
    return subprocess.run(
        [sys.executable, ".ci/environment.py", ".venv", "constraints.txt", "dev"],
        cwd=project,
        env={
            **inherited,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": "http://127.0.0.1:9/simple",
            **variables,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def finished(script: ModuleType, project: Path) -> object:
    """An environment as it is after it was made."""
    environment = script.Environment(project / ".venv", project / "constraints.txt", "dev")
    environment.python.parent.mkdir(parents=True)
    environment.python.touch()
    (environment.folder / script.STAMP).write_text(environment.fingerprint())
    return environment


def test_current_environment_is_left_alone(script, project):
    assert finished(script, project).is_right()

    done = make(project)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", FILES)
def test_changed_file_makes_the_environment_outdated(script, project, name):
    environment = finished(script, project)

    with (project / name).open("a") as file:
        file.write("# changed\n")

    assert not environment.is_right()


def test_other_extras_make_another_environment(script, project):
    environment = finished(script, project)
    environment.extras = "test"

    assert not environment.is_right()


def test_incomplete_environment_is_made_again(script, project):
    environment = finished(script, project)
    (environment.folder / script.STAMP).unlink()

    assert not environment.is_right()


def test_environment_without_its_python_is_made_again(script, project):
    environment = finished(script, project)
    environment.python.unlink()

    assert not environment.is_right()


def test_missing_network_is_reported_and_the_environment_stays_outdated(script, project):
    done = make(project)

    assert done.returncode == 1
    assert "The package index cannot be reached" in done.stderr
    assert ".cache/venv.log" in done.stderr
    assert "installing uv ..." in done.stdout
    assert not (project / ".venv" / script.STAMP).exists()


def test_missing_venv_module_names_the_package_to_install(project):
    blocked = project / "blocked" / "ensurepip.py"
    blocked.parent.mkdir()
    blocked.write_text("raise ImportError('No module named ensurepip')\n")

    done = make(project, PYTHONPATH=str(blocked.parent))

    assert done.returncode == 1
    assert "cannot make virtual environments (No module named ensurepip)" in done.stderr
    assert f"apt install python{sys.version_info[0]}.{sys.version_info[1]}-venv" in done.stderr
    assert not (project / ".venv").exists()
