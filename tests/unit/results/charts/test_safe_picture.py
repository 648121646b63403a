"""A finished picture loads and runs nothing, with any data."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.results.charts import ChartError
from airflow_provider_platform.results.charts.safe_picture import (
    check_svg,
    embedded_json,
    filling,
    page,
)

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
_TEXTS = st.text() | st.sampled_from(["</script>", "<!--<script>", "]]>", "\u2028", "&lt;/script"])


@given(st.recursive(_TEXTS, lambda inner: st.lists(inner) | st.dictionaries(_TEXTS, inner)))
def test_embedded_json_cannot_close_its_script_element(value: Any) -> None:
    text = embedded_json(value)
    assert not set("<>&") & set(text)
    assert text.isascii()
    assert json.loads(text) == value


def test_the_page_names_its_scripts_and_lets_nothing_else_run_or_load() -> None:
    spec = {"title": "</title><script>x</script>", "data": {"values": [{"a": "</script>"}]}}
    text = page(spec, "window.vegaEmbed = 1;", title="</title><script>x</script>")
    assert text.count("<script") == 3
    assert text.count("</script>") == 3
    assert text.count("</title>") == 1
    [policy] = re.findall(r'Content-Security-Policy" content="([^"]*)"', text)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe-eval" not in policy
    assert "http" not in policy


@pytest.mark.parametrize("view", [{"mark": "bar", "width": 80}, {"layer": [], "autosize": "none"}])
def test_chart_of_one_view_has_the_size_of_its_page(view: dict[str, Any]) -> None:
    fit = {"type": "fit", "contains": "padding"}
    size = {"width": "container", "height": "container", "autosize": fit}
    assert filling(view) == {**view, **size}
    [embedded] = re.findall(r'id="spec">(.*?)</script>', page(view, "", title="T"))
    assert json.loads(embedded) == {**view, **size}


@pytest.mark.parametrize(
    "view",
    [
        {"hconcat": [], "width": 80},
        {"facet": {}, "spec": {"mark": "bar"}},
        {"mark": "bar", "encoding": {"row": {"field": "a"}}},
        {"mark": "bar", "encoding": {"facet": {"field": "a"}}, "width": 80},
    ],
)
def test_chart_of_several_views_keeps_their_size(view: dict[str, Any]) -> None:
    assert filling(view) == view


def test_chart_on_a_page_is_not_smaller_than_its_picture() -> None:
    text = page({"mark": "bar"}, "", title="T", size=(1200.5, 300))
    assert "#chart {min-width:1201px;min-height:300px;}" in text


@pytest.mark.parametrize("bundle", ["a</SCRIPT>b", "a<!--b"])
def test_javascript_that_ends_its_script_is_refused(bundle: str) -> None:
    with pytest.raises(ChartError, match="read as the end of the script"):
        page({}, bundle, title="Chart")


@pytest.mark.parametrize(
    "inner",
    [
        "<image xlink:href='https://x.example/a.png'/>",
        "<script>x</script>",
        "<foreignObject/>",
        "<style>@import 'x';</style>",
        "<rect onload='x'/>",
        "<a xlink:href='javascript:x'/>",
        "<a href='http://x.example'/>",
        "<path fill='url(https://x.example/a.svg#b)'/>",
        "<path fill='URL ( \"//x.example\")'/>",
        "<path style='cursor: url(file:///x)'/>",
        "<path style='cursor: \\75rl(x)'/>",
        "<unclosed>",
    ],
)
def test_a_picture_that_would_load_or_run_something_is_refused(inner: str) -> None:
    with pytest.raises(ChartError, match="SVG"):
        check_svg(f"{HEAD}{inner}</svg>")


def test_svg_with_a_document_type_declaration_is_refused() -> None:
    with pytest.raises(ChartError, match="declaration"):
        check_svg(f'<!DOCTYPE svg [<!ENTITY a "b">]>{HEAD}</svg>')


def test_picture_may_contain_addresses_as_text() -> None:
    check_svg(
        f"{HEAD}<g clip-path='url(#clip0)'><a xlink:href='https://x.example'>"
        "<text aria-label='url(https://x)'>url(file:///x) javascript:x</text></a></g></svg>"
    )
