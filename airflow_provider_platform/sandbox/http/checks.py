"""Strict checks of request bodies and query parameters, with one message per broken rule.

Each check also has a JSON Schema of the values that it accepts. The sandbox's own OpenAPI document
consists of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Check:
    """Takes a value and its name; returns a message for each rule that the value breaks."""

    rule: Callable[[Any, str], list[str]]
    schema: Mapping[str, Any] = field(default_factory=dict)
    item: Check | None = None
    """The check of an array's items. As a query parameter, an array may be repeated."""
    required: bool = False
    """Whether the field or query parameter is required (see `needed`)."""

    def __call__(self, value: Any, name: str) -> list[str]:
        return self.rule(value, name)

    def also(self, rule: Callable[[Any, str], list[str]]) -> Check:
        """Return the same check with one more rule, for values that pass the other rules."""
        return replace(self, rule=lambda value, name: self(value, name) or rule(value, name))


Fields = Mapping[str, Check]


def string(
    *,
    pattern: str | None = None,
    one_of: Collection[str] | None = None,
    min_length: int = 1,
    max_length: int = 10**7,
) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, str):
            return [f"{name} must be a string"]
        if one_of is not None and value not in one_of:
            return [f"{name} must be one of: {', '.join(one_of)}"]
        if len(value) < min_length:
            least = f"at least {min_length} characters"
            return [f"{name} must {'be ' + least if value else 'not be empty'}"]
        if len(value) > max_length:
            return [f"{name} must be at most {max_length} characters"]
        if pattern is not None and not re.fullmatch(pattern, value):
            return [f"{name} must match {pattern}"]
        return []

    schema: dict[str, Any] = {"type": "string"}
    if one_of is not None:
        schema["enum"] = list(one_of)
    if pattern is not None:
        schema["pattern"] = pattern
    return Check(check, schema)


def integer(*, minimum: int | None = None, maximum: int | None = None) -> Check:
    return _numeric(int, "integer", "an integer", minimum, maximum)


def number(*, minimum: int | None = None, maximum: int | None = None) -> Check:
    return _numeric((int, float), "number", "a number", minimum, maximum)


def _numeric(
    kind: Any, schema_type: str, words: str, minimum: int | None, maximum: int | None
) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if isinstance(value, bool) or not isinstance(value, kind):
            return [f"{name} must be {words}"]
        if minimum is not None and value < minimum:
            return [f"{name} must not be less than {minimum}"]
        if maximum is not None and value > maximum:
            return [f"{name} must not be greater than {maximum}"]
        return []

    schema: dict[str, Any] = {"type": schema_type}
    if minimum is not None:
        schema["minimum"] = minimum
    if maximum is not None:
        schema["maximum"] = maximum
    return Check(check, schema)


boolean = Check(
    lambda value, name: [] if isinstance(value, bool) else [f"{name} must be a boolean"],
    {"type": "boolean"},
)
anything = Check(lambda _value, _name: [])
mapping = Check(
    lambda value, name: [] if isinstance(value, dict) else [f"{name} must be an object"],
    {"type": "object", "additionalProperties": True},
)


def json_text(value: Any, name: str) -> list[str]:
    """A further rule for strings: the string is JSON."""
    try:
        json.loads(value)
    except ValueError:
        return [f"{name} must be JSON text"]
    return []


def array(item: Check, *, minimum: int = 0, maximum: int | None = None) -> Check:
    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, list):
            return [f"{name} must be an array"]
        if len(value) < minimum:
            return [f"{name} must contain at least {minimum} elements"]
        if maximum is not None and len(value) > maximum:
            return [f"{name} must contain no more than {maximum} elements"]
        return [m for index, one in enumerate(value) for m in item(one, f"{name}[{index}]")]

    return Check(check, {"type": "array", "items": dict(item.schema)}, item=item)


def either(*checks: Check) -> Check:
    """Return a check for values that one of ``checks`` accepts."""

    def check(value: Any, name: str) -> list[str]:
        verdicts = [one(value, name) for one in checks]
        return [] if [] in verdicts else [" or ".join(verdict[0] for verdict in verdicts)]

    return Check(check, {"oneOf": [dict(one.schema) for one in checks]})


def structure(fields: Fields) -> Check:
    required = [name for name, item in fields.items() if item.required]

    def check(value: Any, name: str) -> list[str]:
        if not isinstance(value, dict):
            return [f"{name or 'the body'} must be an object"]
        prefix = f"{name}." if name else ""
        messages = [
            f"property {prefix}{key} should not exist" for key in value if key not in fields
        ]
        messages += [f"{prefix}{key} is required" for key in required if key not in value]
        for key, item in value.items():
            if key in fields:
                messages += fields[key](item, prefix + key)
        return messages

    schema: dict[str, Any] = {
        "type": "object",
        "properties": {key: dict(item.schema) for key, item in fields.items()},
    }
    if required:
        schema["required"] = required
    return Check(check, schema)


def nullable(check: Check) -> Check:
    return replace(
        check,
        rule=lambda value, name: [] if value is None else check(value, name),
        schema={"oneOf": [dict(check.schema), {"type": "null"}]},
    )


def nullable_fields(fields: Fields) -> Check:
    """Return fields whose optional ones may be null, as the management API declares them."""
    return structure(
        {key: check if check.required else nullable(check) for key, check in fields.items()}
    )


def needed(check: Check) -> Check:
    """Return the same check for a required field or query parameter."""
    return replace(check, required=True)


def needing(fields: Fields, *names: str) -> Fields:
    """Return the same fields, with these fields required."""
    return {**fields, **{name: needed(fields[name]) for name in names}}


def query_values(
    fields: Fields, parameters: Collection[tuple[str, str]]
) -> tuple[dict[str, Any], list[str]]:
    """Parse query parameters: a string becomes a number or a boolean if its check requires it."""
    values: dict[str, Any] = {}
    given: dict[str, list[str]] = {}
    for key, text in parameters:
        given.setdefault(key, []).append(text)
    messages = [f"property {key} should not exist" for key in given if key not in fields]
    messages += [
        f"{key} is required" for key, one in fields.items() if one.required and key not in given
    ]
    for key, texts in given.items():
        check = fields.get(key)
        if check is None:
            continue
        if check.item is None and len(texts) > 1:
            messages.append(f"{key} must be given once")
            continue
        read = [_query_value(check.item or check, text, key) for text in texts]
        broken = [message for _, verdict in read for message in verdict]
        messages += broken
        if not broken:
            values[key] = read[0][0] if check.item is None else [value for value, _ in read]
    return values, messages


def _query_value(check: Check, text: str, name: str) -> tuple[Any, list[str]]:
    candidates: list[Any] = [text]
    if re.fullmatch(r"-?\d{1,18}", text):
        candidates.insert(0, int(text))
    if text in ("true", "false"):
        candidates.insert(0, text == "true")
    verdicts = [check(candidate, name) for candidate in candidates]
    for candidate, broken in zip(candidates, verdicts, strict=True):
        if not broken:
            return candidate, []
    return None, verdicts[0]
