"""The content of a response's body: whether the protocol marks its end, and gzip undone in steps.

Requests ask for gzip or for no coding, so a body has one coding at most. Decoding is bounded: a few
bytes can stand for gigabytes, so each step gives at most `STEP_BYTES`, and the caller decides after
each step whether it wants the next one. The content is complete only when its last gzip member is.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

ACCEPTED = "gzip"
"""What requests say in Accept-Encoding; a service may always send a body without any coding."""
STEP_BYTES = 256 * 1024
"""The most that one step of decoding gives."""
_GZIP_WINDOW = 31
"""zlib's number for gzip with the largest window."""


class BrokenContentError(Exception):
    """The compressed bytes are damaged, or end before the content does."""


class RefusedCodingError(Exception):
    """The body has a coding that was not asked for, or several."""


def is_open_ended(status: int, headers: Mapping[str, str]) -> bool:
    """Whether nothing but the end of the connection ends the body, which may be whole or cut then
    (RFC 9112, section 6.3)."""
    if status in (204, 304):
        return False
    return "transfer-encoding" not in headers and "content-length" not in headers


def gzip_reader(headers: Mapping[str, str]) -> GzipReader | None:
    """The reader of a body's content; None for a body without a coding. Raises RefusedCodingError.

    `headers` joins repeated fields with commas.
    """
    named = headers.get("content-encoding", "").lower().split(",")
    codings = [coding for name in named if (coding := name.strip()) not in ("", "identity")]
    if not codings:
        return None
    if codings in (["gzip"], ["x-gzip"]):
        return GzipReader()
    raise RefusedCodingError(", ".join(codings))


class GzipReader:
    """The content of a gzip body: one member or several, one after the other (RFC 1952)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._complete = True
        """Whether no member is open: no byte has come, or the last member has ended."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The content that a piece of the body brings, in steps; a step may be empty. Raises
        BrokenContentError."""
        more = bool(data)
        while more:
            if self._complete:
                self._member = zlib.decompressobj(_GZIP_WINDOW)
            try:
                step = self._member.decompress(data, STEP_BYTES)
            except zlib.error as error:
                raise BrokenContentError(f"the body is not gzip: {error}") from None
            self._complete = self._member.eof
            data = self._member.unused_data if self._complete else self._member.unconsumed_tail
            # zlib may hold content of bytes that it has taken in already.
            more = bool(data) or (len(step) == STEP_BYTES and not self._complete)
            yield step

    def finish(self) -> None:
        """The body has ended. Raises BrokenContentError where its last member has not. A body
        without a byte has no content."""
        if not self._complete:
            raise BrokenContentError("the body ends inside its compressed data")
