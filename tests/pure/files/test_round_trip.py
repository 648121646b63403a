"""What DuckDB, Polars, pandas and pyarrow read from files and frames is what the service sent.

Responses are made here in the shapes of the data API, from typed values, and read by the client.
Each program reads each format back: Parquet as it is, CSV and JSON Lines with the types of the
columns, since these files have none. Values are compared with those that the response was made of.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.files.options import Output
from airflow_provider_platform.files.save import save_rows
from airflow_provider_platform.hooks.query_rows import QueryRows
from airflow_provider_platform.resources.sql.response import SqlChunk, SqlColumns, SqlResponse
from tests.support.hypothesis_profiles import examples

duckdb = pytest.importorskip("duckdb")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
import pyarrow.csv  # noqa: E402
import pyarrow.json  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Read = Callable[[Path, Any], list[list[Any]]]


@dataclass(frozen=True)
class Shape:
    """How the service declares a column, values of it, and what it sends of each."""

    column_type: Any
    values: st.SearchStrategy[Any]
    sent: Callable[[Any], Any] = str
    types: str | None = None


@dataclass(frozen=True)
class Sent:
    """A response: its columns, and the values that it was made of, column by column."""

    columns: list[tuple[str, Shape]]
    values: list[list[Any]]
    types: dict[str, str] = field(default_factory=dict)

    def lines(self) -> bytes:
        schema = [{"name": name, "column_type": shape.column_type} for name, shape in self.columns]
        texts = [
            [None if value is None else shape.sent(value) for value in values]
            for (_, shape), values in zip(self.columns, self.values, strict=True)
        ]
        rows = [list(row) for row in zip(*texts, strict=True)]
        middle = len(rows) // 2
        documents = [{"schema": schema}, {"data": rows[:middle]}, {"data": rows[middle:]}]
        return b"".join(json.dumps(one).encode() + b"\n" for one in documents)


def milliseconds(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds")


def double(value: float) -> str:
    """As Rust writes it, which has no exponents and names infinity `inf`."""
    if not math.isfinite(value):
        return {math.inf: "inf", -math.inf: "-inf"}.get(value, "NaN")
    return format(Decimal(repr(value)), "f")


def decimals(digits: int, scale: int) -> st.SearchStrategy[Decimal]:
    return st.integers(-(10**digits) + 1, 10**digits - 1).map(
        lambda whole: Decimal(f"{whole}E-{scale}")
    )


def plain_decimal(value: Decimal) -> str:
    return format(value, "f")


DAYS = st.dates()
MOMENTS = st.datetimes().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000))
ODD_TEXTS = ["", " ", "a\nb", "\r\n", 'say "hi"', '"', "a,b;c\td", "'", "#", "\\", "\\N", "-"]
LOOKALIKES = ["NULL", "NaN", "true", "007", "1e400", "2026-01-01", "ü 😀 漢字 \u202e"]
TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
SHAPES = {
    "int32": Shape("Int32", st.integers(-(2**31), 2**31 - 1)),
    "int32_decimals": Shape("Int32", decimals(12, 2), plain_decimal),
    "int64": Shape("Int64", st.integers(-(2**63), 2**63 - 1)),
    "double": Shape("Double", st.floats(allow_nan=False, allow_infinity=False), double),
    "double_not_finite": Shape("Double", st.floats(), double),
    "decimal": Shape("Decimal", decimals(18, 6), plain_decimal),
    "huge_decimal": Shape("Int32", decimals(38, 4), plain_decimal),
    "boolean": Shape("Boolean", st.booleans(), bool),
    "date": Shape({"Date": False}, DAYS),
    "date_with_time": Shape({"Date": True}, MOMENTS, milliseconds),
    "timestamp": Shape("Timestamp", MOMENTS, milliseconds),
    "timestamp_as_string": Shape("String", MOMENTS, milliseconds, types="timestamp"),
    "string": Shape("String", TEXTS | st.sampled_from(ODD_TEXTS + LOOKALIKES)),
    "interval": Shape({"Interval": "MonthDayNano"}, st.just("1 month 2 days")),
}


@st.composite
def responses(draw: st.DrawFn, *shapes: str) -> Sent:
    """Some columns of the shapes, with some rows."""
    names = draw(st.lists(st.sampled_from(shapes), min_size=1, max_size=4))
    columns = [(f"{name}_{at}", SHAPES[name]) for at, name in enumerate(names)]
    rows = draw(st.integers(0, 5))
    cell = st.lists
    values = [
        draw(cell(st.none() | shape.values, min_size=rows, max_size=rows)) for _, shape in columns
    ]
    return Sent(columns, values, {name: shape.types for name, shape in columns if shape.types})


def received(sent: Sent) -> Iterator[SqlColumns | SqlChunk]:
    response = SqlResponse("query")
    yield from response.feed(sent.lines())
    yield from response.finish()


def query_rows(sent: Sent) -> QueryRows:
    return QueryRows(lambda: received(sent), lambda count: None)


def saved(sent: Sent, folder: Path, ending: str) -> tuple[Path, Any]:
    """The file, and the schema that its Parquet twin has."""
    for name in {ending, "parquet"}:
        rows = query_rows(sent)
        save_rows(
            rows.columns,
            rows.pieces(),
            path=folder / f"rows.{name}",
            output=Output(name),
            types=sent.types or "service",
        )
    return folder / f"rows.{ending}", pq.read_schema(folder / "rows.parquet")


def plain(value: Any) -> Any:
    """A value of a program as Python's: missing is None, moments are datetimes."""
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    return value.to_pydatetime() if isinstance(value, pd.Timestamp) else value


def check(found: list[list[Any]], sent: Sent, *, empty_is_missing: bool = False) -> None:
    assert len(found) == len(sent.values)
    for (name, _), values, wanted in zip(sent.columns, found, sent.values, strict=True):
        pair = [*map(plain, values)], wanted
        if empty_is_missing:
            pair = tuple([None if one == "" else one for one in of] for of in pair)
        shown, expected = ([*map(comparable, of)] for of in pair)
        assert shown == expected, name


def comparable(value: Any) -> Any:
    """What is equal if the values are exactly the same: not a number is, and -0.0 is not 0.0. A
    whole number may be an int or a Decimal, a midnight a date."""
    if isinstance(value, float):
        return "float", repr(value)
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return "number", Decimal(value)
    if isinstance(value, datetime) and value == datetime(value.year, value.month, value.day):
        return "day", value.date()
    return "day" if type(value) is date else type(value).__name__, value


def columns_of(rows: list[tuple[Any, ...]], schema: Any) -> list[list[Any]]:
    return [list(values) for values in zip(*rows, strict=True)] or [[] for _ in schema]


def columns_of_frame(frame: Any) -> list[list[Any]]:
    return [frame.iloc[:, at].tolist() for at in range(frame.shape[1])]


def pyarrow_parquet(path: Path, schema: Any) -> list[list[Any]]:
    return [column.to_pylist() for column in pq.read_table(path)]


def pyarrow_csv(path: Path, schema: Any) -> list[list[Any]]:
    table = pyarrow.csv.read_csv(
        path,
        parse_options=pyarrow.csv.ParseOptions(newlines_in_values=True),
        convert_options=pyarrow.csv.ConvertOptions(
            column_types=schema,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=len(schema) == 1,
        ),
    )
    return [column.to_pylist() for column in table]


def pyarrow_jsonl(path: Path, schema: Any) -> list[list[Any]]:
    """pyarrow reads JSON texts as texts; a cast makes days and decimals of them."""
    as_json = pa.schema(
        (one.name, one.type if one.type in JSON_TYPES else pa.string()) for one in schema
    )
    options = pyarrow.json.ParseOptions(explicit_schema=as_json, newlines_in_values=False)
    if not path.stat().st_size:  # which pyarrow refuses
        return [[] for _ in schema]
    return [
        column.to_pylist()
        for column in pyarrow.json.read_json(path, parse_options=options).cast(schema)
    ]


def duckdb_types(schema: Any) -> dict[str, str]:
    return {
        one.name: DUCKDB_TYPES.get(str(one.type))
        or f"DECIMAL({one.type.precision}, {one.type.scale})"
        for one in schema
    }


def duckdb_parquet(path: Path, schema: Any) -> list[list[Any]]:
    with duckdb.connect() as connection:
        return columns_of(connection.read_parquet(str(path)).fetchall(), schema)


def duckdb_csv(path: Path, schema: Any) -> list[list[Any]]:
    sql = (
        "SELECT * FROM read_csv(?, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"columns = {duckdb_types(schema)}, allow_quoted_nulls = {len(schema) == 1})"
    )
    with duckdb.connect() as connection:
        return columns_of(connection.execute(sql, [str(path)]).fetchall(), schema)


def duckdb_jsonl(path: Path, schema: Any) -> list[list[Any]]:
    sql = f"SELECT * FROM read_ndjson(?, columns = {duckdb_types(schema)})"
    with duckdb.connect() as connection:
        return columns_of(connection.execute(sql, [str(path)]).fetchall(), schema)


def polars_schema(schema: Any) -> dict[str, Any]:
    return dict(pl.DataFrame(schema.empty_table()).schema)


def polars_parquet(path: Path, schema: Any) -> list[list[Any]]:
    return [column.to_list() for column in pl.read_parquet(path)]


def polars_csv(path: Path, schema: Any) -> list[list[Any]]:
    missing = "" if len(schema) == 1 else None
    frame = pl.read_csv(path, schema=polars_schema(schema), null_values=missing)
    return [column.to_list() for column in frame]


def polars_jsonl(path: Path, schema: Any) -> list[list[Any]]:
    """Polars reads JSON texts as texts; a cast makes days and decimals of them."""
    types = polars_schema(schema)
    of_json = {one.name: one.type in JSON_TYPES for one in schema}
    as_json = {name: kind if of_json[name] else pl.String for name, kind in types.items()}
    frame = pl.read_ndjson(path, schema=as_json)
    return [polars_cast(frame[name], kind).to_list() for name, kind in types.items()]


def polars_cast(texts: Any, kind: Any) -> Any:
    if kind == pl.Date:
        return texts.str.to_date()
    if kind == pl.Datetime:
        return texts.str.to_datetime(time_unit="us")
    return texts.cast(kind)


def pandas_parquet(path: Path, schema: Any) -> list[list[Any]]:
    return columns_of_frame(pd.read_parquet(path, dtype_backend="pyarrow"))


def pandas_csv(path: Path, schema: Any) -> list[list[Any]]:
    """pandas reads texts, which are cast afterwards: on its own it takes more than `NaN` as
    missing."""
    frame = pd.read_csv(path, dtype=str, keep_default_na=False, na_values=[""])
    types = {one.name: pd.ArrowDtype(one.type) for one in schema}
    return columns_of_frame(frame.astype("string[pyarrow]").astype(types))


def pandas_jsonl(path: Path, schema: Any) -> list[list[Any]]:
    """`read_json` makes floats of whole numbers beside a missing one, so Python reads the lines."""
    rows = [json.loads(line) for line in path.read_text().split("\n")[:-1]]
    frame = pd.DataFrame(rows, columns=schema.names, dtype=object)
    types = {one.name: pd.ArrowDtype(one.type) for one in schema}
    for one in schema:
        if one.type == pa.float64():  # through Arrow: pandas on its own takes NaN as missing
            numbers = [None if value is None else float(value) for value in frame[one.name]]
            frame[one.name] = pd.arrays.ArrowExtensionArray(pa.array(numbers, pa.float64()))
    return columns_of_frame(frame.astype(types))


def arrow_frame(sent: Sent) -> list[list[Any]]:
    return [column.to_pylist() for column in query_rows(sent).to_arrow(types=types_of(sent))]


def pandas_frame(sent: Sent) -> list[list[Any]]:
    return columns_of_frame(query_rows(sent).to_pandas(types=types_of(sent)))


def polars_frame(sent: Sent) -> list[list[Any]]:
    return [column.to_list() for column in query_rows(sent).to_polars(types=types_of(sent))]


def types_of(sent: Sent) -> Any:
    return sent.types or "service"


JSON_TYPES = (pa.int64(), pa.float64(), pa.bool_(), pa.string())
DUCKDB_TYPES = {
    "int64": "BIGINT",
    "double": "DOUBLE",
    "bool": "BOOLEAN",
    "date32[day]": "DATE",
    "timestamp[us]": "TIMESTAMP",
    "string": "VARCHAR",
}
READERS: dict[tuple[str, str], Read] = {
    ("parquet", "pyarrow"): pyarrow_parquet,
    ("parquet", "duckdb"): duckdb_parquet,
    ("parquet", "polars"): polars_parquet,
    ("parquet", "pandas"): pandas_parquet,
    ("csv", "pyarrow"): pyarrow_csv,
    ("csv", "duckdb"): duckdb_csv,
    ("csv", "polars"): polars_csv,
    ("csv", "pandas"): pandas_csv,
    ("jsonl", "pyarrow"): pyarrow_jsonl,
    ("jsonl", "duckdb"): duckdb_jsonl,
    ("jsonl", "polars"): polars_jsonl,
    ("jsonl", "pandas"): pandas_jsonl,
}
UNREADABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("jsonl", "pyarrow"): ("double_not_finite",),
    ("jsonl", "polars"): ("double_not_finite",),
}
"""JSON has no NaN and no Infinity: their names are texts among numbers, which not all accept."""
FRAMES = {"arrow": arrow_frame, "pandas": pandas_frame, "polars": polars_frame}
EVERY = settings(
    max_examples=examples(60),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@pytest.mark.parametrize(("ending", "program"), READERS)
@EVERY
@given(data=st.data())
def test_readers_of_a_file_get_the_values_that_were_sent(
    ending: str, program: str, data: st.DataObject, tmp_path: Path
) -> None:
    unreadable = UNREADABLE.get((ending, program), ())
    sent = data.draw(responses(*(name for name in SHAPES if name not in unreadable)))
    path, schema = saved(sent, tmp_path, ending)
    # In a CSV file of one column a missing value is `""`: many programs skip empty lines.
    alike = ending == "csv" and (program == "pandas" or len(sent.columns) == 1)
    check(READERS[ending, program](path, schema), sent, empty_is_missing=alike)


@pytest.mark.parametrize("kind", FRAMES)
@EVERY
@given(sent=responses(*SHAPES))
def test_frame_has_the_sent_values(kind: str, sent: Sent) -> None:
    check(FRAMES[kind](sent), sent)


def test_csv_row_with_one_missing_value_is_not_an_empty_line(tmp_path: Path) -> None:
    sent = Sent([("n", SHAPES["int64"])], [[1, None, 3]])
    path, _ = saved(sent, tmp_path, "csv")
    assert path.read_bytes() == b'"n"\n"1"\n""\n"3"\n'
    assert len(pd.read_csv(path)) == len(pyarrow.csv.read_csv(path)) == 3
