"""How `make docs` builds the pages: the Markdown of the project as it stands in the repository.

The source folder is the project's root, so that a link to a file (an example DAG, the changelog)
means the same on a page and in the repository. Warnings are errors: a link that leads nowhere ends
the build. Nothing is loaded from elsewhere.
"""

from __future__ import annotations

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]

project = "airflow-provider-platform"
author = "The airflow-provider-platform contributors"
copyright = author
_version = re.search(
    r'__version__ = "(.+)"', (_ROOT / "airflow_provider_platform" / "__init__.py").read_text()
)
release = _version[1] if _version else ""

extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
suppress_warnings = ["misc.highlighting_failure"]
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**"]
exclude_patterns = ["docs/conf.py"]

html_theme = "furo"
html_title = f"{project} {release}"
html_logo = "integration-logos/platform.svg"
html_show_copyright = False
html_copy_source = False
