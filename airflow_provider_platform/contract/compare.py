"""Compares declared operations with the operations of an OpenAPI document."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, TypeAdapter

from airflow_provider_platform.client.operations.operation import METHODS
from airflow_provider_platform.client.operations.paging import Page
from airflow_provider_platform.contract.schemas import ANY_TYPE, Shape

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from airflow_provider_platform.client.operations.operation import Endpoint

_PREFIX = {"management": "", "build": "/build/api"}
_METHODS = tuple(method.lower() for method in METHODS)


class Severity(StrEnum):
    """What a difference means for those who use the declarations."""

    BREAK = "break"
    """What is declared is not there, is refused or cannot be read."""
    ADDITION = "addition"
    """The document has more than is declared: all that is declared works on."""


@dataclass(frozen=True, order=True)
class Difference:
    """One place where declaration and document differ: `POST /v1/x`, `body.filters[]`, what.

    `paged` says that the operation is declared to answer with pages, `incomplete` that the document
    says of itself that it does not know all of the operation.
    """

    operation: str
    place: str
    problem: str
    severity: Severity = field(default=Severity.BREAK, compare=False)
    paged: bool = field(default=False, compare=False)
    incomplete: bool = field(default=False, compare=False)

    def __str__(self) -> str:
        return f"{self.severity} | {self.operation} | {self.place} | {self.problem}"


@dataclass(frozen=True)
class Described:
    """An operation of the document."""

    path: str
    method: str
    content: dict[str, Any]
    document: dict[str, Any]

    @property
    def name(self) -> str:
        """As differences name it."""
        return f"{self.method} {self.path}"

    @property
    def incomplete(self) -> bool:
        """Whether the document says that it does not know all of this operation."""
        return "x-incomplete" in self.content

    def parameters(self, place: str) -> dict[str, dict[str, Any]]:
        """Parameters in `query` or `path`, by name."""
        entries = self.content.get("parameters", [])
        return {item["name"]: item for item in entries if item.get("in") == place}

    def body(self) -> Shape | None:
        """What is sent."""
        return self._json(self.content.get("requestBody", {}))

    @property
    def body_required(self) -> bool:
        """Whether a request needs a body."""
        return self.content.get("requestBody", {}).get("required") is True

    def answer(self) -> Shape | None:
        """What a success brings, as JSON."""
        for status, response in self.content.get("responses", {}).items():
            if str(status).startswith("2"):
                schema = self._json(response)
                if schema is not None:
                    return schema
        return None

    def _json(self, holder: Mapping[str, Any]) -> Shape | None:
        schema = holder.get("content", {}).get("application/json", {}).get("schema")
        return Shape(schema, self.document) if schema else None


def described_operations(document: dict[str, Any]) -> list[Described]:
    """The operations of a document; paths as the client writes them, below `/api`."""
    return [
        Described(path.removeprefix("/api"), method.upper(), content, document)
        for path, item in document.get("paths", {}).items()
        for method, content in item.items()
        if method in _METHODS
    ]


def compare(endpoints: Iterable[Endpoint[..., Any]], document: dict[str, Any]) -> list[Difference]:
    """All differences between the declarations and the document, in both directions."""
    described = {operation.name: operation for operation in described_operations(document)}
    differences: list[Difference] = []
    declared: set[str] = set()
    for endpoint in endpoints:
        name = f"{endpoint.method} {_PREFIX[endpoint.api]}{endpoint.path}"
        declared.add(name)
        if name in described:
            paged = _is_page(endpoint.answer)
            differences += [
                Difference(name, *rest, paged=paged)
                for rest in _operation(endpoint, described[name])
            ]
        else:
            differences.append(Difference(name, "operation", "not in the document"))
    for name, operation in described.items():
        if name not in declared:
            more = operation.incomplete
            detail = "incomplete in the document" if more else "not declared"
            differences.append(
                Difference(name, "operation", detail, Severity.ADDITION, incomplete=more),
            )
    return sorted(set(differences))


_Finding = tuple[str, str, Severity]


def _operation(endpoint: Endpoint[..., Any], described: Described) -> Iterator[_Finding]:
    operation_id = described.content.get("operationId")
    if operation_id is not None and operation_id != endpoint.operation_id:
        yield "operation", f"is called {operation_id} in the document", Severity.ADDITION
    yield from _query(endpoint, described)
    if described.incomplete:
        return
    yield from _body(endpoint, described)
    yield from _answer(endpoint, described)


def _query(endpoint: Endpoint[..., Any], described: Described) -> Iterator[_Finding]:
    ours = _model_shape(endpoint.query)
    properties = ours.properties if ours else {}
    theirs = described.parameters("query")
    for name in sorted(set(properties) | set(theirs)):
        place = f"query.{name}"
        if name not in theirs:
            yield place, "not in the document", Severity.BREAK
        elif name not in properties:
            yield place, *_undeclared(required=theirs[name].get("required") is True)
        else:
            shape = Shape(theirs[name].get("schema", {}), described.document)
            yield from _value(place, properties[name], shape, sent=True, seen=set())
            if theirs[name].get("required") and ours and name not in ours.required:
                yield place, "required in the document, optional here", Severity.BREAK


def _undeclared(*, required: bool) -> tuple[str, Severity]:
    """What the document has more: nothing breaks, unless the service refuses to do without it."""
    if required:
        return "required in the document, not declared", Severity.BREAK
    return "not declared", Severity.ADDITION


def _body(endpoint: Endpoint[..., Any], described: Described) -> Iterator[_Finding]:
    ours, theirs = _model_shape(endpoint.body), described.body()
    if ours is None and theirs is not None:
        yield "body", *_undeclared(required=described.body_required)
    elif ours is not None and theirs is None:
        yield "body", "not in the document", Severity.BREAK
    elif ours is not None and theirs is not None:
        yield from _value("body", ours, theirs, sent=True, seen=set())


def _answer(endpoint: Endpoint[..., Any], described: Described) -> Iterator[_Finding]:
    theirs = described.answer()
    if endpoint.binary:
        if theirs is not None:
            yield "answer", "is JSON in the document, binary here", Severity.BREAK
        return
    ours = None if endpoint.answer is type(None) else _model_shape(endpoint.answer)
    if ours is None or theirs is None:
        if theirs is not None:
            yield "answer", "not declared", Severity.ADDITION
        elif ours is not None:
            yield "answer", "not in the document", Severity.BREAK
        return
    if _is_page(endpoint.answer) and theirs.types == {"array"}:
        ours = ours.properties["items"]
    there = theirs.properties
    older = _is_page(endpoint.answer) and "data" in there and "items" not in there
    for place, problem, severity in _value("answer", ours, theirs, sent=False, seen=set()):
        if not (older and place in ("answer.items", "answer.pageInfo")):
            yield place, problem, severity


def _value(
    place: str, ours: Shape, theirs: Shape, *, sent: bool, seen: set[tuple[str, str]]
) -> Iterator[_Finding]:
    """Compares what is sent (ours must be allowed) or what comes (theirs must be readable)."""
    key = (str(ours.schema), str(theirs.schema))
    if key in seen:
        return
    seen = seen | {key}
    our_types, their_types = ours.types, theirs.types
    missing = our_types - their_types if sent else their_types - our_types
    if missing and our_types != ANY_TYPE:
        names = ", ".join(sorted(missing))
        problem = (
            f"{names} not in the document" if sent else f"{names} not readable in this provider"
        )
        yield place, problem, Severity.BREAK
        return
    yield from _enum(place, ours, theirs, sent=sent)
    if ours.items is not None and theirs.items is not None:
        yield from _value(f"{place}[]", ours.items, theirs.items, sent=sent, seen=seen)
    if ours.properties:
        yield from _fields(place, ours, theirs, sent=sent, seen=seen)


def _enum(place: str, ours: Shape, theirs: Shape, *, sent: bool) -> Iterator[_Finding]:
    if not sent or (ours.enum is None and theirs.enum is None):
        return
    if ours.enum is None or theirs.enum is None:
        if ours.enum is None:
            yield place, "any string in this provider, an enum in the document", Severity.BREAK
        else:
            yield place, "an enum in this provider only", Severity.ADDITION
        return
    for value in sorted(ours.enum - theirs.enum):
        yield place, f"value {value} not in the document", Severity.BREAK
    for value in sorted(theirs.enum - ours.enum):
        yield place, f"value {value} not declared", Severity.ADDITION


def _fields(
    place: str, ours: Shape, theirs: Shape, *, sent: bool, seen: set[tuple[str, str]]
) -> Iterator[_Finding]:
    our_fields, their_fields = ours.properties, theirs.properties
    for name in sorted(set(our_fields) | set(their_fields)):
        where = f"{place}.{name}"
        if name not in their_fields:
            if not theirs.incomplete:
                yield where, "not in the document", Severity.BREAK
        elif name not in our_fields:
            yield where, *_undeclared(required=sent and name in theirs.required)
        else:
            if sent and our_fields[name].nullable and not their_fields[name].nullable:
                yield where, "null not in the document", Severity.BREAK
            yield from _value(where, our_fields[name], their_fields[name], sent=sent, seen=seen)
    if sent:
        for name in sorted((theirs.required & set(our_fields)) - ours.required):
            yield f"{place}.{name}", "required in the document, optional here", Severity.BREAK
    else:
        for name in sorted((ours.required & set(their_fields)) - theirs.required):
            yield f"{place}.{name}", "required here, optional in the document", Severity.BREAK


def _model_shape(model: Any) -> Shape | None:
    if model is None:
        return None
    is_model = isinstance(model, type) and issubclass(model, BaseModel)
    schema = model.model_json_schema() if is_model else TypeAdapter(model).json_schema()
    return Shape(schema, schema)


def _is_page(answer: Any) -> bool:
    return isinstance(answer, type) and issubclass(answer, Page)
