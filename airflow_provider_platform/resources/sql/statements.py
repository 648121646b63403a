"""What a SQL text is: one query or not, its own limit, and whether the service cut its result.

sqlglot parses the text as PostgreSQL, which is nearly the service's dialect. A text that sqlglot
cannot parse is not an error: it is sent as it is, the service decides, and whether the text has a
limit of its own counts as unknown.

The service never says that it cut a result: the only sign is a number of rows. Two limits are
settings of a deployment, one for queries without a LIMIT and one for queries with one. A result
with exactly that many rows may have been cut. If the deployment's limits are not known, a round
number of rows that the query did not ask for is a sign too.

Importing this module loads sqlglot, which takes about half a second: import it where a query runs,
not where a DAG is parsed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError

from airflow_provider_platform.client.argument_rules import integer

if TYPE_CHECKING:
    from sqlglot import Token

    from airflow_provider_platform.client.config import PlatformConfig

DEFAULT_LIMIT = 10_000
"""Rows of a result whose SQL has no limit (the service's CUBEJS_DB_QUERY_DEFAULT_LIMIT)."""
MAXIMUM_LIMIT = 50_000
"""Rows of a result whose SQL has a limit (the service's CUBEJS_DB_QUERY_LIMIT), unless the
deployment streams."""
ROUND = 1000
"""A number of rows looks like a limit if it is a multiple of this, or a higher power of two."""

_POSTGRES = Dialect.get_or_raise("postgres")
_FIRST_WORD = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?\*/|\()*(\w+|.)?", re.DOTALL)
_NOT_PARSED = frozenset({"desc", "describe", "explain", "show"})
_QUERIES = _NOT_PARSED | {"select", "table", "values", "with"}
_ONLY_READS = "the service's SQL is read-only"
_NO_TABLES = (
    "the service's SQL cannot create tables, not even temporary ones: the data model defines the "
    "tables"
)
_NO_TRANSACTIONS = "the service has no transactions: each query runs on its own"
_NO_SESSION = (
    "the service keeps no session between queries: pass timezone, branch_name and cache as "
    "arguments"
)
_NO_PROCEDURES = "the service's SQL has neither procedures nor prepared statements"
_REASONS = {
    word: reason
    for words, reason in (
        ("copy delete insert load merge replace truncate update upsert", _ONLY_READS),
        ("alter analyze comment create drop grant refresh rename revoke vacuum", _NO_TABLES),
        ("abort begin commit end lock release rollback savepoint start", _NO_TRANSACTIONS),
        ("discard reset set use", _NO_SESSION),
        ("call deallocate declare do exec execute prepare", _NO_PROCEDURES),
    )
    for word in words.split()
}


@dataclass(frozen=True)
class Statement:
    """A parsed SQL text: its statements, the tokens of the text, and why it could not be parsed
    (None if it could)."""

    parsed: tuple[exp.Expr, ...]
    tokens: tuple[Token, ...]
    problem: str | None = None


@lru_cache(maxsize=16)
def parse(sql: str) -> Statement:
    """Parse a text, once for all questions about it."""
    try:
        tokens = _POSTGRES.tokenize(sql)
        found = _POSTGRES.parser().parse(tokens, sql)
    except ParseError as error:
        first = error.errors[0]
        said = re.sub(r"<class '[\w.]*?(\w+)'>", r"\1", first["description"]).rstrip(".")
        return Statement((), (), f"{said}, line {first['line']}, column {first['col']}")
    except Exception as error:  # noqa: BLE001 - whatever it raises, it has not parsed the text
        return Statement((), (), str(error).split("\n")[0][:200] or type(error).__name__)
    return Statement(
        tuple(one for one in found if one is not None and not isinstance(one, exp.Semicolon)),
        tuple(tokens),
    )


def why_not_a_query(sql: str) -> str | None:
    """Return why the text is not one query that reads, None if it is or may be one."""
    found = _FIRST_WORD.match(sql)
    first = (found and found[1]) or ";"
    if first == ";":
        return "it contains only white space and comments"
    if (word := first.lower()) not in _QUERIES:
        reason = _REASONS.get(word)
        return f"it begins with {first.upper()[:20]}{', and ' + reason if reason else ''}"
    if word in _NOT_PARSED:
        return None
    statements = parse(sql).parsed
    if len(statements) > 1:
        return "it contains several statements"
    for statement in statements:
        for writes in statement.find_all(exp.DML):
            return f"it contains {writes.key.upper()}, and {_ONLY_READS}"
        if statement.args.get("into"):
            return f"it is SELECT INTO, and {_NO_TABLES}"
    return None


def own_limit(sql: str) -> tuple[bool | None, int | None]:
    """Return whether the query as a whole has a limit (None: unknown, because the text cannot be
    parsed), and the limit's number (None if it is another expression).

    `LIMIT ALL` does not count, and neither does a limit in a subquery, a common table expression
    or one side of a UNION.
    """
    if len(statements := parse(sql).parsed) != 1:
        return None, None
    query = statements[0]
    while isinstance(query, exp.Subquery) and query.args.get("limit") is None:
        query = query.this  # parentheses around the whole query
    if not isinstance(query, exp.Query):
        return None, None
    limit = query.args.get("limit")
    if limit is None:
        return False, None
    number = limit.args.get("count" if isinstance(limit, exp.Fetch) else "expression")
    if isinstance(limit, exp.Fetch) and number is None:
        return True, 1
    if isinstance(number, exp.Null) or str(number).upper() == "ALL":
        return False, None
    plain = isinstance(number, exp.Literal) and number.this.isdecimal()
    before = query.args.get("offset")
    if plain and before is not None and re.search(r"limit\s+\d+\s*,", sql, re.IGNORECASE):
        plain = False  # LIMIT 10, 20: the service may read it in another way
    return True, int(number.this) if plain else None


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
        the deployment's maximum. In that case more rows may exist, and no client can see them. If
        it is not known whether the query has a LIMIT, either limit of the deployment counts.
        """
        limited, own = own_limit(sql)
        if limited is None:
            return self._why(False, None, row_count) or self._why(True, None, row_count)
        return self._why(limited, own, row_count)

    def _why(self, limited: bool, own: int | None, row_count: int) -> str | None:
        known = self.maximum if limited else self.default
        assumed = MAXIMUM_LIMIT if limited else DEFAULT_LIMIT
        if row_count == (assumed if known is None else known):
            asked = "a query with a LIMIT" if limited else "a query without a LIMIT"
            return (
                f"The result may be incomplete: it has exactly {row_count} rows, the service's "
                f"maximum for {asked}. {_advice(limited)}"
            )
        if row_count == own or not row_count:
            return None
        wanted = "" if own is None else f", although the query has LIMIT {own}"
        begin = f"The result may be incomplete: it has exactly {row_count} rows{wanted}."
        if row_count in (self.default, self.maximum):
            return f"{begin} {row_count} is a row limit of the deployment. {_advice(limited)}"
        if known is None and _is_round(row_count):
            name = "max_row_limit" if limited else "default_row_limit"
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


def _advice(limited: bool) -> str:
    first = "" if limited else "Give the query a LIMIT of its own (up to 50,000), or "
    return (
        f"{first}{'Read' if limited else 'read'} all rows with page_by, or split the query "
        "into parts."
    )


def _is_round(rows: int) -> bool:
    return rows % ROUND == 0 or (rows > ROUND and rows & (rows - 1) == 0)
