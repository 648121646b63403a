"""Checks the installed wheel, away from the checkout: Airflow finds the provider and its parts."""

from __future__ import annotations

import pkgutil
import re
import sys
from importlib import import_module, metadata
from importlib.resources import files

from airflow.providers_manager import ProvidersManager

import airflow_provider_platform
from airflow_provider_platform.client.errors import PlatformInputError

DISTRIBUTION = "airflow-provider-platform"
OF_OTHER_EXTRAS = {"pyarrow", "vl_convert"}

assert airflow_provider_platform.__file__.startswith(sys.prefix), "the checkout is imported"
for point in metadata.distribution(DISTRIBUTION).entry_points:
    point.load()
modules = pkgutil.walk_packages(airflow_provider_platform.__path__, "airflow_provider_platform.")
names = {module.name for module in modules}
for name in names:
    if not name.endswith("__main__"):
        try:
            import_module(name)
        except ModuleNotFoundError as missing:
            if missing.name not in OF_OTHER_EXTRAS:
                raise
        except PlatformInputError as error:
            if "is not installed" not in error.message:
                raise
examples = {file.name for file in (files("airflow_provider_platform") / "example_dags").iterdir()}
assert "nightly_pipeline.py" in examples

manager = ProvidersManager()
provider = manager.providers[DISTRIBUTION]
assert provider.version == airflow_provider_platform.__version__
assert manager.hooks["platform"] is not None, "the hook of the connection type is missing"
assert {"platform_chat", "platform_sql"} <= set(dict(manager.taskflow_decorators))
for path in (*provider.data["extra-links"], *provider.data.get("notifications", ())):
    home, _, name = path.rpartition(".")
    getattr(import_module(home), name)

page = str(metadata.metadata(DISTRIBUTION)["Description"])
left = re.findall(r"\]\((?!https?:|#)([^)]*)\)", page)
assert page.startswith("# ")
assert not left, f"the package's page links to missing files: {left}"
