"""A message as Markdown (CommonMark with tables), where nothing of the data is markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.text.cells import cell
from airflow_provider_platform.results.text.plain import line, lines

if TYPE_CHECKING:
    from airflow_provider_platform.results.text.message import Message, Section

_PUNCTUATION = re.compile(r"([!\"#$%&'()*+,\-./:;<=>?\[\\\]^_`{|}~])")
ZERO_WIDTH = "\u200b"
"""After an `@`, so that no chat takes what follows for a person or a group."""


def escape(text: str) -> str:
    """A line of text that Markdown shows as it is: no markup, link, HTML or mention."""
    return _PUNCTUATION.sub(r"\\\1", line(text).strip()).replace("@", f"@{ZERO_WIDTH}")


def to_markdown(message: Message) -> str:
    parts = [f"## {escape(message.title)}", escape_lines(message.text)]
    parts += [_section(section, message.max_rows) for section in message.sections]
    facts = [f"{escape(name)}: {escape(value)}" for name, value in message.facts]
    if message.link:
        facts.append(f"<{link(message.link)}>")
    parts.append("  \n".join(facts))
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_lines(text: str) -> str:
    """Paragraphs and lines of a text, as they are."""
    paragraphs: list[list[str]] = [[]]
    for one in lines(text):
        if one.strip():
            paragraphs[-1].append(escape(one))
        else:
            paragraphs.append([])
    return "\n\n".join("  \n".join(paragraph) for paragraph in paragraphs if paragraph)


def link(address: str) -> str:
    """An address of our own that ends where it ends."""
    return re.sub(r"[\s<>]", "", line(address))


def _section(section: Section, max_rows: int) -> str:
    title = f"### {escape(section.title or 'Query')}"
    if section.error is not None:
        return f"{title}\n\nfailed: {escape(section.error)}"
    parts = [title, _table(section, max_rows), section.counted(max_rows)]
    if bars := section.bars():
        parts.append(fenced(bars))
    files = [section.path] if section.path else []
    parts.append("  \n".join(escape(path) for path in [*files, *section.chart_paths]))
    return "\n\n".join(part for part in parts if part)


def _table(section: Section, max_rows: int) -> str:
    names = [escape(cell(column.get("name", ""), 80)) for column in section.columns]
    if not names:
        return ""
    rows = [[_cell(value) for value in row[: len(names)]] for row in section.rows[:max_rows]]
    drawn = ["| " + " | ".join(row) + " |" for row in [names, ["---"] * len(names), *rows]]
    return "\n".join(drawn)


def _cell(value: Any) -> str:
    text = cell(value, 200)
    return text if re.fullmatch(r"-?\d+(\.\d+)?", text, re.ASCII) else escape(text)


def fenced(drawn: list[str]) -> str:
    """Lines as a block of code that none of them can end."""
    longest = max((len(run) for one in drawn for run in re.findall(r"`+", one)), default=0)
    fence = "`" * max(3, longest + 1)
    inner = [one.replace("@", f"@{ZERO_WIDTH}") for one in drawn]
    return "\n".join([fence, *inner, fence])
