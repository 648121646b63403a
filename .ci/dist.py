"""Builds the wheel and the source distribution into `dist`, and tests them as a user would.

Both must have exactly the expected files and the version of the changelog, and a second build must
give the same bytes. The wheel is installed without a network, from a local folder of wheels, into
an environment of its own. There Airflow must find the provider, the pytest fixture must work, and
the demo must run. With `--publish`, the project must have its addresses.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))
from printed_pages import blocks, save, session, workflow_commands

PROJECT = Path(__file__).resolve().parent.parent
PACKAGE = "airflow_provider_platform"
DIST = PROJECT / "dist"
WORK = PROJECT / ".cache" / "dist"
WHEELHOUSE = PROJECT / ".cache" / "wheelhouse"
UV = Path(sys.executable).parent / "uv"
CONSTRAINTS = PROJECT / "constraints.txt"
URLS = ("Changelog", "Documentation", "Issues", "Source")
GENERATED = {"PKG-INFO"}


def main() -> int:
    """Build, check the files, install the wheel and test it. Return 0 if all checks pass."""
    shutil.rmtree(WORK, ignore_errors=True)
    shutil.rmtree(DIST, ignore_errors=True)
    WORK.mkdir(parents=True)
    said("addresses", check_addresses())
    wheel, source = build(PROJECT, DIST)
    said("version", check_version(wheel))
    check_wheel(wheel)
    check_source(source)
    said("contents", "the wheel and the source distribution have exactly the expected files")
    run([python_of("docs"), "-m", "twine", "check", "--strict", str(wheel), str(source)])
    said("metadata", "twine accepts it")
    check_same_bytes(wheel, source)
    said("bytes", "equal if built from this folder and from the source distribution")
    said("wheelhouse", fill_wheelhouse(wheel))
    python = install(wheel)
    said("install", "from the wheelhouse, without a network")
    try_provider(python)
    said("Airflow", "finds the provider, its hook, links, notifiers and decorators")
    try_fixture(python)
    said("fixture", "the tests of a recipe pass with an empty Airflow home")
    try_demo(python)
    said("demo", "runs from the wheel")
    try_printed_pages()
    said("pages", "README's test, the first DAG and the workflow work as printed")
    print(f"dist/{wheel.name} and dist/{source.name} pass all checks")
    return 0


def check_addresses() -> str:
    """Check the addresses that a published package needs; return which are missing."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    missing = ", ".join(name for name in URLS if name not in project.get("urls", {}))
    if not missing:
        return "set"
    demand(
        "--publish" not in sys.argv,
        f"[project.urls] in pyproject.toml lacks {missing}. Add them before you publish",
    )
    return f"not ready to publish: [project.urls] lacks {missing}"


def build(folder: Path, to: Path) -> tuple[Path, Path]:
    """Build a folder. Return the wheel and the source distribution."""
    run(
        [sys.executable, "-m", "hatchling", "build", "-d", str(to)],
        cwd=folder,
        SOURCE_DATE_EPOCH=str(changed_at()),
    )
    [wheel], [source] = to.glob("*.whl"), to.glob("*.tar.gz")
    return wheel, source


def changed_at() -> int:
    """Return the time stamp of the files in both builds: the newest commit's, if git is there."""
    git = ["git", "log", "-1", "--format=%ct"]
    listed = subprocess.run(git, cwd=PROJECT, capture_output=True, text=True, check=False)
    return int(listed.stdout) if listed.returncode == 0 else 1577836800


def check_version(wheel: Path) -> str:
    """Check that the version is the newest numbered one in the changelog, and return it."""
    newest = re.search(r"^## (\d\S*)", (PROJECT / "CHANGELOG.md").read_text(), re.MULTILINE)
    version = wheel.name.split("-")[1]
    demand(
        newest is not None and newest[1] == version,
        f"the version is {version}, but the newest in CHANGELOG.md is {newest and newest[1]}",
    )
    return version


def check_wheel(wheel: Path) -> None:
    """Check that the wheel has the whole package and the example DAGs, and nothing else."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    packaged = {name for name in names if ".dist-info/" not in name}
    present = files_of(PACKAGE) | {f"{PACKAGE}/{name}" for name in files_of("example_dags")}
    demand(packaged == present, f"the wheel differs from the package: {packaged ^ present}")
    demand(f"{PACKAGE}/py.typed" in packaged, "the wheel has no py.typed")
    demand(any(name.endswith("licenses/LICENSE") for name in names), "the wheel has no LICENSE")


def files_of(folder: str) -> set[str]:
    return {
        str(file.relative_to(PROJECT))
        for file in (PROJECT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def check_source(source: Path) -> None:
    """Check that the source distribution has all files that git tracks, and nothing else."""
    with tarfile.open(source) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()} - GENERATED
    needed = {"Makefile", "README.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", ".ci/run"}
    demand(needed <= names, f"the source distribution lacks {needed - names}")
    git = ["git", "ls-files"]
    listed = subprocess.run(git, cwd=PROJECT, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        tracked = {name for name in listed.stdout.splitlines() if (PROJECT / name).is_file()}
        demand(
            names == tracked,
            f"the source distribution differs from what git tracks: {sorted(names ^ tracked)}; "
            "commit the files that belong to the project",
        )


def check_same_bytes(wheel: Path, source: Path) -> None:
    """Build again, from the unpacked source distribution, and check that both files are equal."""
    with tarfile.open(source) as archive:
        archive.extractall(WORK / "source", filter="data")
    [folder] = (WORK / "source").iterdir()
    again = build(folder, WORK / "again")
    for first, second in zip((wheel, source), again, strict=True):
        same = digest(first) == digest(second)
        demand(same, f"{first.name} differs if it is built from the source distribution")


def digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest()


def fill_wheelhouse(wheel: Path) -> str:
    """Get the wheels of everything that the package needs, unless they are up to date.

    Only this step needs the package index.
    """
    stamp = WHEELHOUSE / "stamp"
    wanted = f"{sys.version_info[:2]} {digest(CONSTRAINTS)} {digest(PROJECT / 'pyproject.toml')}"
    if stamp.exists() and stamp.read_text() == wanted:
        return "up to date"
    shutil.rmtree(WHEELHOUSE, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--wheel-dir", str(WHEELHOUSE)]
    run(
        [*pip, "-c", str(CONSTRAINTS), f"{wheel}[sandbox]", "pytest"],
        PIP_CACHE_DIR=str(PROJECT / ".cache" / "pip"),
    )
    (WHEELHOUSE / wheel.name).unlink(missing_ok=True)
    stamp.write_text(wanted)
    return f"filled, {len(list(WHEELHOUSE.glob('*.whl')))} wheels"


def install(wheel: Path) -> Path:
    """Install the wheel into a new environment. Return that environment's Python."""
    environment = WORK / "environment"
    python = environment / "bin" / "python"
    run([sys.executable, "-m", "venv", "--without-pip", str(environment)])
    offline = ["--offline", "--no-index", "--find-links", str(WHEELHOUSE)]
    command = [str(UV), "pip", "install", "--quiet", "--python", str(python), *offline]
    run([*command, "-c", str(CONSTRAINTS), f"{wheel}[sandbox]", "pytest"])
    return python


def try_provider(python: Path) -> None:
    """Check the installed package with `.ci/try_installed.py`."""
    home = WORK / "provider"
    home.mkdir()
    run([str(python), str(PROJECT / ".ci" / "try_installed.py")], cwd=home, AIRFLOW_HOME=str(home))


def try_fixture(python: Path) -> None:
    """Run a recipe's DAG and its tests as an author does: in their own folder, with an empty
    Airflow home."""
    recipe = "sync_gate_publish"
    folder = WORK / "author"
    for name in ("dags", "tests"):
        (folder / name).mkdir(parents=True)
    shutil.copy(PROJECT / "example_dags" / f"{recipe}.py", folder / "dags")
    shutil.copy(PROJECT / "tests" / "tasks" / "recipes" / f"test_{recipe}.py", folder / "tests")
    run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests"],
        cwd=folder,
        AIRFLOW_HOME=str(folder / ".airflow"),
        AIRFLOW__CORE__DAGS_FOLDER=str(folder / "dags"),
        AIRFLOW__CORE__LOAD_EXAMPLES="False",
    )


def try_demo(python: Path) -> None:
    """Run the demo in an empty folder."""
    folder = WORK / "newcomer"
    folder.mkdir()
    printed = run([str(python), "-m", f"{PACKAGE}.sandbox.demo"], cwd=folder)
    printed += run([str(python), "-m", f"{PACKAGE}.sandbox.demo", "--help"], cwd=folder)
    demand(
        {entry.name for entry in folder.iterdir()} == {".demo"},
        "the demo wrote files outside of .demo",
    )
    # A user who installed the package has neither the Makefile nor the pages.
    named = sorted(set(re.findall(r"\bmake (?:demo|ui)\b|\b[A-Z]+\.md\b|\bdocs/\S+", printed)))
    demand(not named, f"the demo's output names things that are not installed: {', '.join(named)}")
    paths = [folder / name for name in re.findall(r"^DAG +(\S+)", printed, re.MULTILINE)]
    demand(
        bool(paths) and all(path.is_file() for path in paths),
        f"the demo prints the path of a DAG that does not exist: {paths}",
    )


def try_printed_pages() -> None:
    """Run the commands of three pages as printed, in empty folders and in their own environments.

    pip finds the wheel by the package's name, because it is configured to search only `dist` and
    the local folder of wheels.
    """
    folder = empty_folder("first-dag")
    found = blocks(PROJECT / "docs" / "start.md", "Your first DAG")
    printed = follow(session(found), folder)
    demand("Answer: Revenue by country" in printed, f"the first DAG shows no answer:\n{printed}")

    folder = empty_folder("workflow")
    found = blocks(PROJECT / "docs" / "recipes" / "ci.md")
    save(found, folder)
    [workflow] = [block for block in found if block.kind == "yaml"]
    script, variables = workflow_commands(yaml.safe_load(workflow.text), folder)
    follow(NEW_ENVIRONMENT + script, folder, **variables)

    # README assumes that its reader has an environment. This uses that of the workflow.
    environment = folder / ".venv" / "bin" / "activate"
    folder = empty_folder("readme")
    readme = blocks(PROJECT / "README.md")
    save([block for block in readme if block.file in READMES_FILES], folder)
    found = [block for block in blocks(PROJECT / "README.md", READMES_TEST) if block.file is None]
    follow(f". {environment}\n{session(found)}", folder)


def follow(script: str, folder: Path, **variables: str) -> str:
    """Run a script in a reader's shell. Return its output and its errors."""
    return run(["bash", "-c", f"exec 2>&1\n{script}"], cwd=folder, **reader(folder), **variables)


READMES_FILES = ("dags/nightly.py", "tests/test_nightly.py")
READMES_TEST = "Testing your own DAGs"
NEW_ENVIRONMENT = "python3 -m venv .venv && . .venv/bin/activate\n"
"""Makes the environment that README assumes and that GitHub makes for a workflow."""


def empty_folder(name: str) -> Path:
    folder = WORK / "printed" / name
    folder.mkdir(parents=True)
    return folder


def reader(folder: Path) -> dict[str, str]:
    """Return the variables of a reader's shell: a `python3` without packages, and pip's sources."""
    programs = WORK / "printed" / "bin"
    programs.mkdir(exist_ok=True)
    if not (programs / "python3").exists():
        (programs / "python3").symlink_to(Path(sys.base_prefix) / "bin" / "python3")
    return {
        "HOME": str(folder),
        "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": f"{WHEELHOUSE} {DIST}",
        "PIP_CONSTRAINT": str(CONSTRAINTS),
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_NO_COMPILE": "1",
        "PIP_QUIET": "1",
    }


def python_of(environment: str) -> str:
    return str(PROJECT / f".venv-{environment}" / "bin" / "python")


def run(command: list[str], cwd: Path = PROJECT, **variables: str) -> str:
    """Run a command and return its output. If it fails, raise `SystemExit` with its output."""
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
    return done.stdout


def said(what: str, result: str) -> None:
    print(f"  {what:<12}{result}", flush=True)


def demand(truth: bool, otherwise: str) -> None:
    if not truth:
        raise SystemExit(f"dist: {otherwise}")


if __name__ == "__main__":
    sys.exit(main())
