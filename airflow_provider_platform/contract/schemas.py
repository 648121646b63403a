"""JSON Schema, as far as comparing two schemas needs it: references, alternatives, types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ANY_TYPE = frozenset({"string", "number", "boolean", "array", "object"})


@dataclass(frozen=True)
class Shape:
    """A schema and the document that its references point into."""

    schema: dict[str, Any]
    document: dict[str, Any]

    def at(self, schema: dict[str, Any]) -> Shape:
        """Another schema of the same document."""
        return Shape(schema, self.document)

    def alternatives(self) -> Iterator[Shape]:
        """The schemas that a value may have, references followed, `null` left out."""
        schema = self.schema
        if "$ref" in schema:
            yield from self.at(self._follow(schema["$ref"])).alternatives()
            return
        choices = schema.get("oneOf") or schema.get("anyOf")
        if not choices and len(schema.get("allOf", ())) == 1:
            choices = schema["allOf"]
        if not choices:
            if schema.get("type") != "null":
                yield self
            return
        for choice in choices:
            yield from self.at(choice).alternatives()

    def _follow(self, reference: str) -> dict[str, Any]:
        node: Any = self.document
        for step in reference.removeprefix("#/").split("/"):
            node = node[step]
        target: dict[str, Any] = node
        return target

    @property
    def types(self) -> frozenset[str]:
        """The JSON types that a value may have; a number is a number, whole or not."""
        types: set[str] = set()
        for shape in self.alternatives():
            declared = shape.schema.get("type")
            names = (
                [declared]
                if isinstance(declared, str)
                else list(declared or _implied(shape.schema))
            )
            types.update("number" if name == "integer" else name for name in names)
        return frozenset(types - {"null"})

    @property
    def nullable(self) -> bool:
        """Whether a value may be `null`."""
        schema = self.schema
        if "$ref" in schema:
            return self.at(self._follow(schema["$ref"])).nullable
        choices = [choice for key in ("oneOf", "anyOf", "allOf") for choice in schema.get(key, ())]
        if choices:
            return any(self.at(choice).nullable for choice in choices)
        declared = schema.get("type")
        names = [declared] if isinstance(declared, str) else list(declared or ())
        return (
            "null" in names
            or schema.get("nullable") is True
            or (not names and _implied(schema) == ANY_TYPE)
        )

    @property
    def enum(self) -> frozenset[str] | None:
        """The values that a text may have; None where any may be."""
        values: set[str] = set()
        for shape in self.alternatives():
            members = shape.schema.get(
                "enum", [shape.schema[k] for k in ("const",) if k in shape.schema]
            )
            if not members:
                return None
            values.update(str(value) for value in members if value is not None)
        return frozenset(values)

    @property
    def properties(self) -> dict[str, Shape]:
        """The fields of an object, of all its alternatives."""
        return {
            name: shape.at(schema)
            for shape in self.alternatives()
            for name, schema in shape.schema.get("properties", {}).items()
        }

    @property
    def required(self) -> frozenset[str]:
        """The fields that an object must have, whichever alternative it is."""
        sets = [frozenset(shape.schema.get("required", ())) for shape in self.alternatives()]
        return frozenset.intersection(*sets) if sets else frozenset()

    @property
    def items(self) -> Shape | None:
        """What an array holds."""
        for shape in self.alternatives():
            if shape.schema.get("items"):
                return shape.at(shape.schema["items"])
        return None

    @property
    def incomplete(self) -> bool:
        """Whether the document says of itself that this is not all."""
        return any("x-incomplete" in shape.schema for shape in self.alternatives())


def _implied(schema: dict[str, Any]) -> frozenset[str]:
    if "properties" in schema:
        return frozenset({"object"})
    if "items" in schema:
        return frozenset({"array"})
    if "enum" in schema or "const" in schema:
        return frozenset({"string"})
    return ANY_TYPE
