"""Every value that is read from the service can be stored and sent."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_platform.client.json_text import (
    MAX_DEPTH,
    CutJsonError,
    _read_again,
    db_safe,
    read_json,
    replace_surrogates,
    storable,
)
from tests.support.hypothesis_profiles import examples

HALF_FIRST, HALF_LAST = "\ud83d", "\ude00"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(JSON)
def test_every_value_can_be_packed_and_written(value: Any) -> None:
    read = replace_surrogates(read_json(json.dumps(value)))
    assert json.loads(json.dumps(read, allow_nan=False).encode()) == read
    msgspec.msgpack.encode(read)


@pytest.mark.parametrize("number", [0, -1, 2**63, 2**64 - 1, -(2**63)])
def test_integer_within_64_bits_stays_an_integer(number: int) -> None:
    assert read_json(str(number)) == number
    assert isinstance(read_json(str(number)), int)


@pytest.mark.parametrize("number", [2**64, -(2**63) - 1, 10**300])
def test_integer_beyond_64_bits_becomes_a_float(number: int) -> None:
    assert read_json(str(number)) == float(number)
    assert isinstance(read_json(str(number)), float)


def test_large_numbers_within_a_text_are_replaced_where_they_are() -> None:
    assert read_json(f'{{"data":[{10**20},[1e400,{10**400}]]}}') == {"data": [1e20, [None, None]]}


def test_number_beyond_the_range_of_a_float_is_none() -> None:
    assert read_json("1" * 400) is None


@pytest.mark.parametrize(
    ("text", "until_end"),
    [
        (HALF_FIRST + HALF_LAST, "\U0001f600"),
        ("a" + HALF_FIRST + "b", "a\ufffdb"),
        (HALF_LAST, "\ufffd"),
        ("plain – text", "plain – text"),
    ],
)
def test_surrogate_pair_is_joined_and_a_lone_surrogate_is_replaced(
    text: str, until_end: str
) -> None:
    assert replace_surrogates({text: [text, 1, None]}) == {until_end: [until_end, 1, None]}


texts = st.text(st.sampled_from("aé\0😀" + HALF_FIRST + HALF_LAST), max_size=4)


@given(
    st.recursive(
        st.none() | st.floats() | texts,
        lambda inner: st.lists(inner) | st.dictionaries(texts, inner, max_size=1),
    )
)
def test_db_safe_replaces_lone_surrogates_and_null_characters(value: Any) -> None:
    written = json.dumps(replace_surrogates(value)).replace("\\u0000", "\\ufffd")
    assert json.dumps(db_safe(value)) == json.dumps(json.loads(written))


@given(JSON.filter(lambda value: isinstance(value, list | dict | str)), st.booleans(), st.data())
def test_cut_json_is_distinguished_from_other_text(value: Any, escaped: bool, data: Any) -> None:
    """Wherever it was cut: inside a word, a number, an escape or a character too."""
    text = json.dumps(value, ensure_ascii=escaped).encode("utf-8", "replace")
    with pytest.raises(CutJsonError, match=r"is not valid (JSON|UTF-8)"):
        read_json(text[: data.draw(st.integers(1, len(text) - 1))])


@pytest.mark.parametrize(
    "text",
    ["", "<html>", "plain words", "t", '{"a": 1}{', "{broken}", '{"a": tru}', '["\\u12x"]', "[1.]"],
)
def test_complete_texts_do_not_look_like_cut_json(text: str) -> None:
    with pytest.raises(ValueError, match="is not valid JSON") as caught:
        read_json(text)
    assert not isinstance(caught.value, CutJsonError)


def read_by_python(text: str | bytes) -> Any:
    """The value of a text as Python's parser alone reads it."""
    return storable(_read_again(text))


def outcome(read: Any, text: str | bytes) -> tuple[str, str]:
    """The value, in a form that distinguishes 0 from 0.0 and -0.0, or the error."""
    try:
        return "value", repr(read(text))
    except ValueError as error:
        return type(error).__name__, str(error)


NUMBERS = ["0.1", "1e99", "e999", "e+309", "9" * 18, "1" * 310, "NaN", "-Infinity"]
WORDS = ['"a":', "true", "null", '"\\ud83d"', '"\\ude00', "\ud83d", "é", "\x01", "\ufeff"]
PARTS = st.sampled_from([*'{}[],:-.019eE+ "\n\\', *NUMBERS, *WORDS])


@settings(max_examples=examples(300))
@given(st.lists(PARTS, max_size=8).map("".join) | JSON.map(json.dumps), st.booleans())
def test_both_parsers_read_any_text_the_same(text: str, as_bytes: bool) -> None:
    """Python's decides what a text is worth: the faster one must not show."""
    given_text = text.encode("utf-8", "surrogatepass") if as_bytes else text
    assert outcome(read_json, given_text) == outcome(read_by_python, given_text)


@given(st.floats().map(repr) | st.decimals(allow_nan=False).map(str))
def test_both_parsers_round_numbers_the_same(number: str) -> None:
    assert outcome(read_json, f"[{number}]") == outcome(read_by_python, f"[{number}]")


@given(
    brackets=st.lists(
        st.sampled_from(["[]", "{}"]), min_size=MAX_DEPTH - 2, max_size=MAX_DEPTH + 4
    ),
    beside=st.text("[{ 1a", max_size=4),
)
def test_nesting_depth_is_limited_for_any_mix_of_brackets(brackets: list[str], beside: str) -> None:
    opening = "".join("[" if kind == "[]" else '{"a":' for kind in brackets)
    closing = "".join(kind[1] for kind in reversed(brackets))
    text = f"{opening}{json.dumps(beside)}{closing}"
    refused = outcome(read_json, text.encode())[0] != "value"
    assert refused == (len(brackets) > MAX_DEPTH + 1)
    assert refused == (outcome(read_by_python, text)[0] != "value")


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, MAX_DEPTH + 2, 200, 201, 5000])
@pytest.mark.parametrize("beside", ["", '"[{",', "[[1],[2]],", "[]," * 200])
@pytest.mark.parametrize("brackets", ["[]", "{}"])
def test_both_parsers_refuse_the_same_depth(depth: int, beside: str, brackets: str) -> None:
    opening, closing = ('{"a":', "}") if brackets == "{}" else ("[", "]")
    text = f"[{beside}{opening * (depth - 1)}1{closing * (depth - 1)}]"
    assert outcome(read_json, text) == outcome(read_by_python, text)
    assert (outcome(read_json, text)[0] == "value") == (depth <= MAX_DEPTH + 1)


@pytest.mark.parametrize(
    "text",
    [
        *("-0", "1E400", "[1e0999 ]", '{"a": 1e+999}', "9" * 19, "-" + "9" * 20, "1" * 4301),
        *("1" * 310 + "e-300", "0." + "0" * 400 + "1e390", '["1e999]"]', '["1e999]",1e999]'),
        *('{"a": 1, "b": 2, "a": 3}', '"\\ud83d\\ude00"', '"\\ud83dx"', '"\x7f"', "1_0", "\u0661"),
    ],
)
def test_both_parsers_read_unusual_texts_the_same(text: str) -> None:
    for form in (text, text.encode()):
        assert outcome(read_json, form) == outcome(read_by_python, form)
