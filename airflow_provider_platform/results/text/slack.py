"""A message as Slack's blocks, within what Slack takes.

Slack reads `&`, `<` and `>` as the marks of links and mentions; everything else of a text that is
`plain_text` is shown as it is. Tables and bars need a fixed width, which only code in `mrkdwn` has.
Limits: https://docs.slack.dev/reference/block-kit/blocks (a message has 50 blocks, a section 3,000
characters, a header 150).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.known_secrets import CUT
from airflow_provider_platform.results.text.markdown import ZERO_WIDTH
from airflow_provider_platform.results.text.message import line, lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.results.text.message import Message, Section

MAX_BLOCKS = 50
MAX_SECTION = 3000
MAX_HEADER = 150
MAX_FALLBACK = 3000
_ANSWER_SECTIONS = 8
_WIDTH = 68
"""Columns of code that Slack shows without a break on a desktop."""
_FENCE = "```"

Block = dict[str, Any]


def escape(text: str) -> str:
    """Text without links, mentions or code for Slack."""
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, entity)
    return text.replace("@", f"@{ZERO_WIDTH}").replace("`", f"`{ZERO_WIDTH}")


def to_slack(message: Message) -> tuple[str, list[Block]]:
    """The text that a notification shows, and the blocks of the message."""
    title = line(message.title) or "Message"
    blocks: list[Block] = [{"type": "header", "text": _plain(_cut(title, MAX_HEADER))}]
    blocks += [_section(_plain(piece)) for piece in _pieces(lines(message.text))]
    closing = _closing(message)
    left_out = 0
    for section in message.sections:
        drawn = _query(section, message.max_rows)
        if len(blocks) + len(drawn) + len(closing) + 1 > MAX_BLOCKS:
            left_out += 1
            continue
        blocks += drawn
    if left_out:
        blocks.append(_section(_plain(f"{CUT} and {left_out:,} more queries")))
    text = " ".join([title, *lines(message.text)])
    return _cut(text, MAX_FALLBACK), [*blocks, *closing]


def _query(section: Section, max_rows: int) -> list[Block]:
    title = line(section.title) or "Query"
    if section.error is not None:
        return [_section(_plain(_cut(f"{title} failed: {line(section.error)}", MAX_SECTION)))]
    blocks = [_section(_plain(_cut(f"{title} ({section.counted(max_rows)})", MAX_SECTION)))]
    blocks += [_section(code) for code in _code(section.table(max_rows, _WIDTH))]
    blocks += [_section(code) for code in _code(section.bars(_WIDTH))]
    files = [f"Rows: {line(section.path)}"] if section.path else []
    files += [f"Chart: {line(path)}" for path in section.chart_paths]
    if files:
        blocks.append(_context(files))
    return blocks


def _closing(message: Message) -> list[Block]:
    facts = [f"{line(name)}: {line(value)}" for name, value in message.facts]
    blocks = [_context(facts)] if facts else []
    if message.link:
        address = escape(message.link).replace(ZERO_WIDTH, "").replace("|", "%7C")
        text = {"type": "mrkdwn", "text": f"<{address}|Open in Airflow>"}
        if len(address) < MAX_SECTION - 30:
            blocks.append({"type": "context", "elements": [text]})
    return blocks


def _pieces(text_lines: Sequence[str]) -> list[str]:
    """Lines in pieces that a section holds, cut where there are too many of them."""
    pieces: list[str] = []
    for text_line in text_lines:
        rest = text_line
        while True:
            joined = f"{pieces[-1]}\n{rest}" if pieces else rest
            if pieces and len(escape(joined)) <= MAX_SECTION:
                pieces[-1] = joined
                break
            head = _fitting(rest, MAX_SECTION)
            if len(pieces) == _ANSWER_SECTIONS:
                pieces[-1] = _fitting(pieces[-1], MAX_SECTION - 1) + CUT
                return [escape(piece) for piece in pieces]
            pieces.append(head)
            rest = rest[len(head) :]
            if not rest:
                break
    return [escape(piece) for piece in pieces if piece.strip()]


def _code(drawn: list[str]) -> list[dict[str, Any]]:
    """Lines as code, as many as a section holds."""
    if not drawn:
        return []
    room = MAX_SECTION - 2 * len(_FENCE) - 2 - len(CUT) - 1
    kept: list[str] = []
    for text_line in map(escape, drawn):
        if sum(map(len, kept)) + len(kept) + len(text_line) > room:
            kept.append(CUT)
            break
        kept.append(text_line)
    return [{"type": "mrkdwn", "text": "\n".join([_FENCE, *kept, _FENCE])}]


def _context(texts: Sequence[str]) -> Block:
    elements = [_plain(_cut(text, 300)) for text in texts[:10]]
    return {"type": "context", "elements": elements}


def _section(text: dict[str, Any]) -> Block:
    return {"type": "section", "text": text}


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
