"""Judges by the query's SQL and the number of rows whether the service may have cut a result.

The service never says that it cut a result: the only sign is a number of rows. Two limits are
settings of a deployment, one for queries without a LIMIT and one for queries with one. A result
with exactly that many rows may have been cut. If the deployment's limits are not known, a round
number of rows that the query did not ask for is a sign too.

The query's own LIMIT is found in its tokens, without an SQL parser. Comments, strings and quoted
names are skipped. Only a `LIMIT` outside of all parentheses counts.
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
"""Rows of a result whose SQL has a limit (the service's CUBEJS_DB_QUERY_LIMIT), unless the
deployment streams."""

ROUND = 1000
"""A number of rows looks like a limit if it is a multiple of this, or a higher power of two."""


@dataclass(frozen=True)
class RowLimits:
    """The row limits of a deployment: `default` for a query without a LIMIT, `maximum` for a query
    with a LIMIT. None means that the limit is not known."""

    default: int | None = None
    maximum: int | None = None

    def why_cut(self, sql: str, row_count: int) -> str | None:
        """Return why the service may have cut a result of `row_count` rows, and what to do. Return
        None if nothing suggests that.

        A result with as many rows as the query's own LIMIT is complete, unless the LIMIT is exactly
        the deployment's maximum. In that case more rows may exist, and no client can see them.
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
    """Return the caller's row limits. A limit that the caller does not give comes from the
    connection."""
    return RowLimits(
        default=config.default_row_limit if default is None else default,
        maximum=config.max_row_limit if maximum is None else maximum,
    )


def page_rows(config: PlatformConfig, wanted: int | None = None, maximum: int | None = None) -> int:
    """Return the LIMIT of a page: the number of rows that the caller wants, at most the
    deployment's row limit."""
    most = known_limits(config, maximum=maximum).maximum
    return min(wanted or most or MAXIMUM_LIMIT, most or wanted or MAXIMUM_LIMIT)


def check_limit(name: str, value: Any) -> int | None:
    """Return a caller's row limit as an int, None if it is not given. Raises PlatformInputError."""
    return None if value is None else integer(name, value, minimum=1)


def has_limit(sql: str) -> bool:
    """Return whether the query as a whole has a limit: `LIMIT` or `FETCH FIRST`. `LIMIT ALL` does
    not count, and neither does a limit in a subquery, a common table expression or parentheses."""
    return _limit_at(_words(sql)) is not None


def _advice(limited: bool) -> str:
    first = "" if limited else "Give the query a LIMIT of its own (up to 50,000), or "
    return (
        f"{first}{'Read' if limited else 'read'} all rows with page_by, or split the query "
        "into parts."
    )


def _is_round(rows: int) -> bool:
    return rows % ROUND == 0 or (rows > ROUND and rows & (rows - 1) == 0)


def _number_at(tokens: list[str], at: int) -> int | None:
    """Return the number of the limit whose keyword is token `at`; None if the limit is another
    expression."""
    if tokens[at] == "fetch":
        found = tokens[at + 2 : at + 3]
        return 1 if found in (["row"], ["rows"]) else _whole(found, tokens[at + 3 : at + 4])
    return _whole(tokens[at + 1 : at + 2], tokens[at + 2 : at + 3])


def _whole(number: list[str], after: list[str]) -> int | None:
    ends: tuple[list[str], ...] = ([], ["offset"], ["row"], ["rows"])
    return int(number[0]) if number and number[0].isdecimal() and after in ends else None


def _limit_at(tokens: list[str]) -> int | None:
    """Return the index of the token that begins the query's own limit; None if it has none."""
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
    """Return whether a keyword and the token after it are a limit: a number, a placeholder or an
    expression follows."""
    if word == "fetch":
        return after in ("first", "next")
    return after not in ("", "all", ",", ")", "=", "<", ">", ".", "from", ";", "null")


def _words(sql: str) -> list[str]:
    """Return the query's code tokens, without parentheses around the whole query."""
    tokens = _code(sql)
    while tokens and tokens[-1] == ";":
        tokens.pop()
    while tokens[:1] == ["("] and _closing(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tokens


def _closing(tokens: list[str]) -> int | None:
    """Return the index of the token that closes the parenthesis with which the tokens begin."""
    depth = 0
    for at, part in enumerate(tokens):
        depth += (part == "(") - (part == ")")
        if depth == 0:
            return at
    return None


def _code(sql: str) -> list[str]:
    return [token.code for token in read_tokens(sql) if token.is_code]
