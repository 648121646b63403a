"""How path ending, format and options decide a file, and which combinations are refused."""

from __future__ import annotations

import csv
import gzip
import io
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.results.columns import Column
from airflow_provider_platform.results.files import format_and_options
from airflow_provider_platform.results.files.format_and_options import (
    FileStyle,
    Output,
    check_engine,
    output_options,
    plan_output,
)
from airflow_provider_platform.results.files.save import save_rows
from airflow_provider_platform.results.files.text_files import CsvWriter

if TYPE_CHECKING:
    from pathlib import Path

COLUMNS = [
    {"name": "id", "type": "Int64"},
    {"name": "paid", "type": "Boolean"},
    {"name": "note", "type": "String"},
]


@pytest.mark.parametrize(
    ("path", "kind", "compression", "delimiter"),
    [
        ("rows.parquet", "parquet", None, ","),
        ("s3://conn@bucket/a.b/rows.PQ", "parquet", None, ","),
        ("rows.csv", "csv", None, ","),
        ("rows.tsv", "csv", None, "\t"),
        ("rows.v2.csv.gz", "csv", "gzip", ","),
        ("rows.tsv.zst", "csv", "zstd", "\t"),
        ("rows.jsonl", "jsonl", None, ","),
        ("rows.ndjson.gz", "jsonl", "gzip", ","),
        ("rows.jsonl.zst", "jsonl", "zstd", ","),
        ("rows", "parquet", None, ","),
        ("manual__2026-07-20T00:00:00.123+00:00", "parquet", None, ","),
    ],
)
def test_path_ending_sets_format_and_compression(
    path: str, kind: str, compression: str | None, delimiter: str
) -> None:
    planned = plan_output(path)
    assert (planned.format, planned.style) == (
        kind,
        FileStyle(compression=compression, delimiter=delimiter),  # type: ignore[arg-type]
    )
    assert plan_output(path, kind) == planned


@pytest.mark.parametrize(
    ("path", "kind", "options", "said"),
    [
        ("rows.csv", "parquet", {}, "ends in .csv, but output_format is parquet"),
        ("rows.csv.gz", "jsonl", {}, "ends in .csv.gz, but output_format is jsonl"),
        ("rows.parquet.gz", None, {}, "contains its own compression"),
        ("rows.gz", "parquet", {}, "contains its own compression"),
        ("rows.gz", None, {}, "ends in .gz, which is not a known file ending"),
        ("rows.txt", None, {}, "ends in .txt, which is not a known file ending"),
        ("rows.csv.bz2", "csv", {}, "ends in .bz2, which is not a supported compression"),
        ("rows.csv.zip", None, {}, "Use .gz or .zst"),
        ("rows.xlsx", "csv", {}, "ends in .xlsx, which is not a supported format.*utf-8-sig"),
        ("rows.avro", None, {}, "ends in .avro, which is not a supported format"),
        ("rows.json", None, {}, "but the task writes JSON Lines"),
        ("rows.json", "csv", {}, "Let it end in .jsonl"),
        ("rows.csv", None, {"compression": "gzip"}, r"Use the file ending .csv.gz"),
        ("rows.csv.gz", None, {"compression": "none"}, "the compression in output_options is none"),
        ("rows.jsonl.gz", None, {"compression": "zstd"}, r"Use the file ending .jsonl.zst"),
        ("rows.csv", None, {"compression": "snappy"}, "snappy exists only for parquet"),
        ("rows.tsv", None, {"delimiter": ";"}, "the delimiter in output_options is not a tab"),
        ("rows.jsonl", None, {"delimiter": ";"}, "delimiter is an option of csv"),
        ("rows.parquet", None, {"csv_safe": False}, "csv_safe is an option of csv"),
        ("rows.csv", None, {"row_group_size": 5}, "row_group_size is an option of parquet"),
        ("rows/", None, {}, "must be a file, not a folder"),
        ("rows.csv", None, {"partition_by": ["a"]}, "is a file, but output_options ask for sev"),
        ("rows.csv.gz", "csv", {"max_rows_per_file": 5}, "Use a folder, and set output_format"),
        ("rows/", None, {"max_partitions": 5}, "max_partitions needs partition_by"),
    ],
)
def test_contradiction_of_path_format_and_options_is_refused(
    path: str, kind: str | None, options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plan_output(path, kind, output_options(options))


@pytest.mark.parametrize(
    ("path", "kind", "options"),
    [
        ("rows.json", "jsonl", {}),
        ("rows.txt", "csv", {"delimiter": "|"}),
        ("rows", "csv", {"compression": "gzip"}),
        ("rows.gz", "jsonl", {}),
        ("rows.json.gz", "jsonl", {"compression": "gzip"}),
        ("rows.csv", None, {"compression": "none"}),
        ("rows.tsv", None, {"delimiter": "\t"}),
        ("rows.parquet", None, {"compression": "zstd", "row_group_size": "5000"}),
    ],
)
def test_format_and_options_set_what_the_path_ending_leaves_open(
    path: str, kind: str | None, options: dict[str, Any]
) -> None:
    planned = plan_output(path, kind, output_options(options))
    wanted = options.get("compression", "gzip" if path.endswith(".gz") else None)
    assert planned.style.compression == wanted


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"delimeter": ";"},
            "output_options has the unknown option 'delimeter'. The options are: compression",
        ),
        ({"delimiter": ";;"}, "delimiter: must be one character"),
        ({"delimiter": '"'}, "not a quote or a line end"),
        ({"quoting": "none"}, "quoting: must be 'minimal', 'all' or 'nonnumeric'"),
        ({"encoding": "latin-1"}, "encoding: must be 'utf-8' or 'utf-8-sig'"),
        ({"compression": "bz2"}, "compression: must be 'none'"),
        ({"csv_safe": "maybe"}, "csv_safe: must be true or false"),
        ({"row_group_size": 0}, "row_group_size: must be at least 1"),
        ({"row_group_size": True}, "row_group_size: must be a number, not true or false"),
        ({"partition_by": ["a", "a"]}, "partition_by: must contain each column once"),
        ({"partition_by": ["_a"]}, "partition_by: contains the column '_a', but readers ignore"),
        ({"max_rows_per_file": 0}, "max_rows_per_file: must be at least 1"),
        ({"on_existing": "append"}, "on_existing: must be 'overwrite', 'fail' or 'skip'"),
        ({"on_empty": "no"}, "on_empty: must be 'write', 'fail' or 'skip'"),
        ({"row_group_size": 2.5}, "row_group_size: must be a whole number"),
    ],
)
def test_wrong_option_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(PlatformInputError, match=said):
        output_options(options)


@pytest.mark.parametrize("path", ["orders", "orders/", "s3://conn@bucket/orders.2025/"])
@pytest.mark.parametrize(
    "options",
    [
        {"partition_by": ["day", "country"]},
        {"partition_by": '["day", "country"]'},
        {"partition_by": ("day", "country")},
        {"partition_by": ["day", "country"], "max_rows_per_file": "5"},
    ],
)
def test_path_of_several_files_is_a_folder(path: str, options: dict[str, Any]) -> None:
    planned = plan_output(path, None, output_options(options))
    assert (planned.format, planned.ending) == ("parquet", "parquet")
    assert planned.layout is not None
    assert planned.layout.partition_by == ("day", "country")
    assert planned.layout.max_rows_per_file == (5 if "max_rows_per_file" in options else None)
    compressed = output_options({**options, "compression": "gzip"})
    assert plan_output(path, "jsonl", compressed).ending == "jsonl.gz"


def test_rendered_options_are_read_as_their_values() -> None:
    rendered = {"header": "False", "csv_safe": "true", "row_group_size": "10", "quoting": "None"}
    found = output_options({**rendered, "delimiter": " ", "encoding": ""})
    assert (found.header, found.csv_safe, found.row_group_size) == (False, True, 10)
    assert (found.quoting, found.delimiter, found.encoding) == (None, " ", None)
    assert output_options({"delimiter": "\\t"}).delimiter == "\t"


@pytest.mark.parametrize("path", ["rows.csv.zst", "rows.parquet"])
def test_missing_engine_is_named(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(format_and_options, "find_spec", lambda name: None)
    with pytest.raises(PlatformInputError, match=r"airflow-provider-platform\[parquet\]"):
        check_engine(plan_output(path))
    check_engine(plan_output("rows.csv.gz"))


def written(tmp_path: Path, path: str, rows: list[list[Any]], **options: Any) -> bytes:
    planned = plan_output(path, None, output_options(options))
    target = tmp_path / path
    saved = save_rows(COLUMNS, [rows], path=target, output=planned)
    found = target.read_bytes()
    assert saved.bytes == len(found)
    return found


ROWS = [["1", "true", "a"], [None, None, None], ["-2", "false", ""]]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({}, 'id,paid,note\n1,true,a\n,,\n-2,false,""\n'),
        ({"delimiter": ";"}, 'id;paid;note\n1;true;a\n;;\n-2;false;""\n'),
        ({"header": False}, '1,true,a\n,,\n-2,false,""\n'),
        ({"line_end": "crlf"}, 'id,paid,note\r\n1,true,a\r\n,,\r\n-2,false,""\r\n'),
        ({"quoting": "all"}, '"id","paid","note"\n"1","true","a"\n,,\n"-2","false",""\n'),
        ({"quoting": "nonnumeric"}, '"id","paid","note"\n1,"true","a"\n,,\n-2,"false",""\n'),
        ({"encoding": "utf-8-sig"}, '\ufeffid,paid,note\n1,true,a\n,,\n-2,false,""\n'),
    ],
)
def test_csv_options_change_the_text(options: dict[str, Any], text: str, tmp_path: Path) -> None:
    assert written(tmp_path, "rows.csv", ROWS, **options).decode() == text


@pytest.mark.parametrize("path", ["rows.csv", "rows.tsv", "rows.jsonl"])
def test_compressed_file_contains_the_same_text(path: str, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    rows = [[str(number), "true", "é" * 50] for number in range(20_000)]
    plain = written(tmp_path, path, rows)
    packed = written(tmp_path, f"{path}.gz", rows)
    assert gzip.decompress(packed) == plain
    assert packed == written(tmp_path, f"{path}.gz", rows), "the time shows in the file"
    packed = written(tmp_path, f"{path}.zst", rows)
    assert pa.CompressedInputStream(pa.BufferReader(packed), "zstd").read() == plain


@pytest.mark.parametrize("compression", [None, "none", "gzip", "zstd", "snappy", "brotli", "lz4"])
def test_parquet_options_set_compression_and_row_groups(
    compression: str | None, tmp_path: Path
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [[str(number), "true", "a"] for number in range(25)]
    found = written(tmp_path, "a.parquet", rows, compression=compression, row_group_size=10)
    metadata = pq.ParquetFile(io.BytesIO(found)).metadata
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    assert [group.num_rows for group in groups] == [10, 10, 5]
    wanted = {None: "SNAPPY", "none": "UNCOMPRESSED"}.get(compression, str(compression).upper())
    assert groups[0].column(2).compression == wanted


@pytest.mark.parametrize(
    "text", ["=1+1", "+1;2", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "-"]
)
def test_csv_safe_puts_an_apostrophe_before_a_formula(text: str, tmp_path: Path) -> None:
    rows = [["-1", "true", text]]
    [_, row] = csv.reader(
        io.StringIO(written(tmp_path, "a.csv", rows, csv_safe=True).decode(), newline="")
    )
    assert row == ["-1", "true", "'" + text]
    [_, row] = csv.reader(io.StringIO(written(tmp_path, "a.csv", rows).decode(), newline=""))
    assert row[2] == text


@pytest.mark.parametrize("text", ["-1", "+1.5e3", "-.5", "a=1", "", "'=1", "é"])
def test_csv_safe_leaves_numbers_and_other_texts(text: str, tmp_path: Path) -> None:
    found = written(tmp_path, "a.csv", [["1", "true", text]], csv_safe=True).decode()
    [_, row] = csv.reader(io.StringIO(found, newline=""))
    assert row[2] == text


def test_csv_safe_applies_to_the_header_too(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    save_rows(
        [{"name": "=1+1", "type": "Int64"}],
        [],
        path=path,
        output=Output("csv", FileStyle(csv_safe=True)),
    )
    assert path.read_text() == "'=1+1\n"


class Memory:
    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def close(self) -> None:
        return


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@given(
    rows=st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=5),
    delimiter=st.sampled_from([",", ";", "\t", "|", ".", "1", " ", "é"]),
    quoting=st.sampled_from(["minimal", "all", "nonnumeric"]),
    line_end=st.sampled_from(["lf", "crlf"]),
)
def test_csv_of_any_style_is_read_back(
    rows: list[list[str | None]], delimiter: str, quoting: Any, line_end: Any
) -> None:
    memory: Any = Memory()
    columns = [Column(name, "String", "String", regular=True) for name in ("a", "b,;")]
    style = FileStyle(delimiter=delimiter, quoting=quoting, line_end=line_end)
    writer = CsvWriter(memory, columns, style)
    writer.write([[row[at] for row in rows] for at in (0, 1)])
    writer.finish()
    text = io.StringIO(memory.data.decode(), newline="")
    found = list(csv.reader(text, delimiter=delimiter, strict=True))
    assert found == [["a", "b,;"], *([value or "" for value in row] for row in rows)]


def csv_lines(column: Column, texts: list[str | None], style: FileStyle) -> list[bytes]:
    """The lines of a file of one column and a last one that is always the same."""
    memory: Any = Memory()
    last = Column("last", "Int64", "Int64", regular=True)
    writer = CsvWriter(memory, [column, last], replace(style, header=False))
    writer.write([texts, ["7"] * len(texts)])
    writer.finish()
    return bytes(memory.data).split(b'"7"\n' if style.quoting == "all" else b"7\n")


def quoted_if_needed(text: str | None, delimiter: str) -> bytes:
    """The cell of a text, with the delimiter after it."""
    cell = text or ""
    special = {*cell} & {delimiter, '"', "\r", "\n"}
    if text is not None and (special or not text or text != text.strip()):
        cell = '"' + cell.replace('"', '""') + '"'
    return (cell + delimiter).encode()


@given(
    texts=st.lists(TEXTS.filter(lambda text: text is None or "7" not in text), max_size=6),
    delimiter=st.sampled_from([",", ";", "\t", " ", "é"]),
)
@example(texts=["plain", " "], delimiter=",")
@example(texts=["plain", "", None], delimiter=",")
@example(texts=["plain", "no-break\xa0"], delimiter=",")
@example(texts=["plain", "a;b"], delimiter=";")
def test_a_cell_of_csv_has_quotes_if_it_needs_them_whatever_the_other_texts_are(
    texts: list[str | None], delimiter: str
) -> None:
    column = Column("a", "String", "String", regular=True)
    cells = [quoted_if_needed(text, delimiter) for text in texts]
    assert csv_lines(column, texts, FileStyle(delimiter=delimiter)) == [*cells, b""]


@pytest.mark.parametrize("delimiter", [".", "-", "1", "T", ":"])
def test_a_number_or_time_with_the_delimiter_in_it_is_quoted(delimiter: str) -> None:
    style = FileStyle(delimiter=delimiter)
    number = Column("a", "Double", "Double", regular=True)
    time = Column("a", "Timestamp", "Timestamp", regular=True)
    assert csv_lines(number, ["-1.5", None], style)[0].startswith(
        b'"-1.5"' if delimiter in "-1." else b"-1.5"
    )
    at = "2025-01-01T00:00:00.000"
    assert csv_lines(time, [at], style)[0].startswith(b'"2025')
