"""Bad input: each has one clear error with the field and the remedy. Only useful retries happen."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


def ask(**given: Any) -> PlatformChatOperator:
    return PlatformChatOperator(task_id="t", **{"prompt": "revenue by country", **given})


def sync(**given: Any) -> PlatformDbtSyncOperator:
    return PlatformDbtSyncOperator(task_id="t", **given)


def connect(**given: Any) -> PlatformConnectReportOperator:
    known = {"report_id": 101, "external_workbook_id": "w", "result_location": "A!1"}
    return PlatformConnectReportOperator(task_id="t", **{**known, **given})


CASES: dict[str, tuple[dict[str, Any], Any, str]] = {
    "no host": ({"host": None}, sync, "host"),
    "no chat side": ({"chat_url": None, "chat_api_key": None}, ask, "chat_url"),
    "wrong key": ({"chat_api_key": "wrong"}, ask, "premium"),
    "wrong token": ({"password": "wrong"}, sync, "401"),
    "nobody": ({"session_settings": None}, ask, "session_settings"),
    "other deployment": ({"deployment_id": 99}, connect, "404.*deployment 99"),
}


def failure(operator: Any) -> str:
    """Render and run a task that fails without a retry; returns its error."""
    operator.render_template_fields({})
    with pytest.raises(AirflowFailException) as caught:
        operator.execute(TaskTries().context())
    return str(caught.value)


@pytest.mark.parametrize(("overrides", "operator", "words"), CASES.values(), ids=CASES)
def test_bad_connection_error_names_the_field_and_the_remedy(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    overrides: dict[str, Any],
    operator: Any,
    words: str,
) -> None:
    connection = platform_sandbox.connection_json(**overrides)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    assert re.search(words, failure(operator()))
    seen = platform_sandbox.control.state()
    assert not seen.runs
    assert not seen.syncs


RENDERED: dict[str, tuple[Any, str]] = {
    "an empty prompt": (lambda: ask(prompt="{{ '' }}"), "prompt"),
    "a deployment that is no number": (lambda: sync(deployment_id="{{ 'x' }}"), "deployment_id"),
    "a report that does not exist": (lambda: connect(report_id=7), "Report 7|report 7"),
}


@pytest.mark.parametrize(("operator", "words"), RENDERED.values(), ids=RENDERED)
def test_a_bad_argument_is_refused_after_rendering(
    platform_sandbox: Sandbox, operator: Any, words: str
) -> None:
    assert re.search(words, failure(operator()))
    assert not platform_sandbox.control.state().messages


def test_task_with_fail_on_tool_error_never_succeeds_on_an_unknown_branch(
    platform_sandbox: Sandbox,
) -> None:
    task = ask(active_branch_name="nowhere", fail_on_tool_error="never", deferrable=False)
    (query,) = task.execute(TaskTries().context())["queries"]
    assert "Bad branch" in query["error"]
    assert query["rows"] == []


def test_settings_of_a_task_are_refused_with_a_service_token(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(service_tokens=True)
    token = platform_sandbox.control.service_token(externalId="nightly")
    connection = platform_sandbox.connection_json(chat_api_key=None, chat_service_token=token)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    own = {"externalId": "customer-1"}
    with DAG("two_users", schedule=None) as dag:
        ask(session_settings=own)

        @task.platform_chat(task_id="decorated", session_settings=own)
        def question() -> str:
            return "revenue by country"

        question()
        PlatformChatThreadSensor(
            task_id="sensed", chat_id="c", session_settings=own, poke_interval=0.1, timeout=5
        )
    run = run_dag(dag)
    for task_id in ("t", "decorated", "sensed"):
        assert run.task(task_id).state == "failed"
        said = run.task(task_id).error
        assert said.startswith("AirflowFailException")
        assert "Chat service token (chat_service_token) of" in said
        assert "'platform_default' already names the user" in said
    with pytest.raises(PlatformInputError, match="chat_service_token"):
        PlatformHook().chat("revenue", session_settings=own)
    with pytest.raises(PlatformInputError, match="chat_service_token"):
        PlatformHook().abort_chat("c", session_settings=own)
    assert not platform_sandbox.control.state().requests


def test_rendered_session_settings_reach_the_service_as_booleans_numbers_and_lists(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    settings = {
        "externalId": "{{ params.who }}",
        "isEphemeral": "{{ params.is_ephemeral }}",
        "ephemeralTtlSeconds": "{{ params.seconds }}",
        "groups": "{{ params.groups | tojson }}",
        "roles": [],
        "email": "{{ params.email or '' }}",
        "timezone": "{{ params.zone }}",
        "allowChatWorkspaceAuthoring": "{{ params.is_ephemeral }}",
    }
    params = {
        "who": 42,
        "is_ephemeral": False,
        "seconds": 3600,
        "groups": ["a"],
        "email": None,
        "zone": "Europe/Berlin",
    }
    with DAG("rendered_settings", schedule=None, params=params) as dag:
        ask(session_settings=settings)
    assert run_dag(dag).task("t").error is None
    [message] = platform_sandbox.control.state().messages
    assert message.session_settings == {
        "externalId": "42",
        "isEphemeral": False,
        "ephemeralTtlSeconds": 3600,
        "groups": ["a"],
        "roles": [],
        "timezone": "Europe/Berlin",
        "allowChatWorkspaceAuthoring": False,
    }


@pytest.mark.parametrize("status", ["400", "403", "429"])
def test_account_with_too_many_users_fails_once_and_names_the_limit(
    platform_sandbox: Sandbox, status: str
) -> None:
    PlatformHook().chat("revenue", session_settings={"externalId": "first", "isEphemeral": False})
    words = "The account has reached the limit of 1 external users"
    platform_sandbox.control.fault(
        "status", api="chat", has_input=True, status=int(status), message=words
    )
    error = failure(ask(session_settings={"externalId": "second", "isEphemeral": False}))
    assert "limit of 1 external users" in error
    assert "10,000 external users that are not ephemeral" in error
    seen = platform_sandbox.control.state()
    assert len(seen.runs) == 1
    assert len([one for one in seen.requests if one.has_input]) == 2
