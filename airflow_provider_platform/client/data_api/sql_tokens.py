"""The tokens of a SQL text: enough to tell code from strings, quoted names and comments.

Nothing is parsed here. Whoever asks whether a query has a limit, whether it is a query at all, or
where a parameter goes, needs to know only which characters are code. The rules are PostgreSQL's,
whose dialect the service speaks: `''` is a quote inside a string, a backslash counts inside `E''`
only, `$tag$` quotes a string, and comments nest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

TokenKind = Literal["gap", "comment", "string", "name", "word", "number", "sign"]

_TOKEN = re.compile(
    r"""
      (?P<gap> \s+ )
    | (?P<line> --[^\n]* )
    | (?P<comment> /\* )
    | (?P<string> [eE]'(?:[^'\\]|''|\\.)*'? | '(?:[^']|'')*'? )
    | (?P<name> "(?:[^"]|"")*"? | `(?:[^`]|``)*`? )
    | (?P<dollar> \$(?P<tag>[A-Za-z_]\w*)?\$ )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<number> \d[\w.]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")
_KINDS: dict[str, TokenKind] = {
    "gap": "gap",
    "line": "comment",
    "comment": "comment",
    "string": "string",
    "name": "name",
    "dollar": "string",
    "tag": "string",
    "word": "word",
    "number": "number",
    "sign": "sign",
}

_SHOWN = {"string": "'", "name": '"'}


class Token(NamedTuple):
    """A piece of the text: `text` is `sql[start : start + len(text)]`."""

    kind: TokenKind
    start: int
    text: str

    @property
    def is_code(self) -> bool:
        """Whether the piece is neither space nor a comment."""
        return self.kind not in ("gap", "comment")

    @property
    def end(self) -> int:
        """Where the piece ends."""
        return self.start + len(self.text)

    @property
    def code(self) -> str:
        """What the piece is to a reader of clauses: a word in lower case, a sign, a number, `'` for
        a string and `"` for a quoted name."""
        return _SHOWN.get(self.kind) or self.text.lower()


def read_tokens(sql: str) -> Iterator[Token]:
    """The tokens of the text in order; joined they are the text. A string, name or comment that is
    not closed reaches to the end."""
    start = 0
    while start < len(sql):
        match = _TOKEN.match(sql, start)
        assert match is not None  # noqa: S101 - the last alternative takes any character
        end = match.end()
        if match.lastgroup == "comment":
            end = _end_of_comment(sql, end)
        elif match["dollar"]:
            closing = sql.find(match["dollar"], end)
            end = len(sql) if closing < 0 else closing + len(match["dollar"])
        yield Token(_KINDS[str(match.lastgroup)], start, sql[start:end])
        start = end


def _end_of_comment(sql: str, at: int) -> int:
    """Where a comment ends whose opening mark ends at `at`."""
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(sql, at)
        if mark is None:
            return len(sql)
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at
