"""In the published README, links lead to absolute addresses and code is unchanged."""

from __future__ import annotations

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

PROJECT = Path(__file__).parents[3]
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


def test_without_an_address_links_become_plain_text() -> None:
    text = "# Title\n\nsee [this](docs/a.md#part), ![it](docs/p.png)[out](https://semver.org)\n"
    readme = published_readme().without_links(text)
    assert "see this, [out](https://semver.org)" in readme
    assert "docs/a.md" not in readme
    assert "docs/p.png" not in readme


def test_without_an_address_code_stays() -> None:
    for text in ("`rows[0](x)` stays", "```python\nfound[0](x)\n```", "    found[0](x)"):
        assert text in published_readme().without_links(f"{text}\n")


def test_without_an_address_sections_of_links_are_left_out() -> None:
    text = "# Title\n\n## More\n\n[a](a.md) ·\n[b](b.md)\n\n## License\n\nA [license](LICENSE).\n"
    readme = published_readme().without_links(text)
    assert "More" not in readme
    assert readme.endswith("## License\n\nA license.\n")


def test_without_an_address_the_readme_names_no_missing_file() -> None:
    readme = published_readme().without_links((PROJECT / "README.md").read_text())
    assert not re.search(r"\]\((?!https?:|#)", readme)
    assert set(re.findall(r"\bdocs/[\w./-]+", readme)) == {"docs/index.md"}
    assert "## The connection" in readme
    assert "## Next steps" in readme
