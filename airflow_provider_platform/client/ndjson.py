"""Bytes to lines: splits a byte stream on `\\n`, and on nothing else.

Text splitters also break on U+2028 and its kin, which are data inside a JSON string. Pieces may
end anywhere, inside a UTF-8 character too: a line is decoded only when it is whole.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.json_text import read_json
from airflow_provider_platform.client.log_text import CUT
from airflow_provider_platform.client.service_text import quote_service

MAX_LINE_BYTES = 32 * 1024 * 1024
MAX_LINE_CONTAINERS = 1_000_000
"""The most lists and objects of a line: three bytes of text each, they take a hundred of memory."""


class LineReader:
    """Collects bytes and gives out whole, non-blank lines, numbered, without their line end.

    `lines_seen` counts the whole lines so far, blank ones included; `active` tells whether the last
    piece held anything but white space.
    """

    def __init__(
        self, max_line_bytes: int = MAX_LINE_BYTES, max_containers: int = MAX_LINE_CONTAINERS
    ) -> None:
        self._max = max_line_bytes
        self._most_containers = max_containers
        self._parts: list[bytes] = []
        self._size = 0
        self._full = 0
        self.lines_seen = 0
        self.active = False

    def feed(self, data: bytes) -> list[tuple[bytes, int]]:
        """The lines that this piece completes, each with its number (from 1, blank lines
        counted). Raises PlatformProtocolError for a line that exceeds a limit."""
        self.active = bool(data) and not data.isspace()
        pieces = data.split(b"\n")
        last = pieces.pop()
        if pieces and self._parts:
            self._keep(pieces[0])
            pieces[0] = self._take()
        if len(data) > min(self._max, self._most_containers):
            self._check(pieces)
        lines = [
            (line, number)
            for number, piece in enumerate(pieces, self.lines_seen + 1)
            if (line := piece.strip(b" \t\r"))
        ]
        self.lines_seen += len(pieces)
        self._keep(last)
        return lines

    @property
    def pending_bytes(self) -> int:
        """Bytes of the line that is not yet complete."""
        return self._size

    def rest(self) -> bytes:
        """What came after the last line end, at the end of the stream."""
        return self._take()

    def _check(self, pieces: list[bytes]) -> None:
        for number, piece in enumerate(pieces, self.lines_seen + 1):
            if len(piece) > self._max:
                raise line_too_long(number, self._max)
            if count_containers(piece) > self._most_containers:
                raise line_too_full(number, self._most_containers)

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._max:
            raise line_too_long(self.lines_seen + 1, self._max)
        if piece:
            self._parts.append(piece)
            self._full += count_containers(piece)
            if self._full > self._most_containers:
                raise line_too_full(self.lines_seen + 1, self._most_containers)

    def _take(self) -> bytes:
        line = b"".join(self._parts).strip(b" \t\r")
        self._parts.clear()
        self._size = self._full = 0
        return line


def count_containers(text: bytes | bytearray) -> int:
    """Lists and objects of a JSON text, and brackets inside its strings."""
    return text.count(b"[") + text.count(b"{")


def line_too_long(number: int, most: int) -> PlatformProtocolError:
    """The error of a line that exceeds so many bytes."""
    return PlatformProtocolError(f"Line {number} of the stream exceeds {most} bytes.")


def line_too_full(number: int, most: int = MAX_LINE_CONTAINERS) -> PlatformProtocolError:
    """The error of a line with more than so many lists and objects."""
    return PlatformProtocolError(
        f"Line {number} of the stream contains more than {most} lists and objects. It was "
        "not read, because it could fill the worker's memory."
    )


def parse_line(line: bytes, number: int) -> Any:
    """The JSON value of a line. Raises PlatformProtocolError naming the line and the position."""
    try:
        return read_json(line)
    except ValueError as error:
        start = quote_service(line[:80].decode("utf-8", "replace") + CUT * (len(line) > 80))
        raise PlatformProtocolError(
            f"Line {number} of the stream {error}. The line begins with {start!r}. A retry may "
            "succeed."
        ) from None
