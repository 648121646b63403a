"""Errors of storages, as each library wraps them."""

from __future__ import annotations

import errno
import socket
from typing import Any

import pytest

from airflow_provider_platform.results.files.storage_errors import read_failure


class ClientError(Exception):
    """As botocore raises it."""

    operation_name = "PutObject"

    def __init__(self, code: str, status: int | None, message: str = "It said no.") -> None:
        super().__init__(f"An error occurred ({code}) when calling the PutObject operation")
        self.response: dict[str, Any] = {"Error": {"Code": code, "Message": message}}
        if status:
            self.response["ResponseMetadata"] = {"HTTPStatusCode": status}


class HttpResponseError(Exception):
    """As Azure's library raises it."""

    def __init__(self, error_code: str, status_code: int) -> None:
        super().__init__("This request is not authorized.\nRequestId:1\nTime:2026-07-20")
        self.error_code, self.status_code = error_code, status_code


class HttpError(OSError):
    """As gcsfs raises it."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class EndpointConnectionError(ConnectionError):
    """As botocore and requests call theirs."""


def wrapped(outer: BaseException, inner: BaseException, *, cause: bool = True) -> BaseException:
    if cause:
        outer.__cause__ = inner
    else:
        outer.__context__ = inner
    return outer


@pytest.mark.parametrize(
    ("error", "said", "prevents_writing"),
    [
        (
            wrapped(PermissionError("It said no."), ClientError("AccessDenied", 403)),
            "It said no (PutObject, AccessDenied, status 403). Give the connection",
            False,
        ),
        (
            wrapped(OSError(errno.EBUSY, "Slow"), ClientError("SlowDown", 503), cause=False),
            "It said no (PutObject, SlowDown, status 503). The storage is overloaded",
            True,
        ),
        (
            wrapped(PermissionError("Forbidden"), ClientError("403", 403, "Forbidden")),
            "Forbidden (PutObject, 403). Give the connection",
            False,
        ),
        (
            ClientError("TooManyParts", 400),
            "It said no (PutObject, TooManyParts, status 400).",
            False,
        ),
        (
            HttpResponseError("AuthenticationFailed", 403),
            r"This request is not authorized.\nRequestId:1\nTime:2026-07-20 "
            "(AuthenticationFailed, status 403). The storage refuses the credentials",
            True,
        ),
        (HttpError(403, "Forbidden: lake"), "Forbidden: lake (403). Give", False),
        (HttpError(503, "Backend Error"), "Backend Error (503). The storage is overl", True),
        (EndpointConnectionError("Could not connect"), "Could not connect. Check the end", True),
        (wrapped(ValueError("it failed"), socket.gaierror(-2, "x")), "it failed. Check", True),
        (TimeoutError(), "TimeoutError(). Check the endpoint", True),
        (OSError(errno.ENOSPC, "No space left on device"), "No space left on device. Free", False),
        (OSError(errno.EFBIG, "File too large"), "File too large.", False),
        (RuntimeError(""), "RuntimeError('').", False),
    ],
)
def test_storage_failure_has_message_codes_and_advice(
    error: BaseException, said: str, prevents_writing: bool
) -> None:
    failure = read_failure(error)
    assert str(failure).startswith(said)
    assert failure.advice is not None or str(failure) == said
    assert failure.prevents_writing is prevents_writing


def test_addresses_in_a_failure_are_shown_without_user_and_query() -> None:
    signed = "https://user:hun@ter2@acme.blob.core.windows.net/lake/rows?sig=c2VjcmV0&se=2026"
    failure = read_failure(OSError(f"Could not reach {signed} \x1b[31m"))
    assert str(failure) == (
        r"Could not reach https://***@acme.blob.core.windows.net/lake/rows?*** \x1b[31m."
    )


def test_circular_causes_of_a_failure_are_read_once() -> None:
    one, other = ValueError("one"), ValueError("other")
    one.__cause__, other.__cause__ = other, one
    assert str(read_failure(one)) == "one."
