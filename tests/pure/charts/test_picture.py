"""A finished picture shows something and loads nothing, and a page runs only its own scripts."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.charts import ChartError
from airflow_provider_platform.charts.renderer import (
    EmptyPictureError,
    check_svg,
    embedded_json,
    page,
)

_TEXTS = st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028", "&lt;/script"])
BAR = '<path d="M1,92h18v107h-18Z"/>'


def picture(marks: str, kind: str = "mark-rect", other: str = "") -> str:
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'width="200" height="100.5">{other}<g class="{kind} role-mark marks">{marks}</g></svg>'
    )


@pytest.mark.parametrize(
    "marks",
    [BAR, "<line x2='5'/>", "<text>12</text>", "<text><tspan>12</tspan></text>",
     "<image href='data:image/png;base64,x'/>", '<path d="M1,100h18v0h-18Z"/>'],
)  # fmt: skip
def test_picture_with_a_shape_has_a_size(marks: str) -> None:
    assert check_svg(picture(marks)) == (200, 100.5)


@pytest.mark.parametrize(
    "marks", ["", "<path/>", '<path d=""/>', '<path d="M10,7.5Z"/>', "<text/>", "<image href=''/>"]
)
def test_picture_in_which_no_mark_has_a_shape_is_empty(marks: str) -> None:
    with pytest.raises(EmptyPictureError):
        check_svg(picture(marks, other=f'<g class="mark-rule role-axis-grid">{BAR}</g>'))


def test_label_of_a_field_that_the_rows_lack_is_refused_unless_it_is_a_value() -> None:
    svg = picture(BAR, other='<g class="mark-text role-axis-label"><text>undefined</text></g>')
    with pytest.raises(EmptyPictureError):
        check_svg(svg)
    assert check_svg(svg, undefined_is_data=True)


@pytest.mark.parametrize("href", ["/tmp/a.png", "file:///a.png", "http://x/a.png", "a.png"])
@pytest.mark.parametrize("name", ["href", "xlink:href"])
def test_picture_that_would_load_an_image_is_refused(name: str, href: str) -> None:
    with pytest.raises(ChartError, match="would load an image"):
        check_svg(picture(BAR, other=f"<g><image aria-label='a>b' {name}='{href}'/></g>"))


@pytest.mark.parametrize(
    "attribute",
    ["fill='url(http://x/?rows=1#a)'", "fill='URL(//x)'", "stroke='u\\72l(http://x)'",
     "stop-color='image-set(\"http://x\" 1x)'", "fill='image(\"x\")'", "filter='src(\"x\")'",
     "clip-path='url(#a) url(http://x)'", "style='background: red;'",
     "style='mix-blend-mode: multiply; background: red;'", "style='font-family: x;'"],
)  # fmt: skip
def test_picture_with_a_style_that_could_load_something_is_refused(attribute: str) -> None:
    with pytest.raises(ChartError, match="could send its rows to a server"):
        check_svg(picture(BAR, other=f"<rect {attribute}/>"))


@pytest.mark.parametrize(
    "attribute",
    ["fill='url(#gradient_0)'", "clip-path='url(#clip1)'", "style='mix-blend-mode: multiply;'",
     "style='image-rendering: optimizeSpeed; image-rendering: pixelated;'",
     "aria-label='url(http://x) a\\b'", "fill='#ff0000'", "font-family='sans-serif'"],
)  # fmt: skip
def test_styles_that_vega_writes_are_drawn(attribute: str) -> None:
    assert check_svg(picture(BAR, other=f"<rect {attribute}/>"))


def test_picture_that_is_not_well_formed_is_refused() -> None:
    with pytest.raises(ChartError, match="not well-formed"):
        check_svg("<svg><unclosed></svg>")


@given(st.recursive(_TEXTS, lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner)))
def test_embedded_json_cannot_close_its_script_element(value: Any) -> None:
    text = embedded_json(value)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == value


def test_page_names_its_scripts_and_lets_nothing_else_run_or_load() -> None:
    title = "</title><script>x</script>"
    spec = {"title": title, "data": {"values": [{"a": "</script>"}]}}
    text = page(spec, "window.vegaEmbed = 1;", size=(1, 1))
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    assert text.count("</title>") == 1
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("bundle", ["a</SCRIPT>b", "a<!--b"])
def test_javascript_that_ends_its_script_is_refused(bundle: str) -> None:
    with pytest.raises(ChartError, match="read as the end of the script"):
        page({}, bundle, size=(1, 1))


def spec_of(text: str) -> Any:
    [embedded] = re.findall(r'id="spec">(.*?)</script>', text)
    return json.loads(embedded)


@pytest.mark.parametrize("view", [{"mark": "bar", "width": 80}, {"layer": [], "autosize": "none"}])
def test_chart_of_one_view_has_the_size_of_its_page(view: dict[str, Any]) -> None:
    fit = {"type": "fit", "contains": "padding"}
    text = page(view, "", size=(1200.4, 300))
    size = {"width": "container", "height": "container", "autosize": fit}
    assert spec_of(text) == {**view, **size}
    assert "#chart {min-width:1200px;min-height:300px;}" in text
    assert 'class="enlarged"' not in text


@pytest.mark.parametrize(
    "view",
    [
        {"hconcat": [], "width": 80},
        {"facet": {}, "spec": {"mark": "bar"}},
        {"mark": "bar", "encoding": {"row": {"field": "a"}}},
        {"mark": "bar", "encoding": {"facet": {"field": "a"}}, "width": 80},
    ],
)
def test_chart_of_several_views_is_enlarged_as_a_whole(view: dict[str, Any]) -> None:
    text = page(view, "", size=(1, 1))
    assert spec_of(text) == view
    assert '<div id="chart" class="enlarged">' in text
