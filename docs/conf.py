"""How `make docs` builds the pages: the Markdown of the project as it is in the repository.

The source folder is the project's root, so that a link to a file (an example DAG, the changelog)
means the same on a page and in the repository. Warnings are errors: a broken link and a page that
is not in the navigation end the build. Nothing is loaded from elsewhere. The pages can be opened
as files, without a web server: `search_as_files` makes the search work there too.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bs4 import BeautifulSoup

if TYPE_CHECKING:
    from sphinx.application import Sphinx

_ROOT = Path(__file__).parents[1]
_RELEASES = re.findall(
    r"^(\d+\.\d+) ", (_ROOT / ".ci" / "airflow-releases.txt").read_text(), re.MULTILINE
)

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
exclude_patterns = ["docs/conf.py", "docs/_static", "docs/_templates"]

html_theme = "furo"
html_title = f"{project} {release}"
html_logo = "integration-logos/platform.svg"
html_context = {"airflow_releases": f"{min(_RELEASES)} to {max(_RELEASES)}"}
html_css_files = ["pages.css"]
html_js_files = ["copy_buttons.js"]
html_static_path = ["_static"]
templates_path = ["_templates"]
html_show_copyright = False
html_copy_source = False

FOR_CONTRIBUTORS = ("CONTRIBUTING", "CODE_OF_CONDUCT", "README", "docs/architecture")
"""Pages that are not in the menu, which is for those who use the package."""
SEARCH_AS_FILES = "search_as_files.js"
INDEX = f"""<!doctype html>
<meta charset="utf-8">
<meta http-equiv="refresh" content="0; url={root_doc}.html">
<title>{project}</title>
<p><a href="{root_doc}.html">The documentation of {project}</a></p>
"""


def setup(app: Sphinx) -> None:
    """Add what Sphinx has no setting for."""
    app.connect("doctree-read", leave_out_of_the_menu)
    app.connect("html-page-context", load_search_as_files)
    app.connect("build-finished", finish)


def leave_out_of_the_menu(app: Sphinx, *_: Any) -> None:
    """Tell Sphinx that a page for contributors belongs to no menu."""
    if app.env.docname in FOR_CONTRIBUTORS:
        app.env.metadata[app.env.docname]["orphan"] = True


def load_search_as_files(app: Sphinx, page: str, *_: Any) -> None:
    """Load the script of `search_as_files` in the search page only."""
    if page == "search":
        app.add_js_file(SEARCH_AS_FILES)


def finish(app: Sphinx, error: Exception | None) -> None:
    """Write the index of the output folder and the script of the search."""
    if error is None:
        (app.outdir / "index.html").write_text(INDEX)
        (app.outdir / "_static" / SEARCH_AS_FILES).write_text(search_as_files(app))


def search_as_files(app: Sphinx) -> str:
    """A script that gives the search the texts of the pages.

    The search shows the text around a hit, which it reads from the page of the hit. A browser
    refuses that for pages that are opened as files, so the script brings the pages with it.
    """
    pages = {}
    for name in sorted(app.env.found_docs):
        html = BeautifulSoup((app.outdir / f"{name}.html").read_text(), "html.parser")
        article = html.select_one("[role=main]")
        if article is None:
            raise ValueError(f"{name} has no element of the role main")
        pages[f"{name}.html"] = str(article)
    return f"""(() => {{
  if (location.protocol !== "file:") return;
  const pages = {json.dumps(pages)};
  const root = new URL(document.documentElement.dataset.content_root, location.href).href;
  const read = window.fetch;
  window.fetch = (address, ...options) => {{
    const name = new URL(address, location.href).href.split("#")[0].replace(root, "");
    return name in pages ? Promise.resolve(new Response(pages[name])) : read(address, ...options);
  }};
}})();
"""
