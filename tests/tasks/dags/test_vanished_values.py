"""Values that vanish in a DAG run: nothing is sent, whatever gave the value."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform._airflow import AirflowSkipException
from airflow_provider_platform.operators.branches import PlatformMergeBranchOperator
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator
from airflow_provider_platform.sensors.notifications import PlatformNotificationSensor

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedTask
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

TASKS: dict[str, tuple[type, str, dict[str, Any]]] = {
    "merge": (PlatformMergeBranchOperator, "deployment_id", {"branch_name": "nightly"}),
    "chat": (PlatformChatOperator, "session_settings", {"prompt": "revenue by country"}),
    "sensor": (PlatformNotificationSensor, "notification_id", {"poke_interval": 1, "timeout": 5}),
}


@task(trigger_rule="all_done")
def skipped() -> None:
    raise AirflowSkipException


def refused(found: FinishedTask, place: str) -> None:
    assert found.state == "failed"
    assert str(found.error).startswith("AirflowFailException: Nothing was sent: ")
    assert f"{place} has no value after rendering" in str(found.error)


@pytest.mark.parametrize(
    ("name", "given", "native"),
    [
        ("merge", "output", False),
        ("chat", "output", True),
        ("sensor", "template", False),
    ],
)
def test_nothing_is_sent_if_a_skipped_task_names_who_where_or_which(
    run_dag: RunDag, platform_sandbox: Sandbox, name: str, given: str, native: bool
) -> None:
    operator, argument, others = TASKS[name]
    with DAG(f"gone_{name}", render_template_as_native_obj=native) as dag:
        gone = skipped()
        value: Any = gone if given == "output" else "{{ ti.xcom_pull('skipped') }}"
        made = operator(
            task_id="t", trigger_rule="all_done", retries=3, **{argument: value}, **others
        )
        gone >> made
    refused(run_dag(dag).task("t"), argument)
    assert platform_sandbox.control.state().requests == []


def test_default_arguments_of_a_dag_count_as_given(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG("gone_default", default_args={"deployment_id": "{{ ti.xcom_pull('no') }}"}) as dag:
        PlatformQueryOperator(task_id="t", sql="SELECT 1")
    refused(run_dag(dag).task("t"), "deployment_id")
    assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize(
    ("made_by", "gone"), [("expand", None), ("expand_kwargs", {}), ("partial", None)]
)
def test_mapped_task_without_a_value_sends_nothing(
    run_dag: RunDag, platform_sandbox: Sandbox, made_by: str, gone: Any
) -> None:
    with DAG(f"gone_mapped_{made_by}") as dag:

        @task
        def users() -> list[Any]:
            return [{"externalId": "a"}, gone]

        @task
        def calls() -> list[Any]:
            return [{"session_settings": {"externalId": "a"}}, {"session_settings": gone}]

        @task
        def nobody() -> Any:
            return gone

        partial = {"task_id": "t", "retries": 3, "deferrable": False}
        if made_by == "expand":
            PlatformChatOperator.partial(prompt="orders", **partial).expand(
                session_settings=users()
            )
        elif made_by == "expand_kwargs":
            PlatformChatOperator.partial(prompt="orders", **partial).expand_kwargs(calls())
        else:
            PlatformChatOperator.partial(session_settings=nobody(), **partial).expand(
                prompt=["orders"]
            )
    run = run_dag(dag)
    refused(run.task("t", 0 if made_by == "partial" else 1), "session_settings")
    asked = platform_sandbox.control.state().messages
    assert [one.session_settings for one in asked] == (
        [] if made_by == "partial" else [{"externalId": "a"}]
    )


def test_mapped_none_never_means_the_default_of_an_argument(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG("gone_default_of_mapped") as dag:
        merge = PlatformMergeBranchOperator.partial(task_id="merge", branch_name="candidate")
        merge.expand(into=[None])
        ask = PlatformQueryOperator.partial(task_id="ask", sql="SELECT 1")
        ask.expand(platform_conn_id=[None])
    run = run_dag(dag)
    refused(run.task("merge", 0), "into")
    refused(run.task("ask", 0), "platform_conn_id")
    assert platform_sandbox.control.state().requests == []


def test_none_of_partial_means_the_default(run_dag: RunDag, platform_sandbox: Sandbox) -> None:
    with DAG("default_of_mapped") as dag:
        PlatformQueryOperator.partial(
            task_id="t", deployment_id=None, platform_conn_id=None
        ).expand(sql=["SELECT 1"])
    assert run_dag(dag).task("t", 0).state == "success"


@pytest.mark.parametrize(
    ("constant", "words"),
    [
        ({"max_rows": [-1]}, "max_rows must be at least 0"),
        ({"unknown": [1]}, "unknown"),
        ({"retry_delay": ["soon"]}, "soon"),
    ],
)
def test_wrong_constant_of_a_mapped_task_fails_at_once(
    run_dag: RunDag, platform_sandbox: Sandbox, constant: dict[str, Any], words: str
) -> None:
    with DAG("wrong_mapped") as dag:
        try:
            PlatformChatOperator.partial(task_id="t", prompt="q", retries=3).expand(**constant)
        except TypeError:
            return  # Airflow has refused it when the DAG is parsed
    found = run_dag(dag).task("t", 0)
    assert found.state == "failed"
    assert str(found.error).startswith("AirflowFailException")
    assert words in str(found.error)


NATIVE = {"render_template_as_native_obj": True}


def test_result_of_a_task_stays_that_text_with_native_rendering(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    with DAG("native", **NATIVE) as dag:

        @task
        def name() -> str:
            return "1.10"

        PlatformConnectReportOperator(
            task_id="t",
            report_id="{{ 101 }}",
            external_workbook_id=name(),
            result_location="A!1",
            deployment_id="{{ params.get('deployment') or 1 }}",
        )
    found = run_dag(dag).task("t")
    assert found.error is None
    assert found.xcoms["return_value"]["externalWorkbookId"] == "1.10"


def test_objects_numbers_and_lists_are_read_with_native_rendering(
    run_dag: RunDag, platform_sandbox: Sandbox
) -> None:
    params = {"who": 42, "groups": ["a"], "rows": 7}
    with DAG("native_objects", params=params, **NATIVE) as dag:
        PlatformChatOperator(
            task_id="t",
            prompt="{{ '123' }}",
            max_rows="{{ params.rows }}",
            deferrable="{{ False }}",
            session_settings={
                "externalId": "{{ params.who }}",
                "groups": "{{ params.groups }}",
                "roles": "{{ [] }}",
                "isEphemeral": "{{ False }}",
            },
        )
    assert run_dag(dag).task("t").error is None
    (message,) = platform_sandbox.control.state().messages
    assert message.text == "123"
    assert message.session_settings == {
        "externalId": "42",
        "groups": ["a"],
        "roles": [],
        "isEphemeral": False,
    }
