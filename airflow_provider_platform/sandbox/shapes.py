"""Strict checks of request bodies and query parameters, with one message per broken rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

Check = Callable[[Any, str], list[str]]
"""Takes a value and its name; gives the messages of the rules it breaks."""
Shape = Mapping[str, Check]


def string(
    *, pattern: str | None = None, one_of: Collection[str] | None = None, max_length: int = 10**7
) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, str):
            return [f"{name} must be a string"]
        if one_of is not None and value not in one_of:
            return [f"{name} must be one of: {', '.join(one_of)}"]
        if not value:
            return [f"{name} must not be empty"]
        if len(value) > max_length:
            return [f"{name} must be at most {max_length} characters"]
        if pattern is not None and not re.fullmatch(pattern, value):
            return [f"{name} must match {pattern}"]
        return []

    return check


def integer(*, minimum: int | None = None, maximum: int | None = None) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if isinstance(value, bool) or not isinstance(value, int):
            return [f"{name} must be an integer"]
        if minimum is not None and value < minimum:
            return [f"{name} must not be less than {minimum}"]
        if maximum is not None and value > maximum:
            return [f"{name} must not be greater than {maximum}"]
        return []

    return check


def boolean(value: Any, name: str) -> list[str]:
    return [] if isinstance(value, bool) else [f"{name} must be a boolean"]


def anything(_value: Any, _name: str) -> list[str]:
    return []


def mapping(value: Any, name: str) -> list[str]:
    return [] if isinstance(value, dict) else [f"{name} must be an object"]


def array(item: Check, *, maximum: int | None = None) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, list):
            return [f"{name} must be an array"]
        if maximum is not None and len(value) > maximum:
            return [f"{name} must contain no more than {maximum} elements"]
        return [m for index, one in enumerate(value) for m in item(one, f"{name}[{index}]")]

    return check


def structure(shape: Shape, *, required: Collection[str] = ()) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{name or 'the body'} must be an object"]
        prefix = f"{name}." if name else ""
        messages = [f"property {prefix}{key} should not exist" for key in value if key not in shape]
        messages += [f"{prefix}{key} is required" for key in required if key not in value]
        for key, item in value.items():
            if key in shape:
                messages += shape[key](item, prefix + key)
        return messages

    return check


def nullable(check: Check) -> Check:
    return lambda value, name: [] if value is None else check(value, name)


def nullable_fields(shape: Shape, *, required: Collection[str] = ()) -> Check:
    """An object whose optional fields may be null, as the management API declares them."""
    return structure(
        {key: check if key in required else nullable(check) for key, check in shape.items()},
        required=required,
    )


def query_values(
    shape: Shape, parameters: Collection[tuple[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    """Read query parameters by shape: numbers are turned into integers where a check wants them."""
    values: dict[str, Any] = {}
    messages: list[str] = []
    for key, text in parameters:
        check = shape.get(key)
        if check is None:
            messages.append(f"property {key} should not exist")
            continue
        candidates: list[Any] = [text]
        if re.fullmatch(r"-?\d{1,18}", text):
            candidates.insert(0, int(text))
        verdicts = [check(candidate, key) for candidate in candidates]
        accepted = [c for c, broken in zip(candidates, verdicts, strict=True) if not broken]
        if accepted:
            values[key] = accepted[0]
        else:
            messages += verdicts[0]
    return values, messages
