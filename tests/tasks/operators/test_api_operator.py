"""`PlatformApiOperator` over HTTP: any operation, sent once, and no credential in XCom."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._run_record import STORE_KEY
from airflow_provider_platform.operators.api import PlatformApiOperator
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

WORKBOOKS = "/v1/deployments/1/workbooks"


def call(tries: TaskTries | None = None, **arguments: Any) -> Any:
    operator = PlatformApiOperator(task_id="call", **arguments)
    return operator.execute((tries or TaskTries()).context())


def posts(sandbox: Sandbox) -> int:
    return sum(request.method == "POST" for request in sandbox.control.state().requests)


class TestReading:
    def test_a_list_is_read_to_its_end(self, platform_sandbox: Sandbox) -> None:
        found = call(path="/v1/deployments/1/reports", query='{"first": 2}', paginate="true")
        assert [item["id"] for item in found] == [101, 102, 103, 104, 105, 106, 107]

    def test_a_list_is_no_longer_than_max_items(self, platform_sandbox: Sandbox) -> None:
        page = {"path": "/v1/deployments/1/reports", "query": {"first": 2}}
        assert len(call(**page, paginate=True, max_items=3)) == 3
        asked = [request.path for request in platform_sandbox.control.state().requests]
        assert len(asked) == 2
        filtered = call(path=page["path"], response_filter=lambda one: one["items"], max_items=2)
        assert len(filtered) == 2

    def test_deployment_of_default_args_is_left_out_where_a_call_has_none(
        self, platform_sandbox: Sandbox
    ) -> None:
        assert call(operation="listEmbedTenants", deployment_id=1)
        assert call(path="/v1/app-config", deployment_id=1)
        assert call(operation="getReport", report_id=101, deployment_id=1)["id"] == 101

    def test_ids_in_a_string_beside_ids_of_their_own_are_refused(self) -> None:
        with pytest.raises(PlatformInputError, match="ids must be a dict"):
            PlatformApiOperator(task_id="a", operation="getGroup", ids="{}", id=1)

    def test_an_operation_that_returns_a_file_is_refused(self) -> None:
        with pytest.raises(PlatformInputError, match="Use PlatformExportDashboardOperator"):
            PlatformApiOperator(task_id="a", operation="downloadExport", job_id="x")

    @pytest.mark.parametrize("slug", ["None", "", " "])
    def test_an_id_that_rendered_to_nothing_is_refused(
        self, slug: str, platform_sandbox: Sandbox
    ) -> None:
        with pytest.raises((AirflowFailException, PlatformInputError), match="slug"):
            call(operation="upsertWorkbookBySlug", slug=slug, body={"name": "x"})
        assert platform_sandbox.control.state().requests == []

    def test_headers_are_sent_beside_the_clients_own(self, platform_sandbox: Sandbox) -> None:
        headers = {"X-Request-Source": "airflow", "accept": "application/json"}
        call(path="/v1/deployments/1/reports", headers=headers, paginate=True)
        (request,) = platform_sandbox.control.state().requests
        sent = [name.lower() for name in request.headers]
        assert "x-request-source" in sent
        assert sent.count("accept") == sent.count("authorization") == 1

    @pytest.mark.parametrize(
        ("headers", "words"),
        [
            ({"authorization": "Bearer other"}, "must not have authorization"),
            ({"Content-Length": "1"}, "must not have Content-Length"),
            ({"X-A": "a\r\nX-B: b"}, "in one line, for X-A"),
            ({"X-A": 1}, "plain text, in one line, for X-A"),
            ({"X A": "a"}, "names of headers"),
            ("X-A", "headers must be"),
        ],
    )
    def test_a_header_that_cannot_be_sent_is_refused(
        self, headers: Any, words: str, platform_sandbox: Sandbox
    ) -> None:
        with pytest.raises((AirflowFailException, PlatformInputError), match=words):
            call(operation="getAppConfig", headers=headers)
        assert platform_sandbox.control.state().requests == []

    def test_filter_chooses_items_of_a_list(self, platform_sandbox: Sandbox) -> None:
        def names(items: list[dict[str, Any]]) -> list[str]:
            return [item["name"] for item in items]

        path = "/v1/deployments/1/reports"
        found = call(path=path, paginate=True, response_filter=names, max_items=2)
        assert found == ["Revenue by country", "Orders per month"]

    def test_path_may_begin_as_in_the_documents_of_the_service(
        self, platform_sandbox: Sandbox
    ) -> None:
        assert call(path="/api/v1/deployments/1")["id"] == 1

    def test_web_page_in_place_of_an_answer_is_reported_as_a_wrong_path(
        self, platform_sandbox: Sandbox
    ) -> None:
        with pytest.raises(
            AirflowFailException, match=r"HTML instead of JSON.*Check the path"
        ) as it:
            call(path="/v1/no-such-thing")
        assert "it begins with /v1 or /api/v1" in str(it.value)


class TestWriting:
    def test_post_sends_its_body(self, platform_sandbox: Sandbox) -> None:
        found = call(method="post", path=WORKBOOKS, body='{"name": "Nightly"}')
        assert found["name"] == "Nightly"

    def test_retry_after_the_end_returns_the_stored_response(
        self, platform_sandbox: Sandbox
    ) -> None:
        tries = TaskTries()
        arguments = {"method": "POST", "path": WORKBOOKS, "body": {"name": "Nightly"}}
        assert call(tries, **arguments) == call(tries, **arguments)
        assert posts(platform_sandbox) == 1

    def test_call_with_a_lost_response_is_not_repeated(self, platform_sandbox: Sandbox) -> None:
        tries = TaskTries()
        platform_sandbox.control.fault("lost_response", method="POST")
        with pytest.raises(AirflowFailException, match="API cannot show"):
            call(tries, method="POST", path=WORKBOOKS, body={"name": "Nightly"})
        assert posts(platform_sandbox) == 1
        assert tries.store[STORE_KEY]["phase"] == "lost"

    def test_call_is_not_repeated_after_a_crash_behind_its_record(
        self, platform_sandbox: Sandbox
    ) -> None:
        tries = TaskTries()
        arguments = {"method": "POST", "path": WORKBOOKS, "body": {"name": "Nightly"}}
        call(tries, **arguments)
        tries.store[STORE_KEY]["phase"] = "intent"
        with pytest.raises(AirflowFailException, match="API cannot show"):
            call(tries, **arguments)
        assert posts(platform_sandbox) == 1

    def test_call_that_was_not_processed_is_sent_again(self, platform_sandbox: Sandbox) -> None:
        fault = {"method": "POST", "status": 503, "retry_after": 0}
        platform_sandbox.control.fault("status", **fault)
        assert call(method="POST", path=WORKBOOKS, body={"name": "Nightly"})["id"]

    def test_call_with_other_input_is_sent_again(self, platform_sandbox: Sandbox) -> None:
        tries = TaskTries()
        call(tries, method="POST", path=WORKBOOKS, body={"name": "Nightly"})
        call(tries, method="POST", path=WORKBOOKS, body={"name": "Weekly"})
        assert posts(platform_sandbox) == 2


class TestCredentials:
    TOKEN: dict[str, Any] = {"method": "POST", "path": "/v1/deployments/1/token", "body": {}}  # noqa: RUF012

    def test_response_with_a_credential_is_refused(self, platform_sandbox: Sandbox) -> None:
        tries = TaskTries()
        with pytest.raises(AirflowFailException, match="cubeApiToken") as caught:
            call(tries, **self.TOKEN)
        assert "eyJ" not in str(caught.value)
        assert "eyJ" not in str(tries.store)

    def test_filtered_response_with_a_credential_is_refused(
        self, platform_sandbox: Sandbox
    ) -> None:
        with pytest.raises(AirflowFailException, match="cubeApiToken"):
            call(**self.TOKEN, response_filter=lambda answer: [answer])

    def test_filter_may_return_a_single_credential(self, platform_sandbox: Sandbox) -> None:
        tries = TaskTries()
        found = call(tries, **self.TOKEN, response_filter=lambda answer: answer["cubeApiToken"])
        assert found.startswith("eyJ")
        assert "eyJ" not in str(tries.store)

    def test_a_filter_that_fails_does_not_repeat_the_call(self, platform_sandbox: Sandbox) -> None:
        with pytest.raises(AirflowFailException, match=r"The call succeeded.*KeyError"):
            call(**self.TOKEN, response_filter=lambda answer: answer["token"])


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"path": "https://elsewhere.example.com/v1"}, "path"),
        ({"path": ""}, "path"),
        ({"path": "/v1/x", "operation": "getReport"}, "operation"),
        ({"operation": "getRepotr"}, "operation"),
        ({"operation": "getReport"}, "report_id"),
        ({"operation": "getReport", "ids": {"reprot_id": 1}}, "reprot_id"),
        ({"operation": "createFolder", "body": {"name": "x", "parentId": "y"}}, "parentId"),
        ({"operation": "getReport", "report_id": 1, "paginate": True}, "operation"),
        ({"path": "/v1/x", "method": "TRACE"}, "method"),
        ({"path": "/v1/x", "query": "a=b"}, "query"),
        ({"path": "/v1/x", "body": "{"}, "body"),
        ({"path": "/v1/x", "max_items": 0}, "max_items"),
        ({"path": "/v1/x", "method": "POST", "paginate": True}, "paginate"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        PlatformApiOperator(task_id="call", **arguments)
    assert caught.value.field == field


@pytest.mark.parametrize(
    "arguments",
    [
        {"operation": "createFolder", "body": {"name": "{{ ds }}", "parentId": "{{ ds }}"}},
        {"operation": "{{ ds }}"},
        {"operation": "getReport", "ids": {"report_id": "{{ ds }}"}},
        {"operation": "getReport", "report_id": "{{ ds }}"},
    ],
)
def test_call_with_a_template_is_checked_when_it_is_rendered(arguments: dict[str, Any]) -> None:
    PlatformApiOperator(task_id="call", **arguments)


def test_operation_is_called_by_its_id(platform_sandbox: Sandbox) -> None:
    body = {"name": "March", "parent_id": "11"}  # rendered
    made = call(operation="createFolder", body=body)
    assert (made["name"], made["parentId"]) == ("March", 11)
    assert (
        call(operation="updateFolder", folder_id=made["id"], body='{"name": "April"}')["name"]
        == "April"
    )
    listed = call(operation="getFolders", query={"parent_id": 11}, paginate=True)
    assert made["id"] in [folder["id"] for folder in listed]
    assert call(operation="getReport", ids={"report_id": "101"})["id"] == 101
    with pytest.raises(AirflowFailException, match="contains a credential"):
        call(operation="deploymentToken")


def test_call_in_another_deployment_is_sent_again() -> None:
    """A retry must not take the answer of the call that the connection's earlier deployment got."""
    operator = PlatformApiOperator(
        task_id="x", method="POST", path="/v1/deployments/{deploymentId}/folders", body={}
    )
    keys = {
        operator.idempotency_key(
            PlatformConfig.build(
                host="https://acme.example.com/api", management_token="t" * 20, deployment_id=number
            )
        )
        for number in (1, 2, 2)
    }
    assert len(keys) == 2


def test_placeholder_that_nothing_fills_is_refused_while_the_dag_is_parsed() -> None:
    with pytest.raises(PlatformInputError, match=r"has the placeholder \{reportId\}\. Replace it"):
        PlatformApiOperator(task_id="x", path="/v1/deployments/{deploymentId}/reports/{reportId}")
