"""JSON of the service as plain values that can be stored and sent on, from one text or from lines.

A JSON text can hold more than the receivers of its values can carry. So:

- `NaN` and numbers beyond a float's range become None.
- Integers beyond 64 bits become floats: they would end the process that packs them into a message
  of Airflow.
- Nesting that would later exhaust the stack is refused.
- Lone surrogates fit into no UTF-8 text, and U+0000 fits into no JSON of PostgreSQL, where Airflow
  keeps XComs (`db_safe`). The other half of a surrogate pair may come in the next piece of a
  string, so the reader of the whole string replaces surrogates (`replace_surrogates`).

pydantic's parser reads nearly every text and is several times as fast as Python's. Python's parser
gets the texts that pydantic's refuses: it accepts half characters, and says what is wrong and
where.

`LineReader` splits a stream of bytes at line feeds only. Other splitters also break at U+2028 and
similar characters, which are data inside a JSON string. A piece may end anywhere, even inside a
UTF-8 character, so a line is decoded when it is complete.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.redaction import CUT, quote_service

MAX_DEPTH = 100
_CONTAINERS = (dict, list)

_HALF = re.compile("[\ud800-\udfff]")
_WORDS = ("true", "false", "null", "NaN", "Infinity", "-Infinity")
_INSIDE_STRINGS = ("Unterminated string", "Invalid \\uXXXX escape")
_CUT_NUMBER = re.compile(r"[.eE][+-]?")
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class CutJsonError(ValueError):
    """The text is the beginning of a JSON text."""


class CutStringError(CutJsonError):
    """The text is the beginning of a JSON text, and it ends inside a string."""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text; bytes are UTF-8. Raises ValueError saying what is wrong, and
    CutJsonError if only the end is missing."""
    return storable(read_any_json(text))


def read_any_json(text: str | bytes) -> Any:
    """`read_json` for readers that make what they keep storable themselves."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    try:
        return from_json(data, cache_strings="keys")
    except ValueError:
        return _read_again(text)


def read_unchecked_json(text: str | bytes) -> Any:
    """`read_any_json` for texts without half characters. Raises ValueError without a reason for
    others."""
    # Few values of the service come twice at once: to look for each costs more than the text anew.
    data = text if isinstance(text, bytes) else text.encode()
    return from_json(data, cache_strings="keys")


def _read_again(text: str | bytes) -> Any:
    if isinstance(text, bytes):
        try:
            text = text.removeprefix(_BYTE_ORDER_MARK).decode()
        except UnicodeDecodeError as error:
            cut = error.reason == "unexpected end of data"
            raise (CutStringError if cut else ValueError)(
                f"is not valid UTF-8 (error at byte {error.start})"
            ) from None
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        in_string = error.msg.startswith(_INSIDE_STRINGS)
        beginning = CutStringError if in_string else CutJsonError
        error_class = beginning if _is_beginning(text, error) else ValueError
        raise error_class(
            f"is not valid JSON (error at character {error.pos}: {error.msg})"
        ) from None
    except ValueError:
        raise ValueError("contains a number with too many digits") from None
    except RecursionError:
        raise ValueError("is nested too deeply") from None


def storable(value: Any) -> Any:
    """Return the value, changed in place: integers beyond 64 bits become floats, and numbers beyond
    a float's range None. Raises ValueError if it is nested too deeply."""
    whole = [value]
    level: list[Any] = [whole]
    for _ in range(MAX_DEPTH + 2):
        below = []
        for outer in level:
            for place, item in outer.items() if type(outer) is dict else enumerate(outer):
                kind = type(item)
                if kind is int:
                    if not -(2**63) <= item < 2**64:
                        outer[place] = _as_float(item)
                elif kind is float:
                    if not math.isfinite(item):
                        outer[place] = None
                elif kind in _CONTAINERS:
                    below.append(item)
        if not below:
            return whole[0]
        level = below
    raise ValueError("is nested too deeply")


def _as_float(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def replace_surrogates(value: Any) -> Any:
    """The value with the halves of characters put together, and lone ones replaced."""
    return _each_text(value, _whole)


def db_safe(value: Any) -> Any:
    """Return the value as Airflow's database can store it: half characters and U+0000 replaced.
    A value without them is returned as it is."""
    if not isinstance(value, str):
        with suppress(ValueError):  # half a character
            if b"\\u0000" not in to_json(value):
                return value
    return _each_text(value, lambda text: _whole(text).replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _each_text(value: Any, mended: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return mended(value)
    if isinstance(value, list):
        return [_each_text(item, mended) for item in value]
    if isinstance(value, dict):
        return {_each_text(name, mended): _each_text(item, mended) for name, item in value.items()}
    return value


def _whole(text: str) -> str:
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _is_beginning(text: str, error: json.JSONDecodeError) -> bool:
    """Whether the text is JSON as far as it goes: the error stands where it ends, or at the start
    of a word, number, escape or string that it breaks off in."""
    rest = text[error.pos :].strip()
    if not text.lstrip().startswith(("{", "[", '"')):
        return False
    return (
        not rest
        or error.msg.startswith("Unterminated string")
        or (error.msg.startswith("Invalid \\uXXXX escape") and '"' not in rest)
        or any(word.startswith(rest) for word in _WORDS)
        or _CUT_NUMBER.fullmatch(rest) is not None
    )


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


def parse_line(line: bytes, number: int, where: object = None) -> Any:
    """The JSON value of a line. Raises PlatformProtocolError naming the line and the position."""
    try:
        return read_json(line)
    except ValueError as error:
        start = quote_service(line[:80].decode("utf-8", "replace") + CUT * (len(line) > 80))
        raise PlatformProtocolError(
            f"Line {number} of the stream {error}. The line begins with {start!r}. A retry may "
            "succeed.",
            where=where,
        ) from None
