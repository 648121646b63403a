"""Whether the service may have cut a result, judged by the query's SQL and the number of rows.

The service never says that it cut a result: the only sign is a number of rows. Two limits are
settings of a deployment, one for queries without a LIMIT and one for queries with one. A result
with exactly that many rows may have been cut. If the deployment's limits are not known, a round
number of rows that the query did not ask for is a sign too.

Finding the query's own LIMIT takes no parser of SQL, only its tokens: comments, texts and quoted
names are skipped, parentheses hold parts of the query, and only a `LIMIT` outside of them counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.data_api.sql_tokens import read_tokens
from airflow_provider_platform.client.operations.rules import integer

if TYPE_CHECKING:
    from airflow_provider_platform.client.config import PlatformConfig

DEFAULT_LIMIT = 10_000
"""Rows of a result whose SQL has no limit (the service's CUBEJS_DB_QUERY_DEFAULT_LIMIT)."""
MAXIMUM_LIMIT = 50_000
"""Rows of a result whose SQL has one (its CUBEJS_DB_QUERY_LIMIT), unless the deployment streams."""

ROUND = 1000
"""A number of rows that is a multiple of this, or a power of two above, looks like a limit."""


@dataclass(frozen=True)
class RowLimits:
    """The row limits of a deployment, None where they are not known: `default` for a query without
    a LIMIT, `maximum` for a query with one."""

    default: int | None = None
    maximum: int | None = None

    def why_cut(self, sql: str, row_count: int) -> str | None:
        """Why a result of `row_count` rows may have been cut by the service, and what to do; None
        if nothing suggests that it was.

        A result with as many rows as the query's own LIMIT is whole, unless the LIMIT is exactly
        the deployment's maximum: then more rows than that may exist, and no client can see it.
        """
        tokens = _words(sql)
        at = _limit_at(tokens)
        known = self.default if at is None else self.maximum
        assumed = DEFAULT_LIMIT if at is None else MAXIMUM_LIMIT
        own = None if at is None else _number_at(tokens, at)
        asked = "a query without a LIMIT" if at is None else "a query with a LIMIT"
        if row_count == (assumed if known is None else known):
            return (
                f"The result may be incomplete: it has exactly {row_count} rows, the service's "
                f"maximum for {asked}. {_advice(at is not None)}"
            )
        if row_count == own or not row_count:
            return None
        name = "default_row_limit" if at is None else "max_row_limit"
        wanted = "" if own is None else f", although the query has LIMIT {own}"
        begin = f"The result may be incomplete: it has exactly {row_count} rows{wanted}."
        if row_count in (self.default, self.maximum):
            return (
                f"{begin} {row_count} is a row limit of the deployment. {_advice(at is not None)}"
            )
        if known is None and _is_round(row_count):
            return (
                f"{begin} {row_count} is a round number, and row limits of deployments are often "
                f"round numbers. {_advice(True)} If the deployment has another row limit, set "
                f"{name} to that limit (in the connection or the task). A result with {row_count} "
                "rows then counts as complete."
            )
        return None


def known_limits(
    config: PlatformConfig, default: int | None = None, maximum: int | None = None
) -> RowLimits:
    """The row limits that the caller gives, else those of the connection."""
    return RowLimits(
        default=config.default_row_limit if default is None else default,
        maximum=config.max_row_limit if maximum is None else maximum,
    )


def page_rows(config: PlatformConfig, wanted: int | None = None, maximum: int | None = None) -> int:
    """The LIMIT of a page: what the caller wants, at most the deployment's row limit."""
    most = known_limits(config, maximum=maximum).maximum
    return min(wanted or most or MAXIMUM_LIMIT, most or wanted or MAXIMUM_LIMIT)


def check_limit(name: str, value: Any) -> int | None:
    """A row limit that a caller gives. Raises PlatformInputError."""
    return None if value is None else integer(name, value, minimum=1)


def has_limit(sql: str) -> bool:
    """Whether the query as a whole has a limit: `LIMIT` (`LIMIT ALL` is none) or `FETCH FIRST`;
    one of a subquery, of a common table expression or of a part in parentheses is none."""
    return _limit_at(_words(sql)) is not None


def own_limit(sql: str) -> int | None:
    """The number of the query's own LIMIT; None if it has none, or one that is not a number."""
    tokens = _words(sql)
    at = _limit_at(tokens)
    return None if at is None else _number_at(tokens, at)


def _advice(limited: bool) -> str:
    first = "" if limited else "Give the query a LIMIT of its own (up to 50,000), or "
    return (
        f"{first}{'Read' if limited else 'read'} all rows with page_by, or split the query "
        "into parts."
    )


def _is_round(rows: int) -> bool:
    return rows % ROUND == 0 or (rows > ROUND and rows & (rows - 1) == 0)


def _number_at(tokens: list[str], at: int) -> int | None:
    """The number of the limit whose word stands at `at`; None for any other expression."""
    if tokens[at] == "fetch":
        found = tokens[at + 2 : at + 3]
        return 1 if found in (["row"], ["rows"]) else _whole(found, tokens[at + 3 : at + 4])
    return _whole(tokens[at + 1 : at + 2], tokens[at + 2 : at + 3])


def _whole(number: list[str], after: list[str]) -> int | None:
    ends: tuple[list[str], ...] = ([], ["offset"], ["row"], ["rows"])
    return int(number[0]) if number and number[0].isdecimal() and after in ends else None


def _limit_at(tokens: list[str]) -> int | None:
    """Where the word of the query's own limit stands among its tokens."""
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
                return at
    return None


def _counts(word: str, after: str) -> bool:
    """Whether a word and its next token are a limit: a number, a placeholder, an expression."""
    if word == "fetch":
        return after in ("first", "next")
    return after not in ("", "all", ",", ")", "=", "<", ">", ".", "from", ";", "null")


def _words(sql: str) -> list[str]:
    """The code of the query's tokens, without parentheses around the whole query."""
    tokens = _code(sql)
    while tokens and tokens[-1] == ";":
        tokens.pop()
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


def _code(sql: str) -> list[str]:
    return [token.code for token in read_tokens(sql) if token.is_code]
