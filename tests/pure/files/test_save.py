"""Rows in files: any pieces give the same values, and a file is complete or absent."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import sys
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    PlatformTransportError,
    ResultValueError,
)
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.files.options import FORMATS, Output
from airflow_provider_platform.files.save import save_rows
from airflow_provider_platform.files.types import TypedRows

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pq = pytest.importorskip("pyarrow.parquet")

COLUMNS = [
    {"name": "id", "type": "Int64"},
    {"name": "value", "type": "Double"},
    {"name": "fee", "type": "Decimal"},
    {"name": "paid", "type": "Boolean"},
    {"name": "on", "type": "Date"},
    {"name": "at", "type": "Timestamp"},
    {"name": "note", "type": "String"},
]
MOMENTS = st.datetimes(datetime(1000, 1, 1), datetime(2999, 12, 31))
VALUES = [
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr) | st.just("12"),
    st.decimals(-(10**19), 10**19, places=4).map(str),
    st.sampled_from(["true", "false", "t", "F"]),
    st.dates(date(1000, 1, 1)).map(str),
    MOMENTS.map(lambda at: at.isoformat(timespec="milliseconds")) | MOMENTS.map(str),
    st.text(st.characters(exclude_categories=["Cs"])),
]
ROWS = st.lists(
    st.tuples(*(st.none() | value for value in VALUES)).map(list), min_size=0, max_size=12
)


def read(rows: list[list[Any]]) -> tuple[list[list[Any]], list[list[Any]]]:
    """The values of rows, and the same as plain JSON."""
    kept = TypedRows(COLUMNS)
    kept.add(rows)
    columns = kept.finish()
    return [list(row) for row in kept.values(columns)], kept.first_rows(columns, len(rows))


def pieces_of(rows: list[list[Any]], sizes: list[int]) -> Iterator[list[list[Any]]]:
    rest = rows
    for size in sizes:
        yield rest[:size]
        rest = rest[size:]
    yield rest


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(rows=ROWS, sizes=st.lists(st.integers(0, 4), max_size=6))
def test_every_format_stores_the_typed_values(
    rows: list[list[Any]], sizes: list[int], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("files")
    typed, plain = read(rows)
    files = {}
    for kind in FORMATS:
        path = folder / f"rows.{kind}"
        one = save_rows(COLUMNS, [rows], path=path, output=Output(kind), max_rows=3)
        whole = path.read_bytes()
        two = save_rows(COLUMNS, pieces_of(rows, sizes), path=path, output=Output(kind), max_rows=3)
        assert path.read_bytes() == whole, "the pieces show in the file"
        assert one == two
        assert one.sha256 == hashlib.sha256(whole).hexdigest()
        assert one.first_rows == db_safe(plain[:3])
        assert (one.row_count, one.bytes) == (len(rows), len(whole))
        files[kind] = path
    table = pq.read_table(files["parquet"])
    assert [list(row.values()) for row in table.to_pylist()] == typed
    lines = [json.loads(line) for line in files["jsonl"].read_bytes().decode().split("\n")[:-1]]
    assert [list(line.values()) for line in lines] == plain
    cells = list(csv.reader(io.StringIO(files["csv"].read_bytes().decode(), newline="")))
    assert cells[0] == [column["name"] for column in COLUMNS]
    for row, texts in zip(plain, cells[1:], strict=True):
        for at in (4, 6):
            assert texts[at] == (row[at] or "")
        assert texts[5] == (row[5] or "").replace("T", " ")
        assert (Decimal(texts[2]) if texts[2] else None) == (row[2] and Decimal(row[2]))
        assert [row[0], row[1], row[3]] == [
            json.loads(texts[at]) if texts[at] else None for at in (0, 1, 3)
        ]


@pytest.mark.exhaustive
def test_row_groups_have_the_same_size_whatever_the_pieces(tmp_path: Path) -> None:
    columns = [{"name": "id", "type": "Int64"}]
    rows = [[str(number)] for number in range(250_000)]
    found = []
    for size in (1_000, 130_000):
        path = tmp_path / f"{size}.parquet"
        pieces = (rows[at : at + size] for at in range(0, len(rows), size))
        save_rows(columns, pieces, path=path)
        metadata = pq.ParquetFile(path).metadata
        groups = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
        assert groups == [100_000, 100_000, 50_000]
        found.append(path.read_bytes())
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("problem", ["value", "transport"])
def test_failure_during_a_write_keeps_the_old_file(problem: str, kind: Any, tmp_path: Path) -> None:
    path = tmp_path / "rows"
    path.write_text("as it was")

    def pieces() -> Iterator[list[list[Any]]]:
        yield [["1"], ["2"]]
        if problem == "transport":
            raise PlatformTransportError("cut")
        yield [["3"], ["three"]]

    columns = [{"name": "id", "type": "Int64"}]
    with pytest.raises((ResultValueError, PlatformTransportError)) as caught:
        save_rows(columns, pieces(), path=path, output=Output(kind), types="strict")
    if isinstance(caught.value, ResultValueError):
        assert (caught.value.column, caught.value.row) == ("id", 4)
    assert [file.name for file in tmp_path.iterdir()] == ["rows"]
    assert path.read_text() == "as it was"


def test_strict_types_check_every_row_without_a_file() -> None:
    columns = [{"name": "id", "type": "Int64"}]
    pieces = [[["1"]], [["2"], ["three"]]]
    with pytest.raises(ResultValueError, match="row 3"):
        save_rows(columns, pieces, max_rows=1, types="strict")
    saved = save_rows(columns, pieces, max_rows=1)
    assert saved.first_rows == [["1"]], "the third row makes the first one text"
    assert saved.columns[0]["type"] == "String"
    assert save_rows(columns, [[["three"]]], types="text").first_rows == [["three"]]


@pytest.mark.parametrize("kind", FORMATS)
def test_late_value_that_does_not_fit_makes_the_column_text_in_every_format(
    kind: Any, tmp_path: Path
) -> None:
    columns = [{"name": "id", "type": "Int32"}, {"name": "price", "type": "Double"}]
    rows = [[str(number), "747"] for number in range(9000)] + [["1.25", "n/a"]]
    path = tmp_path / "rows"
    saved = save_rows(columns, pieces_of(rows, [5000, 4000]), path=path, output=Output(kind))
    assert [column["type"] for column in saved.columns] == ["Decimal", "String"]
    assert saved.first_rows[:2] == [["0.00", "747"], ["1.00", "747"]]
    assert saved.warnings == [
        "Column 'price' is written as strings: the service declares Double, but row 9001 has 'n/a'."
    ]
    if kind == "parquet":
        table = pq.read_table(path)
        assert str(table.schema.field("id").type) == "decimal128(19, 2)"
        assert [[str(v) for v in row.values()] for row in table.slice(8999).to_pylist()] == [
            ["8999.00", "747"],
            ["1.25", "n/a"],
        ]
    elif kind == "csv":
        lines = path.read_text().splitlines()
        assert (lines[1], lines[-1]) == ('0.00,"747"', '1.25,"n/a"')
    else:
        lines = path.read_text().splitlines()
        assert (lines[0], lines[-1]) == (
            '{"id": "0.00", "price": "747"}',
            '{"id": "1.25", "price": "n/a"}',
        )


@pytest.mark.parametrize("kind", FORMATS)
def test_rows_are_complete_before_the_file_is_begun(kind: Any, tmp_path: Path) -> None:
    def pieces() -> Iterator[list[list[Any]]]:
        for _ in range(3):
            yield [["1"]] * 5000
            assert not list(tmp_path.iterdir())

    columns = [{"name": "id", "type": "Int64"}]
    assert (
        save_rows(columns, pieces(), path=tmp_path / "rows", output=Output(kind)).row_count
        == 15_000
    )


def test_products_of_decimals_do_not_overflow_in_a_database(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    columns = [{"name": "price", "type": "Int32"}, {"name": "count", "type": "Decimal"}]
    path = tmp_path / "rows.parquet"
    save_rows(columns, [[["12.50", "3"], ["99999.99", "100000"]]], path=path)
    found = duckdb.sql(f"SELECT sum(price * count * price) FROM '{path}'").fetchall()
    assert found == [(Decimal("999999800000478.7500"),)]


FULL = """
import resource, sys
from pathlib import Path
from airflow_provider_platform.client.errors import ResultWriteError
from airflow_provider_platform.files.options import Output
from airflow_provider_platform.files.save import save_rows

path, kind, most = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
rows = [[str(row), str(row * 7919 % 104729)] for row in range(60_000)]
columns = [{"name": "id", "type": "Int64"}, {"name": "note", "type": "String"}]
try:
    pieces = (rows[at:at + 1000] for at in range(0, 60_000, 1000))
    save_rows(columns, pieces, path=path, output=Output(kind))
except ResultWriteError as error:
    print(error.message)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize("most", [0, 1, 100_000])
@pytest.mark.parametrize("kind", FORMATS)
def test_full_disk_leaves_no_file(kind: str, most: int, tmp_path: Path) -> None:
    """A real one, in a process that may write so many bytes only: at the first, in the middle, and
    with what the writers and the file still hold back."""
    path = tmp_path / "rows"
    path.write_text("as it was")
    command = [sys.executable, "-c", FULL, str(path), kind, str(most)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == f"The file could not be written: File too large. ({path})\n", (
        ended.stderr
    )
    assert [file.name for file in tmp_path.iterdir()] == ["rows"]
    assert path.read_text() == "as it was"


def test_partial_file_of_a_killed_try_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".rows.01234567.part").write_text("half")
    other = tmp_path / ".rows.csv.01234567.part"
    other.write_text("another task's, under way")
    save_rows(COLUMNS, [], path=tmp_path / "rows", output=Output("csv"))
    assert {file.name for file in tmp_path.iterdir()} == {"rows", other.name}


def test_first_rows_are_sanitized_but_the_file_has_the_sent_values(
    tmp_path: Path,
) -> None:
    columns = [{"name": "a\0", "type": "String"}]
    saved = save_rows(columns, iter([[["x\0"]]]), path=tmp_path / "a.jsonl", output=Output("jsonl"))
    assert (saved.columns[0]["name"], saved.first_rows) == ("a\ufffd", [["x\ufffd"]])
    assert json.loads((tmp_path / "a.jsonl").read_bytes()) == {"a\ufffd": "x\0"}
