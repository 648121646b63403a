"""Bytes to lines of bounded length: a long line of rows is read as several short lines.

A deployment that does not stream sends the whole result as one line, `{"data": [[...], ...]}`, of
any length. `RowLineReader` cuts such a line between two rows while it arrives. Each part is a line
again: `{"data": [...]}`. If the line holds more than rows, what comes before them is a part without
rows, and so is what comes after them. Memory holds one part, and the reader of the lines need not
know that a line was long.

A line is cut at the first place between two rows that is more than `PART_BYTES` after the last cut.
The places depend on the bytes of the line alone, never on the pieces in which they arrive.

How a place is found: `],[` can also be part of a string, or of a list inside a row. A place with an
even number of quotes before it is outside of strings. If the text before it is JSON, then no list
is open there, and its values are parsed already. If it is not (a row holds lists, or the line is
not JSON), `_Brackets` reads the rest of the line bracket by bracket.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from airflow_provider_platform.client.formats.json_text import read_unchecked_json
from airflow_provider_platform.client.formats.ndjson import (
    MAX_LINE_BYTES,
    MAX_LINE_CONTAINERS,
    count_containers,
    line_too_full,
    line_too_long,
)

PART_BYTES = 256 * 1024
"""Bytes of rows that are enough for a part. A shorter line is never cut."""

_SPACE = b" \t\r"
_START, _END = b'{"data":[', b"]}"
_BETWEEN_ROWS = re.compile(rb"\][ \t\r]{0,8},[ \t\r]{0,8}\[")
_BETWEEN_BYTES = 19
"""The most bytes that `_BETWEEN_ROWS` matches. Its spaces are bounded, so that a search in the next
piece never has to begin far back."""
_PLAIN_START = re.compile(rb'[ \t\r]*\{[ \t\r]*"data"[ \t\r]*:[ \t\r]*\[')
_START_TOKEN = re.compile(
    rb'(?P<key>"(?:[^"\\]|\\.)*")(?P<list>[ \t\r]*:[ \t\r]*\[)?|(?P<bracket>[\[\]{}])|"', re.DOTALL
)
_OUTSIDE_STRING = re.compile(rb'"[^"\\]*"|["\[\]{}]')
_INSIDE_STRING = re.compile(rb'["\\]')


@dataclass(frozen=True, slots=True)
class RowLine:
    """A line, or a part of one. `number` counts lines from 1; `skipped` is how many bytes of the
    line other parts brought before. `value` is the JSON value where it is already parsed (numbers
    and depth are not checked), else None."""

    data: bytes
    number: int
    skipped: int = 0
    value: Any = None


class RowLineReader:
    """Collects bytes and gives whole, non-blank lines, numbered and without their line end, and
    parts of long lines of rows.

    Raises PlatformProtocolError for a row, or another line, that is longer than `max_bytes` or
    holds too many lists and objects.
    """

    def __init__(self, part_bytes: int = PART_BYTES, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._part_bytes = part_bytes
        self._max_bytes = max_bytes
        self._lines_seen = 0
        self._line = self._new_line()

    def feed(self, data: bytes) -> Iterator[RowLine]:
        """The lines and parts that a piece completes, each found when it is asked for."""
        *ended, last = data.split(b"\n")
        for piece in ended:
            if not self._line.size and len(piece) <= self._part_bytes:
                if line := piece.strip(_SPACE):
                    yield RowLine(line, self._lines_seen + 1)
            else:
                yield from self._line.extend(piece)
                yield from self._line.end()
                self._line = self._new_line()
            self._lines_seen += 1
            self._line.number = self._lines_seen + 1
        yield from self._line.extend(last)

    def finish(self) -> Iterator[RowLine]:
        """What came after the last line end, at the end of the stream. Of a line that is not whole,
        the last part is not JSON."""
        yield from self._line.end()
        self._line = self._new_line()

    def _new_line(self) -> _Line:
        return _Line(self._lines_seen + 1, self._part_bytes, self._max_bytes)


class _Line:
    """A line while it arrives. `size` counts its bytes so far."""

    def __init__(self, number: int, part_bytes: int, max_bytes: int) -> None:
        self.number = number
        self.size = 0
        self._part_bytes = part_bytes
        self._max_bytes = max_bytes
        self._text = bytearray()
        self._skipped = 0
        self._containers = 0
        self._start_known = False
        self._rows: _RowFinder | None = None

    def extend(self, piece: bytes) -> Iterator[RowLine]:
        """The parts that are complete with this piece."""
        if not piece:
            return
        self.size += len(piece)
        self._text += piece
        if not self._start_known and self.size > self._part_bytes:
            self._start_known = True
            yield from self._take_start()
        if self._rows is not None:
            yield from self._take_rows(self._rows)
        else:
            self._containers += count_containers(piece)
        if self._rows is None:
            self._check(self._containers)
        # A row that is not too long is only found with the bytes that follow it.
        more = 0 if self._rows is None else _BETWEEN_BYTES
        if len(self._text) > self._max_bytes + more:
            raise line_too_long(self.number, self._max_bytes)

    def end(self) -> Iterator[RowLine]:
        """The rest of the line."""
        if self._rows is not None:
            end = self._rows.end_of_rows(self._text)
            if end is not None:
                yield self._part(end)
                self._leave_rows()
            else:
                self._text[:0] = _START
        line = bytes(self._text.strip(_SPACE))
        if line and not (self._start_known and line == _START + _END):
            yield RowLine(line, self.number, self._skipped)

    def _take_start(self) -> Iterator[RowLine]:
        """Look for the first row. What comes before it is a part without rows, unless it is just
        what every part begins with."""
        start = bytes(self._text[: self._part_bytes])
        plain = _PLAIN_START.match(start)
        at = plain.end() if plain else _first_row(start)
        if at is None:
            return
        self._drop(at)
        self._rows = _RowFinder(self._part_bytes, self._max_bytes)
        if not plain:
            yield RowLine(start[:at] + _END, self.number)

    def _take_rows(self, rows: _RowFinder) -> Iterator[RowLine]:
        while (end := rows.next_cut(self._text)) is not None:
            part = self._part(end, rows.value)
            self._drop(self._text.index(b",") + 1)
            yield part
        if rows.ended_at is not None:
            yield self._part(rows.ended_at)
            self._leave_rows()

    def _part(self, end: int, value: Any = None) -> RowLine:
        """The rows before `end`, taken out of the text."""
        if end > self._max_bytes:
            raise line_too_long(self.number, self._max_bytes)
        rows, skipped = bytes(self._text[:end]), self._skipped
        self._check(count_containers(rows))
        self._drop(end)
        return RowLine(_START + rows + _END, self.number, skipped, value)

    def _leave_rows(self) -> None:
        """The rest of the line is read as a line without rows."""
        self._rows = None
        self._text[:0] = _START
        self._containers = count_containers(self._text)

    def _drop(self, count: int) -> None:
        del self._text[:count]
        self._skipped += count

    def _check(self, containers: int) -> None:
        if containers > MAX_LINE_CONTAINERS:
            raise line_too_full(self.number)


class _RowFinder:
    """Finds where the rows of a long line may be cut. The text that it is given begins with a row
    and grows; after a cut it begins with the next row.

    `value` is the JSON value of the part that was cut last, where it was parsed. `ended_at` is
    where the list of the rows ends, once that is known.
    """

    def __init__(self, part_bytes: int, max_bytes: int) -> None:
        self._part_bytes = part_bytes
        self._max_bytes = max_bytes
        self._careful = False
        self.value: Any = None
        self.ended_at: int | None = None
        self._begin()

    def _begin(self) -> None:
        self._searched = self._part_bytes
        self._counted = 0
        self._in_string = False
        self._brackets = _Brackets()
        self._row_end: int | None = None

    def next_cut(self, text: bytearray) -> int | None:
        """Where the first row ends that is followed by another row and ends after `part_bytes`;
        None if more of the text must come first. After `max_bytes` any place will do, because such
        a part is refused."""
        self.value = None
        if self.ended_at is not None or len(text) <= self._part_bytes:
            return None
        end = None if self._careful else self._quick_cut(text)
        if self._careful:
            end = self._careful_cut(text)
        if end is not None:
            self._begin()
        return end

    def end_of_rows(self, text: bytearray) -> int | None:
        """Where the list of the rows ends, None where it does not end in this text."""
        while (end := self._brackets.next_end(text)) is not None:
            if self._brackets.depth < 0:
                return end - 1
        return None

    def _quick_cut(self, text: bytearray) -> int | None:
        while (match := _BETWEEN_ROWS.search(text, self._searched)) is not None:
            end = self._searched = match.start() + 1
            if end > self._max_bytes:
                return end
            self._in_string ^= _has_odd_quotes(bytes(text[self._counted : end]))
            self._counted = end
            if self._in_string:
                continue
            part = _START + text[:end] + _END
            if count_containers(part) <= MAX_LINE_CONTAINERS:
                with suppress(ValueError):
                    self.value = read_unchecked_json(part)
                    return end
            self._careful = True
            return None
        self._searched = max(self._searched, len(text) - _BETWEEN_BYTES)
        return None

    def _careful_cut(self, text: bytearray) -> int | None:
        while True:
            end = self._row_end or self._brackets.next_end(text)
            self._row_end = None
            if end is None:
                return None
            if self._brackets.depth < 0:
                self.ended_at = end - 1
                return None
            if end <= self._part_bytes:
                continue
            if end > self._max_bytes or _BETWEEN_ROWS.match(text, end - 1):
                return end
            if len(text) - end < _BETWEEN_BYTES:
                self._row_end = end  # what follows it has not come yet
                return None


class _Brackets:
    """Goes through a text of rows that grows, bracket by bracket. `depth` is 0 between rows."""

    def __init__(self) -> None:
        self.depth = 0
        self._at = 0
        self._in_string = False

    def next_end(self, text: bytearray) -> int | None:
        """The position after the next bracket that closes a row, or (`depth` is negative then)
        their list; None at the end of what has come."""
        while True:
            if self._in_string and not self._leave_string(text):
                return None
            match = _OUTSIDE_STRING.search(text, self._at)
            if match is None:
                self._at = len(text)
                return None
            self._at = match.end()
            token = match[0]
            if token == b'"':
                self._in_string = True
            elif token in (b"[", b"{"):
                self.depth += 1
            elif token in (b"]", b"}"):
                self.depth -= 1
                if self.depth <= 0:
                    return self._at

    def _leave_string(self, text: bytearray) -> bool:
        """Whether the string that is open ends in what has come."""
        while (match := _INSIDE_STRING.search(text, self._at)) is not None:
            if match[0] == b'"':
                self._at = match.end()
                self._in_string = False
                return True
            if match.end() == len(text):  # the character that is escaped has not come yet
                self._at = match.start()
                return False
            self._at = match.end() + 1
        self._at = len(text)
        return False


def _first_row(start: bytes) -> int | None:
    """The position after `"data": [` in the outermost object of a line; None where the beginning of
    the line does not hold it."""
    depth = 0
    for token in _START_TOKEN.finditer(start):
        if token["bracket"]:
            depth += 1 if token["bracket"] in b"[{" else -1
        elif not token["key"]:  # a string that is not closed
            return None
        elif token["list"]:
            if depth == 1 and token["key"] == b'"data"':
                return token.end()
            depth += 1
    return None


def _has_odd_quotes(text: bytes) -> bool:
    """Whether a text that begins outside of an escape has an odd number of quotes that are not
    escaped."""
    if b"\\" in text:
        text = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return text.count(b'"') % 2 == 1
