"""Attacks on both comparers: of an agent's result, and of a branch's numbers."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.resources.evaluations.equal_results import Result, compare, digest
from airflow_provider_platform.resources.evaluations.moved_numbers import compare_numbers

VALUES = st.sampled_from([None, "1", "2", "x"])


def result(columns: str, *rows: list[Any], why_truncated: str | None = None) -> Result:
    """A result with columns as "name:type, name:type"."""
    pairs = [one.split(":") for one in columns.split(", ")]
    return Result([{"name": name, "type": kind} for name, kind in pairs], rows, why_truncated)


def moved(production: Result, branch: Result, limit: str = "0") -> dict[str, Any]:
    return compare_numbers(production, branch, None, Decimal(limit))


@given(st.data())
def test_verdict_is_that_of_trying_every_order_of_columns(data: st.DataObject) -> None:
    wide = data.draw(st.integers(1, 4))
    wider = data.draw(st.integers(wide, 5))
    count = data.draw(st.integers(0, 5))
    row = st.tuples(*[VALUES] * wide)
    expected = data.draw(st.lists(row, min_size=count, max_size=count))
    actual = data.draw(st.lists(st.tuples(*[VALUES] * wider), min_size=count, max_size=count))
    if data.draw(st.booleans()):
        places = data.draw(st.permutations(range(wider)))
        whole = [(*one, *other[wide:]) for one, other in zip(expected, actual, strict=True)]
        actual = data.draw(st.permutations([tuple(one[at] for at in places) for one in whole]))
    same = any(
        Counter(tuple(one[at] for at in places) for one in actual) == Counter(expected)
        for places in permutations(range(wider), wide)
    )
    left = result(", ".join(f"e{n}:Double" for n in range(wide)), *map(list, expected))
    right = result(", ".join(f"a{n}:Double" for n in range(wider)), *map(list, actual))
    assert (compare(left, right).verdict == "pass") == same
    if wide == wider:
        assert (digest(left) == digest(right)) == (Counter(expected) == Counter(actual))


def test_result_that_was_cut_above_the_expected_rows_is_wrong() -> None:
    """However many rows are missing: more rows than expected are there already."""
    expected = result("revenue:Double", ["7"])
    actual = result("id:Int32", *([str(n)] for n in range(100)), why_truncated="It has 100 rows.")
    assert compare(expected, actual).verdict == "fail"


def test_whole_number_that_moves_by_one_has_moved() -> None:
    old, new = result("n:Int64", ["10000000001"]), result("n:Int64", ["10000000002"])
    assert moved(old, new)["verdict"] == "moved"


@pytest.mark.parametrize("value", ["1e30", "100000000000000000000.00", "2e400"])
def test_moved_numbers_fit_into_a_message_of_airflow(value: str) -> None:
    """MessagePack, in which the supervisor gets an XCom, has whole numbers of 64 bits."""
    import msgspec

    old = result("k:String, n:Double", ["a", "1"])
    msgspec.msgpack.encode(moved(old, result("k:String, n:Double", ["a", value])))


@pytest.mark.parametrize("tolerance", ["nan", {"n": float("nan")}])
def test_tolerance_that_is_no_number_is_refused(tolerance: Any) -> None:
    from airflow_provider_platform.operators.compare import PlatformCompareOperator

    with pytest.raises(Exception, match="tolerance"):
        PlatformCompareOperator(
            task_id="t", branch_name="b", queries=["SELECT 1"], tolerance=tolerance
        )
