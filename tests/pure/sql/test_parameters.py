"""Parameters of SQL: a literal reads as the value, and no value is ever anything but a literal.

Two readers that share nothing with the client judge that: SQLite, on which the sandbox runs SQL,
and the sandbox's own expression for what is not code.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.resources.sql.parameters import bind_parameters
from airflow_provider_platform.sandbox.state.warehouse import Warehouse

WAREHOUSE = Warehouse()
NOT_CODE = re.compile(r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`""", re.DOTALL)
"""Comments, strings and quoted names of SQL."""

WORDS = st.text(
    alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30
)
EVIL = st.text(alphabet="'\"\\`$%s()-/*;, \n\tEeU&xa1", max_size=20)
TEXTS = WORDS | EVIL


def rows(sql: str, parameters: Any) -> list[list[Any]]:
    return WAREHOUSE.query(bind_parameters(sql, parameters), limit=100).rows


@given(TEXTS, TEXTS)
@example("' OR 1=1 --", "\\'; DROP TABLE orders; --")
def test_bound_strings_are_read_unchanged(one: str, other: str) -> None:
    sql = "SELECT %(a)s AS a, '100 %%' AS b, %(c)s AS c, %(a)s = %(c)s AS d"
    expected = [[one, "100 %", other, int(one == other)]]
    assert rows(sql, {"a": one, "c": other, "not used": 1}) == expected
    assert rows("SELECT %s, %s", [one, other]) == [[one, other]]


@given(st.integers(-(2**63), 2**63 - 1), st.booleans())
def test_bound_integers_and_booleans_are_read_unchanged(number: int, flag: bool) -> None:
    assert rows("SELECT 7-%s, %s, %s", [0, number, flag]) == [[7, number, int(flag)]]


@given(st.integers(-(10**9), 10**9))
def test_negative_number_after_a_minus_does_not_begin_a_comment(number: int) -> None:
    assert rows("SELECT 5-%s+1, 1 AS last", [number]) == [[5 - number + 1, 1]]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_have_all_digits_and_no_exponent(number: float) -> None:
    literal = bind_parameters("%s", [number])
    assert float(literal) == number
    assert "e" not in literal.lower()


@given(st.decimals(allow_nan=False, allow_infinity=False, places=12))
def test_decimals_have_all_digits_and_no_exponent(number: Decimal) -> None:
    literal = bind_parameters("%s", [number])
    assert Decimal(literal) == number
    assert "e" not in literal.lower()


@given(st.datetimes(), st.dates())
def test_bound_times_have_the_services_format(moment: datetime, day: date) -> None:
    [[found, found_day]] = rows("SELECT %s, %s", [moment, day])
    assert datetime.fromisoformat(found) == moment
    assert (len(found), found[10]) == (26 if moment.microsecond % 1000 else 23, "T")
    assert found_day == day.isoformat()


def test_times_with_a_zone_are_given_in_the_zone_of_the_query() -> None:
    moment = datetime(2026, 1, 1, 12, tzinfo=UTC)
    assert bind_parameters("%s", [moment]) == "'2026-01-01T12:00:00.000'"
    assert bind_parameters("%s", [moment], "Europe/Paris") == "'2026-01-01T13:00:00.000'"
    assert bind_parameters("%s", [datetime(2026, 1, 1)], "Europe/Paris") == (  # noqa: DTZ001
        "'2026-01-01T00:00:00.000'"
    )
    with pytest.raises(PlatformInputError, match="does not know the query's time zone 'Mars/Base'"):
        bind_parameters("%s", [moment], "Mars/Base")


class Status(StrEnum):
    DELIVERED = "delivered"


class Level(IntEnum):
    HIGH = 3


@pytest.mark.parametrize(
    ("value", "literal"),
    [
        (None, "NULL"),
        (True, "TRUE"),
        (Status.DELIVERED, "'delivered'"),
        (Level.HIGH, "3"),
        (1e16, "10000000000000000"),
        (5e-7, "0.0000005"),
        (-0.5, "-0.5"),
        (Decimal("1E+3"), "1000"),
        (UUID(int=1), "'00000000-0000-0000-0000-000000000001'"),
        ("O'Brien", "'O''Brien'"),
        ("back\\slash", "'back\\slash'"),
        ("100 %s", "'100 %s'"),
    ],
)
def test_each_type_of_value_has_its_literal(value: Any, literal: str) -> None:
    assert bind_parameters("%s", [value]) == literal
    assert bind_parameters("%(a)s", {"a": value}) == literal


@given(st.lists(EVIL, min_size=1, max_size=5))
def test_bound_list_works_after_in(values: list[str]) -> None:
    for sql in ("%(v)s IN %(all)s", "%(v)s in (%(all)s)", "%(v)s IN\n( %(all)s )"):
        for value in values:
            assert rows(f"SELECT {sql}", {"v": value, "all": tuple(values)}) == [[1]]
        assert rows(f"SELECT {sql}", {"v": "nobody", "all": set(values)}) == [[0]]


def test_a_set_makes_the_same_sql_every_time() -> None:
    assert bind_parameters("a IN %s", [{"c", "a", "b"}]) == "a IN ('a', 'b', 'c')"


CODE = ["%s", "%s", "%s", " ", " ", "\n", ",", "(", ")", "=", "-", "+", "/", "*", "a", "E", "IN"]
QUOTED = ["'it''s'", "'50 %%'", '"n ""%%"', "`n`", "-- c' %s\n", "/* ' %s */", "1", "::", "%%"]


def bound_to(sql: str, value: str) -> tuple[str, int] | None:
    """The SQL with the value for every placeholder, and how many those are; None where no number
    of values fits."""
    for number in range(13):
        try:
            return bind_parameters(sql, [value] * number), number
        except PlatformInputError:
            continue
    return None


@given(st.lists(st.sampled_from(CODE + QUOTED), max_size=12), EVIL)
@example(["%s", "'it''s'"], "a")
@example(["'it''s'", "%s", "%s", '"n ""%%"'], "'")
def test_bound_value_never_changes_the_sql_around_it(pieces: list[str], evil: str) -> None:
    """Without strings, names and comments, the SQL with an evil value is the SQL with a plain
    one; so a value neither ends its literal nor grows together with a neighbour."""
    sql = "".join([*pieces, " "])
    plain, bad = bound_to(sql, "plain"), bound_to(sql, evil)
    if plain is None or bad is None:
        assert plain == bad
        return
    assert NOT_CODE.sub(" x ", bad[0]) == NOT_CODE.sub(" x ", plain[0])
    quoted = "'" + evil.replace("'", "''") + "'"
    literals = [text for text in NOT_CODE.findall(bad[0]) if text == quoted]
    assert len(literals) >= bad[1]


def test_percent_signs_without_parameters_stay() -> None:
    sql = "SELECT 10 % 3, '%s', '100%' FROM t WHERE a LIKE 'A%'"
    assert bind_parameters(sql, None) == sql


def test_comments_stay_as_they_are() -> None:
    sql = "SELECT %(a)s -- and b = %(b)s, 100%\n/* %s */"
    assert bind_parameters(sql, {"a": 1}) == "SELECT 1 -- and b = %(b)s, 100%\n/* %s */"


@pytest.mark.parametrize(
    ("sql", "parameters", "said"),
    [
        ("SELECT '%s'", ["a"], "the SQL has %s inside quotes"),
        ('SELECT "%(a)s"', {"a": 1}, "the SQL has %(a)s inside quotes"),
        ("SELECT 'open %s", ["a"], "the SQL has ' with no end"),
        ("SELECT /* /* */ %s */", ["a"], "or a comment inside a comment"),
        ("SELECT /* %s", ["a"], "the SQL has /* with no end"),
        ("SELECT E'\\'%s'", ["a"], "the SQL has %s inside quotes"),
        ("SELECT $a$ $$ %s $a$", ["a"], "the SQL has %s inside quotes"),
        ("SELECT $$%s$$", ["a"], "the SQL has %s inside quotes"),
        ("SELECT %s, %s", ["a"], "the SQL has more placeholders than 1 parameters"),
        ("SELECT %s", ["a", "b"], "the SQL has 1 placeholders for 2 parameters"),
        ("SELECT %s", [], "the SQL has more placeholders than 0 parameters"),
        ("SELECT %(b)s", {"a": 1}, "the SQL has %(b)s, but parameters have no 'b'"),
        ("SELECT %s", {"a": 1}, "parameters are a mapping, so placeholders must be %(name)s"),
        ("SELECT %(a)s", [1], "parameters are a list, so placeholders must be %s"),
        ("SELECT 10 % 3", [], "'% 3', which is not a placeholder"),
        ("SELECT 'A%'", {}, "write a percent sign as %%"),
        ("SELECT %d", [1], "'%d', which is not a placeholder"),
        ("SELECT %start", ["a"], "'%start', which is not a placeholder"),
        ("SELECT %s %", ["a"], "'%', which is not a placeholder"),
        ("SELECT %s", "a", "must be a list (for %s) or a mapping (for %(name)s)"),
        ("SELECT %s", [b"a"], "parameter 1 is of type bytes; it must be a str"),
        ("SELECT %s", [{"a": 1}], "parameter 1 is of type dict"),
        ("SELECT %s", [timedelta(1)], "parameter 1 is of type timedelta"),
        ("SELECT %s", [float("nan")], "parameter 1 is NaN"),
        ("SELECT %s", [Decimal("-Infinity")], "parameter 1 is -Infinity"),
        ("SELECT %s", [Decimal("sNaN")], "parameter 1 is sNaN"),
        ("SELECT %s", [Decimal("1E+999999")], "parameter 1 has more than 400 digits"),
        ("SELECT %s", [10**5000], "parameter 1 has more than 400 digits"),
        ("SELECT %s", ["a\0b"], "parameter 1 contains a NUL character"),
        ("SELECT %s", ["\ud800"], "half of a surrogate pair"),
        ("SELECT a = %s", [[1, 2]], "is a list, and a list is allowed only after IN"),
        ("SELECT a IN (%s, %s)", [[1], 2], "is a list, and a list is allowed only after IN"),
        ("SELECT a IN %(a)s", {"a": 1}, "parameter %(a)s follows IN and must be a list"),
        ("SELECT a IN %s", [[]], "is an empty list, and IN () is not valid SQL"),
        ("SELECT a IN %s", [[1, None]], "contains None, and IN never matches NULL"),
        ("SELECT a IN %s", [[[1]]], "an entry of parameter 1 is of type list"),
    ],
)
def test_parameters_that_do_not_fit_the_sql_are_refused(
    sql: str, parameters: Any, said: str
) -> None:
    with pytest.raises(PlatformInputError) as error:
        bind_parameters(sql, parameters)
    assert said in error.value.message
    assert error.value.message.startswith("Nothing was sent: ")
    assert error.value.field == "parameters"


def test_error_about_parameters_contains_no_value() -> None:
    with pytest.raises(PlatformInputError) as error:
        bind_parameters("SELECT %(password)s", {"password": ["hunter2"]})
    assert "hunter2" not in error.value.message


def test_missing_moment_of_pandas_is_refused() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(PlatformInputError, match=r"parameter 1 is not a point in time \(NaT\)"):
        bind_parameters("SELECT %s", [pandas.NaT])
