"""A message as Slack's blocks, made of its Markdown, within what Slack takes.

Slack reads `&`, `<` and `>` as the marks of links and mentions; everything else of a text that is
`plain_text` is shown as it is. Tables and bars need a fixed width, which only code in `mrkdwn` has.
Limits: https://docs.slack.dev/reference/block-kit/blocks (a message has 50 blocks, a section 3,000
characters, a header 150).
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.redaction import CUT
from airflow_provider_platform.messages.markdown import ZERO_WIDTH, parser, to_markdown
from airflow_provider_platform.messages.message import aligned_table, line, lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.messages.message import Message

MAX_BLOCKS = 50
MAX_SECTION = 3000
MAX_HEADER = 150
MAX_FALLBACK = 3000
_WIDTH = 68
"""Columns of code that Slack shows without a break on a desktop."""
_FENCE = "```"
_CODE_ROOM = MAX_SECTION - 2 * len(_FENCE) - 3 - len(CUT)

Block = dict[str, Any]


def escape(text: str) -> str:
    """Text without links, mentions or code for Slack."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return re.sub(rf"[@`](?!{ZERO_WIDTH})", rf"\g<0>{ZERO_WIDTH}", text)


def to_slack(message: Message) -> tuple[str, list[Block]]:
    """The text that a notification shows, and the blocks of the message."""
    title = line(message.title) or "Message"
    blocks: list[Block] = [{"type": "header", "text": _plain(_cut(title, MAX_HEADER))}]
    for is_code, text in _sections(message):
        shown = {"type": "mrkdwn", "text": text} if is_code else _plain(text)
        blocks.append({"type": "section", "text": shown})
    closing = _link(message)
    room = MAX_BLOCKS - len(closing)
    if len(blocks) > room:
        more = f"{CUT} and {len(blocks) - room + 1:,} more parts, which are in the task's result"
        blocks[room - 1 :] = [{"type": "section", "text": _plain(escape(more))}]
    fallback = " ".join([title, *lines(message.text)])
    return _cut(fallback, MAX_FALLBACK), [*blocks, *closing]


def _sections(message: Message) -> Iterator[tuple[bool, str]]:
    """The escaped texts of the sections, and whether each is code. Texts that are not code share a
    section as long as they fit."""
    plain = ""
    for is_code, text in [*_parts(message), (True, "")]:
        if not is_code:
            plain = f"{plain}\n\n{text}" if plain else text
            while (head := _fitting(plain, MAX_SECTION)) != plain:
                cut = head.rfind("\n") + 1 or len(head)
                yield False, escape(plain[:cut].rstrip()) or " "
                plain = plain[cut:].lstrip("\n")
            continue
        if plain.strip():
            yield False, escape(plain)
        plain = ""
        if text:
            kept = _fitting(text, _CODE_ROOM)
            kept = kept if kept == text else kept + CUT
            yield True, f"{_FENCE}\n{escape(kept)}\n{_FENCE}"


def _parts(message: Message) -> Iterator[tuple[bool, str]]:
    """The paragraphs, headings and blocks of code below the title. A table is code."""
    table: list[list[str]] | None = None
    document = to_markdown(replace(message, title="", link=None))
    for token in parser().parse(document):
        if token.type == "fence":
            yield True, token.content.rstrip("\n")
        elif token.type == "table_open":
            table = []
        elif token.type == "tr_open" and table is not None:
            table.append([])
        elif token.type == "table_close" and table is not None:
            columns = [{"name": name} for name in table[0]]
            drawn = aligned_table(columns, table[1:], max_rows=len(table), max_width=_WIDTH)
            yield True, "\n".join(drawn)
            table = None
        elif token.type == "inline":
            shown = "".join(
                "\n" if part.type in ("hardbreak", "softbreak") else part.content
                for part in token.children or ()
            )
            if table is not None:
                table[-1].append(shown)
            elif shown.strip():
                yield False, shown


def _link(message: Message) -> list[Block]:
    if not message.link:
        return []
    address = escape(message.link).replace(ZERO_WIDTH, "").replace("|", "%7C")
    text = {"type": "mrkdwn", "text": f"<{address}|Open in Airflow>"}
    return [{"type": "context", "elements": [text]}] if len(address) < MAX_SECTION - 30 else []


def _plain(escaped: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": escaped or " ", "emoji": False}


def _cut(text: str, most: int) -> str:
    """The escaped text, of at most so many characters."""
    kept = _fitting(text, most)
    return escape(kept) if kept == text else escape(_fitting(text, most - 1)) + CUT


def _fitting(text: str, most: int) -> str:
    """As much of the text as is at most so long when it is escaped."""
    used = 0
    for position, character in enumerate(text):
        used += len(escape(character))
        if used > most:
            return text[:position]
    return text
