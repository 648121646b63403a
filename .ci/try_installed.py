"""Tries the installed package: Airflow finds the provider, and all that it names is there.

Runs with the Python of an environment that holds the wheel and not the checkout; the first failing
line says what is missing.
"""

from __future__ import annotations

import pkgutil
import sys
from importlib import import_module, metadata

from airflow.providers_manager import ProvidersManager

import airflow_provider_platform

DISTRIBUTION = "airflow-provider-platform"

version = airflow_provider_platform.__version__
assert airflow_provider_platform.__file__.startswith(sys.prefix), "the checkout is imported"
assert metadata.version(DISTRIBUTION) == version

for point in metadata.distribution(DISTRIBUTION).entry_points:
    point.load()
for module in pkgutil.walk_packages(
    airflow_provider_platform.__path__, "airflow_provider_platform."
):
    if not module.name.endswith("__main__"):
        import_module(module.name)

manager = ProvidersManager()
assert manager.providers[DISTRIBUTION].version == version
assert manager.hooks["platform"] is not None, "the hook of the connection type is missing"
assert "platform_chat" in dict(manager.taskflow_decorators), "the decorator is missing"

info = manager.providers[DISTRIBUTION].data
for floor in ("hooks", "operators", "sensors", "triggers"):
    for group in info[floor]:
        for name in group["python-modules"]:
            import_module(name)
for link in info["extra-links"]:
    home, _, name = link.rpartition(".")
    getattr(import_module(home), name)
