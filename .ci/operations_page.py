"""Writes docs/reference/operations.md from the table of operations.

--check says whether the page is current.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from pydantic.alias_generators import to_snake

from airflow_provider_platform.client.operations_table import OperationRow, operations, resolved

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "operations.md"
HEAD = """# Every operation

Call an operation by its id, in a task of your own or as a task:

```python
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.api import PlatformApiOperator

folder = PlatformHook().call("createFolder", body={"name": "March", "parentId": 11})
reports = list(PlatformHook().iterate("getReports", query={"search": "revenue"}))

PlatformApiOperator(
    task_id="rename", operation="updateFolder", ids={"folder_id": 11}, body={"name": "April"}
)
```

`deployment_id` can be left out of every call: the default is the connection's deployment. A `*`
marks a field that the platform requires.
"""
MADE = "This page is generated from the table of operations: `make operations`."


def page() -> str:
    """Return the whole page: a section for each resource, in the order of the table."""
    sections: dict[str, list[OperationRow]] = {}
    for operation in operations().values():
        sections.setdefault(_resource(operation.path), []).append(operation)
    return "\n".join([HEAD, *(_section(*one) for one in sections.items()), MADE, ""])


def _resource(path: str) -> str:
    """Return the last step of the path that names a resource: the title of its section."""
    steps = path.partition("/v1/")[2].replace("deployments/{deploymentId}/", "").split("/")
    return steps[0].replace("-", " ").capitalize()


def _section(title: str, found: list[OperationRow]) -> str:
    return "\n".join([f"## {title}", "", *(_entry(one) for one in found), ""])


def _entry(operation: OperationRow) -> str:
    verb = "iterate" if operation.is_list else "call"
    ids = [to_snake(name) for name in operation.ids if name != "deploymentId"]
    arguments = [f'"{operation.id}"', *(f"{name}=…" for name in ids)]
    body = resolved(operation.body or {})
    parts = {"query": operation.query, "body": body}
    arguments += [f"{name}={{…}}" for name, schema in parts.items() if schema.get("required")]
    lines = [f"- `{verb}({', '.join(arguments)})`: `{operation.method} {operation.path}`"]
    lines += [
        f"    - {name}: {fields}" for name, schema in parts.items() if (fields := _fields(schema))
    ]
    if operation.body is not None and not _fields(body):
        lines.append("    - body: any JSON object")
    notes = []
    if operation.needs:
        notes.append(f"needs {operation.needs}")
    if operation.media:
        notes.append(
            f"returns a file ({', '.join(operation.media)}): call it in a task of your own"
        )
    return "\n".join([*lines, *([f"    - {'; '.join(notes)}"] if notes else [])])


def _fields(schema: dict[str, Any]) -> str:
    required = schema.get("required", ())
    return ", ".join(
        f"`{name}`{'*' if name in required else ''} ({_type(field)})"
        for name, field in schema.get("properties", {}).items()
    )


def _type(schema: dict[str, Any]) -> str:
    """Return the type of a field in a few words; choices are listed."""
    if "anyOf" in schema:
        kinds = [_type(one) for one in schema["anyOf"] if one != {"type": "null"}]
        return " or ".join(dict.fromkeys(kinds))
    schema = resolved(schema)
    if "enum" in schema:
        return " or ".join(f"`{one}`" for one in schema["enum"] if one is not None)
    found = schema.get("type", "any")
    kinds = [one for one in ([found] if isinstance(found, str) else found) if one != "null"]
    if kinds == ["array"]:
        return f"list of {_type(schema.get('items', {}))}"
    return " or ".join(kinds)


def main() -> int:
    """Write the page; with `--check`, only compare it."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
    if not current:
        print("docs/reference/operations.md is not current. Run `make operations`.")
    return 0 if current else 1


if __name__ == "__main__":
    raise SystemExit(main())
