"""How many rows the service gives at most for a query, told from its SQL.

A query with a limit of its own may give more than one without. Which one it is takes no parser of
SQL, only its tokens: comments, texts and quoted names are passed over, what stands in parentheses
is a part of the query, and `LIMIT` as a word of its own outside of them is the query's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

DEFAULT_LIMIT = 10_000
"""Rows of a result whose SQL has no limit (the service's CUBEJS_DB_QUERY_DEFAULT_LIMIT)."""
MAXIMUM_LIMIT = 50_000
"""Rows of a result whose SQL has one (its CUBEJS_DB_QUERY_LIMIT), unless the deployment streams."""

_BEGINNINGS = frozenset(
    {"desc", "describe", "explain", "select", "show", "table", "values", "with"}
)

_TOKEN = re.compile(
    r"""
      (?P<gap> \s+ | --[^\n]* )
    | (?P<comment> /\* )
    | (?P<text> [eE]'(?:[^'\\]|''|\\.)*'? | '(?:[^']|'')*'? )
    | (?P<name> "(?:[^"]|"")*"? | `(?:[^`]|``)*`? )
    | (?P<dollar> \$(?P<tag>[A-Za-z_]\w*)?\$ )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<number> \d[\w.]* )
    | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_MARK = re.compile(r"/\*|\*/")


def service_limit(sql: str) -> int:
    """A result with exactly so many rows may have been cut by the service.

    An author's own smaller limit gives another number, with one exception that no client can see:
    a query limited to exactly the maximum.
    """
    return MAXIMUM_LIMIT if has_limit(sql) else DEFAULT_LIMIT


def has_limit(sql: str) -> bool:
    """Whether the query as a whole has a limit: `LIMIT` (`LIMIT ALL` is none) or `FETCH FIRST`;
    one of a subquery, of a common table expression or of a part in parentheses is none."""
    tokens = _without_outer_parentheses([*_tokens(sql)])
    depth = 0
    for at, part in enumerate(tokens):
        if part == "(":
            depth += 1
        elif part == ")":
            depth -= 1
        elif depth == 0 and part in ("limit", "fetch"):
            before = tokens[at - 1] if at else ""
            after = tokens[at + 1] if at + 1 < len(tokens) else ""
            if before not in (".", "as") and _counts(part, after):
                return True
    return False


def not_a_query(sql: str) -> str | None:
    """Why the text cannot be one query, as far as its tokens tell; None where it may be one."""
    tokens = [*_tokens(sql)]
    while tokens and tokens[-1] == ";":
        tokens.pop()
    if not tokens:
        return "it holds nothing but space and comments"
    first = next((part for part in tokens if part != "("), "(")
    if first not in _BEGINNINGS:
        return f"it begins with {first.upper()[:20]}"
    if ";" in tokens:
        return "it holds several statements"
    return None


def _counts(word: str, after: str) -> bool:
    """Whether a word and its next token are a limit: a number, a placeholder, an expression."""
    if word == "fetch":
        return after in ("first", "next")
    return after not in ("", "all", ",", ")", "=", "<", ">", ".", "from", ";", "null")


def _without_outer_parentheses(tokens: list[str]) -> list[str]:
    while tokens and tokens[-1] == ";":
        tokens = tokens[:-1]
    while tokens[:1] == ["("] and _closing(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: list[str]) -> int | None:
    """Where the parenthesis that the tokens begin with is closed."""
    depth = 0
    for at, part in enumerate(tokens):
        depth += (part == "(") - (part == ")")
        if depth == 0:
            return at
    return None


def _tokens(sql: str) -> Iterator[str]:
    """Words in lower case, signs, `'` for a text, `"` for a quoted name and `0` for a number;
    what is not closed reaches to the end."""
    at = 0
    while at < len(sql):
        found = _TOKEN.match(sql, at)
        assert found is not None  # noqa: S101 - the last alternative takes any character
        at = found.end()
        kind = found.lastgroup
        if kind == "comment":
            at = _end_of_comment(sql, at)
        elif kind == "dollar" or kind == "tag":
            mark = found["dollar"]
            end = sql.find(mark, at)
            at = len(sql) if end < 0 else end + len(mark)
            yield "'"
        elif kind == "text":
            yield "'"
        elif kind == "name":
            yield '"'
        elif kind == "number":
            yield "0"
        elif kind == "word":
            yield found["word"].lower()
        elif kind == "sign":
            yield found["sign"]


def _end_of_comment(sql: str, at: int) -> int:
    """Where a comment ends whose mark stands before `at`; comments nest."""
    depth = 1
    while depth:
        mark = _COMMENT_MARK.search(sql, at)
        if mark is None:
            return len(sql)
        depth += 1 if mark[0] == "/*" else -1
        at = mark.end()
    return at
