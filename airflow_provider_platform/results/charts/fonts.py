"""The fonts of pictures: the library's own, and those that the texts of a chart need besides.

vl-convert brings fonts for Latin, Greek and Cyrillic letters. For a character that they lack it
opens every font that it knows, one after the other, each time that it measures or draws a text with
that character: with the fonts of a whole system these are thousands of files for one chart. So it
is given none of the system's fonts. What its own fonts lack is looked up here, in the files'
tables, and the few fonts that have it are copied into a folder of the drawing process, the only
place from which that process may read fonts. The same chart then looks the same on every machine.

vl-convert 1.9 knows a registered font by its path alone, and opens the file whenever it measures or
draws a glyph of it: about 11 times for a word of two characters, at about 30 microseconds. It has
no function that takes a font as bytes. What can be saved is everything else: whether a copied font
has a character is read from its tables here, once, and not asked of the library.

Sources: the OpenType specification (`cmap` formats 4 and 12, `name`, collections).
"""

from __future__ import annotations

import shutil
import struct
import sys
import tempfile
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

SYSTEM_FOLDERS = ("/usr/share/fonts", "/usr/local/share/fonts")
"""Where packages like `fonts-noto` put fonts on Linux. Elsewhere the library finds them itself."""

_ENDINGS = {".ttf", ".otf", ".ttc", ".otc"}
_MOST_FILES = 5_000
_MOST_BYTES = 64 << 20
"""Of one font file: the largest, of Chinese, Japanese and Korean, have some 30 MB."""
_PLAIN_UP_TO = 0x24F
"""Up to here, the letters of western Europe, the library has every character."""
_UNUSUAL = ("bold", "black", "light", "thin", "italic", "oblique", "serif", "mono", "condensed",
            "medium", "heavy", "display", "slanted")  # fmt: skip
_CONFIGURATION = "fonts.conf"
_NO_SYSTEM_FONTS = (
    '<?xml version="1.0"?>\n<!DOCTYPE fontconfig SYSTEM "fonts.dtd">\n'
    "<fontconfig><dir>/nonexistent</dir></fontconfig>\n"
)


@dataclass(frozen=True)
class Font:
    """A file of fonts: the families in it, and which characters it has."""

    path: Path
    families: frozenset[str]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    """Ranges of characters, in order."""

    def has(self, code: int) -> bool:
        at = bisect_right(self.starts, code) - 1
        return at >= 0 and code <= self.ends[at]

    @property
    def rank(self) -> tuple[int, int, str]:
        """Plain fonts first."""
        name = self.path.name.lower().replace("sansserif", "sans")
        return sum(word in name for word in _UNUSUAL), len(name), str(self.path)


def unusual(text: str) -> str:
    """The characters of a text that the library's own fonts may lack, each once."""
    return "".join(
        sorted(
            character
            for character in set(text)
            if ord(character) > _PLAIN_UP_TO
            and unicodedata.category(character)[0] not in "MCZ"
            and not 0xFE00 <= ord(character) <= 0xFE0F
        )
    )


class FontFolder:
    """The fonts that one drawing process may read, in a folder that goes with `close`.

    :param folder: fonts of the author's, before those of the system
    """

    def __init__(self, folder: str | os.PathLike[str] | None = None) -> None:
        self._given = None if folder is None else Path(folder)
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._copied: dict[Path, str] = {}

    @property
    def path(self) -> str:
        """The folder, made when it is first asked for."""
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="platform-fonts-")
            Path(self._temporary.name, _CONFIGURATION).write_text(_NO_SYSTEM_FONTS)
        return self._temporary.name

    @property
    def folders(self) -> list[str]:
        """The folders below `path` with the fonts that were copied so far."""
        return list(self._copied.values())

    def lacking(self, characters: str) -> str:
        """Return the characters that no copied font has."""
        copied = [font for font in map(_read, self._copied) if font is not None]
        return "".join(
            character
            for character in characters
            if not any(font.has(ord(character)) for font in copied)
        )

    def add(self, characters: str, families: Iterable[str] = ()) -> None:
        """Copy the fonts that have the characters, and those of the families."""
        wanted = {family.casefold() for family in families}
        left = set(map(ord, self.lacking(characters)))
        for place in self._places():
            fonts = [font for font in map(_read, _files(place)) if font is not None]
            for font in sorted(fonts, key=lambda candidate: candidate.rank):
                if font.families & wanted:
                    self._copy(font.path)
            while left:
                best = min(
                    fonts,
                    key=lambda candidate: (-sum(map(candidate.has, left)), candidate.rank),
                    default=None,
                )
                if best is None or not any(map(best.has, left)):
                    break
                self._copy(best.path)
                left = {code for code in left if not best.has(code)}

    def close(self) -> None:
        if self._temporary is not None:
            self._temporary.cleanup()
            self._temporary = None
        self._copied.clear()

    def _places(self) -> Iterator[Path]:
        if self._given is not None:
            yield self._given
        if sys.platform == "linux":
            yield from map(Path, SYSTEM_FOLDERS)

    def _copy(self, font: Path) -> None:
        if font in self._copied:
            return
        folder = Path(self.path, str(len(self._copied)))
        folder.mkdir()
        shutil.copyfile(font, folder / font.name)
        self._copied[font] = str(folder)


def _files(folder: Path) -> list[Path]:
    fonts = (path for path in folder.rglob("*") if path.suffix.lower() in _ENDINGS)
    return sorted(path for path, _ in zip(fonts, range(_MOST_FILES), strict=False))


def _read(path: Path) -> Font | None:
    """The font of a file; None for one that is none, or cannot be read."""
    try:
        status = path.stat()
    except OSError:
        return None
    if status.st_size > _MOST_BYTES:
        return None
    return _read_version(path, (status.st_mtime_ns, status.st_size))


@lru_cache(maxsize=_MOST_FILES)
def _read_version(path: Path, _: tuple[int, int]) -> Font | None:
    """Read a file, once for each time of its last change and size."""
    families: set[str] = set()
    ranges: list[tuple[int, int]] = []
    try:
        with path.open("rb") as file:
            for start in _fonts_of(file):
                tables = _tables(file, start)
                families |= set(_families(file, *tables["name"]))
                ranges += _ranges(file, *tables["cmap"])
    except (OSError, struct.error, KeyError, IndexError, ValueError, MemoryError):
        return None
    merged: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return Font(
        path,
        frozenset(families),
        tuple(first for first, _ in merged),
        tuple(last for _, last in merged),
    )


def _fonts_of(file: IO[bytes]) -> Sequence[int]:
    """Where the fonts of a file begin: one, or those of a collection."""
    file.seek(0)
    if file.read(4) != b"ttcf":
        return [0]
    _, count = struct.unpack(">II", file.read(8))
    return struct.unpack(f">{min(count, 64)}I", file.read(4 * min(count, 64)))


def _tables(file: IO[bytes], start: int) -> dict[str, tuple[int, int]]:
    """Offset and length of each table."""
    file.seek(start)
    _, count = struct.unpack(">IH6x", file.read(12))
    entries = (struct.unpack(">4s4xII", file.read(16)) for _ in range(count))
    return {tag.decode("latin-1"): (offset, length) for tag, offset, length in entries}


def _families(file: IO[bytes], offset: int, length: int) -> Iterator[str]:
    """The names of the family, folded, in Unicode."""
    file.seek(offset)
    table = file.read(min(length, 1 << 20))
    _, count, texts = struct.unpack_from(">HHH", table)
    for number in range(count):
        platform, _, _, name_id, size, at = struct.unpack_from(">6H", table, 6 + 12 * number)
        if name_id in (1, 16) and platform in (0, 3):
            text = table[texts + at : texts + at + size]
            yield text.decode("utf-16-be", "replace").casefold()


def _ranges(file: IO[bytes], offset: int, length: int) -> list[tuple[int, int]]:
    """The ranges of characters of a `cmap` table: of its widest format that is known here."""
    file.seek(offset)
    table = file.read(min(length, 16 << 20))
    _, count = struct.unpack_from(">HH", table)
    places = {}
    for number in range(count):
        platform, _, at = struct.unpack_from(">HHI", table, 4 + 8 * number)
        (table_format,) = struct.unpack_from(">H", table, at)
        if platform in (0, 3) and table_format in (4, 12):
            places[table_format] = at
    if 12 in places:
        (groups,) = struct.unpack_from(">I", table, places[12] + 12)
        entries = struct.iter_unpack(">III", table[places[12] + 16 :][: 12 * groups])
        # Glyph 0 is the box for a missing character.
        exact = ((first + (glyph == 0), last) for first, last, glyph in entries)
        return [(first, last) for first, last in exact if first <= last]
    if 4 not in places:
        return []
    return list(_segments(table, places[4]))


def _segments(table: bytes, at: int) -> Iterator[tuple[int, int]]:
    """The ranges of a `cmap` table of format 4. A segment may name the glyph of each character in a
    list, where 0 means that the font has none."""
    (doubled,) = struct.unpack_from(">H", table, at + 6)
    count = doubled // 2
    lasts, firsts, _, offsets = (
        struct.unpack_from(f">{count}H", table, at + start)
        for start in (14, 16 + doubled, 16 + 2 * doubled, 16 + 3 * doubled)
    )
    for number, (first, last, offset) in enumerate(zip(firsts, lasts, offsets, strict=True)):
        if first > last or first == 0xFFFF:
            continue
        if not offset:
            yield first, last
            continue
        listed = at + 16 + 3 * doubled + 2 * number + offset
        glyphs = struct.unpack_from(f">{last - first + 1}H", table, listed)
        yield from ((code, code) for code, glyph in enumerate(glyphs, first) if glyph)
