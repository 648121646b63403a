"""Writes docs/operations.md from the declared operations; --check says whether it is current."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.management.registry import declared_endpoints

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations.operation import Endpoint

PAGE = Path(__file__).parents[1] / "docs" / "operations.md"
HEAD = """# Every operation

An operation is called, and its answer is typed, as in

```python
from airflow_provider_platform.client.management.reports.reports import get_report
from airflow_provider_platform.hooks.platform import PlatformHook

report = PlatformHook().run(get_report(report_id=101))
```

A list is read by `hook.iterate(...)`, page by page. `deployment_id` can be left out: the
connection's is meant then. A `query` and a `body` are made of their fields, as
`ReportsQuery(search="revenue")`; both stand in the module of their operation.
"""


MADE = "This page is generated from the declarations: `make operations`."


def page() -> str:
    """Return the whole page: a section for each module, in alphabetical order."""
    modules: dict[str, list[Endpoint[..., Any]]] = {}
    for endpoint in declared_endpoints():
        modules.setdefault(endpoint.declaration.__module__, []).append(endpoint)
    sections = [_section(name, modules[name]) for name in sorted(modules)]
    return "\n".join([HEAD, *sections, MADE, ""])


def _section(module: str, endpoints: list[Endpoint[..., Any]]) -> str:
    title = module.rsplit(".", 1)[-1].replace("_", " ")
    lines = [f"## {title}", "", f"`from {module} import …`", ""]
    for endpoint in sorted(endpoints, key=lambda one: one.name):
        verb = "iterate" if "Page" in getattr(endpoint.answer, "__name__", "") else "run"
        said = " ".join((inspect.getdoc(endpoint.declaration) or "").split())
        permission = f" Permission: {endpoint.permission}." if endpoint.permission else ""
        lines += [
            f"- `hook.{verb}({endpoint.name}({_arguments(endpoint)}))` — `{endpoint.method} "
            f"{'/build/api' if endpoint.api == 'build' else ''}{endpoint.path}`  ",
            f"  {said}{permission}",
        ]
    return "\n".join([*lines, ""])


def _arguments(endpoint: Endpoint[..., Any]) -> str:
    parts = []
    for name, parameter in inspect.signature(endpoint.declaration).parameters.items():
        if name == "deployment_id":
            continue
        model = {"query": endpoint.query, "body": endpoint.body}.get(name)
        value = f"{model.__name__}(…)" if model else "…"
        optional = "" if parameter.default is inspect.Parameter.empty else "?"
        parts.append(f"{name}{optional}={value}")
    return ", ".join(parts)


def main() -> int:
    """Write the page; with `--check`, only compare it."""
    if "--check" not in sys.argv:
        PAGE.write_text(page(), encoding="utf-8")
        return 0
    current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == page()
    if not current:
        print("docs/operations.md is not current. Run `make operations`.")
    return 0 if current else 1


if __name__ == "__main__":
    raise SystemExit(main())
