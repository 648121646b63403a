"""Names of columns in files: no two columns have the same name."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_platform.files.options import FORMATS, Output
from airflow_provider_platform.files.save import save_rows
from airflow_provider_platform.files.types import describe_renaming, file_names

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.client.choices import RowFormat

NAMES = st.lists(st.none() | st.text("aAbB_2é \0\n", max_size=4) | st.text(max_size=3), max_size=8)


@pytest.mark.parametrize(
    ("names", "written"),
    [
        (["id", "total"], ["id", "total"]),
        (["total", "total"], ["total", "total_2"]),
        (["total", "total", "total_2"], ["total", "total_3", "total_2"]),
        (["a", "a", "a_2", "a"], ["a", "a_3", "a_2", "a_4"]),
        (["Total", "total", "TOTAL"], ["Total", "total_2", "TOTAL_3"]),
        (["total", "total", "TOTAL_2"], ["total", "total_3", "TOTAL_2"]),
        (["", None, "  ", "column_1"], ["column_1_2", "column_2", "column_3", "column_1"]),
        (["a\0", "b\ud800"], ["a\ufffd", "b\ufffd"]),
        (["a\0", "a\ufffd"], ["a\ufffd", "a\ufffd_2"]),
    ],
)
def test_renaming_keeps_the_first_name_and_never_takes_the_name_of_another_column(
    names: list[str | None], written: list[str]
) -> None:
    assert file_names(names) == written


@given(NAMES)
@example(["a_2", "a", "a"])
def test_column_names_differ_by_more_than_case_and_renaming_is_idempotent(
    names: list[str | None],
) -> None:
    written = file_names(names)
    assert len({name.casefold() for name in written}) == len(names)
    assert all(name.strip() for name in written)
    assert file_names(written) == written
    assert (describe_renaming(names, written) is None) == (names == written)
    json.dumps(written).encode()


def test_renaming_is_described_by_place_and_name() -> None:
    names = ["total", "Total", ""]
    said = describe_renaming(names, file_names(names))
    assert said is not None
    assert "column 2 'Total' is now 'Total_2', column 3 '' is now 'column_3'" in said
    many = [""] * 9
    assert "and 4 more" in str(describe_renaming(many, file_names(many)))


@pytest.mark.parametrize("kind", FORMATS)
def test_file_readers_find_every_column_by_its_name_in_the_result(
    kind: RowFormat, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    given = ["Total", "total", "", "total_2", "TOTAL", "new\nline", 'quo"te', "nul\0"]
    columns = [{"name": name, "type": "Int64"} for name in given]
    path = tmp_path / f"rows.{kind}"
    saved = save_rows(
        columns, [[[str(n) for n in range(len(given))]]], path=path, output=Output(kind)
    )
    names = [column["name"] for column in saved.columns]
    reader = {"parquet": "read_parquet", "csv": "read_csv", "jsonl": "read_json"}[kind]
    options = ", header = true" if kind == "csv" else ""
    table = duckdb.sql(f"SELECT * FROM {reader}('{path}'{options})")
    assert table.columns == names
    assert table.fetchall() == [tuple(range(len(given)))]
    by_name = ", ".join('"' + name.replace('"', '""') + '"' for name in names)
    assert table.select(by_name).fetchall() == [tuple(range(len(given)))]
    if kind == "parquet":
        import pyarrow.parquet as pq

        assert pq.read_table(path).column_names == names
