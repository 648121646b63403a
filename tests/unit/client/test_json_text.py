"""What is read of the service can be stored and sent on, whatever stood in its answer."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.json_text import (
    CutJsonError,
    read_json,
    whole_characters,
)

HALF_FIRST, HALF_LAST = "\ud83d", "\ude00"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_every_value_can_be_packed_and_written(value: Any) -> None:
    read = whole_characters(read_json(json.dumps(value)))
    assert json.loads(json.dumps(read, allow_nan=False).encode()) == read
    msgspec.msgpack.encode(read)


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64 - 1, -(2**63)])
def test_a_whole_number_stays_one_as_far_as_it_fits(number: int) -> None:
    assert read_json(str(number)) == number
    assert isinstance(read_json(str(number)), int)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**300])
def test_a_larger_one_becomes_a_float(number: int) -> None:
    assert read_json(str(number)) == float(number)
    assert isinstance(read_json(str(number)), float)


def test_one_beyond_every_range_is_none() -> None:
    assert read_json("1" * 400) is None


@pytest.mark.parametrize(
    ("text", "whole"),
    [
        (HALF_FIRST + HALF_LAST, "\U0001f600"),
        ("a" + HALF_FIRST + "b", "a\ufffdb"),
        (HALF_LAST, "\ufffd"),
        ("plain – text", "plain – text"),
    ],
)
def test_halves_of_characters(text: str, whole: str) -> None:
    assert whole_characters({text: [text, 1, None]}) == {whole: [whole, 1, None]}


@given(JSON.filter(lambda value: isinstance(value, list | dict | str)), st.booleans(), st.data())
def test_the_beginning_of_a_text_is_told_from_another_text(
    value: Any, escaped: bool, data: Any
) -> None:
    """Wherever it was cut: inside a word, a number, an escape or a character too."""
    text = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "replace")
    with pytest.raises(CutJsonError, match=r"is not (JSON|UTF-8)"):
        read_json(text[: data.draw(st.integers(1, len(text) - 1))])


@pytest.mark.parametrize(
    "text",
    ["", "<html>", "plain words", "t", '{"a": 1}{', "{broken}", '{"a": tru}', '["\\u12x"]', "[1.]"],
)
def test_other_texts_are_not_cut(text: str) -> None:
    with pytest.raises(ValueError, match="is not JSON") as caught:
        read_json(text)
    assert not isinstance(caught.value, CutJsonError)
