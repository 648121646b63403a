"""Charts are drawn with the fonts that their texts need, each read once; what no font has is said.

`fonts/` has two small fonts, cut out of Noto Sans Thai and Noto Sans CJK (OFL.txt).
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartLimits, ChartRenderer, fonts
from airflow_provider_platform.results.charts.fonts import FontFolder, unusual

if TYPE_CHECKING:
    from collections.abc import Iterator

FONTS = Path(__file__).with_name("fonts")
COLUMNS = [{"name": "city", "type": "String"}, {"name": "sales", "type": "Double"}]
BARS: dict[str, Any] = {
    "mark": "bar",
    "encoding": {"x": {"field": "city"}, "y": {"field": "sales", "type": "quantitative"}},
}


@pytest.fixture(autouse=True)
def no_system_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fonts, "SYSTEM_FOLDERS", ())


@pytest.fixture
def folder() -> Iterator[FontFolder]:
    found = FontFolder(FONTS)
    yield found
    found.close()


def names(folder: FontFolder) -> list[str]:
    return [path.name for below in folder.folders for path in Path(below).iterdir()]


def test_only_the_fonts_that_have_the_characters_are_copied(folder: FontFolder) -> None:
    folder.add("ไท")
    assert names(folder) == ["thai.ttf"]
    folder.add("東京ไ")
    assert names(folder) == ["thai.ttf", "japanese.otf"]
    folder.add("भ")
    assert len(names(folder)) == 2


def test_fonts_that_a_chart_names_are_copied(folder: FontFolder) -> None:
    folder.add("", ["Helvetica", "Noto Sans Thai"])
    assert names(folder) == ["thai.ttf"]


def test_fonts_of_the_author_come_before_those_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, system = tmp_path / "own", tmp_path / "system"
    for place in (own, system):
        place.mkdir()
    shutil.copy(FONTS / "thai.ttf", own / "NotoThai-BoldItalic.ttf")
    shutil.copy(FONTS / "thai.ttf", system / "a.ttf")
    shutil.copy(FONTS / "japanese.otf", system / "b-Bold.otf")
    shutil.copy(FONTS / "japanese.otf", system / "b-Regular.otf")
    monkeypatch.setattr(fonts, "SYSTEM_FOLDERS", (str(system),))
    folder = FontFolder(own)
    folder.add("ไ東")
    found = names(folder)
    folder.close()
    assert found == (
        ["NotoThai-BoldItalic.ttf", "b-Regular.otf"]
        if sys.platform == "linux"
        else ["NotoThai-BoldItalic.ttf"]
    )


def test_closing_deletes_the_folder_of_fonts(folder: FontFolder) -> None:
    folder.add("ไ")
    place = Path(folder.path)
    assert place.is_dir()
    folder.close()
    assert not place.exists()


def test_missing_folder_has_no_fonts(tmp_path: Path) -> None:
    folder = FontFolder(tmp_path / "nowhere")
    folder.add("ไ")
    assert folder.folders == []


@given(st.binary(max_size=300), st.integers(0, 2000), st.binary(min_size=1, max_size=8))
def test_file_that_is_not_a_font_is_skipped(head: bytes, at: int, change: bytes) -> None:
    broken = bytearray((FONTS / "thai.ttf").read_bytes())
    broken[at : at + len(change)] = change
    for content in (head, bytes(broken), bytes(broken[:at])):
        with tempfile.NamedTemporaryFile(suffix=".ttf") as file:
            file.write(content)
            file.flush()
            fonts._read_version.__wrapped__(Path(file.name), (0, 0))


def test_collections_and_both_kinds_of_tables_are_read(tmp_path: Path) -> None:
    font = (FONTS / "thai.ttf").read_bytes()
    shift = 16
    (count,) = struct.unpack_from(">H", font, 4)
    moved = bytearray(font)
    for number in range(count):
        place = 12 + 16 * number + 8
        (offset,) = struct.unpack_from(">I", font, place)
        struct.pack_into(">I", moved, place, offset + shift)
    path = tmp_path / "collection.ttc"
    path.write_bytes(struct.pack(">4sHHII", b"ttcf", 1, 0, 1, shift) + moved)
    found = fonts._read(path)
    assert found is not None
    assert found.has(ord("ไ"))
    assert not found.has(ord("日"))
    table = struct.pack(">HHHHIHHIIIIII", 0, 1, 3, 10, 12, 12, 0, 28, 0, 1, 0x1F600, 0x1F64F, 1)
    raw = tmp_path / "table"
    raw.write_bytes(table)
    with raw.open("rb") as file:
        assert fonts._ranges(file, 0, len(table)) == [(0x1F600, 0x1F64F)]


def test_character_whose_glyph_is_the_missing_one_is_not_in_the_font(tmp_path: Path) -> None:
    """Format 4 lists the glyphs of a segment, format 12 counts them; glyph 0 is the box."""
    segments = struct.pack(">8H", 4, 0, 0, 4, 0, 0, 0, 0x43)  # to two segments, ends: C, 0xFFFF
    segments += struct.pack(">H", 0xFFFF) + struct.pack(">HHH", 0, 0x41, 0xFFFF)
    segments += struct.pack(">HH", 0, 1) + struct.pack(">HH", 4, 0) + struct.pack(">HHH", 7, 0, 9)
    groups = struct.pack(">HHIII", 12, 0, 40, 0, 2) + struct.pack(">6I", 65, 67, 0, 90, 90, 0)
    found = []
    for kind, subtable in ((4, segments), (12, groups)):
        table = struct.pack(">HHHHI", 0, 1, 3, {4: 1, 12: 10}[kind], 12) + subtable
        path = tmp_path / f"table{kind}"
        path.write_bytes(table)
        with path.open("rb") as file:
            found.append(fonts._ranges(file, 0, len(table)))
    assert found == [[(0x41, 0x41), (0x43, 0x43)], [(0x42, 0x43)]]


def test_letters_of_western_europe_and_marks_are_not_unusual() -> None:
    assert unusual("Größe façade\n\u0301\u200d a€日ไ日") == "ไ€日"


def test_characters_that_no_font_has_are_in_a_note() -> None:
    pytest.importorskip("vl_convert")
    with ChartRenderer(ChartLimits(seconds=120)) as renderer:
        [note] = renderer.render(BARS, COLUMNS, [["ไทย", 1], ["Ωмега ≥ €", 2]]).notes
        assert note.startswith("No font has a glyph for ทยไ, so the picture shows boxes")
        assert "chart_fonts" in note
        hidden = {**BARS, "encoding": {**BARS["encoding"], "x": {"field": "city", "axis": None}}}
        assert renderer.render(hidden, COLUMNS, [["ไทย", 1]]).notes == ()


@pytest.mark.exhaustive
def test_fonts_of_a_folder_are_drawn_also_after_charts_without_them() -> None:
    pytest.importorskip("vl_convert")
    with ChartRenderer(ChartLimits(seconds=120), FONTS) as renderer:
        renderer.render(BARS, COLUMNS, [["Spain", 1]])
        boxes = ChartRenderer(ChartLimits(seconds=120))
        with boxes:
            without = boxes.render(BARS, COLUMNS, [["東京", 1]])
        found = renderer.render(BARS, COLUMNS, [["東京", 1]])
        assert found.notes == ()
        assert found["png"] != without["png"]
        renderer._process.kill()  # as after a chart that takes too long
        assert renderer.render(BARS, COLUMNS, [["東京", 1]])["png"] == found["png"]


def test_each_font_file_is_read_once_for_many_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The drawing process has no file of the system's fonts, and the index reads each once."""
    pytest.importorskip("vl_convert")
    fonts._read_version.cache_clear()
    copied: list[str] = []
    copy = shutil.copyfile

    def counted(source: Any, target: Any) -> Any:
        copied.append(Path(source).name)
        return copy(source, target)

    monkeypatch.setattr(shutil, "copyfile", counted)
    with ChartRenderer(ChartLimits(seconds=120), FONTS) as renderer:
        for number in range(3):
            renderer.render(BARS, COLUMNS, [[f"東京{number}", 1], ["大阪", 2]], ["svg"])
    assert copied == ["japanese.otf"]
    assert fonts._read_version.cache_info().misses == 2


class Opens:
    """Counts how often the files of a folder are opened, in whatever process, by inotify(7)."""

    OPENED, CLOSED = 0x20, 0x10

    def __init__(self, folder: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._queue = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        # Equal events in a row count as one: the closing of the file keeps them apart.
        watch = libc.inotify_add_watch(self._queue, folder.encode(), self.OPENED | self.CLOSED)
        assert self._queue >= 0
        assert watch >= 0, os.strerror(ctypes.get_errno())

    def take(self) -> int:
        """Return how many there were since the last call."""
        opened, head = 0, struct.Struct("=iIII")
        while True:
            try:
                events = os.read(self._queue, 1 << 20)
            except BlockingIOError:
                return opened
            at = 0
            while at < len(events):
                _, kinds, _, length = head.unpack_from(events, at)
                opened += bool(kinds & self.OPENED)
                at += head.size + length

    def close(self) -> None:
        os.close(self._queue)


@pytest.mark.skipif(sys.platform != "linux", reason="inotify is Linux's")
def test_fonts_are_opened_for_the_glyphs_of_a_picture_alone() -> None:
    """The library opens a copied font for each glyph that it measures or draws. It is not asked
    besides which characters the font has: charts of as many glyphs cost as many opens, whether
    these are two different ones or eleven."""
    pytest.importorskip("vl_convert")
    with ChartRenderer(ChartLimits(seconds=120), FONTS) as renderer:
        renderer.render(BARS, COLUMNS, [["東京", 1]])
        [folder] = renderer._fonts.folders
        opens = Opens(folder)
        try:
            counts = []
            for label in (
                "東京東京東京東京東京東",
                "上古名売大屋岡幌府日本",
                "上古名売大屋岡幌府日本",
            ):
                renderer.render(BARS, COLUMNS, [[label, 1]])
                counts.append(opens.take())
            renderer.render(BARS, COLUMNS, [["Tokyo", 1]])
            latin = opens.take()
        finally:
            opens.close()
    assert latin == 0
    assert counts[0] > 0
    assert len(set(counts)) == 1, counts
