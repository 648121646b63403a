"""The content of a body: gzip in any pieces and members. A cut body never counts as complete."""

from __future__ import annotations

import gzip
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.http import content_coding
from airflow_provider_platform.client.http.content_coding import (
    STEP_BYTES,
    BrokenContentError,
    GzipReader,
    RefusedCodingError,
    gzip_reader,
    is_open_ended,
)

texts = st.binary(max_size=200) | st.integers(0, 3 * STEP_BYTES).map(bytes)
members = st.lists(texts, min_size=1, max_size=4)


def read(body: bytes, cuts: list[int]) -> bytes:
    """The content of a body that comes in pieces; it raises where the body is not whole."""
    reader = GzipReader()
    steps = []
    borders = [0, *sorted(cut % (len(body) + 1) for cut in cuts), len(body)]
    for start, end in pairwise(borders):
        steps += reader.feed(body[start:end])
    reader.finish()
    assert all(len(step) <= STEP_BYTES for step in steps)
    return b"".join(steps)


@given(members, st.lists(st.integers(0), max_size=5))
def test_all_members_are_read_however_the_body_is_split(
    parts: list[bytes], cuts: list[int]
) -> None:
    assert read(b"".join(map(gzip.compress, parts)), cuts) == b"".join(parts)


@given(st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=3))
def test_a_body_that_comes_byte_by_byte_is_read(parts: list[bytes]) -> None:
    body = b"".join(map(gzip.compress, parts))
    assert read(body, list(range(len(body)))) == b"".join(parts)


@given(members, st.data())
def test_a_body_cut_anywhere_but_between_two_members_is_not_whole(
    parts: list[bytes], data: st.DataObject
) -> None:
    packed = [gzip.compress(part) for part in parts]
    body = b"".join(packed)
    borders = {sum(map(len, packed[:count])) for count in range(len(packed) + 1)}
    cut = data.draw(st.integers(1, len(body) - 1).filter(lambda at: at not in borders))
    with pytest.raises(BrokenContentError):
        read(body[:cut], [])


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=4))
def test_a_body_cut_at_a_flush_is_not_whole(parts: list[bytes]) -> None:
    packer = zlib.compressobj(wbits=31)
    body = b"".join(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in parts)
    with pytest.raises(BrokenContentError, match="inside its compressed data"):
        read(body, [])
    assert read(body + packer.flush(), []) == b"".join(parts)


@pytest.mark.parametrize(
    "body",
    [
        b"junk",
        gzip.compress(b"one", mtime=0)[:-1] + b"?",
        gzip.compress(b"one", mtime=0) + b"junk that follows",
        gzip.compress(b"one", mtime=0) + b"\0",
    ],
    ids=["no gzip", "a wrong length", "more after the last member", "padding"],
)
def test_damaged_bodies_are_refused(body: bytes) -> None:
    with pytest.raises(BrokenContentError):
        read(body, [])


def test_an_empty_body_has_no_content() -> None:
    assert read(b"", []) == b""


def test_content_comes_with_the_compressed_piece_that_contains_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It has taken in all bytes of a piece before all of their content is out."""
    monkeypatch.setattr(content_coding, "STEP_BYTES", 10)
    body = gzip.compress(bytes(10_000))
    reader = GzipReader()
    came = [sum(map(len, reader.feed(body[at : at + 1]))) for at in range(len(body))]
    reader.finish()
    assert sum(came) == 10_000
    assert came[-8:] == [0] * 8


@pytest.mark.parametrize(
    ("coding", "is_gzip"),
    [
        ("", False),
        ("identity", False),
        ("gzip", True),
        (" X-GZip ", True),
        ("identity, gzip", True),
    ],
)
def test_requested_content_codings_are_accepted(coding: str, is_gzip: bool) -> None:
    assert isinstance(gzip_reader({"content-encoding": coding}), GzipReader) == is_gzip


@pytest.mark.parametrize("coding", ["gzip, gzip", "deflate", "br", "gzip,identity,gzip", "zstd"])
def test_other_content_codings_and_combinations_are_refused(coding: str) -> None:
    with pytest.raises(RefusedCodingError):
        gzip_reader({"content-encoding": coding})


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        (200, {}, True),
        (500, {}, True),
        (204, {}, False),
        (304, {}, False),
        (200, {"content-length": "0"}, False),
        (200, {"transfer-encoding": "chunked"}, False),
    ],
)
def test_body_without_length_or_chunks_is_open_ended(
    status: int, headers: dict[str, str], expected: bool
) -> None:
    assert is_open_ended(status, headers) == expected
