"""Follows the printed commands of a page as a reader does: in an empty folder, in bash.

A page's Python block that begins with a comment naming a file is saved there. Its `sh` blocks are
run in their order in one terminal; one that begins with `# second terminal` is left running in
another, and the `export` line that it prints is copied into the first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

SECOND_TERMINAL = "# second terminal\n"
_BLOCK = re.compile(r"^```(sh|python|yaml)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_FILE = re.compile(r"^# ((?:[\w.-]+/)+[\w.-]+\.\w+)")
_STOP_SECOND = 'if [ -n "$second" ]; then kill "$second"; wait "$second" || true; fi'


@dataclass(frozen=True)
class Block:
    """A block of a page: what is printed, and the file that its first line names."""

    kind: str
    text: str

    @property
    def file(self) -> str | None:
        """The path of the file to save it in, None for a block that is no file."""
        named = _FILE.match(self.text)
        return named[1] if named else None


def blocks(page: Path, section: str | None = None) -> list[Block]:
    """Return the blocks of a page, or of one of its sections (its heading without `##`)."""
    text = page.read_text()
    if section is not None:
        found = re.search(
            rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", text, re.DOTALL | re.MULTILINE
        )
        if found is None:
            raise ValueError(f"{page.name} has no section {section!r}")
        text = found[1]
    return [Block(*found) for found in _BLOCK.findall(text)]


def save(found: list[Block], folder: Path) -> None:
    """Save each block that names its file, below the folder."""
    for block in found:
        if block.file is not None:
            path = folder / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)


def session(found: list[Block]) -> str:
    """Return the bash script that does what the blocks say, in their order.

    A file is saved when its turn comes. Any command that fails ends the script.
    """
    lines = ["set -e", "second=", f"trap '{_STOP_SECOND}' EXIT"]
    for block in found:
        if block.file is not None:
            end = "END-OF-FILE"
            lines += [f"cat > {block.file} <<'{end}'", block.text.rstrip("\n"), end]
        elif block.kind == "sh" and block.text.startswith(SECOND_TERMINAL):
            lines += [
                "env -u AIRFLOW_HOME bash -c '",
                # The shell becomes its last command, so that a signal ends that.
                re.sub(r"\n(.+)\n\Z", r"\nexec \1\n", block.text).rstrip("\n"),
                "' > second.log 2>&1 & second=$!",
                'until copied=$(grep "^export " second.log); do',
                '  kill -0 "$second" || { cat second.log; exit 1; }',
                "  sleep 0.2",
                "done",
                'eval "$copied"',
            ]
        elif block.kind == "sh":
            lines.append(block.text.rstrip("\n"))
    return "\n".join(lines) + "\n"


def workflow_commands(workflow: Mapping[str, Any], workspace: Path) -> tuple[str, dict[str, str]]:
    """Return the commands of a GitHub workflow's only job as a script, and its environment.

    `uses:` steps are those of the service: the checkout is the folder, the Python is the caller's.
    """
    [job] = workflow["jobs"].values()
    variables = {
        name: str(value).replace("${{ github.workspace }}", str(workspace))
        for name, value in job["env"].items()
    }
    if unknown := [value for value in variables.values() if "${{" in value]:
        raise ValueError(f"the workflow has expressions that nobody evaluates here: {unknown}")
    commands = [step["run"].rstrip("\n") for step in job["steps"] if "run" in step]
    return "\n".join(["set -eo pipefail", *commands]) + "\n", variables
