"""The README as it is published: its links to files of the project lead to `[project.urls]` Source.

In the repository they stay relative, so that they lead to the reader's own version. Hatch runs this
whenever it reads the project's metadata.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_LINK = re.compile(r"(?<=\]\()(?!#|[a-z]+:)([^)\s]+)")
_CODE = re.compile(r"(^```.*?^```$|^    .*?$|`[^`\n]+`)", re.MULTILINE | re.DOTALL)


def with_absolute_links(text: str, source: str) -> str:
    """Markdown whose links to files begin with the address `source`; code stays as it is."""
    parts = _CODE.split(text)
    base = source.rstrip("/")
    parts[::2] = [_LINK.sub(lambda link: f"{base}/{link[1]}", part) for part in parts[::2]]
    return "".join(parts)


class PublishedReadme(MetadataHookInterface):
    """Fills in the dynamic field `readme`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the README, its links absolute."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
