"""Fifty charts look as they did when a person last checked them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support import pictures
from tests.support.pictures import CHARTS, FOLDER, PAGE, TOLERANCE, Chart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.charts import ChartRenderer

pytest.importorskip("vl_convert", reason="the extra charts is not installed")


@pytest.fixture(scope="module")
def renderer() -> Iterator[ChartRenderer]:
    with pictures.drawing() as drawing:
        yield drawing


@pytest.mark.one_case_in(5)
@pytest.mark.parametrize("chart", CHARTS, ids=lambda chart: chart.name)
def test_chart_equals_its_approved_picture(renderer: ChartRenderer, chart: Chart) -> None:
    """Pixel by pixel where the same version of the library drew it, else within a tolerance."""
    kept = (FOLDER / f"{chart.name}.png").read_bytes()
    drawn = pictures.draw(renderer, chart)
    assert [note[: len(chart.note)] for note in drawn.notes] == ([chart.note] if chart.note else [])
    if pictures.drawn_by(kept) == pictures.library():
        assert pictures.compact(drawn["png"], pictures.library()) == kept
    else:
        assert pictures.difference(drawn["png"], kept) <= TOLERANCE


def test_tolerance_does_not_let_another_chart_pass(renderer: ChartRenderer) -> None:
    bars = CHARTS[0]
    kept = (FOLDER / f"{bars.name}.png").read_bytes()
    for rows in (bars.rows[:-1], [[bars.rows[0][0], "1150.50"], *bars.rows[1:]]):
        drawn = renderer.render(bars.spec, bars.described, rows)["png"]
        assert pictures.difference(drawn, kept) > TOLERANCE
    assert pictures.difference(kept, kept) == 0


def test_contact_sheet_has_all_pictures_and_no_other() -> None:
    assert PAGE.read_text(encoding="utf-8") == pictures.page(), "run `make charts`"
    names = sorted(path.name for path in FOLDER.iterdir())
    assert names == sorted(f"{chart.name}.png" for chart in CHARTS)
