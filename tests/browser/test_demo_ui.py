"""`make ui` as a new user sees it: the log, the connection, its test, the thread with its chart.

The pictures that it takes on the way are those of the documentation: `make pictures`.
"""

from __future__ import annotations

import os
import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from tests.support.browser.connection_page import ConnectionPage
from tests.support.browser.demo_ui import DAG_ID, DemoUi

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Page

TERMINAL = (
    "<style>body {{ margin: 0 }} pre {{ margin: 0; padding: 16px; width: 100ch;"
    " white-space: pre-wrap; overflow-wrap: anywhere;"
    " font: 13px/1.35 'DejaVu Sans Mono', monospace; color: #ddd; background: #1c1f26 }}</style>"
    "<pre>{}</pre>"
)
"""A page that looks like a terminal of 100 columns."""
PICTURE = {"width": 900, "height": 640}
"""A text column of the documentation is 736 pixels wide: a picture of 900 can be read in it."""


@pytest.fixture
def page(page: Page) -> Page:
    page.set_viewport_size({"width": 1200, "height": 760})
    return page


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where the pictures go: into the documentation when it is to have new ones."""
    wanted = os.environ.get("PICTURES")
    folder = Path(wanted) if wanted else tmp_path
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def take(page: Page, path: Path) -> None:
    """Take a picture of the page, narrow enough for the documentation."""
    usual = page.viewport_size
    page.set_viewport_size(PICTURE)
    page.wait_for_function("() => document.fonts.status === 'loaded'")
    page.screenshot(path=path, animations="disabled")
    if usual:
        page.set_viewport_size(usual)


def test_demo_prints_answer_rows_and_chart_at_the_end(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    report, _, _ = demo_ui.printed[demo_ui.printed.index("Tasks (the run") :].partition("\nNext: ")
    page.set_content(TERMINAL.format(escape(report)))
    terminal = page.locator("pre")
    expect(terminal).to_contain_text("Revenue by country")
    expect(terminal).to_contain_text("Spain")
    expect(terminal).to_contain_text("█")
    terminal.screenshot(path=pictures / "demo.png")


def test_the_log_of_the_demos_task_has_its_lines(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    page.goto(demo_ui.task_page("ask_agent", run_id=demo_ui.demo_run_id))
    expect(page.get_by_text("Asking the agent").first).to_be_visible()
    expect(page.get_by_text("Answer: Revenue by country").first).to_be_visible()
    expect(page.get_by_text("Log file not found")).to_have_count(0)
    take(page, pictures / "log.png")


def test_the_connection_is_filled_and_its_test_succeeds(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    form = ConnectionPage(page, demo_ui.airflow)
    form.edit("platform_default")
    form.open_section("Standard Fields")
    expect(form.dialog.locator("[name=host]")).to_have_value(f"{demo_ui.sandbox}/api")
    take(page, pictures / "connection.png")
    form.expect_shown({"chat_api_key": "***"})
    assert form.shown("chat_url").startswith(demo_ui.sandbox)
    assert demo_ui.get("connections/platform_default")["password"] == "***"

    page.goto(f"{demo_ui.airflow}/connections")
    form.test("platform_default", f"Management API at {demo_ui.sandbox}/api works")
    expect(page.get_by_text("does not work")).to_have_count(0)
    take(page, pictures / "test.png")


def test_a_link_of_the_task_opens_the_thread_with_its_chart(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    page.goto(demo_ui.task_page("ask_agent", "/details"))
    link = page.get_by_role("link", name="Thread", exact=True)
    expect(link).to_be_visible()
    take(page, pictures / "links.png")
    with page.context.expect_page() as opened:
        link.click()
    thread = opened.value
    thread.set_viewport_size({"width": 900, "height": 760})
    expect(thread.locator(".question")).to_have_text("chart revenue by country")
    expect(thread.locator("svg rect")).to_have_count(8)
    expect(thread.get_by_role("cell", name="Spain")).to_be_visible()
    # Its style sheet came, by the page's own rules.
    assert thread.locator("svg rect").first.evaluate("e => getComputedStyle(e).fill") != (
        "rgb(0, 0, 0)"
    )
    thread.screenshot(path=pictures / "thread.png")
    thread.close()


def test_the_form_of_a_new_run_offers_questions(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    page.goto(f"{demo_ui.airflow}/dags/{DAG_ID}")
    page.get_by_role("button", name=re.compile("Trigger")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("What the agent is asked")).to_be_visible()
    take(page, pictures / "trigger.png")


def test_the_graph_of_a_dag_with_a_gate_shows_the_tasks_of_the_gate(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    dag_id = "model_to_production"
    # In Airflow's own direction, to the right, the tasks are too small to read in a picture.
    page.add_init_script(f"localStorage.setItem('direction-{dag_id}', JSON.stringify('DOWN'))")
    page.set_viewport_size({"width": 1000, "height": 1200})
    page.goto(f"{demo_ui.airflow}/dags/{dag_id}")
    page.get_by_role("button", name="Show Graph").click()
    page.get_by_role("button", name="Collapse Details Panel").click()
    page.get_by_role("button", name="Expand all task groups").click()
    graph = page.locator(".react-flow")
    for task in ("sync_dbt", "open", "built", "merge", "close", "delete", "deliver_report"):
        expect(graph.get_by_text(task, exact=True)).to_be_visible()
    page.get_by_role("button", name="Fit View").click()
    page.add_style_tag(content=".react-flow__panel { display: none }")  # its map and buttons
    graph.screenshot(path=pictures / "model_to_production.png", animations="disabled")


def test_the_page_of_a_failed_task_shows_why(page: Page, demo_ui: DemoUi) -> None:
    """On a screen of a notebook's size the reason is in sight; the log has link and SQL too."""
    page.set_viewport_size({"width": 1400, "height": 760})
    run_id = demo_ui.failing_run_id
    demo_ui.wait_for_task(run_id, "ask_agent", "up_for_retry", "failed")
    page.goto(demo_ui.task_page("ask_agent", run_id=run_id))
    reason = re.compile(r"Every query of the run failed: no such column: missing")
    expect(page.get_by_text(reason).last).to_be_in_viewport()
    failed = re.compile(r"failed after .* no such column: missing.* SQL: SELECT missing FROM")
    expect(page.get_by_text(failed).last).to_be_visible()
    expect(page.get_by_text(re.compile(r"Thread: ?http|/app/threads/")).last).to_be_visible()


def test_failed_task_leads_from_its_run_to_its_reason_and_its_thread(
    page: Page, demo_ui: DemoUi, pictures: Path
) -> None:
    """The walk of the page "A task failed: where to look", on a screen of a notebook's height."""
    run_id = demo_ui.failing_run_id
    demo_ui.wait_for_task(run_id, "ask_agent", "failed")
    page.goto(f"{demo_ui.airflow}/dags/{DAG_ID}/runs/{quote(run_id)}")
    # The list of the run's tasks; the grid beside it has links of the same name.
    task = page.get_by_role("cell", name="ask_agent").get_by_role("link")
    expect(task).to_be_visible()
    expect(page.get_by_role("row").filter(has=task).get_by_text("Failed")).to_be_visible()
    take(page, pictures / "failed-run.png")

    task.click()
    sentence = page.get_by_text(re.compile("Every query of the run failed")).last
    expect(sentence).to_be_in_viewport()
    # The page scrolls to the end of the log when it opens, not when its size changes.
    page.set_viewport_size(PICTURE | {"height": 900})
    page.reload()
    expect(sentence).to_be_in_viewport()
    # Up to the sentence: the lines below it are paths of the machine that takes the picture.
    box = sentence.bounding_box()
    assert box is not None
    height = box["y"] + box["height"]
    up_to_it: FloatRect = {"x": 0, "y": 0, "width": PICTURE["width"], "height": height}
    page.screenshot(path=pictures / "failed-log.png", animations="disabled", clip=up_to_it)

    page.goto(demo_ui.task_page("ask_agent", "/details", run_id=run_id))
    link = page.get_by_role("link", name="Thread", exact=True)
    expect(link).to_be_visible()
    expect(page.get_by_text("No Status")).to_have_count(0)  # which it says until it has read it
    take(page, pictures / "failed-links.png")
    with page.context.expect_page() as opened:
        link.click()
    thread = opened.value
    expect(thread.locator(".question")).to_have_text("sql: SELECT missing FROM orders")
    expect(thread.get_by_text("no such column: missing").first).to_be_visible()
    take(thread, pictures / "failed-thread.png")
    thread.close()
