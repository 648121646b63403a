"""Values are read by the types of their columns, also values that do not fit. Python and pyarrow
read the same."""

from __future__ import annotations

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ResultValueError
from airflow_provider_platform.client.models import type_name
from airflow_provider_platform.files import spool
from airflow_provider_platform.files.spool import Spool
from airflow_provider_platform.files.types import Column, ColumnTypes, TypedRows

BATCH_ROWS = 100
NOON = datetime(2025, 1, 31, 12, 30)
FITTING: list[tuple[str, Any, Any, Any]] = [
    ("Int64", "12", 12, 12),
    ("Int64", "-9223372036854775808", -(2**63), -(2**63)),
    ("Int64", 3, 3, 3),
    ("Int64", 3.0, 3, 3),
    ("Int64", "9223372036854775807", 2**63 - 1, 2**63 - 1),
    ("Int64", "+12", 12, 12),
    ("Int64", "-0", 0, 0),
    ("Int32", "12", 12, 12),
    ("Int32", "12.50", Decimal("12.50"), "12.50"),
    ("Int32", "12.00", Decimal("12.00"), "12.00"),
    ("Int32", "9223372036854775808", Decimal(2**63), "9223372036854775808"),
    ("Double", "12", 12.0, 12.0),
    ("Double", "-1.5e-3", -0.0015, -0.0015),
    ("Decimal", "0.00", Decimal("0.00"), "0.00"),
    ("Decimal", "0E30", Decimal(0), "0"),
    ("Double", "Infinity", float("inf"), "Infinity"),
    ("Double", "0e-400", 0.0, 0.0),
    ("Double", "-inf", float("-inf"), "-Infinity"),
    ("Decimal", "12.30", Decimal("12.30"), "12.30"),
    ("Decimal", "1e3", Decimal(1000), "1000"),
    ("Decimal", "-0.00", Decimal("0.00"), "0.00"),
    ("Timestamp", "2025-01-31T12:30", NOON, "2025-01-31T12:30:00.000"),
    ("Decimal", 1.5, Decimal("1.5"), "1.5"),
    ("Boolean", "true", True, True),
    ("Boolean", "F", False, False),
    ("Boolean", 1, True, True),
    ("Boolean", True, True, True),
    ("Boolean", False, False, False),
    ("Date", "2024-02-29", date(2024, 2, 29), "2024-02-29"),
    ("Date", "2025-01-31T12:00:00.000", datetime(2025, 1, 31, 12), "2025-01-31T12:00:00.000"),
    ("Decimal", "1" * 38, Decimal("1" * 38), "1" * 38),
    ("Decimal", "0." + "1" * 37, Decimal("0." + "1" * 37), "0." + "1" * 37),
    ("Date", "2025-01-31", date(2025, 1, 31), "2025-01-31"),
    ("Date", "2025-01-31T00:00:00.000", date(2025, 1, 31), "2025-01-31"),
    ("Timestamp", "2025-01-31T12:30:00.000", NOON, "2025-01-31T12:30:00.000"),
    ("Timestamp", "2025-01-31 12:30:00", NOON, "2025-01-31T12:30:00.000"),
    (
        "Timestamp",
        "2025-01-31T12:30:00.123456000",
        datetime(2025, 1, 31, 12, 30, 0, 123456),
        "2025-01-31T12:30:00.123456",
    ),
    ("Timestamp", "2025-01-31", datetime(2025, 1, 31), "2025-01-31T00:00:00.000"),
    ("Timestamp", "2025-01-31T12:30:00Z", NOON, "2025-01-31T12:30:00.000"),
    ("Timestamp", "2025-01-02 01:00:00+02:00", datetime(2025, 1, 1, 23), "2025-01-01T23:00:00.000"),
    ("String", "", "", ""),
    ("String", 1.5, "1.5", "1.5"),
    ("Interval", "1 day", "1 day", "1 day"),
]  # fmt: skip
UNFITTING = [
    ("Int64", "12.5"),
    ("Int64", "9223372036854775808"),
    ("Int64", "1_000"),
    ("Int64", "0x10"),
    ("Int64", " 1"),
    ("Int64", ""),
    ("Int64", "٣"),
    ("Int64", True),
    ("Int64", 1e300),
    ("Double", "1,5"),
    ("Double", "twelve"),
    ("Double", True),
    ("Double", 10**400),
    ("Decimal", "NaN"),
    ("Int32", "12,5"),
    ("Double", "1e400"),
    ("Double", "-1" + "0" * 400),
    ("Double", "0x10"),
    ("Decimal", "1_000"),
    ("Decimal", "1" * 39),
    ("Decimal", "1." + "1" * 38),
    ("Decimal", "1e99999999999"),
    ("Boolean", "yes"),
    ("Boolean", 2),
    ("Date", "31.01.2025"),
    ("Date", "2025-02-30"),
    ("Date", "2025-01-31T25:00:00"),
    ("Date", "2025-02-29"),
    ("Date", "0000-01-01"),
    ("Date", 20250131),
    ("Timestamp", "2025-01-31T25:00:00"),
    ("Timestamp", "2025-01-31T12:30:00.1234567"),
    ("Timestamp", "0001-01-01T00:00:00+10:00"),
    ("Timestamp", "now"),
]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "BATCH_ROWS", BATCH_ROWS)


def read(
    columns: list[dict[str, str]], rows: list[list[Any]], types: Any = "service"
) -> tuple[list[Column], list[list[Any]], list[list[Any]]]:
    """The columns of a result, its values, and the same as plain JSON: as Python reads them, and
    pyarrow the same."""
    kept = TypedRows(columns, types)
    kept.add(rows)
    found = kept.finish()
    values = [list(row) for row in kept.values(found)]
    plain = kept.first_rows(found, len(rows))
    with Spool(columns, types) as spooled:
        spooled.add(rows)
        assert spooled.finish() == found
        assert spooled.first_rows(found, len(rows)) == plain or "NaN" in repr(plain)
        table = spooled.table(found)
        table.validate(full=True)
        arrow = [list(row) for row in zip(*(c.to_pylist() for c in table.columns), strict=True)]
        assert repr(arrow) == repr(values)
    return found, values, plain


def read_one(kind: str, values: list[Any], types: Any = "service") -> tuple[Column, list[Any]]:
    """A column of this type, and its values as plain JSON."""
    [column], _, plain = read([{"name": "a", "type": kind}], [[value] for value in values], types)
    return column, [row[0] for row in plain]


@pytest.mark.parametrize("other", [None, "as sent", "another"])
@pytest.mark.parametrize(("kind", "value", "typed", "json"), FITTING)
def test_value_gets_the_type_of_its_column(
    kind: str, value: Any, typed: Any, json: Any, other: str | None
) -> None:
    """Alone, beside a missing value, and beside the same value in another form."""
    rows = [[value]] if other is None else [[value], [value if other == "another" else None]]
    [column], values, plain = read([{"name": "a", "type": kind}], rows)
    assert (values[0][0], values[0][0].__class__) == (typed, typed.__class__)
    assert plain[0][0] == json
    assert column.note is None


@pytest.mark.parametrize(("kind", "value"), UNFITTING)
def test_strict_names_column_and_row_of_a_value_that_does_not_fit(kind: str, value: Any) -> None:
    columns = [{"name": "a", "type": "String"}, {"name": "b", "type": kind}]
    with pytest.raises(ResultValueError, match=r"row 2, column 'b'") as caught:
        read(columns, [["x", None], ["y", value]], "strict")
    assert (caught.value.column, caught.value.row) == ("b", 2)
    assert kind in str(caught.value)


@pytest.mark.parametrize(("kind", "value"), UNFITTING)
def test_value_that_does_not_fit_makes_its_column_text(kind: str, value: Any) -> None:
    columns = [{"name": "a", "type": "Int64"}, {"name": "b", "type": kind}]
    rows = [["1", None]] * BATCH_ROWS + [["2", value]]
    [a, b], values, plain = read(columns, rows)
    assert (a.kind, a.note) == ("Int64", None)
    assert (b.kind, b.type) == ("String", "String")
    assert b.note is not None
    assert f"row {len(rows)}" in b.note
    assert kind in b.note
    assert [row[0] for row in values] == [1] * BATCH_ROWS + [2]
    sent = value if isinstance(value, str) else json.dumps(value)
    assert (values[-1][1], plain[-1][1]) == (sent, sent)


@pytest.mark.parametrize("at", [0, 1, BATCH_ROWS, 2 * BATCH_ROWS + 5])
def test_late_value_that_does_not_fit_restores_the_earlier_values_as_strings(at: int) -> None:
    sent = ["747", "1.50", "1e3"] * BATCH_ROWS
    sent[at] = "n/a"
    column, plain = read_one("Double", sent)
    assert column.kind == "String"
    assert plain == sent


@pytest.mark.parametrize("at", [0, 1, BATCH_ROWS, 2 * BATCH_ROWS + 5])
def test_one_decimal_makes_an_int32_column_decimal(at: int) -> None:
    sent = ["12", None, "-7"] * BATCH_ROWS
    sent[at] = "12.50"
    column, plain = read_one("Int32", sent)
    assert (column.kind, column.type, column.note) == ("Decimal", "Decimal", None)
    assert (column.precision, column.scale) == (19, 2)
    shown = {"12": "12.00", "-7": "-7.00"}
    assert plain == [shown.get(text or "", text) for text in sent]
    column, _ = read_one("Int32", sent, "strict")
    assert column.kind == "Decimal"


@pytest.mark.parametrize("first", ["decimal", "word"])
def test_int32_column_with_decimals_and_words_becomes_text(first: str) -> None:
    sent = ["12"] * (2 * BATCH_ROWS)
    sent[BATCH_ROWS + 1 if first == "decimal" else 1] = "12.5"
    sent[1 if first == "decimal" else BATCH_ROWS + 1] = "twelve"
    column, plain = read_one("Int32", sent)
    assert column.kind == "String"
    assert column.note is not None
    assert "'twelve'" in column.note
    assert plain == sent


def test_dates_with_a_time_are_timestamps() -> None:
    for kind in ("Date", "Timestamp"):
        column, plain = read_one(kind, ["2025-01-31", "2025-01-31T12:30:00.000"])
        assert (column.kind, column.type) == ("Timestamp", "Timestamp")
        assert plain == ["2025-01-31T00:00:00.000", "2025-01-31T12:30:00.000"]


def test_timestamps_of_a_column_have_one_form() -> None:
    sent = ["2025-01-31T12:30:00", "2025-01-31 12:30:00.5", "2025-01-31T12:30:00Z"]
    _, plain = read_one("Timestamp", sent)
    assert plain == ["2025-01-31T12:30:00.000", "2025-01-31T12:30:00.500", plain[0]]
    _, plain = read_one("Timestamp", [*sent, "2025-01-31T12:30:00.000001"])
    assert {len(text) for text in plain} == {len("2025-01-31T12:30:00.000001")}


@pytest.mark.parametrize(
    ("values", "size"),
    [
        ([], (19, 0)),
        ([None], (19, 0)),
        (["0"], (19, 0)),
        (["0.00"], (19, 2)),
        (["12.5", "3.25"], (19, 2)),
        (["1" * 17, "0.01"], (19, 2)),
        (["1" * 18, "0.01"], (38, 2)),
        (["1" * 36, "0.01"], (38, 2)),
        (["1.5e-3", "2E2"], (19, 4)),
        (["0E30"], (19, 0)),
    ],
)
def test_decimals_have_the_digits_that_their_values_need(
    values: list[Any], size: tuple[int, int]
) -> None:
    column, _ = read_one("Decimal", values)
    assert (column.precision, column.scale) == size
    assert column.note is None


def test_decimals_that_need_too_many_digits_together_are_text() -> None:
    sent = ["1" * 37, "0.01"]
    column, plain = read_one("Decimal", sent)
    assert column.kind == "String"
    assert plain == sent


def test_types_text_keeps_every_value_as_it_was_sent() -> None:
    columns = [{"name": "a", "type": "Int64"}, {"name": "b", "type": "Date"}]
    rows = [["twelve", "0000"], [None, "2025-01-01"]]
    found, values, plain = read(columns, rows, "text")
    assert values == plain == rows
    assert [column.described() for column in found] == columns


def test_author_can_set_the_type_of_single_columns() -> None:
    columns = [{"name": name, "type": "String"} for name in ("at", "price", "total", "note")]
    types = {"at": "timestamp", "price": "DECIMAL", "total": "decimal(12, 3)"}
    rows = [["2025-01-31T12:30:00.000", "1.5", "2", "1"], [None, "20", "1.5000", "x"]]
    found, values, _ = read(columns, rows, types)
    assert values == [
        [datetime(2025, 1, 31, 12, 30), Decimal("1.5"), Decimal(2), "1"],
        [None, Decimal(20), Decimal("1.5"), "x"],
    ]
    assert [column.type for column in found] == ["Timestamp", "Decimal", "Decimal", "String"]
    assert [(c.precision, c.scale) for c in found[1:3]] == [(19, 1), (12, 3)]


@pytest.mark.parametrize(
    ("said", "value"),
    [
        ("timestamp", "soon"),
        ("date", "2025-01-31T12:00:00.000"),
        ("int64", "1.5"),
        ("decimal(4, 2)", "123.4"),
        ("decimal(4, 2)", "1.234"),
    ],
)
def test_value_that_does_not_fit_the_requested_type_keeps_the_column_text(
    said: str, value: str
) -> None:
    columns = [{"name": "a", "type": "String"}]
    [column], values, _ = read(columns, [[value]], {"a": said})
    assert (column.kind, values) == ("String", [[value]])
    assert column.note is not None
    assert column.note.startswith("types= asks for ")
    with pytest.raises(ResultValueError, match="row 1, column 'a'"):
        read(columns, [[value]], {"a": said, "*": "strict"})


def test_star_sets_the_type_of_all_other_columns() -> None:
    columns = [{"name": "a", "type": "String"}, {"name": "b", "type": "Int64"}]
    _, values, _ = read(columns, [["1", "2"]], {"a": "integer", "*": "text"})
    assert values == [[1, "2"]]


def test_type_for_a_column_that_the_result_lacks_is_refused() -> None:
    with pytest.raises(ResultValueError, match=r"'At', which the result does not have\. .* 'at'"):
        read([{"name": "at", "type": "String"}], [], {"At": "timestamp"})


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ("mine", "must be one of service, strict, text"),
        (7, "must be one of service, strict, text, or a dict of column names"),
        ({"a": "money"}, "'a' the unknown type 'money'; the types are int64, double"),
        ({"a": "decimal(39, 2)"}, "a precision of 1 to 38"),
        ({"a": "decimal(4, 5)"}, "a precision of 1 to 38"),
        ({"a": None}, "both strings"),
        ({1: "date"}, "both strings"),
        ({"*": "date"}, "must be one of service, strict, text, not 'date'"),
    ],
)
def test_bad_types_are_refused(types: Any, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        ColumnTypes.parse(types)


FORMS = {
    "Int64": r"[-+ ]?(0x)?[0-9_]{0,21}",
    "Int32": r"[-+]?[0-9]{1,20}(\.[0-9]{0,3})?",
    "Double": r"[-+ ]?([0-9]{0,20}\.?[0-9]{0,20}([eE][-+]?[0-9]{0,3})?|nan|INF|Infinity)",
    "Decimal": r"[-+]?[0-9]{0,40}(\.[0-9]{0,20})?([eE][-+]?[0-9]{1,3})?",
    "Boolean": r"(?i)true|false|t|f|0|1|yes|10",
    "Date": r"([02][0-9]{3}|[0-9]{1,5})-[0-1]?[0-9]-[0-3]?[0-9](T00:00:00)?",
    "Timestamp": (
        r"(0000|20[0-9]{2})-(01|12)-[0-3][0-9]"
        r"([T ][0-2][0-9](:[0-6][0-9](:[0-6][0-9](\.[0-9]{0,8})?)?)?)?(Z|[-+]01:?00)?"
    ),
    "String": r".{0,5}",
}
USUAL = {
    "Int64": ["0", "-12", "9223372036854775807"],
    "Int32": ["7", "-12.50"],
    "Double": ["0", "-1.50", "747", "1e5"],
    "Decimal": ["-12.30", "0", "1" * 20 + "." + "1" * 17],
    "Boolean": ["true", "false"],
    "Date": ["2025-01-31", "0001-01-01"],
    "Timestamp": ["2025-01-31T12:30:00.000", "0001-01-01T00:00:00.123"],
    "String": ["", "a\nb", "ü", "\0"],
}


@pytest.mark.parametrize("kind", FORMS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(data=st.data(), most=st.integers(1, 3))
def test_python_and_pyarrow_read_the_same_values(kind: str, data: st.DataObject, most: int) -> None:
    """Types, notes and values, whatever comes, and in batches of any size."""
    usual = st.none() | st.sampled_from(USUAL[kind])
    odd = st.from_regex(FORMS[kind], fullmatch=True) | st.text() | st.integers() | st.floats()
    sent = data.draw(st.lists(usual, max_size=4)) + data.draw(st.lists(odd | usual, max_size=3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spool, "BATCH_ROWS", most)
        _, plain = read_one(kind, sent)
        assert [value is None for value in plain] == [value is None for value in sent]
        json.dumps(plain)
        size = "decimal(6, 2)" if kind == "Decimal" else None
        if size:
            read_one(kind, sent, {"a": size})


def test_result_beyond_the_memory_limit_goes_to_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spool, "MEMORY_BYTES", 1000)
    sent = [str(number) for number in range(3 * BATCH_ROWS)]
    sent[-1] = "12.5"
    column, plain = read_one("Int32", sent)
    assert (column.kind, plain[1], plain[-1]) == ("Decimal", "1.0", "12.5")


@pytest.mark.parametrize(
    ("column_type", "name"),
    [
        ("Int64", "Int64"),
        ({"Date": False}, "Date"),
        ({"Date": True}, "Date"),
        ({"Interval": "MonthDayNano"}, "Interval"),
        ({"List": {"name": "item", "data_type": "Utf8"}}, "List"),
        ({"Decimal": [10, 2]}, "Decimal(10, 2)"),
        (None, ""),
        (5, ""),
        ({}, ""),
        ({"a": 1, "b": 2}, ""),
    ],
)
def test_type_name_is_one_word(column_type: Any, name: str) -> None:
    assert type_name(column_type) == name


def test_types_with_parameters_and_in_other_cases_are_known() -> None:
    kinds = [read_one(one, [])[0].kind for one in ("DECIMAL(10, 2)", "int64", "Unheard", "")]
    assert kinds == ["Decimal", "Int64", "String", "String"]


@pytest.mark.parametrize(
    ("values", "kind", "plain"),
    [
        ([True, None], "Boolean", [True, None]),
        ([5, None, 7], "Int64", [5, None, 7]),
        ([5, 1.5], "Double", [5.0, 1.5]),
        ([*[5] * BATCH_ROWS, 1.5], "Double", [*[5.0] * BATCH_ROWS, 1.5]),
        ([5, True], "String", ["5", "true"]),
        ([5, "x"], "String", ["5", "x"]),
        (["5", None], "String", ["5", None]),
        ([None, [1]], "String", [None, "[1]"]),
        ([*[5] * BATCH_ROWS, "x"], "String", [*["5"] * BATCH_ROWS, "x"]),
    ],
)
def test_column_without_a_declared_type_has_that_of_its_json_values(
    values: list[Any], kind: str, plain: list[Any]
) -> None:
    column, found = read_one("", values, "strict")
    assert (column.kind, found) == (kind, plain)
    assert column.note is None
    assert read_one("", values, "text")[0].kind == "String"
