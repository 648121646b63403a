"""Workbooks over HTTP: duplicated and published once, updated, a thread attached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import (
    DashboardReviewRequiredError,
    PlatformBadRequestError,
    PlatformInputError,
    PlatformServerError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.workbooks import (
    PlatformAttachAiWidgetThreadOperator,
    PlatformDuplicateWorkbookOperator,
    PlatformPublishWorkbookOperator,
    PlatformUpdateWorkbookOperator,
)
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox


def publish_by_hand(**body: Any) -> None:
    PlatformHook().call("publishDashboard", workbook_id=301, body=body)


def run(operator: type, tries: TaskTries | None = None, **arguments: Any) -> Any:
    found = operator(task_id="run", **{"workbook_id": 301, **arguments})
    return found.execute((tries or TaskTries()).context())


def require_review(sandbox: Sandbox) -> None:
    words = "This dashboard requires review before publishing"
    sandbox.control.fault("status", path="/publish", status=400, message=words, count=None)


def posts(sandbox: Sandbox) -> int:
    return sum(request.method == "POST" for request in sandbox.control.state().requests)


class TestDuplicate:
    def test_duplicate_operator_returns_the_clone(self, platform_sandbox: Sandbox) -> None:
        clone = run(PlatformDuplicateWorkbookOperator, workbook_id="301")
        assert clone["id"] != 301
        assert "Sales overview" in clone["name"]


class TestUpdate:
    def test_update_operator_returns_the_updated_workbook(self, platform_sandbox: Sandbox) -> None:
        found = run(PlatformUpdateWorkbookOperator, name="Sales", slug="sales")
        assert (found["name"], found["slug"]) == ("Sales", "sales")

    def test_a_slug_that_is_taken_is_a_conflict(self, platform_sandbox: Sandbox) -> None:
        taken = {"workbook_id": 302, "slug": "sales-overview"}
        with pytest.raises(AirflowFailException, match="409"):
            run(PlatformUpdateWorkbookOperator, **taken)
        found = run(PlatformUpdateWorkbookOperator, **taken, slug_takeover="True")
        assert found["slug"] == "sales-overview"


class TestPublish:
    def test_publish_operator_returns_the_dashboard(self, platform_sandbox: Sandbox) -> None:
        found = run(PlatformPublishWorkbookOperator, workbook_id=303, title="Returns")
        assert found["workbookId"] == 303
        assert found["title"] == "Returns"

    def test_a_workbook_without_a_saved_draft_is_not_published(
        self, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.change("workbooks", 301, dashboardDraft=None)
        with pytest.raises(AirflowFailException, match="workbook 301 has no saved draft"):
            run(PlatformPublishWorkbookOperator)
        assert posts(platform_sandbox) == 0
        config = {"title": "Given", "widgets": []}
        assert run(PlatformPublishWorkbookOperator, config=config)["config"]["title"] == "Given"

    def test_a_tenant_that_needs_the_config_is_sent_the_saved_draft(
        self, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.set(tenant="described")
        draft = {"kind": "CLASSIC", "title": "Saved", "settings": {"shareToken": "on"}}
        platform_sandbox.control.change("workbooks", 301, dashboardDraft=draft)
        found = run(PlatformPublishWorkbookOperator, description="monthly")
        assert (found["config"]["title"], found["description"]) == ("Saved", "monthly")
        published = platform_sandbox.control.state().changed("dashboards", "published")
        assert len(published) == 1
        assert platform_sandbox.control.change("dashboards", 501)["config"] == draft

    def test_dashboard_under_review_is_not_retried_and_the_error_says_what_to_do(
        self, platform_sandbox: Sandbox
    ) -> None:
        require_review(platform_sandbox)
        tries = TaskTries()
        with pytest.raises(AirflowFailException) as caught:
            run(PlatformPublishWorkbookOperator, tries)
        assert "This dashboard requires review before publishing" in str(caught.value)
        assert "a person must publish the approved revision" in str(caught.value)
        assert posts(platform_sandbox) == 1
        assert tries.store[STORE_KEY]["phase"] == "failed"
        with pytest.raises(DashboardReviewRequiredError):
            publish_by_hand()

    @pytest.mark.parametrize("config", [None, {"title": "x", "widgets": []}])
    def test_on_review_required_skip_skips_the_task(
        self, config: Any, platform_sandbox: Sandbox, caplog: pytest.LogCaptureFixture
    ) -> None:
        require_review(platform_sandbox)
        before = PlatformHook().call("getWorkbook", workbook_id=301)["publishedDashboard"]
        tries, skip = TaskTries(), {"config": config, "on_review_required": "skip"}
        with pytest.raises(AirflowSkipException) as caught:
            run(PlatformPublishWorkbookOperator, tries, **skip)
        assert "This dashboard requires review before publishing" in str(caught.value)
        assert "a person must publish the approved revision" in str(caught.value)
        assert "on_review_required='skip'" in str(caught.value)
        assert posts(platform_sandbox) == 1
        assert PlatformHook().call("getWorkbook", workbook_id=301)["publishedDashboard"] == before
        # A clear after review was switched off publishes.
        platform_sandbox.control.clear_faults()
        assert run(PlatformPublishWorkbookOperator, tries, **skip)["workbookId"] == 301

    @pytest.mark.parametrize("choice", ["fail", "skip"])
    def test_other_refusal_that_quotes_these_words_does_not_skip(
        self, choice: str, platform_sandbox: Sandbox
    ) -> None:
        said = "title 'What requires review before publishing' is too long"
        platform_sandbox.control.fault("status", method="POST", status=400, message=said)
        with pytest.raises(AirflowFailException, match="is too long") as caught:
            run(PlatformPublishWorkbookOperator, config={"title": "x"}, on_review_required=choice)
        assert type(caught.value.__context__) is PlatformBadRequestError
        assert posts(platform_sandbox) == 1

    @pytest.mark.parametrize("workbook_id", [301, 303], ids=["again", "for the first time"])
    def test_lost_publication_is_recognized_by_the_version(
        self, workbook_id: int, platform_sandbox: Sandbox
    ) -> None:
        platform_sandbox.control.fault("lost_response", method="POST")
        found = run(PlatformPublishWorkbookOperator, workbook_id=workbook_id)
        assert found["workbookId"] == workbook_id
        assert posts(platform_sandbox) == 1

    def test_publication_by_somebody_else_leaves_a_lost_call_unknown(
        self, platform_sandbox: Sandbox
    ) -> None:
        """The version has changed, but this does not show that our call changed it."""
        tries, control = TaskTries(), platform_sandbox.control
        control.fault("lost_response", method="POST")
        control.fault("status", method="GET", path="/301$", nth=2, status=502, count=20)
        with pytest.raises(PlatformServerError):
            run(PlatformPublishWorkbookOperator, tries)
        control.clear_faults()
        publish_by_hand(config={"title": "A colleague's", "widgets": []})
        with pytest.raises(AirflowFailException, match="something else was published"):
            run(PlatformPublishWorkbookOperator, tries)
        assert tries.store[STORE_KEY]["phase"] == "lost"

    def test_retry_publishes_after_a_failure_before_the_call(
        self, platform_sandbox: Sandbox
    ) -> None:
        tries = TaskTries()
        platform_sandbox.control.fault("status", method="POST", status=500)
        with pytest.raises(Exception, match="500"):
            run(PlatformPublishWorkbookOperator, tries)
        assert tries.store[STORE_KEY]["phase"] == "intent"
        assert run(PlatformPublishWorkbookOperator, tries)["workbookId"] == 301
        assert posts(platform_sandbox) == 2


def test_operator_attaches_a_thread_to_an_ai_widget(platform_sandbox: Sandbox) -> None:
    widget = {"id": "ask", "type": "AI", "position": {"x": 0, "y": 0, "w": 4, "h": 4}}
    run(PlatformPublishWorkbookOperator, config={"title": "Ask", "widgets": [widget]})
    found = run(PlatformAttachAiWidgetThreadOperator, widget_id="ask", thread_id="thread-1")
    assert found["workbookId"] == 301


def test_unknown_widget_is_named_with_the_words_of_the_service(platform_sandbox: Sandbox) -> None:
    with pytest.raises(AirflowFailException, match="Widget nope not found"):
        run(PlatformAttachAiWidgetThreadOperator, widget_id="nope", thread_id="thread-1")
    with pytest.raises(AirflowFailException, match="9999"):
        run(PlatformAttachAiWidgetThreadOperator, workbook_id=9999, widget_id="a", thread_id="t")


@pytest.mark.parametrize(
    ("operator", "arguments", "field"),
    [
        (PlatformDuplicateWorkbookOperator, {"workbook_id": "first"}, "workbook_id"),
        (PlatformDuplicateWorkbookOperator, {"workbook_id": 1, "shared": "maybe"}, "shared"),
        (PlatformUpdateWorkbookOperator, {"workbook_id": 1, "meta": [1]}, "meta"),
        (PlatformUpdateWorkbookOperator, {"workbook_id": 1, "folder_id": 0}, "folder_id"),
        (PlatformPublishWorkbookOperator, {"workbook_id": 1, "config": "x"}, "config"),
        (
            PlatformPublishWorkbookOperator,
            {"workbook_id": 1, "on_review_required": "retry"},
            "on_review_required",
        ),
        (
            PlatformAttachAiWidgetThreadOperator,
            {"workbook_id": 1, "widget_id": "", "thread_id": "t"},
            "widget_id",
        ),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    operator: type, arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        operator(task_id="run", **arguments)
    assert caught.value.field == field
