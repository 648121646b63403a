"""The rows of a result in XCom are limited in bytes and in number."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.files.xcom_size import fit_queries, rows_that_fit, xcom_bytes

VALUES = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=30))
ROWS = st.lists(st.lists(VALUES, min_size=1, max_size=3), max_size=12)


@given(ROWS, st.integers(0, 600))
def test_first_rows_that_fit_are_kept(rows: list[list[Any]], most: int) -> None:
    kept = rows_that_fit(rows, most)
    assert kept == rows[: len(kept)]
    assert len(json.dumps(kept)) <= max(most, len("[]"))
    if len(kept) < len(rows):
        assert len(json.dumps(rows[: len(kept) + 1])) > most - len(", ")


@given(st.lists(ROWS, max_size=5), st.integers(0, 1500))
def test_queries_share_the_xcom_bytes(tables: list[list[list[Any]]], most: int) -> None:
    queries = [{"sql": str(at), "rows": rows, "truncated": False} for at, rows in enumerate(tables)]
    found = fit_queries(queries, most)
    assert [query["sql"] for query in found] == [query["sql"] for query in queries]
    assert sum(len(json.dumps(query["rows"])) - len("[]") for query in found) <= most
    for query, before in zip(found, queries, strict=True):
        assert query["rows"] == before["rows"][: len(query["rows"])]
        assert query["truncated"] is False, "the service sent these rows"
    if sum(len(json.dumps(row)) + 2 for rows in tables for row in rows) <= most:
        assert found == queries


def test_bytes_left_by_small_queries_go_to_larger_ones() -> None:
    small = {"rows": [[1]], "truncated": False}
    large = {"rows": [["x" * 90]] * 10, "truncated": False}
    found = fit_queries([large, small], 500)
    assert (len(found[0]["rows"]), found[1]) == (5, small)


def test_rows_that_are_in_a_file_get_fewer_xcom_bytes() -> None:
    assert xcom_bytes(None, in_file=True) < xcom_bytes(None, in_file=False) == 262_144
    assert xcom_bytes(7, in_file=True) == xcom_bytes(7, in_file=False) == 7
