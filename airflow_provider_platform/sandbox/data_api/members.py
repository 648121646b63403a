"""The semantic model of the sample warehouse."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.state.warehouse import MEMBERS


def meta() -> dict[str, Any]:
    """Return the answer of ``/v1/meta``: the cubes with their measures, dimensions and segments."""
    cubes: dict[str, dict[str, Any]] = {}
    for name, title, kind, aggregation in MEMBERS:
        cube_name = name.split(".")[0]
        cube = cubes.setdefault(
            cube_name,
            {
                "name": cube_name,
                "type": "cube",
                "title": cube_name.title(),
                "isVisible": True,
                "public": True,
                "connectedComponent": 1,
                "measures": [],
                "dimensions": [],
                "segments": [],
                "hierarchies": [],
                "folders": [],
                "nestedFolders": [],
            },
        )
        shared = {"name": name, "title": title, "shortTitle": title, "type": kind}
        if aggregation:
            measure = {"aggType": aggregation, "cumulative": False, "cumulativeTotal": False}
            drill = {"drillMembers": [], "drillMembersGrouped": {"measures": [], "dimensions": []}}
            cube["measures"].append({**shared, **measure, **drill})
        else:
            cube["dimensions"].append({**shared, "primaryKey": False, "suggestFilterValues": True})
    return {"cubes": list(cubes.values())}
