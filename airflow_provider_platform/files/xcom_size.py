"""How many rows of a result go to XCom.

XCom is a column of Airflow's database, which every task that reads the result loads as a whole. A
number of rows alone does not bound it: a hundred rows can be megabytes. So the first rows are kept
that fit into a number of bytes as JSON, few if a file has them all.
"""

from __future__ import annotations

import json
from typing import Any

XCOM_BYTES = 256 * 1024
"""Bytes that the rows of a result take in XCom at most, if nothing else is said."""
XCOM_BYTES_WITH_FILE = 16 * 1024
"""The same where a file has the rows too."""


def xcom_bytes(wanted: int | None, *, in_file: bool) -> int:
    """The bytes that rows may take: what the author wants, else the default."""
    if wanted is not None:
        return wanted
    return XCOM_BYTES_WITH_FILE if in_file else XCOM_BYTES


def rows_that_fit(rows: list[list[Any]], most: int) -> list[list[Any]]:
    """The first of these rows that take at most `most` bytes together, as the JSON that is
    stored."""
    left = most
    for number, row in enumerate(rows):
        left -= _size(row)
        if left < 0:
            return rows[:number]
    return rows


def fit_queries(queries: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The queries of a chat's result with rows that take at most `most` bytes together. What small
    queries leave is for larger ones."""
    sizes = [sum(map(_size, query["rows"])) for query in queries]
    fitting, left = [*queries], most
    by_size = sorted(range(len(queries)), key=sizes.__getitem__)
    for done, at in enumerate(by_size):
        share = left // (len(queries) - done)
        query = queries[at]
        rows = query["rows"] if sizes[at] <= share else rows_that_fit(query["rows"], share)
        if len(rows) < len(query["rows"]):
            fitting[at] = {**query, "rows": rows}
        left -= min(sizes[at], share)
    return fitting


def _size(row: list[Any]) -> int:
    return len(json.dumps(row)) + len(", ")
