"""Bad input: each has one clear error with the field and the remedy. Only useful retries happen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, task

from airflow_provider_platform.client.errors import PlatformInputError, PlatformPermissionError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor

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


CASES: list[tuple[str, dict[str, Any], Any, str, str]] = [
    ("no host", {"host": None}, sync, "AirflowFailException", "host"),
    ("no token", {"password": None}, sync, "AirflowFailException", "password"),
    ("http", {"host": "http://acme.example.com"}, sync, "AirflowFailException", "https"),
    ("mask", {"chat_api_key": "***"}, ask, "AirflowFailException", r"chat_api_key.*\*\*\*"),
    (
        "no chat side",
        {"chat_url": None, "chat_api_key": None},
        ask,
        "AirflowFailException",
        "chat_url",
    ),
    ("no credential", {"chat_api_key": None}, ask, "AirflowFailException", "chat_api_key"),
    ("two credentials", {"chat_service_token": "a.b.c"}, ask, "AirflowFailException", "both"),
    ("wrong key", {"chat_api_key": "wrong"}, ask, "AirflowFailException", "premium"),
    ("wrong token", {"password": "wrong"}, sync, "AirflowFailException", "401"),
    ("nobody", {"session_settings": None}, ask, "AirflowFailException", "session_settings"),
    (
        "capitals",
        {"session_settings": {"externalId": "Nightly"}},
        ask,
        "AirflowFailException",
        "externalId.*lowercase",
    ),
    ("deployment", {"deployment_id": "seven"}, sync, "AirflowFailException", "deployment_id"),
    (
        "other deployment",
        {"deployment_id": 99},
        connect,
        "AirflowFailException",
        "404.*|deployment 99",
    ),
]


@pytest.mark.parametrize(
    ("name", "overrides", "operator", "error", "words"), CASES, ids=[case[0] for case in CASES]
)
def test_bad_connection_error_names_the_field_and_the_remedy(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    overrides: dict[str, Any],
    operator: Any,
    error: str,
    words: str,
) -> None:
    connection = platform_sandbox.connection_json(**overrides)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    with DAG(f"bad_{name.replace(' ', '_')}", schedule=None) as dag:
        operator(retries=3)
    failed = run_dag(dag).task("t")
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.startswith(error)
    import re

    assert re.search(words, failed.error), failed.error
    seen = platform_sandbox.control.state()
    assert not seen.runs
    assert not seen.syncs


RENDERED: list[tuple[str, Any, str]] = [
    ("an empty prompt", lambda: ask(prompt="{{ '' }}"), "prompt"),
    ("a deployment that is no number", lambda: sync(deployment_id="{{ 'x' }}"), "deployment_id"),
    ("a report that is no number", lambda: connect(report_id="{{ 'x' }}"), "report_id"),
    (
        "groups beside internalId",
        lambda: ask(session_settings={"internalId": "{{ 'a@b.c' }}", "groups": ["g"]}),
        "groups",
    ),
    ("a report that does not exist", lambda: connect(report_id=7), "Report 7|report 7"),
]


@pytest.mark.parametrize(
    ("operator", "words"), [case[1:] for case in RENDERED], ids=[case[0] for case in RENDERED]
)
def test_a_bad_argument_is_refused_after_rendering(
    platform_sandbox: Sandbox, run_dag: RunDag, operator: Any, words: str
) -> None:
    import re

    with DAG("bad_argument", schedule=None) as dag:
        operator()
    failed = run_dag(dag).task("t")
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.startswith("AirflowFailException")
    assert re.search(words, failed.error), failed.error
    assert not platform_sandbox.control.state().messages


def test_question_about_an_unknown_branch_fails_the_task(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    with DAG("bad_branch", schedule=None) as dag:
        ask(active_branch_name="nowhere")
    failed = run_dag(dag).task("t")
    assert failed.error is not None
    assert failed.error.startswith("ChatToolError")
    assert "Bad branch" in failed.error


def test_task_with_fail_on_tool_error_never_succeeds_on_an_unknown_branch(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    with DAG("bad_branch_accepted", schedule=None) as dag:
        ask(active_branch_name="nowhere", fail_on_tool_error="never")
    (query,) = run_dag(dag).xcom("t", "queries")
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


def test_connections_settings_are_not_sent_with_a_service_token(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(service_tokens=True)
    token = platform_sandbox.control.service_token(externalId="nightly")
    connection = platform_sandbox.connection_json(
        chat_api_key=None, chat_service_token=token, session_settings={"externalId": "else"}
    )
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    with DAG("token_user", schedule=None) as dag:
        ask()
    assert run_dag(dag).task("t").state == "success"
    [message] = platform_sandbox.control.state().messages
    assert message.identity == "external:nightly"


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


def test_abort_without_session_settings_is_left_to_the_service(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    hook = PlatformHook()
    answer = hook.chat("revenue by country")
    connection = platform_sandbox.connection_json(session_settings=None)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)

    with pytest.raises(PlatformPermissionError, match="does not own"):
        PlatformHook().abort_chat(answer.chat_id)
    aborts = platform_sandbox.control.state().aborts
    assert [(abort.identity, abort.outcome) for abort in aborts] == [(None, "forbidden")]


@pytest.mark.parametrize("status", ["400", "403", "429"])
def test_account_with_too_many_users_fails_once_and_names_the_limit(
    platform_sandbox: Sandbox, run_dag: RunDag, status: str
) -> None:
    PlatformHook().chat("revenue", session_settings={"externalId": "first", "isEphemeral": False})
    words = "The account has reached the limit of 1 external users"
    platform_sandbox.control.fault(
        "status", api="chat", has_input=True, status=int(status), message=words
    )
    with DAG("one_user_too_many", schedule=None) as dag:
        ask(session_settings={"externalId": "second", "isEphemeral": False}, retries=3)
    failed = run_dag(dag).task("t")
    assert failed.state == "failed"
    assert failed.error is not None
    assert failed.error.startswith("AirflowFailException")
    assert "limit of 1 external users" in failed.error
    assert "10,000 external users that are not ephemeral" in failed.error
    seen = platform_sandbox.control.state()
    assert len(seen.runs) == 1
    assert len([one for one in seen.requests if one.has_input]) == 2
