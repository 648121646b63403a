"""Two results are compared: the service's documented rules, and properties of every result."""

from __future__ import annotations

import re
from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import ResultNotComparableError
from airflow_provider_platform.resources.evaluations.equal_results import (
    Comparison,
    Result,
    compare,
    digest,
    same_number,
    shown_number,
)
from tests.support.hypothesis_profiles import examples

if TYPE_CHECKING:
    import random


def result(columns: str, *rows: list[Any], why_truncated: str | None = None) -> Result:
    """A result with columns as "name:type, name:type"."""
    named = [
        dict(zip(("name", "type"), one.split(":"), strict=True)) for one in columns.split(", ")
    ]
    return Result(named, rows, why_truncated)


SALES = "country:String, revenue:Int32"


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("Double", "12.50", "12.5"),
        ("Int32", "12.50", 12.5),
        ("Double", "31804.2", "31799"),
        ("Double", "12345", "12354.9"),
        ("Double", "0.0", "-0"),
        ("Double", "1e3", "1000"),
        ("Decimal(10, 2)", "0.00012344", "0.00012336"),
        ("", "7", 7),
        ("Boolean", True, "true"),
        ("Boolean", "FALSE", False),
        ("String", "2020-01-01", "2020-01-01T00:00:00.000"),
        ("Date", "2020-01-01 00:00:00", "2020-01-01"),
        ("String", None, None),
        ("", {"a": 1}, {"a": 1}),
    ],
)
def test_values_that_are_equal_by_the_rules_pass(kind: str, one: Any, other: Any) -> None:
    left, right = typed(kind, one), typed(kind, other)
    assert compare(left, right).verdict == compare(right, left).verdict == "pass"
    assert digest(left) == digest(right)


def typed(kind: str, value: Any) -> Result:
    return Result([{"name": "a", "type": kind}], [[value]])


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("Double", "31800.9", "31900"),
        ("Double", "12345", "12344"),
        ("Double", "12", None),
        ("Double", "0", None),
        ("String", "", None),
        ("String", "00123", "123"),
        ("String", "100001", "100002"),
        ("Boolean", True, 1),
        ("Boolean", True, "false"),
        ("String", "2020-01-01", "2020-01-01T00:00:01.000"),
    ],
)
def test_values_that_differ_fail(kind: str, one: Any, other: Any) -> None:
    left, right = typed(kind, one), typed(kind, other)
    assert compare(left, right).verdict == compare(right, left).verdict == "fail"
    assert digest(left) != digest(right)


@pytest.mark.parametrize(
    ("expected", "actual", "reason", "words"),
    [
        (
            result(SALES, ["Spain", "31900"], ["Italy", "1"]),
            result(SALES, ["Spain", "31800.9"], ["Italy", "1"]),
            "value mismatch",
            "Rows: 2 expected, 1 different. revenue of country=Spain is 31800.9, expected 31900.",
        ),
        (
            result("revenue:Double", ["31900"]),
            result("total:Double, n:Double", ["31800", "7"]),
            "value mismatch",
            "Rows: 1 expected, 1 different. revenue is 31800, expected 31900.",
        ),
        (
            result(SALES, ["Spain", "1"], ["Italy", "2"], ["Italy", "2"]),
            result(SALES, ["Spain", "1"], ["Italy", "2"]),
            "row count mismatch",
            "Rows: 3 expected, 1 missing.",
        ),
        (
            result(SALES, ["Spain", "1"]),
            result(SALES, ["Spain", "1"], ["Spain", "1"], ["Malta", None]),
            "unexpected rows",
            "Rows: 1 expected, 2 unexpected.",
        ),
        (
            result(SALES, ["Spain", "1"]),
            result("country:String, city:String", ["Spain", "Madrid"]),
            "missing columns",
            "These expected columns were not found: revenue.",
        ),
        (
            result(SALES, ["Spain", "1"]),
            result("revenue:Double", ["1"]),
            "missing columns",
            "These expected columns were not found: country.",
        ),
        (
            result(SALES),
            result(SALES, ["Spain", "1"]),
            "unexpected rows",
            "Rows: 0 expected, 1 unexpected.",
        ),
    ],
)
def test_failure_says_what_differs(
    expected: Result, actual: Result, reason: str, words: str
) -> None:
    found = compare(expected, actual)
    assert (found.verdict, found.reason, found.difference) == ("fail", reason, words)


def test_columns_of_one_cell_each_are_found_in_any_order() -> None:
    """Each column but the last has the same values, in another row."""
    columns = [*(f"c{at}:Int32" for at in range(12)), "label:String"]
    rows = [[*("1" if at == row else "0" for at in range(12)), f"row {row}"] for row in range(12)]
    expected = result(", ".join(columns), *rows)
    actual = result(", ".join(columns[::-1]), *(row[::-1] for row in rows))
    assert compare(expected, actual).verdict == "pass"


@pytest.mark.parametrize(
    ("columns", "row", "words"),
    [
        ("country:String, year:Int32, total:Int32", ["IT", "2024", "999"], "revenue of country=IT"),
        ("total:Int32, country:String, orders:Int32", ["999", "IT", "7"], "revenue of country=IT"),
    ],
)
def test_column_under_another_name_is_found_by_most_of_its_values(
    columns: str, row: list[Any], words: str
) -> None:
    expected = result(SALES, ["DE", "110"], ["FR", "220"], ["IT", "330"])
    kinds = [one.split(":")[0] for one in columns.split(", ")]
    known = {"year": "2024", "orders": "5"}
    others = [
        [{"country": country, "total": total, **known}[kind] for kind in kinds]
        for country, total in (("DE", "110"), ("FR", "220"))
    ]
    found = compare(expected, result(columns, *others, row))
    assert found.difference == f"Rows: 3 expected, 1 different. {words} is 999, expected 330."


def test_columns_with_the_same_values_still_match_row_by_row() -> None:
    swapped = result("a:Double, b:Double", ["1", "2"], ["2", "1"])
    equal = result("a:Double, b:Double", ["1", "1"], ["2", "2"])
    assert compare(swapped, swapped).verdict == "pass"
    assert compare(swapped, equal).reason == "value mismatch"
    assert digest(swapped) != digest(equal)


@pytest.mark.parametrize("side", [0, 1])
def test_truncated_result_is_never_a_verdict(side: int) -> None:
    sides = [result(SALES, ["Spain", "1"]), result(SALES, ["Spain", "1"])]
    sides[side] = result(SALES, ["Spain", "1"], why_truncated="It has exactly 10000 rows.")
    named = ("expected", "actual")[side]
    with pytest.raises(ResultNotComparableError, match=rf"the {named} result .* exactly 10000"):
        compare(sides[0], sides[1])


def test_search_for_columns_is_bounded() -> None:
    """All rows of even and of odd parity: each choice of columns agrees up to the last column."""
    columns = ", ".join(f"c{at}:Double" for at in range(9))
    rows = [[*map(str, row)] for row in product((0, 1), repeat=9)]
    even, odd = ([row for row in rows if row.count("1") % 2 == odd] for odd in (0, 1))
    with pytest.raises(ResultNotComparableError, match="Select fewer columns"):
        compare(result(columns, *even), result(columns, *odd))
    assert compare(result(columns, *even), result(columns, *even[::-1])).verdict == "pass"


NUMBERS = st.one_of(
    st.integers(-(10**9), 10**9).map(str),
    st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-(10**6), max_value=10**6
    ).map(str),
    st.none(),
)
VALUES = {
    "String": st.one_of(st.sampled_from(["Spain", "Italy", "1", "2020-01-01", ""]), st.none()),
    "Double": NUMBERS,
    "Int32": st.sampled_from(["1", "2", None]),
    "Boolean": st.sampled_from([True, False, None]),
}


@st.composite
def results(draw: st.DrawFn, *, rows: int = 0) -> Result:
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=5))
    row = st.tuples(*(VALUES[kind] for kind in kinds)).map(list)
    found = draw(st.lists(row, min_size=rows, max_size=8))
    columns = [{"name": f"c{at}", "type": kind} for at, kind in enumerate(kinds)]
    return Result(columns, found)


@st.composite
def rearranged(draw: st.DrawFn, given_result: Result) -> Result:
    order = draw(st.permutations(range(len(given_result.columns))))
    rows = draw(st.permutations(given_result.rows))
    columns = [{**given_result.columns[at], "name": f"other{at}"} for at in order]
    return Result(columns, [[row[at] for at in order] for row in rows])


@settings(max_examples=examples(200))
@given(st.data())
def test_order_of_rows_and_columns_and_names_do_not_count(data: st.DataObject) -> None:
    one = data.draw(results())
    two = data.draw(rearranged(one))
    assert compare(one, two).verdict == compare(two, one).verdict == "pass"


@settings(max_examples=examples(200))
@given(results(), st.randoms())
def test_order_of_rows_does_not_change_the_digest(one: Result, chance: random.Random) -> None:
    shuffled = list(one.rows)
    chance.shuffle(shuffled)
    assert digest(Result(one.columns, shuffled)) == digest(one)


@settings(max_examples=examples(200))
@given(st.data())
def test_more_columns_are_ignored(data: st.DataObject) -> None:
    one = data.draw(results())
    extra = data.draw(st.lists(NUMBERS, min_size=len(one.rows), max_size=len(one.rows)))
    at = data.draw(st.integers(0, len(one.columns)))
    columns = [*one.columns]
    columns.insert(at, {"name": "extra", "type": "Double"})
    rows = [[*row[:at], value, *row[at:]] for row, value in zip(one.rows, extra, strict=True)]
    assert compare(one, Result(columns, rows)).verdict == "pass"


@settings(max_examples=examples(200))
@given(results(rows=1), st.data())
def test_changed_number_is_named(one: Result, data: st.DataObject) -> None:
    columns = [*one.columns, {"name": "revenue", "type": "Double"}]
    numbers = data.draw(
        st.lists(st.integers(1, 10**8), min_size=len(one.rows), max_size=len(one.rows), unique=True)
    )
    rows = [[*row, str(number)] for row, number in zip(one.rows, numbers, strict=True)]
    before = Result(columns, rows)
    changed = [list(row) for row in rows]
    changed[0][-1] = str(-numbers[0])
    found = compare(before, Result(columns, changed))
    assert found.verdict == "fail"
    assert found.reason == "value mismatch"
    said = str(found.difference)
    assert said.startswith(f"Rows: {len(rows)} expected, 1 different. revenue of ")
    assert said.endswith(f" is {changed[0][-1]}, expected {rows[0][-1]}.")


@settings(max_examples=examples(200))
@given(st.data())
def test_counts_are_the_same_from_both_sides(data: st.DataObject) -> None:
    row = st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["1", "2"])).map(list)
    one, two = (result(SALES, *data.draw(st.lists(row, min_size=1, max_size=6))) for _ in range(2))
    forth, back = compare(one, two), compare(two, one)
    assert forth.verdict == back.verdict

    def count(word: str, said: str | None) -> int:
        found = re.search(rf"(\d+) {word}", said or "")
        return int(found[1]) if found else 0

    there, here = forth.difference, back.difference
    assert count("missing", there) == count("unexpected", here)
    assert count("unexpected", there) == count("missing", here)
    assert count("different", there) == count("different", here)
    assert count("missing", there) - count("unexpected", there) == len(one.rows) - len(two.rows)


@settings(max_examples=examples(200))
@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**9), max_value=10**9))
def test_number_matches_itself_in_another_form(number: Decimal) -> None:
    forms = [
        str(number),
        f"{number:e}",
        f"{number:f}",
        f"{number:f}" + ("0" if "." in f"{number:f}" else ".0"),
    ]
    assert {verdict(forms[0], form) for form in forms} == {"pass"}


@settings(max_examples=examples(200))
@given(st.floats(1, 9.999).map(lambda x: f"{x:.3f}"), st.integers(-20, 20), st.integers(0, 499))
def test_numbers_with_the_same_four_digits_match(four: str, power: int, noise: int) -> None:
    assert verdict(f"{four}e{power}", f"{four}{noise:03d}e{power}") == "pass"
    assert verdict(f"{four}e{power}", f"{four}5e{power}") == "fail"  # half goes up


def verdict(one: str, other: str) -> str:
    found: Comparison = compare(typed("Double", one), typed("Double", other))
    return found.verdict


NOISY = [
    ("189.64999999999998", "189.65000000000006"),
    ("0", "1e-12"),
    ("-3e-13", "2.8e-14"),
    ("31800.9", "31800.899999999998"),
    ("12345678901.0000001", "12345678901"),
    ("NaN", "nan"),
    ("Infinity", "inf"),
]


@pytest.mark.parametrize(("one", "other"), NOISY)
def test_binary_noise_is_no_difference_for_evaluation_and_comparison(one: str, other: str) -> None:
    assert verdict(one, other) == verdict(other, one) == "pass"
    assert same_number(Decimal(one), Decimal(other))


@pytest.mark.parametrize(
    ("one", "other"),
    [("NaN", "1"), ("inf", "-inf"), ("0", "1e-9"), ("1e-11", "2e-11"), ("NaN", "")],
)
def test_other_small_or_infinite_numbers_are_different(one: str, other: str) -> None:
    assert verdict(one, other) == "fail"


NUMBERS = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12)


@settings(max_examples=examples(300))
@given(NUMBERS, st.integers(-30, 30), st.sampled_from(["0", "1e-16", "1e-13", "1e-11", "1e-5"]))
def test_what_is_the_same_for_a_comparison_is_equal_for_an_evaluation(
    number: Decimal, power: int, relative: str
) -> None:
    one = number.scaleb(power % 20 - 10)
    other = one * (1 + Decimal(relative) * (1 if power > 0 else -1))
    if same_number(one, other):
        assert verdict(str(one), str(other)) == "pass"


@pytest.mark.parametrize(
    ("number", "text"),
    [
        ("189.64999999999998", "189.65"),
        ("50.0", "50"),
        ("1E+3", "1000"),
        ("-0.10", "-0.1"),
        ("NaN", "NaN"),
        ("12345678901.25", "12345678901"),
    ],
)
def test_number_is_shown_without_noise(number: str, text: str) -> None:
    assert shown_number(Decimal(number)) == text


@pytest.mark.parametrize(
    ("rows", "nothing"), [([], True), ([[None, None]], True), ([[None, 0]], False), ([[""]], False)]
)
def test_result_of_no_row_or_of_nulls_is_nothing(rows: list[list[Any]], nothing: bool) -> None:
    assert Result([{"name": "a", "type": "Double"}], rows).is_nothing is nothing
