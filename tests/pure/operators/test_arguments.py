"""Arguments: which rendered values are accepted, and what is refused before a request."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._output_arguments import output_path, storage_path
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.notifications import PlatformNotificationRecipientsOperator
from airflow_provider_platform.operators.reports import PlatformConnectReportOperator


@pytest.mark.parametrize("value", ["", "  ", "None", None])
def test_argument_that_renders_to_nothing_counts_as_absent(value: Any) -> None:
    assert arguments.optional(value) is None
    assert arguments.optional_id("deployment_id", value) is None


@given(st.integers(min_value=1, max_value=10**9))
def test_rendered_number_is_converted_to_a_number(value: int) -> None:
    assert arguments.whole_number("x", str(value), minimum=1) == value


@given(st.integers(min_value=1, max_value=2**70))
def test_every_digit_of_an_id_is_kept(value: int) -> None:
    assert arguments.identifier("report_id", value) == value
    assert arguments.identifier("report_id", f" {value}") == value


@pytest.mark.parametrize("value", [10**400, "1e400", 2**40, timedelta(days=100_000)])
def test_invalid_duration_is_refused(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="timeout must be"):
        arguments.seconds("timeout", value)


@pytest.mark.parametrize("value", [object(), str.upper, Exception, b"main", ("a",), {"a"}, True])
def test_value_without_a_plain_text_is_refused(value: Any) -> None:
    for check in (arguments.text, arguments.optional_text):
        with pytest.raises(PlatformInputError, match="branch_name must be a non-empty string"):
            check("branch_name", value)


@pytest.mark.parametrize("value", ["a", 7, 1.5, Path("a/b"), Decimal(1), date(2026, 1, 2)])
def test_value_with_a_plain_text_becomes_that_text(value: Any) -> None:
    assert arguments.text("branch_name", value) == str(value)


@pytest.mark.parametrize(
    "value",
    ["seven", "", None, True, "nan", "inf", "1.5", 0, -1, [], {}, 10**400, "9" * 5000],
)
def test_value_that_is_not_a_positive_integer_is_refused(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="deployment_id"):
        arguments.whole_number("deployment_id", value, minimum=1)


def test_a_whole_number_may_be_written_with_a_point() -> None:
    assert arguments.whole_number("max_rows", "7.0", minimum=1) == 7


@pytest.mark.parametrize(
    ("value", "effective_value"),
    [
        (None, None),
        ("", None),
        (date(2026, 7, 1), "2026-07-01T00:00:00+00:00"),
        ("2026-07-01", "2026-07-01T00:00:00+00:00"),
        (datetime.fromisoformat("2026-07-01T06:30"), "2026-07-01T06:30:00+00:00"),
        ("2026-07-01T06:30+02:00", "2026-07-01T06:30:00+02:00"),
    ],
)
def test_a_time_without_a_zone_is_in_utc(value: Any, effective_value: str | None) -> None:
    assert arguments.moment("since", value) == effective_value


@pytest.mark.parametrize("value", ["yesterday", 1_800_000_000, timedelta(days=1)])
def test_value_that_is_no_time_is_refused(value: Any) -> None:
    with pytest.raises(PlatformInputError, match="since must be a date or a time in ISO 8601"):
        arguments.moment("since", value)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("rows.csv\n", "contains the control character '\\n' at position 9"),
        ("ro\x00ws.csv", "contains the control character '\\x00' at position 3"),
        (" rows.csv", "begins or ends with a space"),
    ],
)
def test_a_path_with_invisible_characters_is_refused(path: str, said: str) -> None:
    with pytest.raises(PlatformInputError) as error:
        output_path("output_path", path)
    assert f"output_path {said}" in error.value.message
    assert "{{ value | trim }}" in error.value.message


def test_a_key_in_an_address_is_not_quoted() -> None:
    with pytest.raises(PlatformInputError, match="before the @ is not the id of an") as error:
        storage_path("output_path", "s3://AKIA:secret@lake/rows.csv")
    assert "AKIA" not in error.value.message
    assert "secret" not in error.value.message


@pytest.mark.parametrize(
    ("value", "effective_value"), [("True", True), ("false", False), (" 1 ", True)]
)
def test_rendered_boolean_is_converted_to_a_boolean(value: str, effective_value: bool) -> None:
    assert arguments.boolean("x", value) is effective_value


def test_an_object_may_be_json_text() -> None:
    assert arguments.mapping("x", '{"externalId": "a"}') == {"externalId": "a"}
    assert arguments.mapping("x", "{}") is None
    for value in ("[1]", "not json", 5):
        with pytest.raises(PlatformInputError, match="x must be a dict"):
            arguments.mapping("x", value)


@pytest.mark.parametrize(
    ("operator", "given_arguments", "field"),
    [
        (PlatformChatOperator, {"prompt": ""}, "prompt"),
        (PlatformChatOperator, {"prompt": "q", "timeout": 0}, "timeout"),
        (PlatformChatOperator, {"prompt": "q", "poll_interval": -1}, "poll_interval"),
        (PlatformChatOperator, {"prompt": "q", "fail_on_tool_error": "some"}, "fail_on_tool_error"),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"externalId": "Capital"}},
            "externalId",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"externalId": "two words"}},
            "externalId",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"internalId": "a@b.example", "groups": ["g"]}},
            "groups",
        ),
        (PlatformDbtSyncOperator, {"deployment_id": "seven"}, "deployment_id"),
        (
            PlatformConnectReportOperator,
            {"report_id": "r", "external_workbook_id": "w", "result_location": "A1"},
            "report_id",
        ),
        (
            PlatformConnectReportOperator,
            {"report_id": 1, "external_workbook_id": "", "result_location": "A1"},
            "external_workbook_id",
        ),
    ],
)
def test_invalid_plain_argument_is_refused_when_the_dag_is_parsed(
    operator: type, given_arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError, match=field):
        operator(task_id="t", **given_arguments)


def test_template_is_checked_only_after_rendering() -> None:
    PlatformChatOperator(
        task_id="t",
        prompt="{{ params.question }}",
        max_rows="{{ params.rows }}",
        session_settings={"externalId": "{{ params.WHO }}"},
    )


@pytest.mark.parametrize(
    "operator", [PlatformChatOperator, PlatformDbtSyncOperator, PlatformConnectReportOperator]
)
def test_every_argument_is_a_template_field(operator: type) -> None:
    import inspect

    own = {
        name
        for cls in operator.__mro__
        if cls.__module__.startswith("airflow_provider_platform")
        for name in inspect.signature(cls.__init__).parameters
    } - {"self", "kwargs", "args", "multiple_outputs"}
    assert own == set(operator.template_fields)


@pytest.mark.parametrize("nothing", ["", "None", None])
def test_an_optional_argument_that_renders_to_nothing_means_its_default(nothing: Any) -> None:
    operator = PlatformChatOperator(
        task_id="t",
        prompt="q",
        max_rows=nothing,
        timeout=nothing,
        poll_interval=nothing,
        if_thread_busy=nothing,
        fail_on_tool_error=nothing,
        deferrable=nothing,
        cancel_on_kill=nothing,
    )
    operator.coerce_arguments()
    assert (operator.max_rows, operator.timeout, operator.poll_interval) == (100, 1800, 5)
    assert (operator.if_thread_busy, operator.fail_on_tool_error) == ("wait", "all")
    assert (operator.deferrable, operator.cancel_on_kill) == (False, True)
    assert operator.platform_conn_id == "platform_default"


def test_a_manifest_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_platform.operators.dbt_sync.MAX_MANIFEST_BYTES", 100)
    with pytest.raises(PlatformInputError, match="manifest must have at most 100 bytes"):
        PlatformDbtSyncOperator(task_id="t", source="manifest", manifest={"nodes": "x" * 100})


def refused(operator: type, **given_arguments: Any) -> str:
    with pytest.raises(PlatformInputError) as caught:
        operator(task_id="t", **given_arguments)
    return str(caught.value)


@pytest.mark.parametrize(
    ("operator", "given_arguments", "words"),
    [
        (
            PlatformDbtSyncOperator,
            {"wait_for_completion": "maybe"},
            "wait_for_completion must be true, false or if_supported, got 'maybe'.",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "max_rows": -1},
            "max_rows must be at least 0, got -1.",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "timeout": "soon"},
            "timeout must be a number, got 'soon'.",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "if_thread_busy": "later"},
            "if_thread_busy must be one of wait, fail, got 'later'.",
        ),
        (
            PlatformChatOperator,
            {"prompt": ["q"]},
            "prompt must be a non-empty string, got a value of type list.",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "max_rows": "x\n" * 100},
            r"max_rows must be a number, got '" + "x\\\\n" * 19,
        ),
        (
            PlatformDbtSyncOperator,
            {"source": "manifest"},
            "manifest and source='manifest' must be given together",
        ),
        (
            PlatformDbtSyncOperator,
            {"source": "manifest", "manifest": {"nodes": {}}, "ref": "main"},
            "ref is not used with source='manifest': no repository is cloned",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {"name": "a"}},
            "session_settings: name: is not a known field",
        ),
        (
            PlatformChatOperator,
            {"prompt": "q", "session_settings": {1: "a"}},
            "session_settings: 1: Keys should be strings",
        ),
        (
            PlatformNotificationRecipientsOperator,
            {"notification_id": 1, "add": [None]},
            "add: recipients.0: must be an object (a dict) with the fields of the operator's page",
        ),
    ],
)
def test_an_error_names_the_task_the_operator_the_rule_and_the_value(
    operator: type, given_arguments: dict[str, Any], words: str
) -> None:
    said = refused(operator, **given_arguments)
    assert said.startswith(f"Nothing was sent: {words}")
    assert said.endswith(f" (task 't', {operator.__name__})")
    assert len(said) < 200


def test_argument_that_changes_after_the_dag_is_parsed_is_checked_again() -> None:
    operator = PlatformChatOperator(task_id="t", prompt="q", agent="sales", max_rows=7)
    operator.max_rows, operator.timeout = "8", None
    operator.coerce_arguments()
    assert (operator.max_rows, operator.timeout) == (8, 1800)
    operator.max_rows = "x"
    with pytest.raises(PlatformInputError, match="max_rows must be a number"):
        operator.coerce_arguments()
    operator.max_rows = 8
    operator.agent_id = 1
    with pytest.raises(PlatformInputError, match="only one of agent and agent_id"):
        operator.coerce_arguments()


@pytest.mark.parametrize("value", ['{"a": "not-a-setting"', ["not-a-setting"]])
def test_error_shows_no_content_of_an_object(value: Any) -> None:
    said = refused(PlatformChatOperator, prompt="q", session_settings=value)
    assert "session_settings must be a dict" in said
    assert "not-a-setting" not in said


def test_error_of_a_decorated_task_names_the_task() -> None:
    from airflow.sdk import task

    @task.platform_chat(max_rows=-1)
    def ask() -> str:
        return "q"

    with pytest.raises(PlatformInputError, match=r"-1.*\(task 'ask', @task.platform_chat\)"):
        ask()


@pytest.mark.parametrize("operator", [PlatformChatOperator, PlatformDbtSyncOperator])
def test_duration_may_be_a_timedelta(operator: type) -> None:
    prompt = {"prompt": "q"} if operator is PlatformChatOperator else {}
    made = operator(
        task_id="t", timeout=timedelta(minutes=2), poll_interval=timedelta(seconds=1.5), **prompt
    )
    made.coerce_arguments()
    assert (made.timeout, made.poll_interval) == (120, 1.5)
    assert "timeout must be above 0" in refused(operator, timeout=timedelta(0), **prompt)
