"""Which numbers differ between the results of one query on two versions of the data model.

The rows of both results are joined by their key columns, and each number is compared with the one
of the same row and column, by the rule of `equal_results` for binary noise. Names of columns count
here, because the same query gives both results; `equal_results` ignores them.
"""

from __future__ import annotations

from decimal import Decimal
from itertools import product
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import (
    PlatformInputError,
    ResultEmptyError,
    ResultNotComparableError,
)
from airflow_provider_platform.client.redaction import shortened
from airflow_provider_platform.resources.evaluations.equal_results import (
    same_number,
    shown_number,
    value_of,
    without_noise,
)

if TYPE_CHECKING:
    from airflow_provider_platform.resources.evaluations.equal_results import Result

VERDICTS = ("same", "within_tolerance", "moved")
MAX_MOVED = 20
SAID = 3
"""The most moved numbers of a query in the result, and the most numbers in words."""

Row = dict[str, Any]


def compare_numbers(
    production: Result, branch: Result, keys: list[str] | None, tolerance: Decimal
) -> dict[str, Any]:
    """Return which numbers differ between the results of one query. Raises PlatformInputError if
    keys or columns do not fit them, ResultNotComparableError if rows may be missing,
    ResultEmptyError if there is nothing to compare."""
    (names, old_rows), (new_names, new_rows) = _read(production), _read(branch)
    if sorted(set(names)) != sorted(new_names):
        raise PlatformInputError(
            "Nothing was compared: both results need the same columns, each with its own name "
            f"(AS). Production has {', '.join(names)}; the branch has {', '.join(new_names)}.",
            field="queries",
        )
    if keys is None:
        rows = [*old_rows, *new_rows]
        numbers = {n for n in names if all(isinstance(row[n], Decimal | None) for row in rows)}
        keys = [name for name in names if name not in numbers]
    old, new = _by_key(old_rows, keys), _by_key(new_rows, keys)
    shared = [key for key in old if key in new]
    columns = [name for name in names if name not in keys]
    missing, more = len(old) - len(shared), len(new) - len(shared)
    compared = [*product(shared, columns)]
    have_values = not (production.is_nothing and branch.is_nothing)
    if not have_values or not (compared or missing or more):
        raise ResultEmptyError(
            "Nothing was compared: the query has no numbers, or no row on either side, or nothing "
            "but nulls. Check its conditions."
        )
    moved = [
        (change, key, name)
        for key, name in compared
        if (change := _change(old[key][name], new[key][name]))
    ]
    moved.sort(key=lambda one: abs(one[0]), reverse=True)
    beyond = missing or more or (moved and abs(moved[0][0]) > tolerance)
    return {
        "verdict": VERDICTS[2 if beyond else bool(moved)],
        "columns": columns,
        "keys": keys,
        "compared": len(compared),
        "moved_count": len(moved),
        "moved": [
            {
                "key": dict(zip(keys, map(_plain, key), strict=True)),
                "column": name,
                "production": _plain(old[key][name]),
                "branch": _plain(new[key][name]),
                "percent": round(float(change * 100), 4) if change.is_finite() else None,
            }
            for change, key, name in moved[:MAX_MOVED]
        ],
        "rows_missing": missing,
        "rows_more": more,
        "numbers": [
            {"key": dict(zip(keys, map(_plain, key), strict=True)), "column": name}
            | {"production": _plain(old[key][name]), "branch": _plain(new[key][name])}
            for key, name in compared[:SAID]
        ],
    }


def _read(result: Result) -> tuple[list[str], list[Row]]:
    """Return the names of the columns, and the rows."""
    if result.why_truncated is not None:
        raise ResultNotComparableError(f"Nothing was compared. {result.why_truncated}")
    names = [column["name"] for column in result.columns]
    types = [column["type"].lower() for column in result.columns]
    return names, [dict(zip(names, map(value_of, row, types), strict=True)) for row in result.rows]


def _by_key(rows: list[Row], keys: list[str]) -> dict[tuple[Any, ...], Row]:
    """Return each row by its key. Raises PlatformInputError if two rows have the same one."""
    by_key = {tuple(row.get(name) for name in keys): row for row in rows}
    if len(by_key) < len(rows):
        raise PlatformInputError(
            "Nothing was compared: several rows have the same values in the columns that identify "
            f"a row ({', '.join(keys) or 'none, because all columns are numbers'}). Name columns "
            "that identify each row in keys, or group the query by them.",
            field="keys",
        )
    return by_key


def _change(before: Any, after: Any) -> Decimal:
    """Return the change relative to production: infinite if production has 0 or a side has no
    number."""
    if not (isinstance(before, Decimal) and isinstance(after, Decimal)):
        return Decimal(0) if before == after else Decimal("Infinity")
    if same_number(before, after):
        return Decimal(0)
    old, new = without_noise(before), without_noise(after)
    if not (old and old.is_finite() and new.is_finite()):
        return Decimal("Infinity")
    return (new - old) / abs(old)


def _plain(value: Any) -> Any:
    return shown_number(value) if isinstance(value, Decimal) else value


def sentence(query: dict[str, Any]) -> str:
    """Return what a comparison found, in words."""
    parts = []
    for move in query["moved"][:SAID]:
        percent = "" if move["percent"] is None else f" ({move['percent']:+.4g} %)"
        parts.append(
            shortened(f"{_number(move)}, in production {move['production']}{percent}", 240)
        )
    others = {
        "further moved numbers": query["moved_count"] - len(parts),
        "missing rows": query["rows_missing"],
        "new rows": query["rows_more"],
    }
    parts += [f"{what}: {value}" for what, value in others.items() if value]
    if not parts:
        by = f" by {', '.join(query['keys'])}" if query["keys"] else ""
        names = shortened(f"{', '.join(query['columns'])}{by}", 240)
        numbers = shortened("; ".join(map(_number, query["numbers"])), 240)
        parts = [f"{query['compared']} numbers are the same ({names}): {numbers}"]
    return f"{shortened(query['name'], 80)}: {'; '.join(parts)}."


def _number(one: dict[str, Any]) -> str:
    row = "".join(f" of {name}={value}" for name, value in one["key"].items())
    return f"{one['column']}{row} is {one['branch']}"
