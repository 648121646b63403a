"""The commands that `make dist` runs are on the pages, and are read as a reader reads them."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PROJECT = Path(__file__).parents[3]
SESSION = """## Try
```sh
mkdir dags
```
```python
# dags/one.py
print(1)
```
```sh
# second terminal
echo hello
echo export SEEN=two-words
sleep 60
```
```sh
echo "$SEEN" > seen.txt
```
## Other
```sh
exit 9
```
"""


def _printed_pages() -> Any:
    spec = importlib.util.spec_from_file_location(
        "printed_pages", PROJECT / ".ci" / "printed_pages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where the decorator of its data class looks
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def printed_pages() -> Any:
    return _printed_pages()


@pytest.fixture(scope="module")
def workflow(printed_pages: Any) -> dict[str, Any]:
    found = printed_pages.blocks(PROJECT / "docs" / "recipes" / "ci.md")
    [block] = [block for block in found if block.kind == "yaml"]
    assert block.file == ".github/workflows/dags.yml"
    parsed: dict[str, Any] = yaml.safe_load(block.text)
    return parsed


def test_workflow_is_valid_for_github(workflow: dict[str, Any]) -> None:
    # YAML reads the key `on` as true.
    assert set(workflow) == {"name", True, "permissions", "jobs"}
    assert set(workflow[True]) == {"push", "pull_request"}
    [job] = workflow["jobs"].values()
    assert {"runs-on", "timeout-minutes", "env", "steps"} == set(job)
    for step in job["steps"]:
        assert ("run" in step) != ("uses" in step), step
        assert "@v" in step.get("uses", "@v")
    assert "secrets." not in str(workflow)


def test_workflow_ends_at_the_first_command_that_fails(
    printed_pages: Any, workflow: dict[str, Any], tmp_path: Path
) -> None:
    script, variables = printed_pages.workflow_commands(workflow, tmp_path)
    assert variables["AIRFLOW_HOME"] == f"{tmp_path}/.airflow"
    assert script.splitlines()[1].startswith("pip install")
    (tmp_path / "pip").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "pip").chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    assert subprocess.run(["bash", "-c", script], env=env, check=False).returncode == 3


def test_session_copies_what_the_second_terminal_prints(printed_pages: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(SESSION)
    script = printed_pages.session(printed_pages.blocks(page, "Try"))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, timeout=50, check=False)
    assert done.returncode == 0
    assert (tmp_path / "seen.txt").read_text() == "two-words\n"
    assert (tmp_path / "dags" / "one.py").read_text() == "# dags/one.py\nprint(1)\n"


def test_session_fails_if_a_printed_command_fails(printed_pages: Any, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("## Try\n```sh\nfalse\n```\n```sh\ntouch reached\n```\n")
    script = printed_pages.session(printed_pages.blocks(page, "Try"))
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, check=False)
    assert done.returncode != 0
    assert not (tmp_path / "reached").exists()


def test_first_dag_has_a_file_and_two_terminals(printed_pages: Any) -> None:
    found = printed_pages.blocks(PROJECT / "docs" / "start.md", "Your first DAG")
    assert [block.file for block in found if block.file] == ["airflow/dags/first_question.py"]
    assert [block.text.startswith(printed_pages.SECOND_TERMINAL) for block in found].count(
        True
    ) == 1
