"""What a response becomes: values, typed errors with the service's message, wrong addresses."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    ChatRpcError,
    ChatUserLimitError,
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformRateLimitError,
    PlatformTransportError,
)
from airflow_provider_platform.client.failed_calls import (
    CHAT_STREAM,
    error_for_status,
    service_message,
)
from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.operation import operation, raw_operation, typed
from airflow_provider_platform.client.repeats import cannot_have_been_processed, is_transient
from airflow_provider_platform.client.responses import check_stream_start, read_abort, read_response

NOON = 1_800_000_000.0
HTML = {"content-type": "text/html; charset=utf-8"}
JSON = {"content-type": "application/json"}


class Report(ResponseModel):
    id: int
    name: str | None = None


def delete_notification() -> Any:
    return operation("deleteNotification", id=1)


OPERATION = typed("getReport", Report, permission="ReportRead on the deployment")(
    deployment_id=7, report_id=42
)
ANY = raw_operation("GET", "/v1/x")


def read(
    status: int, body: bytes, headers: dict[str, str] | None = None, operation: Any = None
) -> Any:
    return read_response(operation or OPERATION, status, headers or JSON, body, now=NOON)


def failure(status: int, body: bytes = b"", headers: dict[str, str] | None = None) -> PlatformError:
    with pytest.raises(PlatformError) as caught:
        read(status, body, headers)
    return caught.value


def test_response_is_read_into_its_model() -> None:
    report = read(200, b'{"id": "42", "name": 7, "later": {"a": 1}}')
    assert (report.id, report.name) == (42, "7")
    assert report.to_json() == {"id": 42, "name": "7", "later": {"a": 1}}
    assert read(201, b'{"id": 1}').id == 1


@pytest.mark.parametrize("status", [200, 202, 204])
def test_empty_response_of_a_deletion_is_none(status: int) -> None:
    assert read(status, b"", operation=delete_notification()) is None
    assert read(status, b"", operation=ANY) is None


def test_plain_json_contains_only_json_values() -> None:
    assert read(200, b'{"a": [NaN, 1e999]}', operation=ANY) == {"a": [None, None]}


def test_empty_response_that_needs_a_body_is_an_error() -> None:
    assert isinstance(failure(200, b" "), PlatformTransportError)
    assert isinstance(failure(204, b""), PlatformProtocolError)


@pytest.mark.parametrize("body", [b"{}", b"[]", b"null", b'{"id": "many"}'])
def test_response_of_another_shape_is_a_protocol_error(body: bytes) -> None:
    error = failure(200, body)
    assert isinstance(error, PlatformProtocolError)
    assert error.message.startswith("get report: the response does not have the documented shape")
    assert error.where == "deployment 7, report 42: GET /v1/deployments/7/reports/42"
    assert "many" not in error.message


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        (b"<!DOCTYPE html><html>login</html>", HTML),
        (b"<!doctype html>", JSON),
        (b"  \n<html lang=en>", JSON),
        (b"anything", HTML),
        (b"null", HTML),
        (b'"ok"', HTML),
        (b"12", HTML),
        (b"Not found", {"content-type": "text/plain"}),
        (b"{broken", JSON),
        (b'{"a": 1}{', JSON),
        (b"\xff\xfe", JSON),
    ],
)
def test_response_that_is_not_json_is_a_wrong_address(body: bytes, headers: dict[str, str]) -> None:
    for called in (OPERATION, delete_notification()):
        with pytest.raises(
            PlatformAddressError, match=r"instead of JSON.*Check the address"
        ) as caught:
            read(200, body, headers, called)
        assert not caught.value.retryable


@pytest.mark.parametrize("content", ["text/html", "application/json"])
def test_json_under_a_wrong_content_type_is_json(content: str) -> None:
    assert read(200, b' {"id": 1}', {"content-type": content}).id == 1


@pytest.mark.parametrize("status", [301, 302, 303, 304, 307, 308])
def test_redirects_are_wrong_addresses(status: int) -> None:
    headers = {"location": "https://login.example.com/path?token=canary"}
    for check in (
        lambda: read(status, b"", headers),
        lambda: read_abort(status, headers, b"", now=NOON),
        lambda: check_stream_start(CHAT_STREAM, status, headers, b"", now=NOON),
    ):
        with pytest.raises(
            PlatformAddressError, match=r"https://login\.example\.com/path"
        ) as caught:
            check()
        assert "canary" not in str(caught.value.to_payload())
    for location in ("", "/login", "https://[::1", "\n::group::"):
        assert "\n" not in str(failure(status, b"", {"location": location}))


STATUSES = [400, 401, 403, 404, 405, 408, 409, 410, 418, 422, 429, 500, 502, 503, 504]


@pytest.mark.parametrize("status", STATUSES)
def test_error_status_gives_its_class_and_details(status: int) -> None:
    error = failure(status, b'{"message": "The service\'s words"}', {"retry-after": "7"})
    assert type(error) is error_for_status(status)
    assert isinstance(error, PlatformApiError)
    assert error.details == {
        "status": status,
        "operation": "getReport",
        "service_message": "The service's words",
        "retry_after": 7.0,
    }
    start = f"get report: the service answered {status}: The service's words."
    assert error.message.startswith(start)
    assert error.message.endswith(" (deployment 7, report 42: GET /v1/deployments/7/reports/42)")


def test_error_names_the_likely_cause_of_its_status() -> None:
    assert "ReportRead on the deployment" in failure(403).message
    assert "password" in failure(401).message
    assert "retry may succeed" in failure(502).message
    assert "without a message." in failure(404).message


def test_retry_after_may_be_a_date() -> None:
    error = failure(503, b"", {"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"})
    assert isinstance(error, PlatformApiError)
    assert error.retry_after == 30.0


VALIDATION = {
    "message": "Validation failed",
    "statusCode": 400,
    "errors": [
        {"property": "name", "constraints": {"isString": "name must be a string"}},
        {"path": ["widgets", 0, "id"], "message": "required"},
        {"field": "", "message": "odd"},
        "plain words",
    ],
}


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", None),
        (b"  \n", None),
        (b"plain words\nline two", "plain words\\nline two"),
        (b'"a text"', "a text"),
        (b'{"error": "No"}', "No"),
        (b'{"message": "No", "error": "Bad Request"}', "No"),
        (b'{"message": " ", "error": "Bad Request"}', "Bad Request"),
        (b'{"message": ["a must be x", "b must be y"]}', "a must be x; b must be y"),
        (b'{"error": {"code": 1, "message": "No"}}', "No"),
        (b'{"detail": "No"}', "No"),
        (b'{"message": null, "code": 7}', "code: 7"),
        (b'{"errors": {"name": ["too long", "taken"]}}', "name: too long; taken"),
        (
            json.dumps(VALIDATION).encode(),
            "Validation failed; name: isString: name must be a string; widgets.0.id: required; "
            "odd; plain words",
        ),
        (b"{}", "{}"),
        (b"[]", "[]"),
        (b"\xff", "\ufffd"),
    ],
)
def test_service_message_is_found_in_every_form(body: bytes, said: str | None) -> None:
    assert service_message(body) == said


def test_a_web_page_is_not_quoted() -> None:
    assert service_message(b"<html>canary</html>") == "an HTML page"
    assert service_message(b"<p>canary</p>", HTML) == "an HTML page"


def test_plain_text_under_the_content_type_of_a_web_page_is_quoted() -> None:
    assert service_message(b"The thread is busy", HTML) == "The thread is busy"


def test_deep_bodies_are_quoted_quickly() -> None:
    deep: Any = "bottom"
    for _ in range(90):
        deep = {"a": deep, "b": [deep]} if isinstance(deep, str) else {"a": deep}
    assert str(service_message(json.dumps(deep).encode())).endswith("…")


WORDS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["message", "error", "errors", "path", "x"]), inner)
    ),
    max_leaves=8,
)


@given(value=WORDS, status=st.sampled_from(STATUSES))
def test_any_error_body_gives_one_line(value: Any, status: int) -> None:
    error = failure(status, json.dumps(value).encode())
    assert error.message.isprintable()
    assert len(error.message) < 1000
    json.dumps(error.to_payload(), allow_nan=False)


@pytest.mark.parametrize(
    ("body", "fails"),
    [
        (b'{"error": "Continue wait"}', True),
        (b'{"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "No"}}', True),
        (b'{"id": 1, "error": null}', False),
        (b'{"id": 1, "error": "failed", "status": "failed"}', False),
    ],
)
def test_error_object_under_status_200_is_an_error(body: bytes, fails: bool) -> None:
    if fails:
        assert isinstance(failure(200, body), PlatformProtocolError)
    else:
        assert read(200, body).id == 1


def test_binary_response_is_returned_as_bytes() -> None:
    export = operation("downloadExport", job_id="j")
    assert read(200, b"\x89PNG", {"content-type": "image/png"}, export) == b"\x89PNG"
    with pytest.raises(PlatformAddressError):
        read(200, b"<!doctype html>", HTML, export)


@pytest.mark.parametrize("headers", [JSON, HTML, {}])
@pytest.mark.parametrize("status", [200, 201])
def test_a_stream_starts_whatever_its_content_type(status: int, headers: dict[str, str]) -> None:
    check_stream_start(CHAT_STREAM, status, headers, b"", now=NOON)


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refused_chats_name_the_plan(status: int) -> None:
    with pytest.raises(PlatformApiError, match="premium or enterprise plan") as caught:
        check_stream_start(CHAT_STREAM, status, JSON, b'{"error": "No"}', now=NOON)
    assert type(caught.value) is error_for_status(status)
    assert caught.value.service_message == "No"


@pytest.mark.parametrize("status", [401, 403, 404])
@pytest.mark.parametrize(
    "said",
    ["Chat thread t1 not found", "The caller does not own this thread", "The token has expired"],
)
def test_refused_chat_does_not_name_the_plan_if_the_service_names_another_reason(
    status: int, said: str
) -> None:
    body = json.dumps({"error": said}).encode()
    with pytest.raises(PlatformApiError) as caught:
        check_stream_start(CHAT_STREAM, status, JSON, body, now=NOON)
    assert said in caught.value.message
    assert "plan" not in caught.value.message


@pytest.mark.parametrize("body", [b"", b'{"error": "Forbidden"}'])
def test_abort_of_another_users_thread_does_not_name_the_plan(body: bytes) -> None:
    with pytest.raises(PlatformPermissionError, match="belongs to another user") as caught:
        read_abort(403, JSON, body, now=NOON)
    assert "plan" not in caught.value.message


@pytest.mark.parametrize(
    "said",
    [
        "The account has reached the limit of 10000 external users",
        "External user limit exceeded",
        "Maximum number of non-ephemeral external users (10,000) reached",
        "Too many external users",
        "At most 10,000 users are allowed",
    ],
)
@pytest.mark.parametrize("status", [200, 400, 403, 409, 429, 500])
def test_account_with_too_many_users_is_a_final_error_of_its_own(status: int, said: str) -> None:
    body = json.dumps({"error": {"code": -32000, "message": said}}).encode()
    check = read_abort if status == 200 else partial(check_stream_start, CHAT_STREAM)
    with pytest.raises(ChatUserLimitError) as caught:
        check(status, JSON, body, now=NOON)
    assert not caught.value.retryable
    assert not is_transient(caught.value)
    assert not cannot_have_been_processed(caught.value)
    assert said in caught.value.message
    assert "10,000 external users" in caught.value.message
    assert "isEphemeral" in caught.value.message


@pytest.mark.parametrize(
    "said", ["User rate limit exceeded", "10,000 tokens per user", "Too many requests", "users"]
)
def test_another_limit_is_not_reported_as_the_limit_of_users(said: str) -> None:
    body = json.dumps({"error": said}).encode()
    with pytest.raises(PlatformRateLimitError):
        check_stream_start(CHAT_STREAM, 429, JSON, body, now=NOON)


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        ({"code": 7, "data": {"fields": ["a", None], "ok": True}}, '"ok": true'),
        ({"message": {"reason": "no", "ok": False}}, '{"reason": "no", "ok": false}'),
        (["one", True], '["one", true]'),
    ],
)
def test_error_object_is_shown_as_json(error: Any, shown: str) -> None:
    with pytest.raises(ChatRpcError) as caught:
        read_abort(200, JSON, json.dumps({"error": error}).encode(), now=NOON)
    assert shown in caught.value.message
    assert "None" not in caught.value.message


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (200, b'{"jsonrpc": "2.0", "error": {"code": 1, "message": "Unauthorized"}}', ChatRpcError),
        (200, b'{"error": "Unauthorized"}', ChatRpcError),
        (200, b"{}", PlatformProtocolError),
        (200, b"", PlatformProtocolError),
        (202, b"", PlatformProtocolError),
        (200, b"<html>", PlatformAddressError),
        (403, b"", error_for_status(403)),
        (404, b"", error_for_status(404)),
        (500, b"", error_for_status(500)),
    ],
)
def test_only_204_confirms_an_abort(status: int, body: bytes, error: type[PlatformError]) -> None:
    with pytest.raises(error):
        read_abort(status, JSON, body, now=NOON)
    read_abort(204, {}, b"", now=NOON)
