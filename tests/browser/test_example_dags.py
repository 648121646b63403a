"""Every example DAG in Airflow's UI: its form is offered, its run ends well, and so does one with
other parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from airflow_provider_platform.sandbox.demo.checkout import DAG_FILE, PARAMETERS

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Locator, Page

    from tests.browser.demo_ui import DemoUi

CHANGED: dict[str, dict[str, Any]] = {
    "answer_to_slack": {"question": "top 5 products", "channel": "#other"},
    "deliveries": {"delivery_id": 501, "scheduled_task_id": 602},
    "model_to_production": {
        "least_orders": 50,
        "delivery_id": 502,
        "workbook_id": 302,
        "dashboard_id": 502,
        "output_path": "{folder}/night.pdf",
    },
    "nightly_pipeline": {
        "question": "top 5 products",
        "output_folder": "{folder}/nightly",
        "charts": ["png"],
        "report_id": 102,
        "external_workbook_id": "another-sheet",
    },
    "notifications": {
        "dashboard_id": 502,
        "email": "admin@acme.example.com",
        "if_exists": "skip",
    },
    "pre_aggregations": {"pre_aggregation": "orders.revenue_by_month", "month": "2025-04"},
    "prompt_per_customer": {"customers": ["Müller 08"]},
    "quality_check": {"limit": 50_000, "most_orders": 480},
    "rotate_key": {"connection": "platform_default"},
    "rows_to_object_storage": {"month": "2025-04", "folder": "{folder}/orders"},
    "reports_and_workbooks": {
        "report": "Orders per month",
        "external_workbook_id": "another-sheet",
        "workbook_id": 302,
        "widget_id": "ai-1",
    },
    "waits_and_exports": {
        "dashboard_id": 502,
        "integration_id": 3,
        "consent_status": "active",
        "output_path": "{folder}/dashboard.pdf",
    },
    "stop_below_threshold": {"question": "total revenue in March", "least": 1, "below": "fail"},
    "sql_checks": {"month": "2025-03"},
    "sync_gate_publish": {"workbook_id": 302, "least_orders": 50},
    "weekly_report": {
        "question": "chart orders per month",
        "dashboard_id": 502,
        "folder": "{folder}/weekly",
    },
}
EXAMPLES = sorted(file.stem for file in DAG_FILE.parent.glob("*.py"))


def opened_form(page: Page, ui: DemoUi, dag_id: str) -> Locator:
    """The form of a new run."""
    page.goto(f"{ui.airflow}/dags/{dag_id}")
    page.get_by_role("button", name=re.compile("Trigger")).first.click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("Single Run", exact=True)).to_be_visible()
    return dialog


def fill(page: Page, dialog: Locator, name: str, value: Any) -> None:
    """Enter one parameter as its kind is entered."""
    number = dialog.locator(f"[id='number-input:element_{name}'] input")
    field = number if number.count() else dialog.locator(f"#element_{name}")
    expect(field.first).to_be_visible()
    if field.first.evaluate("e => ['INPUT', 'TEXTAREA'].includes(e.tagName)"):
        field.first.fill("\n".join(value) if isinstance(value, list) else str(value))
        field.first.press("Tab")
    else:
        field.first.click()
        page.get_by_role("option", name=str(value), exact=True).click()


def press_trigger(dialog: Locator, ui: DemoUi, dag_id: str) -> str:
    """Start the run; returns its id."""
    before = set(ui.runs(dag_id))
    button = dialog.get_by_role("button", name="Trigger", exact=True).last
    expect(button).to_be_enabled()
    button.click()
    return ui.wait_for_new_run(dag_id, before)


def test_no_example_is_forgotten(demo_ui: DemoUi) -> None:
    served = {dag["dag_id"] for dag in demo_ui.get("dags?limit=100")["dags"]}
    assert served == set(EXAMPLES)


@pytest.mark.parametrize("dag_id", EXAMPLES)
def test_run_with_the_defaults_of_the_form_succeeds(
    page: Page, demo_ui: DemoUi, dag_id: str
) -> None:
    dialog = opened_form(page, demo_ui, dag_id)
    for name, value in PARAMETERS.get(dag_id, {}).items():
        described = dialog.get_by_text(re.compile(rf"In the sandbox.* {re.escape(str(value))}\."))
        expect(described.first).to_be_visible()
        fill(page, dialog, name, value)
    run_id = press_trigger(dialog, demo_ui, dag_id)
    assert demo_ui.wait_for_run(dag_id, run_id) == "success", demo_ui.failures(dag_id, run_id)


@pytest.mark.parametrize("dag_id", CHANGED)
def test_run_with_other_parameters_succeeds(
    page: Page, demo_ui: DemoUi, dag_id: str, tmp_path: Path
) -> None:
    dialog = opened_form(page, demo_ui, dag_id)
    for name, value in CHANGED[dag_id].items():
        given = value.replace("{folder}", str(tmp_path)) if isinstance(value, str) else value
        fill(page, dialog, name, given)
    run_id = press_trigger(dialog, demo_ui, dag_id)
    assert demo_ui.wait_for_run(dag_id, run_id) == "success", demo_ui.failures(dag_id, run_id)
    received = demo_ui.run(dag_id, run_id)["conf"]
    assert set(received) >= set(CHANGED[dag_id])


def test_mapped_tasks_are_named_by_their_question(demo_ui: DemoUi) -> None:
    names = {
        task["rendered_map_index"]
        for run_id in demo_ui.runs("prompt_per_customer")
        for task in demo_ui.tasks("prompt_per_customer", run_id)
        if task["task_id"] == "ask"
    }
    assert names >= {"Dubois 01", "Huber 02", "García 03", "Müller 08"}


def test_pipeline_has_one_version_after_demo_and_ui(demo_ui: DemoUi) -> None:
    assert demo_ui.get("dags/nightly_pipeline/dagVersions")["total_entries"] == 1
