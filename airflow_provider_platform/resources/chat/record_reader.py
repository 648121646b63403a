"""From the bytes of a chat stream to its records, and what an error record means.

The service answers 200 before it knows how a request ends. So a refusal comes in the body, in the
format of the component that wrote it: a JSON-RPC error object may span several lines, and
"Streaming for thread is in progress" (the thread is still answering another message) may be plain
text or a JSON string. A web page is recognized by its first bytes. The content type proves nothing,
because the service's document names text/html for its stream too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformProtocolError,
)
from airflow_provider_platform.client.json_text import (
    CutJsonError,
    CutStringError,
    LineReader,
    parse_line,
    read_any_json,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.responses import MAX_ERROR_BYTES

MAX_ERROR_LINES = 200
"""The most lines of an error object; its most bytes are MAX_ERROR_BYTES."""
MAX_RECORD_CONTAINERS = 250_000
"""The most lists and objects of a record. An event loop reads them within half a second, and the
chat sends far fewer rows."""
INTERNAL_ERROR = -32603
"""The code of a JSON-RPC error for a failure inside the service."""

_STREAM_IN_PROGRESS = "streaming for thread is in progress"
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MESSAGES = ("message", "detail", "details")


class RecordReader:
    """The records of one answer. `where` ends the message of its errors.

    Numbers are as large, and values as deep, as the service sends them: whoever keeps one makes it
    storable (`json_text.storable`).
    """

    def __init__(self, where: object) -> None:
        self._lines = LineReader(max_containers=MAX_RECORD_CONTAINERS)
        self._where = where
        self._held: list[bytes] = []
        """The lines so far of an error object that continues in the next line."""
        self._held_from = 0
        self._first = True

    @property
    def active(self) -> bool:
        """Whether the last bytes held more than blank lines."""
        return self._lines.active

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the record of each whole line. Raises PlatformProtocolError with the line's number
        if a line is not JSON or too large, and PlatformAddressError for a web page."""
        for line, number in self._lines.feed(data):
            if self._held:
                yield from self._continued(line)
                continue
            try:
                record = read_any_json(line)
            except ValueError as error:
                yield from self._read_odd(line, number, error)
            else:
                yield record if type(record) is dict and "role" in record else _as_record(record)
            self._first = False

    def rest(self) -> Any:
        """Return the record of a last line without its line end, None if it may be cut. Raises
        PlatformAddressError for a web page."""
        rest = self._lines.rest()
        records: list[Any] = []
        try:
            if self._held and rest:
                records = [*self._continued(rest)]
            elif rest:
                records = [_as_record(read_any_json(rest))]
        except PlatformProtocolError:
            pass
        except ValueError as error:
            records = [*self._read_odd(rest, 0, error)]
        return records[0] if records else None

    def _read_odd(self, line: bytes, number: int, error: ValueError) -> Iterator[Any]:
        """Yield the record of a line that is not JSON, if it is none of a longer one."""
        line = line.removeprefix(_BYTE_ORDER_MARK).lstrip(b" \t\r")
        if _is_busy_text(line):
            yield {"error": quote_service(line.decode("utf-8", "replace"))}
        elif self._first and line.startswith(b"<"):
            raise PlatformAddressError(
                "The chat address returned HTML instead of JSON. The page probably belongs to the "
                "platform's web application or to a proxy. Check Chat address (chat_url) in the "
                "connection.",
                where=self._where,
            )
        elif _continues(line, error):
            self._held.append(line)
            self._held_from = number
        elif line and number:
            parse_line(line, number)  # raises

    def _continued(self, line: bytes) -> Iterator[Any]:
        self._held.append(line)
        text = b"\n".join(self._held)
        small = len(text) <= MAX_ERROR_BYTES and len(self._held) <= MAX_ERROR_LINES
        try:
            value = read_any_json(text) if small else None
        except ValueError as error:
            if _continues(text, error):
                return
            value = None
        start = self._held[0]
        self._held.clear()
        self._first = False
        if not (isinstance(value, dict) and is_error(value)):
            parse_line(start, self._held_from)  # raises: a record never spans lines
        yield value


def is_error(record: dict[str, Any]) -> bool:
    """Return whether a record is an error object: `{"error": ...}`, or a JSON-RPC error."""
    if record.get("error") is None:
        return False
    record_id = record.get("id")
    is_message = isinstance(record_id, str) and ("role" in record or record_id.startswith("__"))
    return "jsonrpc" in record or not is_message


def is_rpc_error(record: dict[str, Any]) -> bool:
    """Return whether an error object is a JSON-RPC error: the service refused the credential."""
    error = record["error"]
    return "jsonrpc" in record or (isinstance(error, dict) and "code" in error)


def is_internal_error(record: dict[str, Any]) -> bool:
    """Return whether a JSON-RPC error has the code of a failure inside the service. In a run that
    the service has accepted, this is no refused credential."""
    error = record["error"]
    return isinstance(error, dict) and error.get("code") == INTERNAL_ERROR


def is_assistant(record: dict[str, Any]) -> bool:
    """Return whether a record is a message of the assistant, and no control record."""
    record_id = record.get("id")
    return (
        record.get("role") == "assistant"
        and isinstance(record_id, str)
        and not record_id.startswith("__")
    )


def says_busy(text: object) -> bool:
    """Return whether the text of an error means that the thread is answering another message."""
    return _STREAM_IN_PROGRESS in str(text).lower()


def is_busy(error: PlatformError) -> bool:
    """Return whether the service refused a request because its thread is answering another
    message."""
    return isinstance(error, PlatformApiError) and says_busy(error.service_message)


def text_of(content: Any) -> str:
    """Return the text of a record or a message, which is a string or a list of parts with texts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        texts = (part.get("text") if isinstance(part, dict) else part for part in content)
        return "".join(text for text in texts if isinstance(text, str))
    return ""


def _as_record(value: Any) -> Any:
    """Return the refusal of a busy thread as an error object, in whatever form it came. Return
    anything else unchanged."""
    if isinstance(value, str):
        return {"error": value} if says_busy(value) else value
    if isinstance(value, dict) and not value.keys() & {"id", "role", "error"}:
        refusal = next((value[name] for name in _MESSAGES if says_busy(value.get(name))), None)
        return value if refusal is None else {"error": refusal}
    return value


def _is_busy_text(line: bytes) -> bool:
    """Return whether a line that is not JSON says that the thread is busy. A cut record, which may
    quote these words, does not count."""
    plain = len(line) <= MAX_ERROR_BYTES and not line.startswith((b"{", b"[", b'"'))
    return plain and says_busy(line.decode("utf-8", "replace"))


def _continues(start: bytes, error: ValueError) -> bool:
    """Return whether the text is the start of an object that was cut between two tokens, where a
    line may end."""
    between = isinstance(error, CutJsonError) and not isinstance(error, CutStringError)
    return between and start.startswith(b"{") and len(start) <= MAX_ERROR_BYTES
