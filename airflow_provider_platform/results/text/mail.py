"""A message as the HTML of an e-mail: styles on the elements, pictures by their content ids.

Mail programs show neither scripts nor style sheets nor, most of them, pictures in `data:`
addresses, so that a picture comes as a part of the mail, whose content id is its file's name.
"""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from airflow_provider_platform.results.text.message import line, lines
from airflow_provider_platform.results.text.table import cell, number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_platform.results.text.message import Message, Section

_FONT = "font-family:Arial,Helvetica,sans-serif;font-size:14px;color:#222"
_CELL = "padding:4px 10px;border-bottom:1px solid #ddd;text-align:"
_CODE = "font-family:Consolas,Menlo,monospace;font-size:13px;line-height:1.2"


def escape(text: str) -> str:
    """One line of text that HTML shows as it is."""
    return html.escape(line(text))


def subject(message: Message) -> str:
    """The title as one line, which no header can follow."""
    return line(message.title)[:200]


def to_html(message: Message, pictures: Mapping[int, str] | None = None) -> str:
    """The body of a mail.

    :param pictures: addresses of pictures (`cid:chart-1.png`) by the positions of their queries;
        a chart that has none is drawn as bars
    """
    parts = [f'<h2 style="font-size:18px">{escape(message.title)}</h2>']
    if text_lines := lines(message.text):
        parts.append(f"<p>{'<br>'.join(map(html.escape, text_lines))}</p>")
    for position, section in enumerate(message.sections):
        parts.append(_section(section, message.max_rows, (pictures or {}).get(position)))
    facts = [f"{escape(name)}: {escape(value)}" for name, value in message.facts]
    if message.link:
        facts.append(f'<a href="{escape(message.link)}">Open in Airflow</a>')
    if facts:
        parts.append(f'<p style="color:#666;font-size:12px">{"<br>".join(facts)}</p>')
    return f'<div style="{_FONT}">\n' + "\n".join(parts) + "\n</div>\n"


def to_page(message: Message, pictures: Mapping[int, bytes]) -> str:
    """The same as a page for a browser, which needs nothing else.

    :param pictures: PNG pictures by the positions of their queries
    """
    inside = {
        position: f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        for position, picture in pictures.items()
    }
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f"<title>{escape(subject(message))}</title>\n</head>\n<body>\n"
        f"{to_html(message, inside)}</body>\n</html>\n"
    )


def _section(section: Section, max_rows: int, picture: str | None) -> str:
    title = escape(section.title or "Query")
    parts = [f'<h3 style="font-size:15px">{title}</h3>']
    if section.error is not None:
        return "\n".join([*parts, f"<p>failed: {escape(section.error)}</p>"])
    if picture:
        style = "max-width:100%;height:auto"
        parts.append(f'<p><img src="{escape(picture)}" alt="{title}" style="{style}"></p>')
    elif bars := section.bars():
        parts.append(f'<pre style="{_CODE}">{html.escape(chr(10).join(bars))}</pre>')
    parts.append(_table(section, max_rows))
    parts.append(f'<p style="color:#666">{section.counted(max_rows)}</p>')
    files = [section.path] if section.path else []
    parts += [f"<p>{escape(path)}</p>" for path in [*files, *section.chart_paths]]
    return "\n".join(part for part in parts if part)


def _table(section: Section, max_rows: int) -> str:
    if not section.columns:
        return ""
    names = "".join(
        f'<th style="{_CELL}left">{escape(cell(column.get("name", ""), 80))}</th>'
        for column in section.columns
    )
    rows = [
        "".join(
            f'<td style="{_CELL}{"left" if number(value) is None else "right"}">'
            f"{escape(cell(value, 200))}</td>"
            for value in row
        )
        for row in section.rows[:max_rows]
    ]
    body = "\n".join(f"<tr>{row}</tr>" for row in [names, *rows])
    return f'<table style="border-collapse:collapse;{_FONT}">\n{body}\n</table>'
