"""Every page of docs/howto works as it is printed: its pieces together are one DAG.

A reader pastes the pieces into a DAG file. So does this test: each page runs in a DAG of its own
against the sandbox, with the imports that the page has. Only places on disk become ours.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from airflow.sdk import DAG, chain

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

DOCS = Path(__file__).parents[3] / "docs"
PAGES = {page.stem: page for page in sorted((DOCS / "howto").glob("*.md"))}
PIECE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def run_page(name: str, run_dag: RunDag, folder: Path) -> FinishedRun:
    """Run all tasks of a page, in its order."""
    names: dict[str, object] = {"__name__": name}
    with DAG(name, schedule=None) as dag:
        text = PAGES[name].read_text().replace("/data", str(folder))
        for number, code in enumerate(PIECE.findall(text), start=1):
            exec(compile(code, f"{name}.md {number}", "exec", dont_inherit=True), names)
        alone = [one for one in dag.tasks if not one.upstream_list and not one.downstream_list]
        # A thread answers one message at a time, and so do the tasks of a page.
        chain(*alone)
    return run_dag(dag)


@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"index"}))
def test_code_of_a_page_is_a_dag_that_succeeds(
    name: str, platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    # What the page of pre-aggregations asks the reader to switch on.
    platform_sandbox.control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])
    run = run_page(name, run_dag, tmp_path)
    assert run.states, f"{name} has no tasks"
    assert set(run.states.values()) == {"success"}, [one.error for one in run.tasks if one.error]


def test_the_overview_links_to_every_page() -> None:
    text = PAGES["index"].read_text()
    for name in PAGES.keys() - {"index"}:
        assert f"]({name}.md)" in text, name
