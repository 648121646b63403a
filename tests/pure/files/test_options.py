"""How path ending, format and options decide a file, and which combinations are refused."""

from __future__ import annotations

import csv
import gzip
import io
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.files import options as file_options
from airflow_provider_platform.files.options import (
    Output,
    check_engine,
    output_options,
    plan_output,
)
from airflow_provider_platform.files.save import save_rows

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
        ("rows.csv", "csv", "none", ","),
        ("rows.tsv", "csv", "none", "\t"),
        ("rows.v2.csv.gz", "csv", "gzip", ","),
        ("rows.tsv.zst", "csv", "zstd", "\t"),
        ("rows.jsonl", "jsonl", "none", ","),
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
    found = (planned.format, planned.compression, planned.delimiter)
    assert found == (kind, compression, delimiter)
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
        ("rows.csv.zip", None, {}, "also with .gz or .zst"),
        ("rows.json", None, {}, "writes JSON Lines, which is no .json"),
        ("rows.csv", None, {"compression": "gzip"}, "ends in .csv, but compression in"),
        ("rows.csv.gz", None, {"compression": "none"}, "in output_options is none"),
        ("rows.jsonl.gz", None, {"compression": "zstd"}, "ends in .jsonl.gz, but compression in"),
        ("rows", "csv", {"compression": "snappy"}, "snappy exists only for parquet"),
        (
            "rows.tsv",
            None,
            {"delimiter": ";"},
            "ends in .tsv, but delimiter in output_options is ;",
        ),
        ("rows.jsonl", None, {"delimiter": ";"}, "delimiter is an option of csv"),
        ("rows.parquet", None, {"csv_safe": False}, "csv_safe is an option of csv"),
        ("rows/", None, {}, "must be a file, not a folder"),
        ("rows.csv", None, {"partition_by": ["a"]}, "is a file, but output_options ask for sev"),
        ("rows.csv.gz", "csv", {"max_rows_per_file": 5}, "Use a folder, and set output_format"),
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
        ("rows.parquet", None, {"compression": "zstd"}),
    ],
)
def test_format_and_options_set_what_the_path_ending_leaves_open(
    path: str, kind: str | None, options: dict[str, Any]
) -> None:
    planned = plan_output(path, kind, output_options(options))
    default = {"gz": "gzip", "tsv": "none"}.get(path.rpartition(".")[2])
    assert planned.compression == options.get("compression", default)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"delimeter": ";"},
            "output_options has the unknown option 'delimeter'. The options are: compression",
        ),
        ({"delimeter": None}, "output_options has the unknown option 'delimeter'"),
        ({"delimiter": ";;"}, "delimiter: must be one ASCII character"),
        ({"delimiter": '"'}, "not a quote or a line end"),
        ({"delimiter": "é"}, "must be one ASCII character"),
        ({"encoding": "latin-1"}, "encoding: must be 'utf-8' or 'utf-8-sig'"),
        ({"compression": "bz2"}, "compression: must be 'none'"),
        ({"csv_safe": "maybe"}, "csv_safe: must be true or false"),
        ({"quoting": "all"}, "the unknown option 'quoting'"),
        ({"max_rows_per_file": True}, "max_rows_per_file: must be a number, not true or false"),
        ({"partition_by": ["a", "a"]}, "partition_by: must contain each column once"),
        ({"partition_by": ["_a"]}, "partition_by: contains the column '_a', but readers ignore"),
        ({"max_rows_per_file": 0}, "max_rows_per_file: must be at least 1"),
        ({"on_existing": "append"}, "on_existing: must be 'overwrite', 'fail' or 'skip'"),
        ({"on_empty": "no"}, "on_empty: must be 'write', 'fail' or 'skip'"),
        ({"max_rows_per_file": 2.5}, "max_rows_per_file: must be a whole number"),
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
    assert planned.is_folder
    assert planned.partition_by == ("day", "country")
    assert planned.max_rows_per_file == (5 if "max_rows_per_file" in options else None)
    compressed = output_options({**options, "compression": "gzip"})
    assert plan_output(path, "jsonl", compressed).ending == "jsonl.gz"


def test_rendered_options_are_read_as_their_values() -> None:
    rendered = {"csv_safe": "true", "max_rows_per_file": "10", "compression": "None"}
    found = output_options({**rendered, "delimiter": " ", "encoding": ""})
    assert (found.csv_safe, found.max_rows_per_file) == (True, 10)
    assert (found.compression, found.delimiter, found.encoding) == (None, " ", None)
    assert output_options({"delimiter": "\\t"}).delimiter == "\t"


def test_missing_engine_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_options, "find_spec", lambda name: None)
    with pytest.raises(PlatformInputError, match=r"airflow-provider-platform\[files\]"):
        check_engine()


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
        ({}, '"id","paid","note"\n1,true,"a"\n,,\n-2,false,""\n'),
        ({"delimiter": ";"}, '"id";"paid";"note"\n1;true;"a"\n;;\n-2;false;""\n'),
        (
            {"encoding": "utf-8-sig"},
            '\ufeff"id","paid","note"\n1,true,"a"\n,,\n-2,false,""\n',
        ),
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
def test_parquet_option_sets_the_compression(compression: str | None, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    rows = [[str(number), "true", "a"] for number in range(25)]
    found = written(tmp_path, "a.parquet", rows, compression=compression)
    group = pq.ParquetFile(io.BytesIO(found)).metadata.row_group(0)
    wanted = {None: "SNAPPY", "none": "UNCOMPRESSED"}.get(compression, str(compression).upper())
    assert group.column(2).compression == wanted


@pytest.mark.parametrize(
    "text",
    ["=1+1", "+1;2", "-cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", " =1", "＝1+1", "-",
     "\ufeff=1", "\u200b=1", "\u200e @A", "\x01=1", "\u00ad+A", "\u3164=1", "\ufe0f=1",
     "\u2800=1"],
)  # fmt: skip
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
        output=Output("csv", csv_safe=True),
    )
    assert path.read_text() == '"\'=1+1"\n'


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    rows=st.lists(st.lists(TEXTS, min_size=2, max_size=2), max_size=5),
    delimiter=st.sampled_from([",", ";", "\t", "|", ".", "1", " "]),
)
def test_csv_of_any_delimiter_is_read_back(
    rows: list[list[str | None]], delimiter: str, tmp_path: Path
) -> None:
    columns = [{"name": name, "type": "String"} for name in ("a", "b,;")]
    path = tmp_path / "rows.csv"
    save_rows(columns, [rows], path=path, output=Output("csv", delimiter=delimiter))
    text = io.StringIO(path.read_bytes().decode(), newline="")
    found = list(csv.reader(text, delimiter=delimiter, strict=True))
    assert found == [["a", "b,;"], *([value or "" for value in row] for row in rows)]
