"""A message as Markdown (CommonMark with GitHub's tables), where nothing of the data is markup.

Only what would be markup in its place gets a backslash, so that names, paths and numbers can be
copied from the text as they are: `a_b_c`, `s3://bucket/x.csv`, `1.5`, `-3`. The rules are those of
https://spec.commonmark.org/0.31.2 and, for tables, `~` and bare web addresses, of
https://github.github.com/gfm.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markdown_it import MarkdownIt

from airflow_provider_platform.messages.message import cells, line, lines, numeric_columns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_platform.messages.message import Message, Section

ZERO_WIDTH = "\u200b"
"""After an `@`, so that no chat takes what follows for a person or a group."""

_ANYWHERE = re.compile(
    r"""
      `                                     # code
    | \*                                    # emphasis, unless it stands alone
    | (?<!\w)_+ | _+(?!\w)                  # emphasis, unless within a word
    | ~(?=~) | (?<=\S)~                     # struck through: what ends it
    | \\(?=[!-/:-@\[-`{-~]|$)               # takes the meaning of the next character
    | \](?=[(\[:])                          # the middle of a link
    | <(?=[A-Za-z/!?])                      # HTML, or an address
    | &(?=\#?\w+;)                          # an entity
    | (?<=\bhttp)(?=://) | (?<=\bhttps)(?=://) | (?<=\bftp)(?=://) | (?<=\bwww)(?=\.)  # a link
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ALONE = re.compile(r"(?<=\s)\*(?=\s)")
"""A star that opens and closes nothing, as in 2 * 3."""
_BLOCK = re.compile(
    r"""
      \#{1,6}(?=\s|$)                       # heading
    | >                                     # quotation
    | [-+](?=\s|$)                          # list
    | [-=](?=[-=\s|:]*$)                    # underline of a heading, rule, head of a table
    | [|:](?=[-\s|:]*-[-\s|:]*$)            # head of a table
    """,
    re.VERBOSE,
)
_NUMBERED = re.compile(r"(\d{1,9})([.)])(?=\s|$)")
_CLOSING = re.compile(r"(?<=\s)#(?=#*$)")
"""What ends a heading, and would be dropped from it."""
_MENTION = re.compile(r"(?<!\w)@(?=\w)|@(?=everyone|here|channel|all)", re.IGNORECASE)


def escape(text: str) -> str:
    """A line of text that Markdown shows as it is: no markup, link, HTML or mention."""
    shown = line(text).strip()
    alone = {match.start() for match in _ALONE.finditer(shown)}
    escaped = _ANYWHERE.sub(
        lambda match: match[0] if match.start() in alone else _escaped(match[0]), shown
    )
    escaped = _NUMBERED.sub(r"\1\\\2", escaped, count=1) if _NUMBERED.match(escaped) else escaped
    escaped = _CLOSING.sub(r"\\#", escaped)
    escaped = f"\\{escaped}" if _BLOCK.match(escaped) else escaped
    return _MENTION.sub(f"@{ZERO_WIDTH}", escaped)


def escape_cell(text: str) -> str:
    """`escape` for a cell of a table, which a bar would end."""
    return escape(text).replace("|", "\\|")


def code(text: str) -> str:
    """A line as code: a path or a name, exactly."""
    shown = line(text).strip()
    fence = "`" * (max((len(run) for run in re.findall("`+", shown)), default=0) + 1)
    pad = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{pad}{shown}{pad}{fence}" if shown else ""


def _escaped(marks: str) -> str:
    """Marks with a backslash before each; a place without any gets one before what follows."""
    return "".join(f"\\{mark}" for mark in marks) or "\\"


def parser() -> MarkdownIt:
    """What reads a message's Markdown, for the forms that are made of it."""
    return MarkdownIt("commonmark", {"html": False}).enable("table")


def to_markdown(message: Message, pictures: Mapping[int, str] | None = None) -> str:
    """The message as a document.

    :param pictures: names of picture files beside the document (`query-1.png`) by the positions of
        their queries; a chart that has none is drawn as bars
    """
    parts = [f"## {escape(message.title)}" if message.title else "", escape_lines(message.text)]
    for position, section in enumerate(message.sections):
        parts.append(_section(section, message.max_rows, (pictures or {}).get(position)))
    facts = [f"{escape(name)}: {escape(value)}" for name, value in message.facts]
    if message.link:
        facts.append(f"[Open in Airflow](<{link(message.link)}>)")
    parts.append("  \n".join(facts))
    return "\n\n".join(part for part in parts if part) + "\n"


def escape_lines(text: str) -> str:
    """Paragraphs and lines of a text, as they are."""
    paragraphs: list[list[str]] = [[]]
    for text_line in lines(text):
        if text_line.strip():
            paragraphs[-1].append(escape(text_line))
        else:
            paragraphs.append([])
    return "\n\n".join("  \n".join(paragraph) for paragraph in paragraphs if paragraph)


def link(address: str) -> str:
    """An address of our own that ends where it ends."""
    return re.sub(r"[\s<>\\]", "", line(address))


def _section(section: Section, max_rows: int, picture: str | None) -> str:
    title = f"### {escape(section.title or 'Query')}"
    if section.error is not None:
        return f"{title}\n\nfailed: {escape(section.error)}"
    parts = [title, _table(section, max_rows), section.counted(max_rows)]
    if picture:
        address = quote(picture, safe="/:")
        label = escape(re.sub(r"[\[\]]", "", section.title)) or "Chart"
        parts.append(f"![{label}]({address})")
    elif bars := section.bars():
        parts.append(fenced(bars))
    files = [f"Rows: {code(section.path)}"] if section.path else []
    files += [f"Chart: {code(path)}" for path in section.chart_paths]
    parts.append("  \n".join(files))
    return "\n\n".join(part for part in parts if part)


def _table(section: Section, max_rows: int) -> str:
    names = _cells([column.get("name", "") for column in section.columns], 80)
    if not names:
        return ""
    rows = [_cells(row[: len(names)], 200) for row in section.rows[:max_rows]]
    numeric = numeric_columns(section.columns, section.rows[:max_rows])
    rule = ["---:" if is_number else "---" for is_number in numeric]
    drawn = ["| " + " | ".join(row) + " |" for row in [names, rule, *rows]]
    return "\n".join(drawn)


def _cells(values: list[Any], most: int) -> list[str]:
    return list(map(escape_cell, cells(values, most)))


def fenced(drawn: list[str]) -> str:
    """Lines as a block of code that none of them can end."""
    longest = max((len(run) for line in drawn for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    inner = [_MENTION.sub(f"@{ZERO_WIDTH}", line) for line in drawn]
    return "\n".join([fence, *inner, fence])
