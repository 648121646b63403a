"""The content of a response's body: whether the protocol marks its end, and gzip decoding in steps.

Requests accept gzip or no coding, so a body has at most one coding. A few compressed bytes can
expand to gigabytes, so each step returns at most `STEP_BYTES`, and the caller decides whether to
continue. The content is complete only if its last gzip member is complete.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping

ACCEPTED = "gzip"
"""The Accept-Encoding of requests. A service may always send a body without a coding."""
STEP_BYTES = 256 * 1024
"""The most bytes that one step of decoding returns."""
_GZIP_WINDOW = 31
"""zlib's number for gzip with the largest window."""


class BrokenContentError(Exception):
    """The compressed bytes are damaged, or end before the content is complete."""


class RefusedCodingError(Exception):
    """The body has a coding that the request did not accept, or several codings."""


def is_open_ended(status: int, headers: Mapping[str, str]) -> bool:
    """Return whether only the end of the connection marks the end of the body, which may then be
    complete or cut (RFC 9112, section 6.3)."""
    if status in (204, 304):
        return False
    return "transfer-encoding" not in headers and "content-length" not in headers


def gzip_reader(headers: Mapping[str, str]) -> GzipReader | None:
    """Return the reader of a body's content; None for a body without a coding. Raises
    RefusedCodingError.

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
    """Decodes a gzip body, which has one or several members (RFC 1952)."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(_GZIP_WINDOW)
        self._complete = True
        """Whether no member is open: no byte has arrived, or the last member has ended."""

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Yield the content of a piece of the body, in steps. A step may be empty. Raises
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
            # zlib may have more content of bytes that it has already read.
            more = bool(data) or (len(step) == STEP_BYTES and not self._complete)
            yield step

    def finish(self) -> None:
        """Check the end of the body. Raises BrokenContentError if its last member is not complete.
        A body of no bytes has no content."""
        if not self._complete:
            raise BrokenContentError("the body ends inside its compressed data")
