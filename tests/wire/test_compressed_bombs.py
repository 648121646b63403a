"""Small compressed bodies with huge content use bounded memory.

Each answer is read in a process of its own, whose memory is measured. At most a megabyte is decoded
at once.
"""

from __future__ import annotations

import json
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import pytest

from tests.support.wire.http_server import answer, serving

pytestmark = pytest.mark.exhaustive

ROOT = Path(__file__).parents[2]
MEGABYTE = 1024 * 1024
PIECE = 20
"""Megabytes that reading takes beside the content that is kept."""
SCHEMA = b'{"schema":[{"name":"n","column_type":"String"}]}\n'
ROW_LINE = b'{"data":[' + b",".join([b'["%s"]' % (b"x" * 990)] * 1000) + b"]}\n"


def packed(head: bytes, unit: bytes, megabytes: int, tail: bytes = b"") -> bytes:
    """So many megabytes of one unit after the other, compressed."""
    packer = zlib.compressobj(9, wbits=31)
    block = unit * (MEGABYTE // len(unit))
    pieces = [packer.compress(head)]
    pieces += [packer.compress(block) for _ in range(megabytes)]
    return b"".join([*pieces, packer.compress(tail), packer.flush()])


def reading(kind: str, body: bytes, coding: str = "gzip") -> dict[str, Any]:
    """What reading this answer took: the outcome, megabytes of memory."""
    compressed = answer(body=body, headers={"Content-Encoding": coding})
    with serving(answer(), compressed) as server:
        process = subprocess.run(
            [sys.executable, "-m", "tests.support.wire.bombed", kind, server.url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        )
    found: dict[str, Any] = json.loads(process.stdout)
    return found


@pytest.mark.parametrize(("kind", "most"), [("poll", 8), ("list", 16), ("raw", 16), ("file", 128)])
def test_response_is_read_up_to_the_limit_of_its_kind(kind: str, most: int) -> None:
    took = reading(kind, packed(b"[", b" ", 300))
    assert f"larger than {most * MEGABYTE} bytes" in took["outcome"]
    assert took["megabytes"] < most + PIECE


@pytest.mark.exhaustive
@pytest.mark.parametrize(("kind", "most"), [("poll", 200_000), ("list", 200_000), ("raw", 10**6)])
def test_small_response_with_millions_of_lists_is_refused(kind: str, most: int) -> None:
    """They would take thirty times its size."""
    took = reading(kind, packed(b"[", b"[],", 7, b"1]"))
    assert f"more than {most} lists and objects" in took["outcome"]
    assert took["megabytes"] < 60


def test_body_that_is_compressed_twice_is_refused() -> None:
    packer = zlib.compressobj(9, wbits=31)
    twice = packer.compress(packed(b"", b"\0", 300)) + packer.flush()
    assert len(twice) < 10_000
    took = reading("raw", twice, coding="gzip, gzip")
    assert "content encoding is 'gzip, gzip'" in took["outcome"]
    assert took["megabytes"] < 20


@pytest.mark.exhaustive
def test_rows_of_any_number_are_read_in_little_memory() -> None:
    took = reading("rows", packed(SCHEMA, ROW_LINE, 300))
    assert took["outcome"] == 300 * (MEGABYTE // len(ROW_LINE)) * 1000
    assert took["megabytes"] < PIECE


@pytest.mark.exhaustive
def test_line_of_rows_beyond_the_limit_is_refused_and_not_kept() -> None:
    rows = b'["%s"],' % (b"x" * 1019)
    took = reading("rows", packed(SCHEMA + b'{"data":[', rows, 300, b'["end"]]}'))
    assert "a line of more than 128 MB" in took["outcome"]
    assert took["megabytes"] < PIECE + 300


@pytest.mark.exhaustive
def test_unneeded_stream_is_read_in_little_memory() -> None:
    took = reading("stream", packed(b"", b"\n", 300))
    assert took["outcome"] == 300 * MEGABYTE
    assert took["megabytes"] < PIECE + 64
