"""Which numbers differ between the results of one query on two versions of the data model.

The rows of both results are joined by their key columns. Then a number of one result is compared
with the number of the same column and row in the other. Unlike in an evaluation of an agent
(`results.py`), names of columns count, because the same query gives both results.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import PlatformInputError, ResultNotComparableError
from airflow_provider_platform.client.redaction import shortened
from airflow_provider_platform.client.results import value_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.client.results import Result

NOISE = Decimal("1e-9")
"""A smaller relative difference is none: a sum of floats depends on the order of its rows."""
MAX_WHOLE = Decimal(2**63)
MAX_MOVED = 20
SAID = 3
"""The most moved numbers of a query in the result, and in words."""
_SHOWN = 80

VERDICTS = ("same", "within_tolerance", "moved")


def compare_numbers(
    production: Result, branch: Result, keys: list[str] | None, limit: Callable[[str], Decimal]
) -> dict[str, Any]:
    """Return which numbers differ between the results of one query. Raises PlatformInputError if
    the keys do not identify the rows, ResultNotComparableError if rows may be missing."""
    for result in (production, branch):
        if result.why_truncated is not None:
            raise ResultNotComparableError(f"Nothing was compared. {result.why_truncated}")
    left, right = _columns(production), _columns(branch)
    both = [name for name in left if name in right]
    if unknown := [name for name in keys or () if name not in both]:
        raise PlatformInputError(
            f"Nothing was compared: the results have no column {', '.join(unknown)}.", field="keys"
        )
    joined_by = keys or [name for name in both if not _are_numbers(left[name] + right[name])]
    old = _by_key(left, joined_by, len(production.rows))
    new = _by_key(right, joined_by, len(branch.rows))
    shared = [key for key in old if key in new]
    columns = [name for name in both if name not in joined_by]
    moved: list[tuple[Decimal, dict[str, Any]]] = []
    beyond = False
    for key in shared:
        for name in columns:
            before, after = left[name][old[key]], right[name][new[key]]
            change = relative = None
            if isinstance(before, Decimal) and isinstance(after, Decimal):
                change = after - before
                if not change or (
                    not (_is_whole(before) and _is_whole(after))
                    and abs(change) <= NOISE * max(abs(before), abs(after))
                ):
                    continue
                relative = change / abs(before) if before else None
            elif before == after:
                continue
            size = Decimal("Infinity") if relative is None else abs(relative)
            beyond = beyond or size > limit(name)
            move = {
                "key": dict(zip(joined_by, map(_plain, key), strict=True)),
                "column": name,
                "production": _plain(before),
                "branch": _plain(after),
                "change": _plain(change),
                "percent": None if relative is None else round(float(relative * 100), 4),
            }
            moved.append((size, move))
    found = {
        "rows_missing": len(old) - len(shared),
        "rows_more": len(new) - len(shared),
        "columns_missing": [name for name in left if name not in right],
        "columns_more": [name for name in right if name not in left],
    }
    largest = [move for _, move in sorted(moved, key=lambda one: one[0], reverse=True)]
    percents = [abs(move["percent"]) for move in largest if move["percent"] is not None]
    return {
        "verdict": VERDICTS[2 if beyond or any(found.values()) else bool(moved)],
        "compared": len(shared) * len(columns),
        "moved_count": len(moved),
        "moved": largest[:MAX_MOVED],
        **found,
        "max_percent": max(percents, default=None),
    }


def _columns(result: Result) -> dict[str, list[Any]]:
    """Return the values of each column. Raises PlatformInputError if two have the same name."""
    names = [str(column["name"]) for column in result.columns]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise PlatformInputError(
            f"Nothing was compared: the query has several columns named {', '.join(twice)}. Give "
            "each column its own name with AS.",
            field="queries",
        )
    types = [str(column["type"]).lower() for column in result.columns]
    return {
        name: [value_of(row[at], types[at]) for row in result.rows] for at, name in enumerate(names)
    }


def _are_numbers(values: list[Any]) -> bool:
    return all(value is None or isinstance(value, Decimal) for value in values)


def _by_key(columns: dict[str, list[Any]], keys: list[str], count: int) -> dict[Any, int]:
    """Return the index of each row by its key. Raises PlatformInputError if a key is not unique."""
    rows = list(zip(*(columns[name] for name in keys), strict=True)) if keys else [()] * count
    index = {key: at for at, key in enumerate(rows)}
    if len(index) < len(rows):
        named = ", ".join(keys) or "none, because all columns are numbers"
        raise PlatformInputError(
            f"Nothing was compared: several rows have the same values in the columns that "
            f"identify a row ({named}). Name columns that identify each row in keys, or group the "
            "query by them.",
            field="keys",
        )
    return index


def _plain(value: Any) -> Any:
    """Return a value for XCom, which holds whole numbers of 64 bits and no infinity."""
    if not isinstance(value, Decimal):
        return value
    if abs(value) >= MAX_WHOLE:
        return str(value)
    return int(value) if _is_whole(value) else float(value)


def _is_whole(value: Decimal) -> bool:
    return value == value.to_integral_value()


def sentence(query: dict[str, Any]) -> str:
    """Return what a comparison found, in words."""
    parts = []
    for move in query["moved"][:SAID]:
        row = ", ".join(f"{name}={value}" for name, value in move["key"].items())
        percent = "" if move["percent"] is None else f" ({move['percent']:+.4g} %)"
        parts.append(
            f"{move['column']}{f' of {row}' if row else ''} is {move['branch']}, in production "
            f"{move['production']}{percent}"
        )
    counts = (
        (query["moved_count"] - len(parts), "more number moved", "more numbers moved"),
        (query["rows_missing"], "row is missing", "rows are missing"),
        (query["rows_more"], "row is new", "rows are new"),
    )
    parts += [f"{count} {one if count == 1 else many}" for count, one, many in counts if count]
    parts += [f"column {name} is missing" for name in query["columns_missing"]]
    parts += [f"column {name} is new" for name in query["columns_more"]]
    said = "; ".join(shortened(part, 3 * _SHOWN) for part in parts)
    same = f"{query['compared']} values are the same"
    return f"{shortened(query['name'], _SHOWN)}: {said or same}."
