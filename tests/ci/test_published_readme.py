"""The published README: links lead somewhere from anywhere, and code is not touched."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

PROJECT = Path(__file__).parents[2]
SOURCE = "https://source.example.com/"


def published_readme() -> ModuleType:
    spec = spec_from_file_location("published_readme", PROJECT / ".ci" / "published_readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def published(text: str) -> str:
    found: str = published_readme().with_absolute_links(text, SOURCE)
    return found


def test_links_to_files_become_absolute() -> None:
    assert published("see [this](docs/a.md#part) and ![it](docs/p.png)") == (
        "see [this](https://source.example.com/docs/a.md#part) "
        "and ![it](https://source.example.com/docs/p.png)"
    )


def test_other_links_and_code_stay() -> None:
    for text in (
        "[up](#here)",
        "[out](https://semver.org)",
        "[mail](mailto:a@example.com)",
        "`rows[0](x)` stays",
        "```python\nfound[0](x)\n```",
        "    found[0](x)",
    ):
        assert published(text) == text


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    text = (PROJECT / "README.md").read_text()
    relative = re.findall(r"\]\((?![a-z]+:|#)([^)\s#]+)", text)
    assert relative
    for target in relative:
        assert (PROJECT / target).exists(), target
    assert not re.search(r"\]\((?!#|https?:)", published(text))
