"""The README as it is published, where no files of the project are beside it.

If `[project.urls]` has Source, links to files of the project lead there. Without it, links become
plain text, and pictures and sections that are nothing but links are left out. In the repository
the links stay relative, so that they lead to the reader's own version. Hatch runs this whenever it
reads the project's metadata.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_TARGET = re.compile(r"(?<=\]\()(?!#|[a-z]+:)([^)\s]+)")
_PICTURE = re.compile(r"!\[[^]]*\]\((?![a-z]+:)[^)\s]+\)\n*")
_LINK = re.compile(r"\[([^]]+)\]\((?!#|[a-z]+:)[^)\s]+\)")
_CODE = re.compile(r"(^```.*?^```$|^    .*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"^(?=## )", re.MULTILINE)
NOTE = (
    "The documentation is in the source distribution of this package, in the folder `docs`; "
    "it begins with `docs/index.md`.\n\n"
)


def with_absolute_links(text: str, source: str) -> str:
    """Markdown whose links to files begin with the address `source`; code stays as it is."""
    base = source.rstrip("/")
    return _outside_code(text, lambda part: _TARGET.sub(lambda link: f"{base}/{link[1]}", part))


def without_links(text: str) -> str:
    """Markdown without links to files; the note says where the documentation is."""
    head, *sections = _SECTION.split(text)
    kept = [section for section in sections if not _is_only_links(section)]
    text = _PICTURE.sub("", "".join([head, NOTE, *kept]))
    return _outside_code(text, lambda part: _LINK.sub(r"\1", part))


def _is_only_links(section: str) -> bool:
    """Whether nothing is left of a section's text without its links."""
    _, _, body = section.partition("\n")
    return bool(_LINK.search(body)) and not re.search(r"\w", _LINK.sub("", body))


def _outside_code(text: str, change: Any) -> str:
    parts = _CODE.split(text)
    parts[::2] = [change(part) for part in parts[::2]]
    return "".join(parts)


class PublishedReadme(MetadataHookInterface):
    """Fills in the dynamic field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README, its links absolute or gone."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        text = with_absolute_links(text, source) if source else without_links(text)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
