"""Which pre-aggregations read a table of the warehouse, by the metadata of the data model.

A pre-aggregation names members of cubes, and a cube is one table (`sql_table`) or a query (`sql`).
The metadata shows the table of a public cube. What a query reads is not guessed: such a cube is
reported, and so is a cube that a pre-aggregation names and the metadata leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import PlatformProtocolError, RequestName
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.client.responses import DataRefusal

if TYPE_CHECKING:
    from pydantic import SecretStr

    from airflow_provider_platform.client.api import Api

META_PATH = "meta?extended"
_META = RequestName("The metadata of the data model", "GET /v1/meta")
_REFERENCES = (
    *("measures", "dimensions", "timeDimension", "segments", "rollups"),
    *("measureReferences", "dimensionReferences", "timeDimensionReference"),
    *("segmentReferences", "rollupReferences"),
)
_CUBE_OF_MEMBER = re.compile(r"(\w+)(?=\.\w)")
"""Every part but the last: a join path can be before a member, as in `orders.customers.city`."""
_PARTS = re.compile(r"[^./\\:\"`\[\]\s]+")


@dataclass(frozen=True)
class StandsOn:
    """`pre_aggregations` are full names, `unknown` the names of tables on which none stands, and
    `hidden` the cubes with pre-aggregations whose tables the metadata does not show."""

    pre_aggregations: list[str]
    unknown: list[str]
    hidden: list[str]

    def warnings(self) -> list[str]:
        """Return a sentence for each thing that was not found."""
        warnings = []
        if self.unknown:
            warnings.append(
                f"No pre-aggregation of a public cube reads {_quoted(self.unknown)}. "
                "The metadata does not list other cubes."
            )
        if self.hidden:
            warnings.append(
                "The metadata does not show which tables these cubes read, because they are "
                f"defined by a query or are not public: {_quoted(self.hidden)}. Pre-aggregations "
                "that read only these cubes are not built. If one of them reads your table, name "
                "its pre-aggregations in pre_aggregations in a task of their own."
            )
        return warnings


async def read_metadata(api: Api, url: str, token: SecretStr) -> list[dict[str, Any]]:
    """Return the cubes of the data model with their definitions. Raises PlatformError."""
    timeout = api.config.request_timeout
    answer = await api.call_data(_META, url, token, None, timeout=timeout, repeatable=True)
    cubes = answer.get("cubes") if isinstance(answer, dict) else None
    if isinstance(answer, DataRefusal) or not isinstance(cubes, list):
        reason = answer.reason if isinstance(answer, DataRefusal) else "its response has no cubes"
        raise PlatformProtocolError(
            "built_on needs the metadata of the data model, and the service does not return it: "
            f"{reason}. Name the pre-aggregations in pre_aggregations instead.",
            where=_META.where,
        )
    return [cube for cube in cubes if isinstance(cube, dict) and isinstance(cube.get("name"), str)]


def stand_on(cubes: Sequence[dict[str, Any]], tables: Sequence[str]) -> StandsOn:
    """Return the pre-aggregations whose cubes read one of the tables.

    A table is given as `orders`, `public.orders` or the URI of an asset
    (`postgres://host/db/public/orders`). Names are compared part by part from the end, in any case,
    as far as both go.
    """
    known = {cube["name"]: _parts(cube.get("sqlTable") or cube.get("sql_table")) for cube in cubes}
    wanted = {table: _parts(table) for table in tables}
    found: dict[str, list[str]] = {table: [] for table in tables}
    hidden: list[str] = []
    for cube in cubes:
        for rollup in _pre_aggregations(cube):
            used = [cube["name"], *_cubes_of(rollup)]
            hidden += [name for name in used if not known.get(name)]
            for table, parts in wanted.items():
                if any(_same(parts, known.get(name, [])) for name in used):
                    found[table].append(f"{cube['name']}.{rollup['name']}")
    return StandsOn(
        list(dict.fromkeys(name for names in found.values() for name in names)),
        [table for table, names in found.items() if not names],
        list(dict.fromkeys(hidden)),
    )


def _pre_aggregations(cube: dict[str, Any]) -> list[dict[str, Any]]:
    rollups = cube.get("preAggregations") or []
    if isinstance(rollups, dict):
        rollups = [{**rollup, "name": name} for name, rollup in rollups.items()]
    return [rollup for rollup in rollups if isinstance(rollup, dict) and rollup.get("name")]


def _cubes_of(rollup: dict[str, Any]) -> list[str]:
    """Return the cubes whose members the definition names, other than its own (`CUBE`)."""
    named = _CUBE_OF_MEMBER.findall(" ".join(str(rollup.get(key) or "") for key in _REFERENCES))
    return [name for name in dict.fromkeys(named) if name != "CUBE"]


def _parts(table: Any) -> list[str]:
    """Return the parts of a name; none if it is not known as text, as with a variable inside."""
    is_name = isinstance(table, str) and "{" not in table
    return [part.lower() for part in _PARTS.findall(table)] if is_name else []


def _same(wanted: list[str], table: list[str]) -> bool:
    length = min(len(wanted), len(table))
    return length > 0 and wanted[-length:] == table[-length:]


def _quoted(names: Sequence[str]) -> str:
    return ", ".join(quote_service(name) for name in names)
