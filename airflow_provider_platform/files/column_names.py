"""Names of columns as files have them, and as everything that describes a file repeats them.

A query may give two columns the same name, names that differ in case only, or no name at all. CSV
can hold such names, but its readers cannot tell the columns apart. Parquet's readers refuse them
(Spark, Athena) or rename them in ways of their own (DuckDB), and JSON objects lose all values but
the last. So a file's names differ by more than their case. File, XCom, asset event and manifest
have the same names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.client.service_text import shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHOWN = 60


def file_names(names: Sequence[str | None]) -> list[str]:
    """The names of a result's columns in its file: none is blank, and no two differ in case only.

    The first column with a name keeps it. A later one gets the next free number (`total_2`), which
    is never the name of another column of the result. A column without a name is `column_3`, by
    its place. Characters that Airflow's database cannot store are replaced.
    """
    whole: list[str] = [db_safe(name or "") for name in names]
    reserved = {name.casefold() for name in whole}
    kept: set[str] = set()
    unique = []
    for place, name in enumerate(whole, start=1):
        if name.strip() and name.casefold() not in kept:
            kept.add(name.casefold())
            unique.append(name)
            continue
        base = name if name.strip() else f"column_{place}"
        unused, number = base, 1
        while unused.casefold() in reserved:
            number += 1
            unused = f"{base}_{number}"
        reserved.add(unused.casefold())
        unique.append(unused)
    return unique


def describe_renaming(names: Sequence[str | None], written: Sequence[str]) -> str | None:
    """A sentence about the columns whose names were changed, None if all kept theirs."""
    changed = [
        f"column {place} {shortened(name or '', _SHOWN)!r} is now {shortened(new, _SHOWN)!r}"
        for place, (name, new) in enumerate(zip(names, written, strict=True), start=1)
        if name != new
    ]
    if not changed:
        return None
    more = f", and {len(changed) - 5} more" if len(changed) > 5 else ""
    return (
        "Columns were renamed, because their names are empty, are invalid or differ only in "
        f"case: {', '.join(changed[:5])}{more}. To choose the names, use AS in the SQL."
    )
