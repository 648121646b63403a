"""Every operation of the management API, and checks of what is sent to it.

``operations.json`` is made from the service's OpenAPI document. Its
schemas are JSON Schema. A message of a check names the field and the rule, and never the value.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cache, cached_property
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError
    from jsonschema.protocols import Validator


Schema = dict[str, Any]


class Problem(NamedTuple):
    """A rule that a value breaks. ``field`` is the position of the value, empty for the whole."""

    field: str
    rule: str
    is_unknown: bool = False
    """Whether the schema does not name the field."""
    close: str | None = None
    """The known field that an unknown name resembles."""
    format: str | None = None
    """The format that a string does not have."""

    def __str__(self) -> str:
        return f"property {self.field} should not exist" if self.is_unknown else self.rule


@dataclass(frozen=True)
class OperationRow:
    """One operation. ``path`` begins at the tenant's host, and has its parameters in braces.

    ``texts`` are the path parameters that are strings, ``untyped`` those that the document gives no
    type; all others are whole numbers. ``newest`` is True if only the newest tenant has the
    operation, and not one that has only what the service description shows. ``needs`` is the
    permission that the operation requires.
    """

    id: str
    method: str
    path: str
    texts: tuple[str, ...] = ()
    untyped: tuple[str, ...] = ()
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
    newest: bool = False
    needs: str | None = None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        """The names of the path parameters, as the service spells them."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def query_schema(self) -> Schema:
        """The schema of the query parameters, also if there are none."""
        return self.query or {"type": "object", "properties": {}}

    @cached_property
    def is_list(self) -> bool:
        """Whether the answer is a list. Of an open schema, the name of the operation says so."""
        answer = resolved(self.answer or {})
        has_rows = bool({"items", "data"} & answer.get("properties", {}).keys())
        named = self.paging is not None or self.id.startswith("list")
        return self.method == "GET" and (named or has_rows or answer.get("type") == "array")

    def body_problems(self, document: Any) -> list[str]:
        """Return a message for each rule that the body breaks, unknown fields included."""
        if self.body is None:
            return [] if document in (None, {}) else ["the operation takes no body"]
        return problems(self.body, document)


@cache
def operations() -> dict[str, OperationRow]:
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
    """Return a message for each rule of ``schema`` that ``value`` breaks, as ``broken_rules``."""
    return [str(problem) for problem in broken_rules(schema, value, strict=strict)]


def broken_rules(schema: Schema, value: Any, *, strict: bool = True) -> list[Problem]:
    """Return the rules of ``schema`` that ``value`` breaks.

    With ``strict``, as for requests, fields that the schema does not name are refused, unless it
    allows them.
    """
    found = _validator(json.dumps(schema), strict).iter_errors(value)
    return [problem for error in found for problem in _problems(error)]


def fit(schema: Schema, value: Any, *, rendered: bool = False) -> Any:
    """Return the value as the schema writes it: names in snake_case get the service's spelling, a
    tuple becomes a list, and a ``SecretStr`` its text. With ``rendered``, as for templates, a
    string becomes the number, boolean, list or object that the schema wants, and a number the
    string that it wants.
    """
    forms = [resolved(form) for form in (schema, *resolved(schema).get("anyOf", ()))]
    if isinstance(value, Mapping):
        fields: Schema = {}
        for form in forms:
            fields |= form.get("properties", {})
        named = {_spelled(name, fields): item for name, item in value.items()}
        return {
            name: fit(fields.get(name, {}), item, rendered=rendered) for name, item in named.items()
        }
    if isinstance(value, list | tuple):
        items: Schema = next((form["items"] for form in forms if "items" in form), {})
        return [fit(items, item, rendered=rendered) for item in value]
    if hasattr(value, "get_secret_value"):
        return value.get_secret_value()
    types = {name for form in forms for name in _types(form.get("type", []))}
    if rendered and isinstance(value, str) and types and "string" not in types:
        return _parsed(value)
    if rendered and types == {"string"} and type(value) in (int, float):
        return str(value)
    return value


def _spelled(name: Any, fields: Schema) -> Any:
    """Return the service's spelling of a field's name."""
    if name in fields or not isinstance(name, str):
        return name
    spelled = re.sub(r"_(\w)", lambda match: match[1].upper(), name)
    return spelled if spelled in fields else name


def _parsed(text: str) -> Any:
    """Return the value that a template rendered as this text, or the text if it is none."""
    for candidate in (text, text.lower()):
        try:
            parsed = json.loads(candidate)
        except ValueError:
            continue
        return text if parsed is None else parsed
    return text


@cache
def _table() -> dict[str, Any]:
    content = files(__package__).joinpath("operations.json").read_text("utf-8")
    table: dict[str, Any] = json.loads(content)
    return table


def _operation(name: str, entry: dict[str, Any]) -> OperationRow:
    return OperationRow(
        name,
        entry["method"],
        entry["path"],
        texts=tuple(entry.get("texts", ())),
        untyped=tuple(entry.get("untyped", ())),
        query=entry.get("query", {}),
        paging=entry.get("paging"),
        body=entry.get("body"),
        body_required=entry.get("bodyRequired", False),
        status=entry.get("status", 200),
        answer=entry.get("answer"),
        media=tuple(entry.get("media", ())),
        newest=entry.get("newest", False),
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


def _problems(error: ValidationError) -> list[Problem]:
    """Return the field and the rule of one error."""
    name, rule, value = _name(error), str(error.validator), error.validator_value
    if rule == "unknown":
        known = error.schema["properties"] if isinstance(error.schema, dict) else {}
        close = get_close_matches(_spelled(value, {}), known, n=1)
        return [Problem(_inside(name, value), "", is_unknown=True, close=next(iter(close), None))]
    if rule == "required":
        # jsonschema reports each missing field on its own.
        missing = [one for one in value if error.message.startswith(repr(one))]
        return [Problem(_inside(name, one), f"{_inside(name, one)} is required") for one in missing]
    if rule == "anyOf":
        return _of_choices(error)
    format_name = value if rule == "format" else None
    return [Problem(name, f"{name or 'the body'} must {_rule(rule, value)}", format=format_name)]


def _name(error: ValidationError) -> str:
    name = ""
    for step in error.absolute_path:
        name += f"[{step}]" if isinstance(step, int) else f".{step}" if name else str(step)
    return name


def _inside(name: str, field_name: str) -> str:
    return f"{name}.{field_name}" if name else field_name


def _of_choices(error: ValidationError) -> list[Problem]:
    """Return what is wrong with a value of several forms: the rules of the form of its type."""
    choices: dict[Any, list[ValidationError]] = {}
    for inner in error.context or ():
        choices.setdefault(inner.relative_schema_path[0], []).append(inner)
    name, other_types = _name(error), []
    label = name or "the body"
    for errors in choices.values():
        mismatch = [one for one in errors if one.validator == "type" and not one.relative_path]
        if mismatch:
            other_types += _types(mismatch[0].validator_value)
            del errors[:]
    fitting = [errors for errors in choices.values() if errors]
    if len(fitting) == 1:
        return [problem for inner in fitting[0] for problem in _problems(inner)]
    if fitting:
        return [Problem(name, f"{label} must have one of its allowed forms")]
    return [Problem(name, f"{label} must be {' or '.join(map(_type, other_types))}")]


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
