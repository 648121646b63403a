"""A message as the HTML of an e-mail, made of its Markdown.

Mail programs show neither scripts nor style sheets nor, most of them, pictures in `data:`
addresses. So styles are on the elements, and a picture comes as a part of the mail, whose content
id is its file's name.
"""

from __future__ import annotations

import base64
import html
from typing import TYPE_CHECKING

from airflow_provider_platform.messages.markdown import parser, to_markdown
from airflow_provider_platform.messages.message import line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_platform.messages.message import Message

_FONT = "font-family:Arial,Helvetica,sans-serif;font-size:14px;color:#222"
_CELL = "padding:4px 10px;border-bottom:1px solid #ddd;text-align:left"
_STYLES = {
    "h2": "font-size:18px",
    "h3": "font-size:15px",
    "table": f"border-collapse:collapse;{_FONT}",
    "th": _CELL,
    "td": _CELL,
    "pre": "font-family:Consolas,Menlo,monospace;font-size:13px;line-height:1.2",
    "img": "max-width:100%;height:auto",
}


def subject(message: Message) -> str:
    """The title as one line, which no header can follow."""
    return line(message.title)[:200]


def to_html(message: Message, pictures: Mapping[int, str] | None = None) -> str:
    """The body of a mail.

    :param pictures: addresses of pictures (`cid:chart-1.png`) by the positions of their queries;
        a chart that has none is drawn as bars
    """
    markdown = parser()
    tokens = markdown.parse(to_markdown(message, pictures))
    inner = [child for token in tokens for child in token.children or ()]
    for token in (*tokens, *inner):
        if token.tag in _STYLES and token.nesting >= 0:
            own = token.attrs.get("style")
            token.attrs["style"] = f"{_STYLES[token.tag]};{own}" if own else _STYLES[token.tag]
    body = markdown.renderer.render(tokens, markdown.options, {})
    body = body.replace("<pre>", f'<pre style="{_STYLES["pre"]}">')  # of a fence, without a token
    return f'<div style="{_FONT}">\n{body}</div>\n'


def to_page(message: Message, pictures: Mapping[int, bytes]) -> str:
    """The same as a page for a browser, which needs nothing else.

    :param pictures: PNG pictures by the positions of their queries
    """
    body = to_html(message, {position: f"cid:{position}" for position in pictures})
    for position, picture in pictures.items():
        inside = f"data:image/png;base64,{base64.b64encode(picture).decode()}"
        body = body.replace(f'src="cid:{position}"', f'src="{inside}"')
    return (
        '<!DOCTYPE html>\n<html>\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html.escape(subject(message))}</title>\n</head>\n<body>\n"
        f"{body}</body>\n</html>\n"
    )
