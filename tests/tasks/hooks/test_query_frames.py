"""`run_sql` as Arrow, pandas and Polars frames: complete, typed, and never cut silently."""

from __future__ import annotations

import logging
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    PlatformClosedError,
    PlatformInputError,
    PlatformTransportError,
    ResultTruncatedError,
    ResultValueError,
)
from airflow_provider_platform.files import frames
from airflow_provider_platform.files.types import SHORT_DECIMAL
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.hooks.query_rows import QueryRows
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.resources.sql.response import SqlChunk, SqlColumns, SqlOpenEnd
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
import pyarrow.parquet as pq  # noqa: E402

SQL = "SELECT id, status FROM orders ORDER BY id"
METHODS = ("to_arrow", "to_pandas", "to_polars")
DECLARED = {
    "id": "Int32",
    "price": "Int32",
    "ratio": "Double",
    "paid": "Boolean",
    "day": "Date",
    "at": "Timestamp",
    "note": "String",
}
ROWS: list[list[Any]] = [
    ["1", "12.50", "0.5", True, "2026-01-31", "2026-01-31T12:30:00.250", "a\nb"],
    [None] * 7,
    ["-2", "3", "NaN", False, "1600-02-29", "0001-01-01T00:00:00.001", ""],
]
VALUES: list[list[Any]] = [
    [1, Decimal("12.50"), 0.5, True, date(2026, 1, 31), datetime(2026, 1, 31, 12, 30, 0, 250000)],
    [None] * 6,
    [-2, Decimal(3), "nan", False, date(1600, 2, 29), datetime(1, 1, 1, 0, 0, 0, 1000)],
]


def columns(declared: dict[str, str] = DECLARED) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in declared.items()]


def answer(
    rows: list[list[Any]] = ROWS, declared: dict[str, str] = DECLARED, *, open_end: bool = False
) -> Iterator[SqlColumns | SqlChunk | SqlOpenEnd]:
    yield SqlColumns(columns(declared))
    for row in rows:
        yield SqlChunk([row])
    if open_end:
        yield SqlOpenEnd()


def received(rows: list[list[Any]] = ROWS, **options: Any) -> QueryRows:
    return QueryRows(lambda: answer(rows, **options), lambda count: None)  # type: ignore[arg-type]


def cut_rows() -> QueryRows:
    return QueryRows(answer, lambda count: f"There may be more than {count} rows.")  # type: ignore[arg-type]


def arrow(rows: QueryRows, method: str, **options: Any) -> Any:
    """What the method gives, as an Arrow table again."""
    frame = getattr(rows, method)(**options)
    if method == "to_pandas":
        return pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata()
    return frame.to_arrow() if method == "to_polars" else frame


def test_the_columns_have_the_types_of_their_values() -> None:
    table = received().to_arrow()
    assert {one.name: str(one.type) for one in table.schema} == {
        "id": "int64",
        "price": f"decimal128({SHORT_DECIMAL}, 2)",
        "ratio": "double",
        "paid": "bool",
        "day": "date32[day]",
        "at": "timestamp[us]",
        "note": "string",
    }
    found = [list(row.values()) for row in table.to_pylist()]
    assert [row[-1] for row in found] == ["a\nb", None, ""]
    assert str(found[2][2]) == "nan"
    found[2][2] = "nan"
    assert [row[:-1] for row in found] == VALUES


def test_a_pandas_frame_has_arrows_types() -> None:
    frame = received().to_pandas()
    assert [*map(str, frame.dtypes)] == [
        "int64[pyarrow]",
        f"decimal128({SHORT_DECIMAL}, 2)[pyarrow]",
        "double[pyarrow]",
        "bool[pyarrow]",
        "date32[day][pyarrow]",
        "timestamp[us][pyarrow]",
        "string[pyarrow]",
    ]
    assert frame["id"].tolist() == [1, pd.NA, -2]
    assert frame.index.tolist() == [0, 1, 2]


def test_a_pandas_frame_can_have_the_nullable_types_of_pandas() -> None:
    frame = received().to_pandas(dtype_backend="numpy_nullable")
    kinds = {str(kind) for kind in frame.dtypes}
    assert {"Int64", "string"} <= kinds, kinds
    assert not any("pyarrow" in kind for kind in kinds - {"string[pyarrow]"}), kinds


def test_a_polars_frame_has_polars_types() -> None:
    assert dict(received().to_polars().schema) == {
        "id": pl.Int64,
        "price": pl.Decimal(SHORT_DECIMAL, 2),
        "ratio": pl.Float64,
        "paid": pl.Boolean,
        "day": pl.Date,
        "at": pl.Datetime("us"),
        "note": pl.String,
    }


@pytest.mark.parametrize("method", METHODS)
def test_types_set_the_type_of_a_frame_column(method: str) -> None:
    rows = received([["2026-01-01T00:00:00.000", "7"]], declared={"at": "String", "n": "Int64"})
    table = arrow(rows, method, types={"at": "timestamp", "n": "decimal(10, 2)"})
    assert [str(one.type) for one in table.schema] == ["timestamp[us]", "decimal128(10, 2)"]
    rows = received([["2026-01-01T00:00:00.000", "7"]], declared={"at": "String", "n": "Int64"})
    assert {"string" in str(one.type) for one in arrow(rows, method, types="text").schema} == {True}


def test_a_column_that_a_value_does_not_fit_is_text_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    rows = received([["1"], ["x"]], declared={"n": "Int64"})
    with caplog.at_level(logging.WARNING):
        assert rows.to_arrow()["n"].to_pylist() == ["1", "x"]
    assert "'n' is written as strings: the service declares Int64, but row 2 has 'x'" in caplog.text
    with pytest.raises(
        ResultValueError, match=r"'x' cannot be read as type Int64 .row 2, column 'n'"
    ):
        received([["1"], ["x"]], declared={"n": "Int64"}).to_arrow(types="strict")


def test_columns_of_the_same_name_get_names_of_their_own_with_a_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def begin() -> Iterator[Any]:
        yield SqlColumns([{"name": "n", "type": "Int64"}] * 3 + [{"name": "", "type": "Int64"}])
        yield SqlChunk([["1", "2", "3", "4"]])

    for method in METHODS:
        rows = QueryRows(begin, lambda count: None)  # type: ignore[arg-type, return-value]
        assert arrow(rows, method).to_pylist() == [{"n": 1, "n_2": 2, "n_3": 3, "column_4": 4}]
        assert "column 2 'n' is now 'n_2'" in caplog.text
        caplog.clear()


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_result_has_its_columns(method: str) -> None:
    table = arrow(received([]), method)
    assert table.column_names == [*DECLARED]
    assert table.num_rows == 0
    assert str(table.schema.field("day").type).startswith("date32")


def test_frame_of_many_rows_has_one_chunk() -> None:
    def begin() -> Iterator[Any]:
        yield SqlColumns([{"name": "n", "type": "Int64"}])
        for first in range(0, 250_000, 1000):
            yield SqlChunk([[str(number)] for number in range(first, first + 1000)])

    table = QueryRows(begin, lambda count: None).to_arrow()  # type: ignore[arg-type, return-value]
    assert table["n"].to_pylist() == [*range(250_000)]
    assert table["n"].num_chunks == 1


def test_truncated_result_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    rows = cut_rows()
    with caplog.at_level(logging.WARNING):
        assert rows.to_arrow().num_rows == 3
    assert "There may be more than 3 rows." in caplog.text
    assert rows.truncated is True


def test_truncated_result_raises_an_error_if_all_rows_are_needed() -> None:
    with pytest.raises(ResultTruncatedError, match="There may be more than 3 rows"):
        cut_rows().to_arrow(on_truncated="fail")


def test_result_without_a_marked_end_counts_as_truncated() -> None:
    with pytest.raises(ResultTruncatedError, match="connection was closed after 3 rows"):
        received(open_end=True).to_arrow(on_truncated="fail")


def test_frame_needs_rows_that_were_not_read_before() -> None:
    rows = received()
    next(rows)
    with pytest.raises(PlatformInputError, match="1 of its rows were already read"):
        rows.to_pandas()
    rows = received()
    rows.to_arrow()
    with pytest.raises(PlatformInputError, match="3 of its rows were already read"):
        rows.to_polars()


def test_closed_result_raises_an_error_instead_of_an_empty_frame() -> None:
    rows = received()
    assert rows.columns
    rows.close()
    with pytest.raises(PlatformClosedError):
        rows.to_arrow()


@pytest.mark.parametrize(
    ("method", "options", "said"),
    [
        ("to_arrow", {"types": "exact"}, "types must be one of service, strict, text"),
        ("to_polars", {"types": {"at": "moment"}}, "'moment'"),
        ("to_polars", {"on_truncated": "raise"}, "on_truncated must be one of warn, fail"),
        ("to_pandas", {"dtype_backend": "numpy"}, "must be one of pyarrow, numpy_nullable"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_is_sent(
    method: str, options: dict[str, Any], said: str, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(PlatformInputError, match=said) as caught:
        getattr(PlatformHook().run_sql(SQL), method)(**options)
    assert caught.value.field == next(iter(options))
    assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize(
    ("method", "lacking", "extra"),
    [
        ("to_arrow", "pyarrow", "files"),
        ("to_pandas", "pandas", "pandas"),
        ("to_polars", "polars", "polars"),
        ("to_polars", "pyarrow", "polars"),
    ],
)
def test_a_missing_library_is_named_with_the_line_that_installs_it(
    method: str,
    lacking: str,
    extra: str,
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(frames, "find_spec", lambda name: None if name == lacking else name)
    line = rf'{method}\(\) needs {lacking}.* pip install "airflow-provider-platform\[{extra}\]"'
    with pytest.raises(PlatformInputError, match=line):
        getattr(PlatformHook().run_sql(SQL), method)()
    assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize("method", METHODS)
def test_frame_read_over_http_has_all_rows(method: str, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_chunk_rows=100)
    with PlatformHook() as hook:
        texts = list(hook.run_sql(SQL))
        table = arrow(hook.run_sql(SQL), method)
    assert table.column_names == ["id", "status"]
    assert [[str(row["id"]), row["status"]] for row in table.to_pylist()] == texts


def test_a_frame_has_the_columns_of_the_operators_file(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    sql = "SELECT id, value, kind, happened_at FROM events LIMIT 2500"
    types = {"happened_at": "timestamp", "value": "decimal"}
    path = tmp_path / "rows.parquet"
    PlatformQueryOperator(task_id="query", sql=sql, output_path=path, types=types).execute(
        TaskTries().context()
    )
    table = PlatformHook().run_sql(sql).to_arrow(types=types)
    assert table.equals(pq.read_table(path))
    assert str(table.schema.field("happened_at").type) == "timestamp[us]"


def test_broken_result_gives_no_frame(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_chunk_rows=100)
    platform_sandbox.control.fault("cut", api="data", after=2)
    with pytest.raises(PlatformTransportError):
        PlatformHook().run_sql(SQL).to_arrow()
