"""Write tests/contract/operations.json, the facts of an OpenAPI document, for the contract check.

    python .ci/operations_snapshot.py DOCUMENT

The snapshot keeps what two programs must agree on: methods, paths, operation ids, parameters,
bodies, answers and the shapes of their values. It keeps no prose, so a clone can hold it where it
cannot hold the document. It is an OpenAPI document itself: the contract check reads both alike.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import yaml

SNAPSHOT = Path(__file__).parents[1] / "tests" / "contract" / "operations.json"
METHODS = ("get", "post", "put", "patch", "delete")
SHAPES = ("items", "additionalProperties", "not")
CHOICES = ("oneOf", "anyOf", "allOf")
LIMITS = (
    *("$ref", "type", "format", "enum", "const", "nullable", "required", "pattern", "default"),
    *("minimum", "maximum", "minLength", "maxLength", "minItems", "maxItems"),
)


def snapshot(document: dict[str, Any]) -> dict[str, Any]:
    """The facts of an OpenAPI document."""
    paths = {
        path: {method: _operation(item[method]) for method in METHODS if method in item}
        for path, item in document["paths"].items()
    }
    schemas = document.get("components", {}).get("schemas", {})
    shapes = {name: _shape(schema) for name, schema in schemas.items()}
    return {"paths": paths, "components": {"schemas": shapes}}


def _operation(content: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    if "operationId" in content:
        facts["operationId"] = content["operationId"]
    for mark in ("deprecated", "x-incomplete"):
        if content.get(mark):
            facts[mark] = True
    if parameters := content.get("parameters"):
        facts["parameters"] = [_parameter(parameter) for parameter in parameters]
    if body := content.get("requestBody"):
        facts["requestBody"] = {"required": body.get("required") is True, **_content(body)}
    facts["responses"] = {
        str(status): _content(response) for status, response in content["responses"].items()
    }
    return facts


def _parameter(parameter: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": parameter["name"],
        "in": parameter["in"],
        "required": parameter.get("required") is True,
        "schema": _shape(parameter["schema"]),
    }


def _content(holder: dict[str, Any]) -> dict[str, Any]:
    """The shape of a body in each of its media types."""
    found = {
        media_type: {"schema": _shape(content["schema"])} if "schema" in content else {}
        for media_type, content in holder.get("content", {}).items()
    }
    return {"content": found} if found else {}


def _shape(schema: Any) -> Any:
    if not isinstance(schema, dict):
        return schema  # `additionalProperties: false`
    facts: dict[str, Any] = {name: schema[name] for name in LIMITS if name in schema}
    if "x-incomplete" in schema:
        facts["x-incomplete"] = True
    facts |= {name: _shape(schema[name]) for name in SHAPES if name in schema}
    facts |= {name: [*map(_shape, schema[name])] for name in CHOICES if name in schema}
    if "properties" in schema:
        facts["properties"] = {name: _shape(of) for name, of in schema["properties"].items()}
    return facts


def as_text(facts: dict[str, Any]) -> str:
    """JSON with a line for each path and each schema."""

    def lines(of: dict[str, Any]) -> str:
        return ",\n".join(f"{json.dumps(name)}: {json.dumps(of[name])}" for name in sorted(of))

    schemas = facts["components"]["schemas"]
    return (
        f'{{"paths": {{\n{lines(facts["paths"])}\n}},\n'
        f'"components": {{"schemas": {{\n{lines(schemas)}\n}}}}}}\n'
    )


if __name__ == "__main__":
    [source] = sys.argv[1:]
    document = yaml.safe_load(Path(source).read_text(encoding="utf-8"))
    SNAPSHOT.write_text(as_text(snapshot(document)), encoding="utf-8")
    print(f"{SNAPSHOT.name}: {len(document['paths'])} paths")
