"""Files that open: a bar chart as PNG and a page of text as PDF, without any library."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence

_WIDTH, _HEIGHT, _MARGIN = 480, 270, 20
_BACKGROUND, _BAR = bytes((255, 255, 255)), bytes((64, 96, 176))
A4 = (595, 842)
SCREEN = (960, 540)


def bar_chart(values: Sequence[float]) -> bytes:
    """A PNG of 480 by 270 pixels with one bar for each value."""
    most = max([*values, 1])
    slot = (_WIDTH - 2 * _MARGIN) // max(len(values), 1)
    tops = [_HEIGHT - _MARGIN - int((_HEIGHT - 2 * _MARGIN) * value / most) for value in values]
    rows = bytearray()
    for y in range(_HEIGHT):
        rows.append(0)
        row = bytearray(_BACKGROUND * _WIDTH)
        for index, top in enumerate(tops):
            if top <= y < _HEIGHT - _MARGIN:
                left = _MARGIN + index * slot
                width = max(slot - 8, 1)
                row[3 * left : 3 * (left + width)] = _BAR * width
        rows += row
    header = struct.pack(">IIBBBBB", _WIDTH, _HEIGHT, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", header), (b"IDAT", zlib.compress(bytes(rows), 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(_png_chunk(kind, data) for kind, data in parts)


def page(lines: Sequence[str], size: tuple[int, int]) -> bytes:
    """A PDF of one page of ``size`` (points), with ``lines`` from its top."""
    text = b"BT /F1 14 Tf 18 TL 40 %d Td " % (size[1] - 50)
    text += b" ".join(b"(%s) Tj T*" % _pdf_text(line) for line in lines) + b" ET"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 %d %d] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> >> >>" % size,
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(text), text),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>",
    ]
    document = bytearray(b"%PDF-1.4\n")
    offsets = []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(document))
        document += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    start = len(document)
    document += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    document += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    document += b"trailer\n<< /Size %d /Root 1 0 R >>\n" % (len(objects) + 1)
    return bytes(document + b"startxref\n%d\n%%%%EOF\n" % start)


def _png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _pdf_text(line: str) -> bytes:
    escaped = line.replace("\\", "\\\\").replace("(", "\\(").replace(")", "\\)")
    return escaped.encode("cp1252", "replace")
