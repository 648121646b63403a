"""Every example DAG in Airflow's UI: two clicks start a run that succeeds, and so does a run with
other parameters."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

from playwright.sync_api import expect

from airflow_provider_platform.sandbox.demo.home import EXAMPLES as FOLDER_OF_EXAMPLES
from airflow_provider_platform.sandbox.demo.home import PARAMETERS as FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

    from tests.support.browser.demo_ui import DemoUi

CHANGED: dict[str, dict[str, Any]] = {
    "answer_to_slack": {"question": "top 5 products", "channel": "#other"},
    "deliveries": {"delivery_id": 501},
    "model_to_production": {
        "tolerance": 0.1,
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
        "if_exists": "update",
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
EXAMPLES = sorted(file.stem for file in FOLDER_OF_EXAMPLES.glob("*.py"))
OPEN_A_BRANCH = {"branches", "model_to_production", "nightly_pipeline", "sync_gate_publish"}
"""While a branch is open, it answers every request of the same credential."""
SAME_SCHEDULES = {"notifications", "waits_and_exports"}
"""DAGs that create and change schedules of the same dashboards."""
CASES = sorted(
    [(dag_id, "defaults") for dag_id in EXAMPLES] + [(dag_id, "changed") for dag_id in CHANGED],
    key=lambda case: (case[0] in OPEN_A_BRANCH, case[1] != "defaults", case[0]),
)
"""The DAGs that run beside others come first, so that the runs of most forms overlap."""
EVERY_KIND_OF_FIELD = {
    "prompt_per_customer",
    "quality_check",
    "stop_below_threshold",
    "weekly_report",
}
"""Their forms are filled in with other parameters in `.ci/run` too: a list, numbers, a choice,
texts. tests/tasks/recipes runs examples with other parameters without a form."""


def marks(dag_id: str, parameters: str) -> Any:
    in_gate = parameters == "defaults" or dag_id in EVERY_KIND_OF_FIELD
    return () if in_gate else pytest.mark.exhaustive


PARAMETERS = [pytest.param(*case, marks=marks(*case)) for case in CASES]


def run_beside_each_other(one: str, other: str) -> bool:
    """Whether runs of these two DAGs do not disturb each other."""
    dags = {one, other}
    return one != other and not dags & OPEN_A_BRANCH and dags != SAME_SCHEDULES


class Runs:
    """The runs that the forms have started. They run at the same time if they may."""

    def __init__(self, browser: Browser, ui: DemoUi, folder: Path) -> None:
        self._page = browser.new_page(viewport={"width": 1300, "height": 1200})
        self._page.set_default_timeout(60_000)
        self._ui = ui
        self._folder = folder
        self._started: dict[tuple[str, str], str] = {}

    def started(self, dag_id: str, parameters: str) -> str:
        """Start the run through the form, unless an earlier test has; returns the run's id."""
        case = (dag_id, parameters)
        if case not in self._started:
            dialog = opened_form(self._page, self._ui, dag_id)
            for (other, _), run_id in self._started.items():
                if not run_beside_each_other(dag_id, other):
                    self._ui.wait_for_run(other, run_id)
            for name, value in (CHANGED[dag_id] if parameters == "changed" else {}).items():
                text = isinstance(value, str)
                fill(self._page, dialog, name, value.format(folder=self._folder) if text else value)
            self._started[case] = press_trigger(dialog, self._ui, dag_id)
            # An open page of Airflow asks it for news every few seconds.
            self._page.goto("about:blank")
        return self._started[case]

    def close(self) -> None:
        self._page.close()


@pytest.fixture(scope="module")
def runs(
    browser: Browser, demo_ui: DemoUi, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runs]:
    runs = Runs(browser, demo_ui, tmp_path_factory.mktemp("examples"))
    yield runs
    runs.close()


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
    # Those need another provider, an event or a person: tests/airflow runs them.
    with_others = {file.stem for file in (FOLDER_OF_EXAMPLES / "with_others").glob("*.py")}
    assert served == {*EXAMPLES, *with_others}


@pytest.mark.parametrize(("dag_id", "parameters"), PARAMETERS)
def test_form_starts_a_run_with_the_parameters_that_it_shows(
    demo_ui: DemoUi, runs: Runs, dag_id: str, parameters: str
) -> None:
    run_id = runs.started(dag_id, parameters)
    received = demo_ui.run(dag_id, run_id)["conf"]
    entered = FORMS if parameters == "defaults" else CHANGED
    assert set(received) >= set(entered.get(dag_id, {}))


@pytest.mark.parametrize(("dag_id", "parameters"), PARAMETERS)
def test_run_that_the_form_started_succeeds(
    demo_ui: DemoUi, runs: Runs, dag_id: str, parameters: str
) -> None:
    """If an earlier test has not started the run, this one does."""
    run_id = runs.started(dag_id, parameters)
    assert demo_ui.wait_for_run(dag_id, run_id) == "success", demo_ui.failures(dag_id, run_id)


def test_mapped_tasks_are_named_by_their_question(demo_ui: DemoUi, runs: Runs) -> None:
    names = set()
    for parameters in ("defaults", "changed"):
        run_id = runs.started("prompt_per_customer", parameters)
        demo_ui.wait_for_run("prompt_per_customer", run_id)
        names |= {
            task["rendered_map_index"]
            for task in demo_ui.tasks("prompt_per_customer", run_id)
            if task["task_id"] == "ask"
        }
    assert names >= {"Dubois 01", "Huber 02", "García 03", "Müller 08"}


def test_pipeline_has_one_version_after_demo_and_ui(demo_ui: DemoUi) -> None:
    assert demo_ui.get("dags/nightly_pipeline/dagVersions")["total_entries"] == 1
