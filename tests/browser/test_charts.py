"""An HTML chart page in a real browser."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
pytest.importorskip("vl_convert", reason="the extra charts is not installed")

from playwright.sync_api import expect

from airflow_provider_platform.charts import render_chart

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

COLUMNS = [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Int64"}]
ROWS = [["Germany", 20], ["France", 30], ["Spain", 10]]
COUNTRY: dict[str, Any] = {"field": "country", "type": "nominal"}
BARS: dict[str, Any] = {
    "mark": "bar",
    "encoding": {"x": COUNTRY, "y": {"field": "revenue", "type": "quantitative"}},
}
DRAWN_WIDTH = """
(edges => Math.max(...edges.map(e => e.right)) - Math.min(...edges.map(e => e.left)))(
  [...document.querySelectorAll("path[aria-roledescription=bar]")].map(
    bar => bar.getBoundingClientRect()
  )
)"""
"""Pixels from the first bar to the last one."""


@pytest.mark.parametrize(
    ("spec", "bars", "least"),
    [
        (BARS, 3, 700),
        ({**BARS, "width": 100}, 3, 700),
        # Enlarged as one picture, which is here as high as the window.
        ({"hconcat": [BARS, BARS, BARS]}, 9, 500),
    ],
    ids=["bars", "width", "views"],
)
def test_chart_fills_its_page(
    page: Page, tmp_path: Path, spec: dict[str, Any], bars: int, least: float
) -> None:
    file = tmp_path / "chart.html"
    file.write_bytes(render_chart(spec, COLUMNS, ROWS, ["html"])["html"])
    messages: list[str] = []
    page.on("console", lambda message: messages.append(message.text))
    page.set_viewport_size({"width": 1000, "height": 600})
    page.goto(file.as_uri())
    expect(page.locator("path[aria-roledescription=bar]")).to_have_count(bars)
    deadline = time.monotonic() + 60
    while (wide := page.evaluate(DRAWN_WIDTH)) <= least:  # the page's policy forbids waiting inside
        assert time.monotonic() < deadline, wide
        page.wait_for_timeout(100)
    assert page.evaluate("document.documentElement.scrollWidth") <= 1000
    assert [message for message in messages if "Content Security Policy" in message] == []
