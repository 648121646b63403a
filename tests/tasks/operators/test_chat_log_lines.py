"""What the log of a chat task says about its prompt and about missing rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.operators.chat import PlatformChatOperator
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.captured_log import Capture


def log_of(capture: Capture, **arguments: Any) -> list[str]:
    """The lines of a task that asks; its error, if any, is not of interest here."""
    capture.printed.readouterr()
    operator = PlatformChatOperator(task_id="ask", poll_interval=0.05, **arguments)
    operator.execute(TaskTries().context())
    aside = ("outside of the Task Runner", "no task state store")
    return [line for line in capture.lines() if not any(words in line for words in aside)]


def test_the_first_line_quotes_the_prompt(platform_sandbox: Sandbox, capture: Capture) -> None:
    first = log_of(capture, prompt="revenue by country")[0]
    assert 'Asking the agent "revenue by country", message ' in first


def test_a_prompt_is_one_short_line_without_secrets(
    platform_sandbox: Sandbox, capture: Capture
) -> None:
    key = platform_sandbox.chat_api_key
    prompt = f"revenue by country\n::group::x\x1b[1m with {key} " + "and more " * 100
    first = log_of(capture, prompt=prompt)[0]
    assert r"revenue by country\n:\:group::x\x1b[1m with *** and more" in first
    assert "…" in first
    assert key not in first
    assert len(first) < 500


@pytest.mark.parametrize(("max_rows", "raise_it"), [(2, True), (100, False)])
def test_missing_rows_are_a_warning_that_says_how_to_get_them(
    platform_sandbox: Sandbox, capture: Capture, max_rows: int, raise_it: bool
) -> None:
    """Raising `max_rows` helps only where the chat sent more."""
    prompt = "sql: SELECT id, status FROM orders ORDER BY id"
    lines = log_of(capture, prompt=prompt, max_rows=max_rows)
    (warning,) = [line for line in lines if "The result has" in line]
    assert "warning" in warning
    assert f"The result has {max_rows} of " in warning
    assert 'all_rows=True and all_rows_as="connection"' in warning
    assert "PlatformHook.run_sql" in warning
    assert ("raise max_rows: the chat sent 100 rows" in warning) is raise_it


@pytest.mark.parametrize(
    ("extra", "advice"),
    [
        (
            {"deployment_id": None},
            "This connection cannot read all rows, because it has no access to the data API. Set "
            "deployment_id in the connection.",
        ),
        (
            {"host": None, "password": None},
            "This connection cannot read all rows, because it has no access to the data API. Set "
            "host, password and deployment_id in the connection.",
        ),
        (
            {"host": None, "password": None, "data_api_url": "https://data.example.com"},
            "cannot read all rows",
        ),
        ({"token": True}, "For all rows set output_path and all_rows=True."),
        (
            {
                "token": True,
                "host": None,
                "password": None,
                "data_api_url": "https://data.example.com",
            },
            "For all rows set output_path and all_rows=True.",
        ),
    ],
    ids=["no deployment", "no management", "an address alone", "a token", "a token and an address"],
)
def test_advice_on_missing_rows_fits_the_connection(
    platform_sandbox: Sandbox,
    capture: Capture,
    monkeypatch: pytest.MonkeyPatch,
    extra: dict[str, Any],
    advice: str,
) -> None:
    fields = dict(extra)
    if fields.pop("token", False):
        platform_sandbox.control.set(service_tokens=True)
        token = platform_sandbox.control.service_token(externalId="nightly")
        fields |= {"chat_api_key": None, "chat_service_token": token}
    connection = platform_sandbox.connection_json(**fields)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    lines = log_of(capture, prompt="sql: SELECT id FROM orders ORDER BY id")
    (warning,) = [line for line in lines if "The result has" in line]
    assert advice in warning
    assert ("run_sql" in warning) is False


def test_complete_result_logs_no_warning(platform_sandbox: Sandbox, capture: Capture) -> None:
    assert not [line for line in log_of(capture, prompt="revenue by country") if "warning" in line]
