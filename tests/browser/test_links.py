"""Where the links of tasks lead in `make ui`: to pages of the sandbox, and to no dead end."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from airflow_provider_platform.sandbox.control.client import SandboxControl
from tests.support.browser.demo_ui import WAIT_SECONDS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from tests.support.browser.demo_ui import DemoUi


def follow(page: Page, address: str, name: str) -> Page:
    """Open a task's page and click one of its links; returns the page that opens."""
    page.goto(address)
    with page.context.expect_page() as opened:
        page.get_by_role("link", name=name, exact=True).click()
    return opened.value


def finished(ui: DemoUi, dag_id: str, **params: object) -> str:
    """A run of a DAG that has succeeded."""
    run_id = ui.start_run(dag_id, **params)
    assert ui.wait_for_run(dag_id, run_id) == "success", ui.failures(dag_id, run_id)
    return run_id


def written(folder: Path, name: str) -> Path:
    """Wait until a page lies somewhere in the folder, with its end; returns its path.

    Airflow ends a run before it calls the `on_success_callback` of the run's last task.
    """
    deadline = time.monotonic() + WAIT_SECONDS
    while not (found := [p for p in folder.rglob(name) if p.read_text().endswith("</html>\n")]):
        assert time.monotonic() < deadline, f"nothing has written {name} into {folder}"
        time.sleep(0.1)
    return found[0]


def test_message_of_the_weekly_report_opens_with_its_picture(
    page: Page, demo_ui: DemoUi, tmp_path: Path
) -> None:
    finished(demo_ui, "weekly_report", folder=str(tmp_path))
    page.goto(written(tmp_path, "message.html").as_uri())
    picture = page.get_by_role("img")
    expect(picture).to_be_visible()
    assert picture.evaluate("async e => { await e.decode(); return e.naturalWidth }") > 100


def test_link_to_a_branch_opens_the_overview(page: Page, demo_ui: DemoUi) -> None:
    shown = follow(page, demo_ui.task_page("sync_dbt", "/details"), "Branch")
    expect(shown.get_by_role("heading", name="dbt syncs")).to_be_visible()


def test_every_link_of_the_demo_opens_a_page(page: Page, demo_ui: DemoUi) -> None:
    found = {
        (task["task_id"], address)
        for task in demo_ui.tasks("nightly_pipeline", demo_ui.run_id)
        for address in demo_ui.links("nightly_pipeline", demo_ui.run_id, task["task_id"])
    }
    assert len(found) > 10
    for task_id, address in sorted(found):
        answer = page.goto(address)
        assert answer is not None
        assert answer.status == 200, (task_id, address)


PAGES = {"/", "/favicon.ico", "/robots.txt"}
"""What a browser opens of the sandbox, besides the pages below `/app`."""


def test_views_of_sandbox_pages_do_not_count_as_requests(page: Page, demo_ui: DemoUi) -> None:
    page.goto(demo_ui.sandbox)
    expect(page.get_by_role("heading", name="What was asked of this sandbox")).to_be_visible()
    page.get_by_role("link", name=re.compile("^[0-9a-f]{8}$")).first.click()
    expect(page.locator("p.question").first).to_be_visible()
    paths = {one.path for one in SandboxControl(demo_ui.sandbox).state().requests}
    assert paths
    assert not [path for path in paths if path.startswith("/app") or path in PAGES]


def test_closed_gate_says_its_number_and_its_limit(page: Page, demo_ui: DemoUi) -> None:
    run_id = finished(demo_ui, "sync_gate_publish", workbook_id=301, least_orders=1_000)
    page.goto(demo_ui.task_page("gate", run_id=run_id, dag_id="sync_gate_publish"))
    said = page.get_by_text(re.compile("has 480 orders, fewer than the least of 1000")).first
    expect(said).to_be_visible()


def test_demo_ui_shows_no_errors(page: Page, demo_ui: DemoUi) -> None:
    assert demo_ui.get("importErrors")["import_errors"] == []
    assert demo_ui.get("dagWarnings")["dag_warnings"] == []
    health = demo_ui.get("monitor/health")
    parts = ("metadatabase", "scheduler", "triggerer", "dag_processor")
    assert {health[part]["status"] for part in parts} == {"healthy"}
    assert demo_ui.run("nightly_pipeline", demo_ui.demo_run_id)["state"] == "success"
    assert demo_ui.failures("nightly_pipeline", demo_ui.demo_run_id) == {}
    page.goto(demo_ui.airflow)
    expect(page.get_by_text("Health")).to_be_visible()
    expect(page.get_by_text(re.compile("Import Error", re.IGNORECASE))).to_have_count(0)
    page.goto(f"{demo_ui.airflow}/configs")
    expect(page.get_by_text("dags_folder")).to_be_visible()
    expect(page.get_by_text("Forbidden")).to_have_count(0)
