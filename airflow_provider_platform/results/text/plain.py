"""A message as plain text, for a log, a terminal or an SMS."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.redaction import printable

if TYPE_CHECKING:
    from airflow_provider_platform.results.text.message import Message, Section


def to_plain(message: Message) -> str:
    """Lines without control characters."""
    parts = ["\n".join([line(message.title), *lines(message.text)])]
    parts += ["\n".join(section_lines(section, message.max_rows)) for section in message.sections]
    closing = [f"{line(name)}: {line(value)}" for name, value in message.facts]
    if message.link:
        closing.append(line(message.link))
    return "\n\n".join(part for part in [*parts, "\n".join(closing)] if part)


def section_lines(section: Section, max_rows: int, max_width: int = 100) -> list[str]:
    """A query's title, its error or its first rows, its chart as bars and where its files are."""
    found = [line(section.title or "Query")]
    if section.error is not None:
        return [*found, f"failed: {line(section.error)}"]
    found[0] += f" ({section.counted(max_rows)})"
    found += section.table(max_rows, max_width)
    if bars := section.bars(min(max_width, 72)):
        found += ["", *bars]
    found += [f"Rows: {line(section.path)}"] if section.path else []
    found += [f"Chart: {line(path)}" for path in section.chart_paths]
    return found


def lines(text: str) -> list[str]:
    """The lines of a text, each printable."""
    return [line(one) for one in text.strip().split("\n")] if text.strip() else []


def line(text: str) -> str:
    return printable(text.replace("\t", " ").rstrip("\r"))
