"""Every operation of the management API, and checks of what is sent to it.

``operations.json`` is made from the service's OpenAPI document. Its
schemas are JSON Schema. A message of a check names the field and the rule, and never the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator

Schema = dict[str, Any]


@dataclass(frozen=True)
class Operation:
    """One operation. ``path`` begins at the tenant's host, and has its parameters in braces.

    ``texts`` are the path parameters that are strings; all others are ids. ``since`` is the release
    that brought the operation, ``needs`` the permission that it requires.
    """

    id: str
    method: str
    path: str
    texts: tuple[str, ...] = ()
    query: Schema = field(default_factory=dict)
    """An object schema of the query parameters; empty if there are none."""
    paging: str | None = None
    """``cursor`` if the operation is a list that takes ``first`` and ``after``."""
    body: Schema | None = None
    """None if the operation takes no body."""
    body_required: bool = False
    status: int = 200
    """The status of a success."""
    answer: Schema | None = None
    """None if a success has no body or, with ``media``, a file of these types."""
    media: tuple[str, ...] = ()
    since: str = "0.0.0"
    needs: str | None = None

    def body_problems(self, document: Any) -> list[str]:
        """Return a message for each rule that the body breaks, unknown fields included."""
        if self.body is None:
            return [] if document in (None, {}) else ["the operation takes no body"]
        return problems(self.body, document)

    def query_problems(self, values: dict[str, Any]) -> list[str]:
        """Return a message for each rule that the query breaks, unknown parameters included."""
        return problems(self.query or {"type": "object", "properties": {}}, values)


@cache
def operations() -> dict[str, Operation]:
    """Return all operations by their ids in the service's document."""
    return {name: _operation(name, entry) for name, entry in _table()["operations"].items()}


def definition(name: str) -> Schema:
    """Return the schema of this name."""
    schema: Schema = _table()["$defs"][name]
    return schema


def resolved(schema: Schema) -> Schema:
    """Return the schema itself, or the one that it refers to."""
    return definition(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema


def problems(schema: Schema, value: Any, *, strict: bool = True) -> list[str]:
    """Return a message for each rule of ``schema`` that ``value`` breaks.

    With ``strict``, as for requests, fields that the schema does not name are refused, unless it
    allows them.
    """
    found = _validator(json.dumps(schema), strict).iter_errors(value)
    return [message for error in found for message in _messages(error)]


@cache
def _table() -> dict[str, Any]:
    content = files(__package__).joinpath("operations.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(content)
    return table


def _operation(name: str, entry: dict[str, Any]) -> Operation:
    return Operation(
        name,
        entry["method"],
        entry["path"],
        texts=tuple(entry.get("texts", ())),
        query=entry.get("query", {}),
        paging=entry.get("paging"),
        body=entry.get("body"),
        body_required=entry.get("bodyRequired", False),
        status=entry.get("status", 200),
        answer=entry.get("answer"),
        media=tuple(entry.get("media", ())),
        since=entry.get("since", "0.0.0"),
        needs=entry.get("needs"),
    )


@cache
def _validator(schema: str, strict: bool) -> Validator:
    """Return the compiled check of a schema, which may refer to the schemas of the table."""
    import jsonschema

    kind = jsonschema.Draft202012Validator
    if strict:
        kind = jsonschema.validators.extend(kind, {"properties": _known_properties})
    formats = jsonschema.FormatChecker(formats=())
    for name, check in _FORMATS.items():
        formats.checks(name, raises=(ValueError, KeyError, OSError))(check)
    whole = {"$defs": _table()["$defs"], **json.loads(schema)}
    return kind(whole, format_checker=formats)


def _known_properties(
    validator: Any, properties: Schema, instance: Any, schema: Schema
) -> Iterator[ValidationError]:
    """``properties``, and a refusal of all others unless the schema allows them."""
    import jsonschema

    yield from jsonschema.Draft202012Validator.VALIDATORS["properties"](
        validator, properties, instance, schema
    )
    if isinstance(instance, dict) and "additionalProperties" not in schema:
        for name in instance:
            if name not in properties:
                yield jsonschema.ValidationError(
                    "unknown", validator="unknown", validator_value=name
                )


def _is_url(text: str) -> bool:
    address = urlsplit(text)
    return address.scheme in ("http", "https") and bool(address.netloc)


def _is_json(text: str) -> bool:
    json.loads(text)
    return True


def _is_cron(text: str) -> bool:
    from croniter import croniter

    # Numbers and names of months and days, without further signs that the library knows.
    plain = re.fullmatch(r"(?:[\d*,/\s-]|[A-Za-z]{3})+", text) is not None
    return plain and len(text.split()) == 5 and bool(croniter.is_valid(text))


def _is_timezone(text: str) -> bool:
    return bool(ZoneInfo(text))


def _of_text(check: Callable[[str], bool]) -> Callable[[object], bool]:
    return lambda value: not isinstance(value, str) or check(value)


_FORMATS = {
    "cron": _of_text(_is_cron),
    "email": _of_text(lambda text: "@" in text),
    "json": _of_text(_is_json),
    "timezone": _of_text(_is_timezone),
    "url": _of_text(_is_url),
}
_FORMAT_WORDS = {
    "cron": "a cron expression of five fields",
    "email": "an e-mail address",
    "json": "JSON text",
    "timezone": "an IANA time zone",
    "url": "a URL",
}


def _messages(error: ValidationError) -> list[str]:
    """Return the messages of one error: the field and the rule."""
    name, rule, value = _name(error), str(error.validator), error.validator_value
    if rule == "unknown":
        return [f"property {_inside(name, value)} should not exist"]
    if rule == "required":
        # jsonschema reports each missing field on its own.
        missing = [one for one in value if error.message.startswith(repr(one))]
        return [f"{_inside(name, one)} is required" for one in missing]
    if rule == "anyOf":
        return _of_choices(error)
    return [f"{name or 'the body'} must {_rule(rule, value)}"]


def _name(error: ValidationError) -> str:
    name = ""
    for step in error.absolute_path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else str(step)
    return name


def _inside(name: str, field_name: str) -> str:
    return f"{name}.{field_name}" if name else field_name


def _of_choices(error: ValidationError) -> list[str]:
    """Return what is wrong with a value of several forms: the rules of the form of its type."""
    choices: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        choices.setdefault(inner.relative_schema_path[0], []).append(inner)
    label, other_types = _name(error) or "the body", []
    for errors in choices.values():
        mismatch = [one for one in errors if one.validator == "type" and not one.relative_path]
        if mismatch:
            other_types += _types(mismatch[0].validator_value)
            del errors[:]
    fitting = [errors for errors in choices.values() if errors]
    if len(fitting) == 1:
        return [message for inner in fitting[0] for message in _messages(inner)]
    if fitting:
        return [f"{label} must have one of its allowed forms"]
    return [f"{label} must be {' or '.join(map(_type, other_types))}"]


def _rule(rule: str, value: Any) -> str:
    if rule == "type":
        return f"be {' or '.join(map(_type, _types(value)))}"
    if rule == "enum":
        return f"be one of: {', '.join(str(one) for one in value if one is not None)}"
    if rule == "minLength" and value == 1:
        return "not be empty"
    words = {
        "format": f"be {_FORMAT_WORDS.get(str(value))}",
        "pattern": f"match {value}",
        "minimum": f"not be less than {value}",
        "maximum": f"not be greater than {value}",
        "minLength": f"be at least {value} characters",
        "maxLength": f"be at most {value} characters",
        "minItems": f"contain at least {value} elements",
        "maxItems": f"contain no more than {value} elements",
    }
    return words.get(rule, f"follow the rule {rule}")


def _types(value: Any) -> list[str]:
    """Return the names of types, without null."""
    return [one for one in (value if isinstance(value, list) else [value]) if one != "null"]


def _type(name: str) -> str:
    return f"an {name}" if name in ("object", "array", "integer") else f"a {name}"
