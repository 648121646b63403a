"""Comparisons of numbers: which rows belong together, what counts as moved, and what is refused."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError, ResultEmptyError
from airflow_provider_platform.resources.evaluations.equal_results import Result
from airflow_provider_platform.resources.evaluations.moved_numbers import (
    MAX_MOVED,
    compare_numbers,
    sentence,
)
from tests.support.hypothesis_profiles import examples


def result(names: str, *rows: list[Any]) -> Result:
    """A result; a name with a capital is a column of strings."""
    types = [{"name": n, "type": "String" if n.istitle() else "Double"} for n in names.split()]
    return Result(types, rows)


def compared(
    production: Result, branch: Result, keys: list[str] | None = None, limit: str = "0"
) -> dict[str, Any]:
    return compare_numbers(production, branch, keys, Decimal(limit))


OLD = result("Country year revenue", ["Spain", "2024", "100"], ["Italy", "2024", "50"])


def test_moved_number_is_named_with_its_row_and_change() -> None:
    new = result("Country year revenue", ["Italy", "2024", "50.0"], ["Spain", "2024", "98.5"])
    found = compared(OLD, new)
    [move] = found["moved"]
    assert move == {
        "key": {"Country": "Spain"},
        "column": "revenue",
        "production": "100",
        "branch": "98.5",
        "percent": -1.5,
    }
    assert (found["verdict"], found["compared"]) == ("moved", 4)
    said = sentence({"name": "sales", **found})
    assert said == "sales: revenue of Country=Spain is 98.5, in production 100 (-1.5 %)."


@pytest.mark.parametrize(
    ("limit", "verdict"), [("0.015", "within_tolerance"), ("0.0149", "moved"), ("0", "moved")]
)
def test_tolerance_is_relative_to_production_and_includes_its_limit(
    limit: str, verdict: str
) -> None:
    new = result("Country year revenue", ["Spain", "2024", "101.5"], ["Italy", "2024", "50"])
    assert compared(OLD, new, limit=limit)["verdict"] == verdict


@pytest.mark.parametrize(
    ("before", "after"), [("0", "0.001"), (None, "0"), ("5", None), ("5", "five")]
)
def test_change_without_a_percentage_is_beyond_every_tolerance(before: Any, after: Any) -> None:
    found = compared(result("n", [before]), result("n", [after]), ["n"][:0], limit="1e9")
    assert found["verdict"] == "moved"


@pytest.mark.parametrize(
    ("before", "after"),
    [("31800.9", "31800.899999999998"), (None, None), ("NaN", "NaN"), ("0", "1e-12")],
)
def test_noise_of_floats_and_equal_nulls_are_no_difference(before: Any, after: Any) -> None:
    sides = result("n m", [before, "1"]), result("n m", [after, "1"])
    assert compared(*sides)["verdict"] == "same"


@pytest.mark.parametrize("rows", [[], [["a", None]], [[None, None]]])
def test_results_without_a_value_on_both_sides_are_refused(rows: list[list[Any]]) -> None:
    names = "n m" if rows == [[None, None]] else "n"
    rows = [row[-len(names.split()) :] for row in rows]
    nothing = result(names, *rows)
    with pytest.raises(ResultEmptyError, match="no row on either side, or nothing but nulls"):
        compared(nothing, nothing, [])


def test_same_numbers_are_named_with_their_columns_and_values() -> None:
    said = sentence({"name": "sales", **compared(OLD, OLD)})
    numbers = (
        "year of Country=Spain is 2024; revenue of Country=Spain is 100; year of Country=Italy"
    )
    assert said == (f"sales: 4 numbers are the same (year, revenue by Country): {numbers} is 2024.")


@pytest.mark.parametrize(
    ("new", "words"),
    [
        (result("Country year revenue", ["Spain", "2024", "100"]), "missing rows: 1"),
        (result("Country year revenue", *OLD.rows, ["Malta", "2024", "1"]), "new rows: 1"),
    ],
)
def test_rows_of_one_side_are_differences(new: Result, words: str) -> None:
    found = compared(OLD, new, limit="1e9")
    assert found["verdict"] == "moved"
    assert sentence({"name": "q", **found}) == f"q: {words}."


def test_numbers_can_be_keys_if_they_are_named() -> None:
    years = result("year n", ["2024", "1"], ["2025", "2"])
    with pytest.raises(PlatformInputError, match=r"identify a row \(none, because all columns"):
        compared(years, years)
    assert compared(years, years, ["year"])["verdict"] == "same"
    with pytest.raises(PlatformInputError, match=r"identify a row \(month\)"):
        compared(years, years, ["month"])


@pytest.mark.parametrize(
    ("names", "other_names"), [("n n", "n n"), ("n m", "n"), ("n", "n m"), ("n", "m")]
)
def test_results_without_the_same_columns_are_refused(names: str, other_names: str) -> None:
    one, other = (result(all_names, ["1"] * 2) for all_names in (names, other_names))
    with pytest.raises(PlatformInputError, match=f"has {names.replace(' ', ', ')}; the branch"):
        compared(one, other)


def test_whole_numbers_have_no_noise() -> None:
    old, new = result("n", ["10000000000"]), result("n", ["10000000001"])
    assert compared(old, new)["verdict"] == "moved"


def test_largest_moves_come_first_and_are_bounded() -> None:
    old = result("Key n", *(["k" + str(at), "100"] for at in range(40)))
    new = result("Key n", *(["k" + str(at), str(100 + at)] for at in range(40)))
    found = compared(old, new)
    assert (found["moved_count"], len(found["moved"])) == (39, MAX_MOVED)
    assert found["moved"][0]["percent"] == 39
    assert sentence({"name": "q", **found}).endswith("; further moved numbers: 36.")


ROWS = st.dictionaries(
    st.sampled_from("abcdef"), st.integers(-1000, 1000) | st.none(), min_size=1, max_size=6
)


@settings(max_examples=examples(200))
@given(ROWS, ROWS, st.randoms())
def test_each_side_is_accounted_for(old: Any, new: Any, random: Any) -> None:
    one, two = ([[key, value] for key, value in rows.items()] for rows in (old, new))
    random.shuffle(two)
    found = compared(result("Key n", *one), result("Key n", *two))
    assert found["rows_missing"] == len(old.keys() - new.keys())
    assert found["rows_more"] == len(new.keys() - old.keys())
    moved = {key for key in old.keys() & new.keys() if old[key] != new[key]}
    assert {move["key"]["Key"] for move in found["moved"]} == moved
    assert (found["verdict"] == "same") == (old == new)


def test_column_with_nan_is_no_key() -> None:
    found = compared(result("Key n", ["a", "NaN"]), result("Key n", ["a", "7"]))
    assert (found["columns"], found["keys"]) == (["n"], ["Key"])
    [move] = found["moved"]
    assert (move["production"], move["branch"], move["percent"]) == ("NaN", "7", None)


def test_moved_number_is_shown_without_noise() -> None:
    found = compared(result("n", ["189.64999999999998"]), result("n", ["379.30000000000007"]))
    [move] = found["moved"]
    assert (move["production"], move["branch"], move["percent"]) == ("189.65", "379.3", 100)
