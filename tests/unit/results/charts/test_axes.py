"""Axis labels never overlap: they are drawn upright, or some are left out."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.results.charts.axes import readable_axes

ROWS = [{"name": f"Region number {at}", "short": f"{at}"} for at in range(12)]


def axis(angle: Any, field: str = "name", **view: Any) -> Any:
    """What becomes of the axis of a chart whose labels stand at an angle."""
    channel = {"field": field, "type": "nominal", "axis": {"labelAngle": angle, "title": "T"}}
    spec = {"mark": "bar", "encoding": {"x": channel}, **view}
    return readable_axes(spec, ROWS)["encoding"]["x"]["axis"]


@pytest.mark.parametrize(
    "view", [{}, {"width": 300}, {"width": {"step": 40}}, {"width": "container"}]
)
def test_wide_labels_are_drawn_upright(view: dict[str, Any]) -> None:
    assert axis(0, **view) == {"title": "T"}


@pytest.mark.parametrize("view", [{"width": 2000}, {"width": {"step": 120}}])
def test_narrow_labels_are_drawn_horizontally(view: dict[str, Any]) -> None:
    assert axis(0, **view)["labelAngle"] == 0


def test_short_labels_stay_side_by_side() -> None:
    assert axis(0, "short")["labelAngle"] == 0


def test_slanted_labels_are_all_shown_if_they_do_not_overlap() -> None:
    assert axis(-45) == {"labelAngle": -45, "labelOverlap": False, "title": "T"}
    assert axis(-45, width={"step": 9}) == {"title": "T"}


def test_layers_share_the_chart_width_and_concatenated_views_do_not() -> None:
    channel = {"field": "name", "type": "ordinal", "axis": {"labelAngle": 0}}
    view = {"mark": "bar", "encoding": {"x": channel}}
    layered = readable_axes({"width": 2000, "layer": [view]}, ROWS)
    assert layered["layer"][0]["encoding"]["x"]["axis"] == {"labelAngle": 0}
    beside = readable_axes({"width": 2000, "hconcat": [view, {**view, "width": 2000}]}, ROWS)
    assert [one["encoding"]["x"]["axis"] for one in beside["hconcat"]] == [{}, {"labelAngle": 0}]


def test_axis_settings_of_the_author_are_kept() -> None:
    own = {"axis": {"labelSeparation": 1, "grid": False}, "axisDiscrete": {"labelOverlap": False}}
    config = readable_axes({"mark": "bar", "config": {**own, "view": {"step": 5}}}, ROWS)["config"]
    assert config == {**own, "view": {"step": 5}}
    time = {"field": "at", "timeUnit": "month", "type": "ordinal", "axis": {"labelOverlap": False}}
    spec = readable_axes({"mark": "bar", "encoding": {"x": time}}, ROWS)
    assert spec["encoding"]["x"] == time


@pytest.mark.parametrize(
    "spec",
    [
        {"mark": "bar", "encoding": None, "config": None},
        {"mark": "bar", "encoding": {"x": {"field": "made", "type": "nominal", "axis": None}}},
        {"layer": [None, "x"], "width": True},
    ],
)
def test_specification_of_an_unknown_shape_is_not_changed(spec: dict[str, Any]) -> None:
    assert {**readable_axes(spec, ROWS), "config": 0} == {**spec, "config": 0}
