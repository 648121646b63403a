"""Write airflow_provider_platform/client/operations.json from the service's OpenAPI document.

    python .ci/operations_table.py DOCUMENT

The table keeps names, types and rules of every operation, and no sentence of the document. Where
the service description or the changelog decide otherwise, operations_differences.yaml says so: it
is merged into what the document says. Schemas that the document marks as incomplete are open.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

TABLE = Path(__file__).parents[1] / "airflow_provider_platform/client/operations.json"
DIFFERENCES = Path(__file__).with_name("operations_differences.yaml")
METHODS = ("get", "post", "put", "patch", "delete")
RULES = (
    *("type", "format", "enum", "pattern", "required"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
)
OPEN: dict[str, Any] = {}
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast as the one in Python

Schema = dict[str, Any]


def table(document: dict[str, Any], differences: dict[str, Any]) -> dict[str, Any]:
    """Return the operations by id, and the schemas to which they refer."""
    reader = _Reader(document["components"]["schemas"])
    operations = {
        content["operationId"]: reader.operation(method, path, content)
        for path, item in document["paths"].items()
        for method, content in item.items()
        if method in METHODS
    }
    schemas = {name: reader.schema(schema) for name, schema in reader.schemas.items()}
    made = {"operations": operations, "$defs": schemas}
    _merge(made, {"operations": differences["operations"], "$defs": differences["schemas"]})
    for name in differences["newest"]:
        operations[name]["newest"] = True
    for permission, names in differences["needs"].items():
        for name in names:
            operations[name]["needs"] = permission
    for name in differences["newest_fields"]:
        schema, _, field = name.partition(".")
        schemas[schema]["properties"][field]["newest"] = True
    made["$defs"] = {name: schemas[name] for name in sorted(_used(operations, schemas))}
    return made


def as_text(made: dict[str, Any]) -> str:
    """Return the table as JSON with one operation or schema in each line."""
    parts = []
    for part, entries in made.items():
        lines = [
            f"{json.dumps(name)}:{json.dumps(entry, separators=(',', ':'), ensure_ascii=False)}"
            for name, entry in entries.items()
        ]
        parts.append(f'"{part}":{{\n' + ",\n".join(lines) + "\n}")
    return "{" + ",\n".join(parts) + "}\n"


def read(document: Path) -> dict[str, Any]:
    """Return the table of the OpenAPI document in this file."""
    content, differences = document.read_text(), DIFFERENCES.read_text()
    return table(yaml.load(content, _LOADER), yaml.load(differences, _LOADER))


class _Reader:
    """Reads operations and schemas of one document, without its sentences."""

    def __init__(self, schemas: dict[str, Schema]) -> None:
        self.schemas = schemas

    def operation(self, method: str, path: str, content: dict[str, Any]) -> dict[str, Any]:
        made: dict[str, Any] = {"method": method.upper(), "path": path}
        parameters = content.get("parameters", [])
        texts = [
            one["name"]
            for one in parameters
            if one["in"] == "path" and one["schema"].get("type") == "string"
        ]
        # One operation of the document types a deployment's id as a string, all others as a number.
        if texts := [name for name in texts if name != "deploymentId"]:
            made["texts"] = texts
        in_path = [one for one in parameters if one["in"] == "path"]
        if untyped := [one["name"] for one in in_path if not one["schema"]]:
            made["untyped"] = untyped
        query = [one for one in parameters if one["in"] == "query"]
        if query:
            made["query"] = {
                "type": "object",
                "properties": {one["name"]: self.schema(one["schema"]) for one in query},
            }
            if required := [one["name"] for one in query if one.get("required")]:
                made["query"]["required"] = required
        if {"first", "after"} <= {one["name"] for one in query}:
            made["paging"] = "cursor"
        if body := content.get("requestBody"):
            made["body"] = self.schema(body["content"]["application/json"]["schema"])
            if body.get("required"):
                made["bodyRequired"] = True
        elif "x-incomplete" in content and method in ("put", "patch"):
            made["body"] = OPEN
        made |= self._answer(content["responses"])
        return made

    def _answer(self, responses: dict[str, Any]) -> dict[str, Any]:
        """Return the schema of a success, with its status if it is not 200."""
        status = max(code for code in responses if code.startswith("2"))
        made: dict[str, Any] = {} if status == "200" else {"status": int(status)}
        media: dict[str, Any] = responses[status].get("content", {})
        if "application/json" in media:
            made["answer"] = self.schema(media["application/json"].get("schema", OPEN))
        elif media:
            made["media"] = sorted(media)
        return made

    def schema(self, schema: Schema) -> Schema:
        """Return the rules of a schema. References to anything but an object are resolved."""
        if "x-incomplete" in schema:
            return OPEN
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            target = self.schemas[name]
            if "properties" in target or "x-incomplete" in target:
                return {"$ref": f"#/$defs/{name}"}
            return self.schema(target)
        choices = schema.get("oneOf") or schema.get("anyOf")
        if choices:
            return _either([self.schema(choice) for choice in choices])
        made: Schema = {name: schema[name] for name in RULES if name in schema}
        if "properties" in schema:
            properties = schema["properties"].items()
            made["properties"] = {name: self.schema(value) for name, value in properties}
        if "items" in schema:
            made["items"] = self.schema(schema["items"])
        more = schema.get("additionalProperties")
        if more is not None:
            made["additionalProperties"] = self.schema(more) if isinstance(more, dict) else more
        return made


def _either(choices: list[Schema]) -> Schema:
    """Return one schema for values that fit one of ``choices``."""
    null = {"type": "null"}
    rest = [choice for choice in choices if choice != null]
    formats = {choice.get("format") for choice in rest}
    if formats == {"date", "date-time"}:
        rest = [{"type": "string"}]  # A date or a time.
    if all(choice.keys() == {"type"} for choice in rest):
        types = [choice["type"] for choice in rest] + ["null"] * (null in choices)
        return {"type": types if len(types) > 1 else types[0]}
    if len(rest) == 1 and isinstance(rest[0].get("type"), str) and null in choices:
        made = {**rest[0], "type": [rest[0]["type"], "null"]}
        return {**made, "enum": [*made["enum"], None]} if "enum" in made else made
    return rest[0] if len(choices) == 1 else {"anyOf": choices}


def _merge(target: dict[str, Any], changes: dict[str, Any]) -> None:
    """Merge ``changes`` into ``target``; None takes a key away."""
    for name, value in changes.items():
        if value is None:
            target.pop(name, None)
        elif isinstance(value, dict):
            _merge(target.setdefault(name, {}), value)
        else:
            target[name] = value


def _used(operations: dict[str, Any], schemas: dict[str, Schema]) -> set[str]:
    """Return the names of the schemas to which operations refer, also through other schemas."""
    names: set[str] = set()
    left: list[Any] = list(operations.values())
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left += value.values()
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in names:
                names.add(name)
                left.append(schemas[name])
        elif isinstance(value, list):
            left += value
    return names


if __name__ == "__main__":
    TABLE.write_text(as_text(read(Path(sys.argv[1]))))
