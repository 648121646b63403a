"""Checks the installed package: Airflow finds the provider and everything that it lists.

Runs with the Python of an environment in which the wheel is installed, without the checkout. The
first line that fails says what is missing.
"""

from __future__ import annotations

import io
import json
import pkgutil
import re
import sys
from contextlib import redirect_stdout
from importlib import import_module, metadata
from importlib.resources import files
from typing import Any

from airflow.cli.cli_parser import get_parser
from airflow.providers_manager import ProvidersManager

import airflow_provider_platform

DISTRIBUTION = "airflow-provider-platform"
PACKAGE = "airflow_provider_platform"
OF_OTHER_EXTRAS = {"pyarrow", "vl_convert"}

version = airflow_provider_platform.__version__
assert airflow_provider_platform.__file__.startswith(sys.prefix), (
    "the checkout is imported instead of the installed package"
)
assert metadata.version(DISTRIBUTION) == version

for point in metadata.distribution(DISTRIBUTION).entry_points:
    point.load()
for module in pkgutil.walk_packages(
    airflow_provider_platform.__path__, "airflow_provider_platform."
):
    if module.name.endswith("__main__"):
        continue
    try:
        import_module(module.name)
    except ModuleNotFoundError as missing:
        # Only files in these formats need it; an error says so when one is requested.
        if missing.name not in OF_OTHER_EXTRAS:
            raise

manager = ProvidersManager()
assert manager.providers[DISTRIBUTION].version == version
assert manager.hooks["platform"] is not None, "the hook of the connection type is missing"
decorators = {"platform_chat", "platform_sql"}
assert decorators <= set(dict(manager.taskflow_decorators)), "a decorator is missing"

info = manager.providers[DISTRIBUTION].data
for package in ("hooks", "operators", "sensors", "triggers"):
    for group in info[package]:
        for name in group["python-modules"]:
            import_module(name)
for path in (*info["extra-links"], *info.get("notifications", ())):
    home, _, name = path.rpartition(".")
    getattr(import_module(home), name)

examples = [file.name for file in (files(PACKAGE) / "example_dags").iterdir()]
for example in examples:
    if example.endswith(".py"):
        import_module(f"{PACKAGE}.example_dags.{example.removesuffix('.py')}")
assert "nightly_pipeline.py" in examples


def printed_rows(*command: str) -> list[dict[str, Any]]:
    """Return the rows that `airflow providers ...` prints."""
    parsed = get_parser().parse_args(["providers", *command, "--output", "json"])
    with redirect_stdout(io.StringIO()) as printed:
        parsed.func(parsed)
    text = printed.getvalue()
    rows: list[dict[str, Any]] = json.loads(text[text.index("[") :])
    return rows


def values(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows)


assert version in values(
    [
        row
        for row in printed_rows("list")
        if DISTRIBUTION in row.values() or DISTRIBUTION in str(row)
    ]
)
assert version in values(printed_rows("get", DISTRIBUTION))
assert info["connection-types"][0]["hook-class-name"] in values(printed_rows("hooks"))
for link in info["extra-links"]:
    assert link in values(printed_rows("links")), f"airflow providers links does not list {link}"
for notifier in info.get("notifications", ()):
    assert notifier in values(printed_rows("notifications")), (
        f"the notifier {notifier} is not listed"
    )
description = metadata.metadata(DISTRIBUTION)["Description"] or ""
assert "# airflow-provider-platform" in description
links = re.findall(r"\]\((?!https?:|#)([^)]*)\)", description)
assert not links, f"the package's page links to missing files: {links}"
