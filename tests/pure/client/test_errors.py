"""The error classes: which are retryable, their JSON form, and quoted texts of the service."""

from __future__ import annotations

import ast
import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client import errors
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import LABELS
from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformConfigError,
    PlatformError,
    PlatformTransportError,
    from_payload,
)
from airflow_provider_platform.client.failed_calls import CHAT_STREAM, chat_error, error_for_status
from airflow_provider_platform.client.redaction import (
    MAX_LOG_LINE,
    MAX_SERVICE_TEXT,
    log_line,
    quote_service,
)

CHAT = "https://ai.example.com/api/v1/public/acme/agents/7/chat"

TREE = [
    value
    for value in vars(errors).values()
    if isinstance(value, type) and issubclass(value, PlatformError)
]
RETRYABLE = {
    "AlreadyRunningError",
    "BranchClosedError",
    "BranchNotServedError",
    "BranchNotWrittenError",
    "BuildFailedError",
    "ChatAbortedError",
    "ChatBusyError",
    "ChatEndUnknownError",
    "ChatError",
    "ChatNoAnswerError",
    "ChatStreamError",
    "ChatSuspendedError",
    "ChatToolError",
    "DashboardExportFailedError",
    "DataQueryTimeoutError",
    "DbtSyncCancelledError",
    "DbtSyncFailedError",
    "MergedBuildFailedError",
    "PagesChangedError",
    "PlatformDeadlineError",
    "PlatformInterruptedError",
    "EvaluationNotMeasuredError",
    "EvaluationRunFailedError",
    "PlatformProtocolError",
    "PlatformRateLimitError",
    "PlatformServerError",
    "PlatformTransientConflictError",
    "PlatformTransportError",
    "PlatformTriggerError",
    "PreAggregationBuildFailedError",
    "PreAggregationJobsLostError",
    "ReportDeliveryFailedError",
    "ResultEmptyError",
    "ResultWriteError",
}


def test_only_listed_errors_are_retryable() -> None:
    assert {error.__name__ for error in TREE if error.retryable} == RETRYABLE


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_error_read_from_json_equals_the_original(kind: type[PlatformError]) -> None:
    error = kind(
        "It failed.", where="chat 1", status=503, operation="op", field="host", extra={"a": [1]}
    )
    again = from_payload(json.loads(json.dumps(error.to_payload())))
    assert type(again) is kind
    assert (str(again), again.details) == ("It failed. (chat 1)", error.details)
    assert (again.reason, again.where) == ("It failed.", "chat 1")
    for name in ("status", "operation", "field", "retry_after", "processed"):
        assert getattr(again, name, None) == getattr(error, name, None)


@pytest.mark.parametrize("kind", TREE, ids=lambda kind: kind.__name__)
def test_an_error_begins_with_its_reason_and_ends_with_ids(kind: type[PlatformError]) -> None:
    assert str(kind("It failed.")) == "It failed."
    assert str(kind("It failed.", where="chat 1, message 2")) == "It failed. (chat 1, message 2)"


PACKAGE = Path(errors.__file__).parents[1]


@cache
def made_errors() -> list[tuple[str, ast.Call]]:
    """Where the package, without the sandbox, makes one of its errors: file, call."""
    names = {error.__name__ for error in TREE}
    return [
        (file.name, call)
        for file in PACKAGE.rglob("*.py")
        if "sandbox" not in file.parts
        for call in ast.walk(ast.parse(file.read_text()))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names
    ]


def test_no_error_of_the_package_begins_with_a_value_other_than_what_failed() -> None:
    """Log viewers show one line: ids, paths and addresses before the reason would hide it."""
    actions = {
        "_START.action",
        "name.action",
        "self._name.action",
        "self.description",
        "self._start.description",
    }
    reasons = {
        "reason",
        "error.reason",
        "lost.reason",
        "cause.reason",
        "unknown.reason",
        "came",
        "what_came_instead(cause)",
        "begin",
        "subject",
        "lost",
        "times",
    }
    settings = {"field", "type(self).__name__"}
    for file, call in made_errors():
        first = call.args[0] if call.args else None
        if isinstance(first, ast.JoinedStr) and isinstance(first.values[0], ast.FormattedValue):
            begin = ast.unparse(first.values[0].value)
            assert begin in actions | reasons | settings, (
                f"{file}:{call.lineno} begins with {begin}"
            )


def test_payload_of_an_error_has_false_but_not_none() -> None:
    assert PlatformTransportError("x", processed=False).to_payload()["details"] == {
        "processed": False
    }
    assert PlatformTransportError("x").to_payload()["details"] == {}


@pytest.mark.parametrize(
    "payload",
    [
        {},
        {"type": "NewerError", "message": "m", "details": {"a": 1}},
        {"type": "ValueError", "message": "m"},
        {"type": None, "message": None, "details": None},
        {"type": "PlatformApiError", "details": ["no object"]},
        {"type": "PlatformApiError", "message": "m", "details": {"message": "x", "self": 1}},
        {"type": ["PlatformApiError"], "message": 7, "details": 7},
    ],
)
def test_any_payload_becomes_an_error(payload: Any) -> None:
    error = from_payload(payload)
    assert isinstance(error, PlatformError)
    assert str(error)


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "PlatformBadRequestError"),
        (401, "PlatformAuthenticationError"),
        (403, "PlatformPermissionError"),
        (404, "PlatformNotFoundError"),
        (408, "PlatformServerError"),
        (409, "PlatformConflictError"),
        (418, "PlatformBadRequestError"),
        (422, "PlatformUnprocessableError"),
        (429, "PlatformRateLimitError"),
        (500, "PlatformServerError"),
        (599, "PlatformServerError"),
    ],
)
def test_each_status_has_its_error_class(status: int, name: str) -> None:
    assert error_for_status(status).__name__ == name
    assert issubclass(error_for_status(status), PlatformApiError)


@pytest.mark.parametrize(
    ("status", "step"),
    [
        (404, "visible to its own user only"),
        (403, "The thread belongs to another user"),
        (401, "Check the chat credential"),
    ],
)
def test_error_about_a_thread_names_the_step_of_its_status(status: int, step: str) -> None:
    said = b'{"message": "no such thread"}'
    assert step in str(chat_error(CHAT_STREAM, status, {}, said, now=0.0))


MARKS = re.compile(r"::(end)?group::|##\[(end)?group\]", re.IGNORECASE)


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("plain – words", "plain – words"),
        ("  two\nlines\r\n", "two\\nlines"),
        ("\x1b[31mred\x00", "\\x1b[31mred\\x00"),
        ("a\u2028b\u0085c", "a\\u2028b\\x85c"),
        ("::group::x", ":\\:group::x"),
        (
            "a ::EndGroup:: b ##[group]c ##[endgroup]",
            "a :\\:EndGroup:: b #\\#[group]c #\\#[endgroup]",
        ),
        ("::group::group::", ":\\:group:\\:group::"),
        (None, "None"),
        ({"a": [1, None, True, "ü"]}, '{"a": [1, null, true, "ü"]}'),
        (["two\nlines", False], '["two\\nlines", false]'),
        (True, "true"),
        ("\ud800", "\\ud800"),
        (" " * 600 + "x", "x"),
    ],
)
def test_quoted_text_is_one_line_without_control_characters(text: Any, quoted: str) -> None:
    assert quote_service(text) == quoted


def test_quoted_text_is_cut_at_500_characters() -> None:
    assert quote_service("x" * 500) == "x" * 500
    assert quote_service("x" * 501) == "x" * 499 + "…"
    assert len(quote_service("\n" * 3 + "\t" * 3 + "a\n" * 1000)) == MAX_SERVICE_TEXT


@given(
    st.text(st.characters() | st.sampled_from(":#[]\n\x1b"), max_size=80)
    | st.lists(st.sampled_from(["::", "group", "end", "##[", "]", ":", "\n"]), max_size=12).map(
        "".join
    )
)
def test_no_text_forges_a_log_line(text: str) -> None:
    quoted = quote_service(text)
    assert quoted.isprintable()
    assert len(quoted) <= MAX_SERVICE_TEXT
    assert not MARKS.search(quoted)
    assert quote_service(quoted).isprintable()


def test_error_with_ids_of_the_service_is_one_line() -> None:
    forged, shown = "7\n::endgroup::\x1b[31m", "7\\n:\\:endgroup::\\x1b[31m"
    error = PlatformError(f"branch {forged} has no build", where=f"branch {forged}")
    assert str(error) == f"branch {shown} has no build (branch {shown})"
    assert str(from_payload(error.to_payload())) == str(error)
    assert log_line(shown) == shown
    assert len(log_line("x" * 5000)) == MAX_LOG_LINE


SETTINGS = ("chat_url", "chat_api_key", "chat_service_token", "data_api_url", "ca_bundle")


def named_settings(text: str) -> list[str]:
    """The settings of the connection that a text names without the form's label before them."""
    for name in SETTINGS:
        text = text.replace(f"{LABELS[name]} ({name}", "").replace(f'"{name}":', "")
    return [name for name in SETTINGS if re.search(rf"\b{name}\b", text)]


def test_error_names_a_setting_of_the_connection_by_its_label_too() -> None:
    """A reader of an error has the form before them, not the names in the connection's JSON."""
    for file, call in made_errors():
        parts = ast.walk(call.args[0]) if call.args else ()
        texts = [one.value for one in parts if isinstance(one, ast.Constant)]
        text = " ".join(one for one in texts if isinstance(one, str))
        assert named_settings(text) == [], f"{file}:{call.lineno}: {text}"


@pytest.mark.parametrize(
    ("given_settings", "begin"),
    [
        (
            {"chat_url": CHAT},
            "Chat API key (chat_api_key) or Chat service token (chat_service_token) is missing",
        ),
        ({"chat_url": "https://a.example/v1", "chat_api_key": "k"}, "Chat address (chat_url) must"),
        ({"host": "https://a.example/api"}, "Management token (password) is missing"),
        ({"chat_url": CHAT, "chat_api_key": "***"}, "Chat API key (chat_api_key) is the literal"),
        (
            {"chat_url": CHAT, "chat_api_key": "k", "max_attempts": 0},
            "Tries per request (max_attempts) must",
        ),
    ],
)
def test_setting_refused_by_a_direct_build_has_its_label(
    given_settings: dict[str, Any], begin: str
) -> None:
    with pytest.raises(PlatformConfigError) as caught:
        PlatformConfig.build(**given_settings)
    assert caught.value.message.startswith(begin)
