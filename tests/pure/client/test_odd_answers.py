"""Responses that differ from their description in unimportant fields keep their id."""

from __future__ import annotations

import copy
from datetime import datetime
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, SecretStr

from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.client.pages import Page
from tests.support.hypothesis_profiles import examples
from tests.support.typed_calls import typed_calls

if TYPE_CHECKING:
    from collections.abc import Iterator

Steps = tuple[str | int, ...]


MODELLED = {
    name: answer
    for name, answer in typed_calls().items()
    if isinstance(answer, type) and issubclass(answer, ResponseModel)
}
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
PAGING_STATE = {"items", "data", "pageInfo", "count", "totalCount", "pagination"}


def is_model(annotation: Any) -> bool:
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def plain(annotation: Any) -> Any:
    """The type that an annotation allows beside None."""
    options = [option for option in get_args(annotation) if option is not NoneType]
    is_union = NoneType in get_args(annotation) or get_origin(annotation) not in (None, list, dict)
    return plain(options[0]) if is_union and options else annotation


def sample(annotation: Any) -> Any:
    """JSON of a type, with every field that is described."""
    kind = plain(annotation)
    if is_model(kind):
        fields = kind.model_fields.items()
        return {field.alias or name: sample(field.annotation) for name, field in fields}
    if get_origin(kind) is list:
        return [sample(get_args(kind)[0]), sample(get_args(kind)[0])]
    if get_origin(kind) is dict or kind is dict:
        return {}
    if isinstance(kind, type) and issubclass(kind, datetime):
        return "2026-10-01T10:00:00Z"
    return {str: "text", int: 3, float: 2.5, bool: True, SecretStr: "s" * 20}.get(kind)


def fields_of(annotation: Any, at: Steps = ()) -> Iterator[Steps]:
    """Where the answer has fields that need not be there."""
    kind = plain(annotation)
    if get_origin(kind) is list:
        yield from fields_of(get_args(kind)[0], (*at, 0))
    if is_model(kind):
        for name, field in kind.model_fields.items():
            place = (*at, field.alias or name)
            if not field.is_required() and name not in kind.deciding:
                yield place
            yield from fields_of(field.annotation, place)


@cache
def places(name: str) -> list[Steps]:
    """The fields of an answer on which nothing depends, one that nobody knows among them."""
    optional = fields_of(MODELLED[name])
    return [*(p for p in optional if p[0] not in PAGING_STATE or len(p) > 2), ("ofALaterRelease",)]


def put(document: Any, place: Steps, value: Any) -> Any:
    changed = copy.deepcopy(document)
    parent = changed
    for step in place[:-1]:
        parent = parent[step]
    parent[place[-1]] = value
    return changed


def required_values(answer: ResponseModel) -> dict[str, Any]:
    fields = type(answer).model_fields.items()
    return {name: getattr(answer, name) for name, field in fields if field.is_required()}


@pytest.mark.parametrize("name", sorted(MODELLED))
@settings(max_examples=examples(25))
@given(st.data())
def test_undocumented_type_of_an_optional_field_keeps_response_and_id(
    name: str, data: st.DataObject
) -> None:
    model = MODELLED[name]
    described = sample(model)
    place = data.draw(st.sampled_from(places(name)))
    sent = put(described, place, data.draw(ODD))

    answer = model.model_validate(sent)

    expected = model.model_validate(described)
    assert required_values(answer) == required_values(expected)
    answer.to_json()
    if isinstance(answer, Page):
        assert [required_values(row) for row in answer.rows if isinstance(row, ResponseModel)] == [
            required_values(row) for row in expected.rows if isinstance(row, ResponseModel)
        ]


@pytest.mark.parametrize(
    "name", sorted(n for n, kind in MODELLED.items() if issubclass(kind, Page))
)
@settings(max_examples=examples(25))
@given(odd=ODD, where=st.integers(0, 2))
def test_one_unreadable_item_does_not_fail_the_list(name: str, odd: Any, where: int) -> None:
    described = sample(MODELLED[name])
    good = described["items"]
    items = [*good[:where], odd, *good[where:]]

    page: Page[Any] = MODELLED[name].model_validate(items)

    expected = MODELLED[name].model_validate(good).rows
    read = page.rows[:where] + page.rows[where + 1 - page.left_out :]
    assert page.left_out in (0, 1)
    assert read == expected
