"""What a storage says when it fails, and what to do about it.

Each storage library raises errors of its own, and what the storage said is often hidden in the
error that another error came of. This module reads them without importing any of these libraries:
botocore's `response` (S3), `error_code` and `status_code` (Azure), `code` (Google), `errno` (local
files), and the names of their classes. Whether a retry follows is decided elsewhere:
`ResultWriteError.retryable` in client/errors.py, raised by `writing` in results/files/atomic.py.
A path whose storage needs another package is refused before, in operators/_files/storage_paths.py.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.formats.service_text import quote_service

if TYPE_CHECKING:
    from collections.abc import Iterator

_CREDENTIALS = (
    "The storage refuses the credentials of the Airflow connection. Renew or correct "
    "the credentials."
)
_PERMISSIONS = (
    "Give the connection's credentials write access (S3: s3:PutObject and s3:AbortMultipartUpload)."
)
_BUCKET = "Create the bucket, or correct the path."
_REGION = "Set the region and the endpoint of the bucket in the connection."
_BUSY = "The storage is overloaded or failing. A retry of the task may succeed."
_NETWORK = (
    "Check the endpoint in the connection and the network, and check that the storage is running."
)
_ROOM = "Free space in the storage, or write to another storage."
_SHORTER = "Use a shorter path."
_CLOCK = "Set the clock of the worker."
_UPLOAD = "Another process removed the unfinished upload. A retry of the task writes it again."

_ADVICE = {
    code: advice
    for advice, codes in {
        _CREDENTIALS: (
            "AuthenticationFailed ExpiredToken ExpiredTokenException InvalidAccessKeyId "
            "InvalidSecurity InvalidToken SignatureDoesNotMatch TokenRefreshRequired "
            "UnrecognizedClientException InvalidAuthenticationInfo 401"
        ),
        _PERMISSIONS: (
            "AccessDenied AccountProblem AllAccessDisabled AuthorizationFailure "
            "AuthorizationPermissionMismatch Forbidden InsufficientAccountPermissions "
            "KMS.AccessDeniedException 403"
        ),
        _BUCKET: "NoSuchBucket ContainerNotFound FilesystemNotFound InvalidBucketName 404",
        _REGION: (
            "AuthorizationHeaderMalformed IllegalLocationConstraintException PermanentRedirect "
            "Redirect TemporaryRedirect 301 307"
        ),
        _BUSY: (
            "InternalError OperationAborted OperationTimedOut RequestTimeout ServerBusy "
            "ServiceUnavailable SlowDown Throttling TooManyRequests 408 409 429 500 502 503 504"
        ),
        _ROOM: "InsufficientStorage QuotaExceeded XMinioStorageFull 507",
        _SHORTER: "KeyTooLongError",
        _CLOCK: "RequestTimeTooSkewed",
        _UPLOAD: "NoSuchUpload",
    }.items()
    for code in codes.split()
}
_ERRNO_ADVICE = {
    errno.ENOSPC: _ROOM,
    errno.EDQUOT: _ROOM,
    errno.ENAMETOOLONG: _SHORTER,
    errno.EACCES: "Give the worker's user write access to this path.",
    errno.EPERM: "Give the worker's user write access to this path.",
    errno.EROFS: "Mount the file system as writable for the worker, or write to another path.",
}
_NETWORK_CLASSES = frozenset(
    {
        "ClientConnectionError",
        "ClientPayloadError",
        "ConnectionError",
        "FSTimeoutError",
        "HTTPClientError",
        "ServiceRequestError",
        "SSLError",
        "ServiceResponseError",
        "TimeoutError",
        "TransportError",
        "gaierror",
    }
)
"""Classes of errors of the network: Python's own, and those of botocore, aiohttp, fsspec, requests,
Azure and Google. A subclass counts as its base."""
_CREDENTIAL_CLASSES = frozenset(
    {
        "ClientAuthenticationError",
        "CredentialRetrievalError",
        "DefaultCredentialsError",
        "NoCredentialsError",
        "PartialCredentialsError",
        "RefreshError",
    }
)
_PREVENTING = (_CREDENTIALS, _REGION, _BUSY, _NETWORK, _CLOCK, _BUCKET)
"""What no write can get past, however much the storage allows this connection."""
_USER_INFO = re.compile(r"(?<=://)[^\s/'\"]*@")
_ADDRESS_QUERY = re.compile(r"(?<=://)([^\s?'\"]*)\?[^\s'\"]*")


@dataclass(frozen=True)
class StorageFailure:
    """What is known of a failure: the storage's `code`, HTTP `status` and `operation` where the
    library tells them, its words, and what to do (None where nobody can say)."""

    words: str
    code: str | None = None
    status: int | None = None
    operation: str | None = None
    advice: str | None = None

    @property
    def prevents_writing(self) -> bool:
        """Whether a write would fail too: no connection, wrong credentials, a wrong address."""
        return self.advice in _PREVENTING

    def __str__(self) -> str:
        """A printable line: what the storage said, and what to do."""
        facts = [self.operation, self.code, f"status {self.status}" if self.status else None]
        details = ", ".join(fact for fact in facts if fact)
        words = self.words.removesuffix(".")
        line = f"{words} ({details})." if details else f"{words}."
        return f"{line} {self.advice}" if self.advice else line


def read_failure(error: BaseException) -> StorageFailure:
    """What an error of a storage says, also where it is hidden in the causes of the error. Neither
    credentials nor the query of an address are repeated."""
    chain = list(_chain(error))
    answers = (cause for cause in chain if _code_of(cause))
    answered = next(answers, None)
    if answered is None:
        return StorageFailure(_words(error), advice=_advice(chain, None, None))
    code, status = _code_of(answered), _status_of(answered)
    response = getattr(answered, "response", None)
    words = response["Error"].get("Message") if isinstance(response, dict) else None
    return StorageFailure(
        _scrubbed(words) if words else _words(error),
        code,
        status,
        getattr(answered, "operation_name", None),
        _advice(chain, code, status),
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it came of; each once."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _code_of(error: BaseException) -> str | None:
    """The storage's own code of an error: a word, or the HTTP status where it names none."""
    response = getattr(error, "response", None)
    if isinstance(response, dict) and isinstance(response.get("Error"), dict):
        return str(response["Error"].get("Code") or "") or None
    code = getattr(error, "error_code", None)
    if code is None:
        code = getattr(error, "code", None) or getattr(error, "status_code", None)
    return str(getattr(code, "value", code)) if isinstance(code, str | int) else None


def _status_of(error: BaseException) -> int | None:
    """The HTTP status of the answer, where it is known and the code is a word."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        status = getattr(error, "status_code", None)
    if not isinstance(status, int) or str(status) == _code_of(error):
        return None
    return status


def _advice(chain: list[BaseException], code: str | None, status: int | None) -> str | None:
    for known in (code, str(status) if status else None):
        if known in _ADVICE:
            return _ADVICE[known]
    names = {base.__name__ for cause in chain for base in type(cause).__mro__}
    if names & _CREDENTIAL_CLASSES:
        return _CREDENTIALS
    if names & _NETWORK_CLASSES:
        return _NETWORK
    numbers = (getattr(cause, "errno", None) for cause in chain)
    return next((_ERRNO_ADVICE[number] for number in numbers if number in _ERRNO_ADVICE), None)


def _words(error: BaseException) -> str:
    return _scrubbed(getattr(error, "strerror", None) or str(error) or repr(error))


def _scrubbed(words: object) -> str:
    """The words as one printable line, without what an address may hold of credentials: its user
    and its query."""
    text = _USER_INFO.sub("***@", str(words))
    return quote_service(_ADDRESS_QUERY.sub(r"\1?***", text))
