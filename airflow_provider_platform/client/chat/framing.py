"""Framing: the lines of a chat response as records, and the few bodies that are not JSON lines.

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
    read_json,
)
from airflow_provider_platform.client.redaction import quote_service

_STREAM_IN_PROGRESS = "Streaming for thread is in progress"


def says_busy(text: object) -> bool:
    """Return whether the text of an error means that the thread is answering another message."""
    return _STREAM_IN_PROGRESS.lower() in str(text).lower()


def is_busy(error: PlatformError) -> bool:
    """Return whether the service refused a request because its thread is answering another
    message."""
    return isinstance(error, PlatformApiError) and says_busy(error.service_message)


MAX_ERROR_BYTES = 64 * 1024
MAX_ERROR_LINES = 200
"""The maximum size of an error object that spans several lines."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_MESSAGES = ("message", "detail", "details")


MAX_RECORD_CONTAINERS = 250_000
"""The most lists and objects of a record. An event loop reads them within half a second, and the
chat sends far fewer rows."""


def record_lines() -> LineReader:
    """Return a reader of the lines of one answer."""
    return LineReader(max_containers=MAX_RECORD_CONTAINERS)


class ChatLineParser:
    """Reads the whole lines of one answer. `where` ends the message of its errors."""

    def __init__(self, where: object) -> None:
        self._where = where
        self.held: list[bytes] = []
        """The lines so far of an error object that continues in the next line. The list stays the
        same object."""
        self._held_from = 0

    def read(self, line: bytes, number: int, *, first: bool) -> Any:
        """Return the record of a line, None if the line is part of a record. `first` says that it
        is the first line of the answer. A byte order mark at the start of the line is dropped.
        Raises PlatformProtocolError with the line's number if the line is not JSON, and
        PlatformAddressError for a web page."""
        if self.held:
            return self._read_continued(line)
        line = line.removeprefix(_BYTE_ORDER_MARK).lstrip(b" \t\r")
        if not line:
            return None
        try:
            return _as_record(read_json(line))
        except ValueError as error:
            if _is_busy_text(line):
                return {"error": quote_service(line.decode("utf-8", "replace"))}
            if first and _is_web_page(line):
                raise self._wrong_address() from None
            if _continues(line, error):
                self.held.append(line)
                self._held_from = number
                return None
        return parse_line(line, number)

    def read_rest(self, rest: bytes, number: int, *, first: bool) -> Any:
        """Return the record of a last line without its line end, None if it may be cut. Raises
        PlatformAddressError for a web page."""
        if not rest:
            return None
        try:
            record = self.read(rest, number, first=first)
        except PlatformProtocolError:
            return None
        self.held.clear()
        return record

    def _read_continued(self, line: bytes) -> Any:
        self.held.append(line)
        text = b"\n".join(self.held)
        small = len(text) <= MAX_ERROR_BYTES and len(self.held) <= MAX_ERROR_LINES
        try:
            value = read_json(text) if small else None
        except ValueError as error:
            if _continues(text, error):
                return None
            value = None
        start = self.held[0]
        self.held.clear()
        if isinstance(value, dict) and is_error(value):
            return value
        return parse_line(start, self._held_from)  # raises: a record never spans lines

    def _wrong_address(self) -> PlatformAddressError:
        return PlatformAddressError(
            "The chat address returned HTML instead of JSON. The page probably belongs to the "
            "platform's web application or to a proxy. Check Chat address (chat_url) in the "
            "connection.",
            where=self._where,
        )


class RecordReader:
    """The records of one answer, from its bytes. `where` ends the message of its errors."""

    def __init__(self, where: object) -> None:
        self._lines = record_lines()
        self._parser = ChatLineParser(where)
        self._first = True

    def feed(self, data: bytes) -> Iterator[Any]:
        """Yield the record of each whole line, None for a line that is part of a record. Raises the
        errors of `ChatLineParser.read`."""
        for line, number in self._lines.feed(data):
            record = self._parser.read(line, number, first=self._first)
            self._first = False
            yield record

    def rest(self) -> Any:
        """Return the record of a last line without its line end, None if it may be cut."""
        rest = self._lines.rest()
        return self._parser.read_rest(rest, self._lines.lines_seen + 1, first=self._first)


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


def _is_web_page(line: bytes) -> bool:
    return line.startswith(b"<")


def _continues(start: bytes, error: ValueError) -> bool:
    """Return whether the text is the start of an object that was cut between two tokens, where a
    line may end."""
    between = isinstance(error, CutJsonError) and not isinstance(error, CutStringError)
    return between and start.startswith(b"{") and len(start) <= MAX_ERROR_BYTES
