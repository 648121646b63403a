"""The specifications of the sandbox's agent are those of real charts."""

from __future__ import annotations

import json
import re

import pytest

from airflow_provider_platform.charts import ChartRenderer
from tests.support.raw_client import Platform, results

pytest.importorskip("vl_convert", reason="the extra charts is not installed")

PROMPTS = (
    "chart revenue by country",
    "plot orders per month",
    "graph average order value by segment",
    "draw items by product",
    "chart top 3 customers",
    "chart total revenue",
    "chart revenue by month for Germany",
)


def test_every_chart_can_be_drawn_and_shows_its_rows(platform: Platform) -> None:
    with ChartRenderer() as renderer:
        for prompt in PROMPTS:
            [result] = results(platform.ask(prompt))
            spec = json.loads(result["vegaSpec"])
            assert "data" not in spec
            columns = [{"name": c["name"], "type": c["column_type"]} for c in result["schema"]]
            svg = renderer.render(spec, columns, result["data"], ["svg"])["svg"].decode()
            marks = re.findall(r'aria-roledescription="(bar|line mark)"', svg)
            assert len(marks) == (1 if spec["mark"] == "line" else len(result["data"])), prompt
            labels = [str(row[0]) for row in result["data"]] if len(columns) > 1 else []
            assert [label for label in labels if f">{label[:12]}" not in svg] == [], prompt
