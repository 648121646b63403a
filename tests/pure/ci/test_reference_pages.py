"""The reference pages are made from the code, and an undescribed parameter is refused."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.get_provider_info import get_provider_info

if TYPE_CHECKING:
    from types import ModuleType

PROJECT = Path(__file__).parents[3]
PAGES = PROJECT / "docs" / "reference"


@pytest.fixture(scope="module")
def reference_pages() -> ModuleType:
    spec = spec_from_file_location("reference_pages", PROJECT / ".ci" / "reference_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # where its dataclass looks for itself
    spec.loader.exec_module(module)
    return module


def test_everything_that_the_provider_lists_has_a_page(reference_pages: Any) -> None:
    names = {subject.name for subject in reference_pages.subjects()}
    assert {"PlatformChatOperator", "PlatformReportSensor", "PlatformAnswerNotifier"} <= names
    info = get_provider_info()
    assert {f"@task.{decorator['name']}" for decorator in info["task-decorators"]} <= names
    for subject in reference_pages.subjects():
        page = (PAGES / f"{subject.page}.md").read_text()
        for part in ("When to use it", "Example", "Parameters", "Errors"):
            assert f"\n## {part}\n" in page, (subject.name, part)


def test_a_page_has_every_parameter_with_its_default(reference_pages: Any) -> None:
    [subject] = [one for one in reference_pages.subjects() if one.name == "PlatformChatOperator"]
    table = reference_pages._parameters(subject)
    assert "| `prompt` | `str` | **required** |" in table
    assert "| `max_rows` | `int \\| str` | `100` |" in table
    assert "| `timeout` | `float or timedelta` | `1800` | Seconds" in table
    assert "| `platform_conn_id` | `str` | `'platform_default'` |" in table
    [row] = [row for row in table.splitlines() if "`multiple_outputs`" in row]
    assert "Not a template" in row


@pytest.mark.parametrize(
    ("name", "usual"), [("PlatformQueryOperator", True), ("PlatformReportSensor", False)]
)
def test_a_page_has_what_multiple_outputs_is_by_default_there(
    reference_pages: Any, name: str, usual: bool
) -> None:
    [subject] = [one for one in reference_pages.subjects() if one.name == name]
    assert f"| `multiple_outputs` | `bool \\| None` | `{usual}` |" in reference_pages._parameters(
        subject
    )


def test_a_page_leaves_out_multiple_outputs_where_the_result_has_no_keys(
    reference_pages: Any,
) -> None:
    """Airflow fails such a task: a list has no keys."""
    found = {one.name: reference_pages._parameters(one) for one in reference_pages.subjects()}
    without = {name for name, table in found.items() if "`multiple_outputs`" not in table}
    assert without == {
        "PlatformAnswerNotifier",
        "PlatformDeleteNotificationOperator",
        "PlatformListNotificationsOperator",
        "PlatformNotificationRecipientsOperator",
    }


def test_a_page_shows_the_words_of_a_named_type(reference_pages: Any) -> None:
    """The operator names `IfThreadBusy`, which says nothing to a reader of the page."""
    [subject] = [one for one in reference_pages.subjects() if one.name == "PlatformChatOperator"]
    assert (
        "| `if_thread_busy` | `Literal['wait', 'fail']` | `'wait'` |"
        in reference_pages._parameters(subject)
    )


def test_undescribed_parameter_is_refused(reference_pages: Any) -> None:
    from airflow_provider_platform.operators.reports import PlatformConnectReportOperator

    class Silent(PlatformConnectReportOperator):
        """Do something.

        Use it never.
        """

        def __init__(self, *, unsaid: int = 1, **kwargs: Any) -> None:
            super().__init__(**kwargs)

    Silent.__module__ = PlatformConnectReportOperator.__module__
    subject = reference_pages.Subject(
        "Silent", "Silent", "operator", Silent.__module__, Silent, "Use it."
    )
    with pytest.raises(reference_pages.Incomplete, match="no docstring says what unsaid is"):
        reference_pages._parameters(subject)
    with pytest.raises(reference_pages.Incomplete, match="no example DAG uses it"):
        reference_pages._example(subject)
    with pytest.raises(reference_pages.Incomplete, match="begins with 'Use it'"):
        reference_pages._sections(
            reference_pages.Subject("Silent", "", "operator", "", Silent, "Do something.")
        )


def test_lists_of_a_docstring_stay_lists(reference_pages: Any) -> None:
    paragraphs, parameters = reference_pages._split(
        "One\nline.\n\n- a,\n  longer\n- b\n\n:param x: first\n    second\n:param y: third"
    )
    assert paragraphs == ["One line.", "- a, longer\n- b"]
    assert parameters == {"x": "first second", "y": "third"}
