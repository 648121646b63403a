"""Results in several files: each row is in one of them, and a run replaces its own."""

from __future__ import annotations

import csv
import hashlib
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    PlatformTransportError,
    ResultEmptyError,
    ResultValueError,
    ResultWriteError,
)
from airflow_provider_platform.files import formats, spool
from airflow_provider_platform.files.options import (
    Output,
    output_options,
    plan_output,
)
from airflow_provider_platform.files.save import SavedRows, save_rows
from airflow_provider_platform.files.whole_files import files_below
from tests.support.hypothesis_profiles import examples

if TYPE_CHECKING:
    from collections.abc import Iterator

COLUMNS = [
    {"name": "id", "type": "Int64"},
    {"name": "country", "type": "String"},
    {"name": "day", "type": "Date"},
    {"name": "amount", "type": "Double"},
]
MISSING = "__HIVE_DEFAULT_PARTITION__"
MONDAY, SUNDAY = "aaaaaaaa", "bbbbbbbb"
"""Two task runs."""


def rows_of(*countries: str | None, first: int = 1) -> list[list[str | None]]:
    return [
        [str(number), country, "2025-01-31", f"{number}.5"]
        for number, country in enumerate(countries, start=first)
    ]


def save(
    folder: Any,
    rows: list[list[str | None]],
    kind: str = "csv",
    writer: str = MONDAY,
    **options: Any,
) -> SavedRows:
    output = plan_output(f"{folder}/", kind, output_options(options))
    return save_rows(COLUMNS, [rows], path=folder, output=output, writer=writer)


def names(folder: Path) -> list[str]:
    """All files, hidden ones too, and folders without any."""
    found = sorted(folder.rglob("*"))
    return [
        path.relative_to(folder).as_posix()
        for path in found
        if path.is_file() or not list(path.iterdir())
    ]


def ids(folder: Path) -> list[str]:
    """The first column of all CSV files, in the order of their names."""
    found = []
    for path in files_below(folder):
        with (folder / path).open(newline="") as file:
            found += [row["id"] for row in csv.DictReader(file)]
    return sorted(found, key=int)


def test_partition_is_a_folder_and_its_column_is_not_in_the_file(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    saved = save(folder, rows_of("DE", "FR", "DE"), partition_by=["country"])
    assert names(folder) == [
        "country=DE/part-aaaaaaaa-00001.csv",
        "country=FR/part-aaaaaaaa-00001.csv",
    ]
    assert (folder / "country=DE/part-aaaaaaaa-00001.csv").read_text() == (
        '"id","day","amount"\n1,2025-01-31,1.5\n3,2025-01-31,3.5\n'
    )
    assert (saved.path, saved.format, saved.row_count) == (str(folder), "csv", 3)
    assert [(file["path"], file["rows"]) for file in saved.files] == [
        (f"{folder}/country=DE/part-aaaaaaaa-00001.csv", 2),
        (f"{folder}/country=FR/part-aaaaaaaa-00001.csv", 1),
    ]
    assert saved.bytes == sum(file["bytes"] for file in saved.files)
    for file in saved.files:
        data = Path(file["path"]).read_bytes()
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])


ODD = [
    *("a/b", "..", ".", "a=b", "50%", "%2F", 'quo"te', "new\nline", "tab\t", "a:b", "a b", "a\\b"),
    *("#", "?", "é", "日本", "{x}", "[x]", "*", "_x", "00123", "true", "", " ", None),
]


@pytest.mark.parametrize("reader", ["pyarrow", "duckdb", "polars"])
def test_readers_find_the_values_of_partitions(reader: str, tmp_path: Path) -> None:
    engine = pytest.importorskip(reader)
    save(tmp_path, rows_of(*ODD), "parquet", partition_by=["country"])
    found, wanted = found_by(reader, engine, tmp_path), set(enumerate(ODD, start=1))
    if reader != "pyarrow" and int(engine.__version__.split(".")[0]) < 2:
        # How these read no text and no value differs from release to release.
        alike = {ODD.index("") + 1, ODD.index(None) + 1}
        found, wanted = ({row for row in rows if row[0] not in alike} for rows in (found, wanted))
    assert found == wanted


def found_by(reader: str, engine: Any, folder: Path) -> set[tuple[int, str | None]]:
    if reader == "duckdb":
        rows = engine.sql(
            f"SELECT id, country FROM read_parquet('{folder}/**/*.parquet', "
            "hive_partitioning = true, hive_types_autocast = false)"
        ).fetchall()
    elif reader == "polars":
        schema = {"country": engine.String}
        table = engine.read_parquet(f"{folder}/**/*.parquet", hive_schema=schema)
        rows = table.select("id", "country").rows()
    else:
        ds = pytest.importorskip("pyarrow.dataset")
        hive = ds.partitioning(engine.schema([("country", engine.string())]), flavor="hive")
        table = ds.dataset(folder, partitioning=hive).to_table(columns=["id", "country"])
        rows = [tuple(row.values()) for row in table.to_pylist()]
    return set(rows)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=examples(30))
@given(
    rows=st.lists(
        st.tuples(st.sampled_from(["DE", "FR", None]), st.sampled_from(["2025-01-30", None])),
        max_size=40,
    ),
    size=st.integers(1, 7),
    most=st.none() | st.integers(1, 9),
)
def test_every_row_is_in_one_file_whatever_the_pieces(
    rows: list[tuple[str | None, str | None]],
    size: int,
    most: int | None,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = tmp_path_factory.mktemp("dataset")
    data = [[str(at), country, day, "1"] for at, (country, day) in enumerate(rows)]
    options = output_options({"partition_by": ["country", "day"], "max_rows_per_file": most})
    output = plan_output(None, "csv", options)
    pieces = [data[at : at + size] for at in range(0, len(data), size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("airflow_provider_platform.files.spool.BATCH_ROWS", 5)
        saved = save_rows(COLUMNS, pieces, path=folder, output=output)
    found = []
    for file in saved.files:
        with open(file["path"], newline="") as lines:  # noqa: PTH123
            inside = [int(row["id"]) for row in csv.DictReader(lines)]
        folders = dict(part.split("=") for part in file["path"].split("/")[-3:-1])
        partition = tuple(None if value == MISSING else value for value in folders.values())
        assert [rows[at] for at in inside] == [partition] * len(inside)
        assert inside == sorted(inside), "rows changed their order"
        assert len(inside) == file["rows"] <= (most or len(rows))
        found += inside
    assert sorted(found) == list(range(len(rows)))


def test_other_run_replaces_the_partitions_that_it_has_and_no_others(tmp_path: Path) -> None:
    save(tmp_path, rows_of("DE", "DE", "FR"), partition_by=["country"], max_rows_per_file=1)
    (tmp_path / "country=DE" / "readme.txt").write_text("the author's")
    (tmp_path / "country=DE" / "part-0-spark.csv").write_text("another program's")
    save(tmp_path, rows_of("DE", "IT", first=7), writer=SUNDAY, partition_by=["country"])
    assert names(tmp_path) == [
        "country=DE/part-0-spark.csv",
        "country=DE/part-bbbbbbbb-00001.csv",
        "country=DE/readme.txt",
        "country=FR/part-aaaaaaaa-00001.csv",
        "country=IT/part-bbbbbbbb-00001.csv",
    ]


def test_other_format_replaces_the_files_of_the_first(tmp_path: Path) -> None:
    save(tmp_path, rows_of("DE", "DE"), max_rows_per_file=1)
    save(tmp_path, rows_of("DE"), "jsonl", writer=SUNDAY, max_rows_per_file=1, compression="gzip")
    assert names(tmp_path) == ["part-bbbbbbbb-00001.jsonl.gz"]


def test_files_are_split_by_rows(tmp_path: Path) -> None:
    rows = rows_of(*["DE"] * 2500)
    saved = save(tmp_path, rows, max_rows_per_file=1000)
    assert [file["rows"] for file in saved.files] == [1000, 1000, 500]
    assert ids(tmp_path) == [str(number) for number in range(1, 2501)]
    saved = save(tmp_path, rows[:1000], max_rows_per_file=1000)
    assert [file["rows"] for file in saved.files] == [1000]
    assert len(names(tmp_path)) == 1


@pytest.mark.parametrize("rows_in_batch", [1, spool.BATCH_ROWS])
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partition_by": ["city"]}, "contains the column 'city', which the result does not have"),
        (
            {"partition_by": ["id", "country", "day", "amount"]},
            "contains all columns of the result",
        ),
        ({"partition_by": ["id"]}, "more than 2 partitions"),
    ],
)
def test_result_that_cannot_be_partitioned_keeps_the_old_files(
    options: dict[str, Any],
    said: str,
    rows_in_batch: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(formats, "MAX_PARTITIONS", 2)
    monkeypatch.setattr(spool, "BATCH_ROWS", rows_in_batch)
    save(tmp_path, rows_of("DE"), partition_by=["country"])
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}
    with pytest.raises(ResultValueError, match=said):
        save(tmp_path, rows_of("DE", "FR", "IT"), **options)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_broken_query_keeps_the_old_files(tmp_path: Path) -> None:
    save(tmp_path, rows_of("DE"), partition_by=["country"])

    def pieces() -> Iterator[list[list[str | None]]]:
        yield rows_of("DE", "FR")
        raise PlatformTransportError("cut")

    output = plan_output(None, "csv", output_options({"partition_by": ["country"]}))
    with pytest.raises(PlatformTransportError):
        save_rows(COLUMNS, pieces(), path=tmp_path, output=output, writer=MONDAY)
    assert names(tmp_path) == ["country=DE/part-aaaaaaaa-00001.csv"]
    with pytest.raises(PlatformTransportError):
        save_rows(COLUMNS, pieces(), path=tmp_path / "new", output=output)
    assert not (tmp_path / "new").exists()


FULL = """
import resource, sys
from pathlib import Path
from airflow_provider_platform.client.errors import ResultWriteError
from airflow_provider_platform.files.options import output_options, plan_output
from airflow_provider_platform.files.save import save_rows

resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
output = plan_output(None, "csv", output_options({"partition_by": ["c"]}))
rows = [[str(at), "small" if at % 50 else "a"] for at in range(10_000)]
columns = [{"name": "id", "type": "Int64"}, {"name": "c", "type": "String"}]
try:
    save_rows(columns, [rows], path=Path(sys.argv[1]), output=output, writer="aaaaaaaa")
except ResultWriteError as error:
    print(error.message)
"""


@pytest.mark.exhaustive
def test_full_disk_leaves_no_half_file(tmp_path: Path) -> None:
    """The first of the files fits, the second one does not: the temporary folder is full."""
    folder = tmp_path / "rows"
    save(folder, rows_of("DE"), partition_by=["country"])
    before = {name: (folder / name).read_bytes() for name in names(folder)}
    command = [sys.executable, "-c", FULL, str(folder)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "could not be written" in ended.stdout, ended.stderr
    assert "File too large" in ended.stdout
    assert {name: (folder / name).read_bytes() for name in names(folder)} == before


def test_storage_that_fails_half_way_leaves_no_half_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that were whole before stay, and the old ones too: a retry replaces them."""
    save(tmp_path, rows_of("DE"), partition_by=["country"])
    real = formats.whole_file

    @contextmanager
    def failing(path: Any) -> Iterator[Any]:
        with real(path) as file:
            yield file
            if "country=FR" in str(path):
                raise ResultWriteError("refused")

    with monkeypatch.context() as patch:
        patch.setattr(formats, "whole_file", failing)
        with pytest.raises(ResultWriteError, match="refused"):
            save(tmp_path, rows_of("DE", "FR"), writer=SUNDAY, partition_by=["country"])
    assert names(tmp_path) == [
        "country=DE/part-aaaaaaaa-00001.csv",
        "country=DE/part-bbbbbbbb-00001.csv",
        "country=FR",
    ]
    save(tmp_path, rows_of("DE", "FR"), writer=SUNDAY, partition_by=["country"])
    assert names(tmp_path) == [
        "country=DE/part-bbbbbbbb-00001.csv",
        "country=FR/part-bbbbbbbb-00001.csv",
    ]


def test_result_without_rows_has_no_partitions_or_one_empty_file(tmp_path: Path) -> None:
    saved = save(tmp_path / "hive", [], partition_by=["country"])
    assert not (tmp_path / "hive").exists()
    assert (saved.files, saved.bytes) == ([], 0)
    save(tmp_path / "split", [], max_rows_per_file=5)
    found = (tmp_path / "split" / "part-aaaaaaaa-00001.csv").read_text()
    assert found == '"id","country","day","amount"\n'


@pytest.mark.parametrize("options", [{}, {"partition_by": ["country"]}])
def test_empty_result_is_not_written_if_that_is_asked_for(
    options: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "rows"
    with pytest.raises(ResultEmptyError, match="the result has no rows"):
        save_rows(COLUMNS, [], path=path, output=planned(on_empty="fail", **options))
    saved = save_rows(COLUMNS, [], path=path, output=planned(on_empty="skip", **options))
    assert (saved.path, saved.format, saved.bytes, saved.row_count) == (None, None, None, 0)
    assert names(tmp_path) == []
    saved = save_rows(
        COLUMNS, [rows_of("DE")], path=path, output=planned(on_empty="fail", **options)
    )
    assert saved.path == str(path)


def planned(**options: Any) -> Output:
    path = "rows/" if "partition_by" in options else "rows"
    return plan_output(path, "csv", output_options(options))
