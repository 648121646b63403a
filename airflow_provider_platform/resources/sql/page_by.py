"""Reads all rows of a query beyond the service's row limit, in pages that begin at key values.

Each page is the author's own query with a condition in its WHERE, an ORDER BY of the keys and a
LIMIT. The query is not wrapped in another query: the service might cut the inner query at its row
limit, and the result would not show it. So `PagedQuery` accepts only queries to whose WHERE a
condition can be added. It refuses all others with a reason.

A page begins with the last row of the page before (`key >= value`, not `>`). That row proves that
the rows have not changed, and a second row with the same keys cannot be lost between two pages. The
result ends with a page that has no further row. The number of rows of a page decides nothing, so no
row is lost if a deployment cuts pages at an unknown limit. Each page also asks for the rows with a
null key, because no comparison selects them; `PageReader` refuses such rows.

sqlglot says whether a query can be paged, and what its columns are. The text of a page is the
author's text, cut at sqlglot's tokens. sqlglot itself would write functions and casts in its own
way, which the service may not understand.

`PagedQuery` writes the SQL of a page, `PageReader` judges its rows, and `run_pages` runs one page
after another.

The order of the rows is checked while they are read: keys must rise from row to row, by value for
numbers, and by code points for strings, dates and times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from operator import lt
from typing import TYPE_CHECKING, Any, NoReturn, Self

from sqlglot import Token, TokenType, exp

from airflow_provider_platform.client.errors import (
    PageKeyError,
    PagesChangedError,
    PlatformError,
    PlatformInputError,
)
from airflow_provider_platform.client.repeats import may_repeat, pause_after
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
from airflow_provider_platform.resources.sql.response import SqlChunk, SqlColumns, SqlOpenEnd
from airflow_provider_platform.resources.sql.statements import MAXIMUM_LIMIT, parse

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

LEAST_PAGE = 2
"""The least rows of a page: the last row of the page before, and a new row."""

_SET_BY_PAGES = {"order": "ORDER BY", "limit": "LIMIT or FETCH", "offset": "OFFSET"}
_ALLOWED = ("kind", "expressions", "from", "joins", "where", "group", "having", "distinct")
_SELECT_WORDS = (TokenType.SELECT, TokenType.DISTINCT, TokenType.ALL)
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_NUMBERS = ("int", "uint", "float", "double", "decimal", "numeric", "real", "bigint", "smallint")
_TEXTS = ("string", "text", "varchar", "utf8", "date", "time")


@dataclass(frozen=True)
class PageKey:
    """A key: its column's name in the result, the expression that WHERE compares, and the
    expression by which ORDER BY sorts."""

    name: str
    compared: str
    sorted_by: str


@dataclass(frozen=True)
class PagedQuery:
    """A query, split into the parts from which pages are made: `head` reaches to the end of FROM,
    `where` is the condition of WHERE, `tail` is GROUP BY and HAVING. `rows` is the LIMIT of a
    page."""

    head: str
    where: str
    tail: str
    keys: tuple[PageKey, ...]
    rows: int = MAXIMUM_LIMIT

    @classmethod
    def build(cls, sql: str, page_by: Sequence[str], *, rows: int = MAXIMUM_LIMIT) -> Self:
        """Return the query for reading in pages by these columns. Raises PlatformInputError, with
        the reason, if the query cannot be paged correctly."""
        names = _checked_names(page_by)
        if rows < LEAST_PAGE:
            _refuse(
                f"a page needs at least {LEAST_PAGE} rows, but page_rows or the row limit allows "
                f"only {rows}",
                "page_rows",
            )
        select = _one_select(sql)
        text = _Text(sql)
        pieces = text.items()
        if len(pieces) != len(select.expressions):
            _refuse("the columns of its SELECT list cannot be told apart. Name them with AS")
        items = [_Item(*item) for item in zip(select.expressions, pieces, strict=True)]
        keys = [_key_item(name, items) for name in names]
        _check_groups(select, items, keys)
        where = text.at(TokenType.WHERE)
        tail = text.at(TokenType.GROUP_BY, TokenType.HAVING)
        return cls(
            head=text.between(0, min(where, tail)),
            where=text.between(where + 1, tail),
            tail=text.between(tail, text.end),
            keys=tuple(_page_key(name, item, text) for name, item in zip(names, keys, strict=True)),
            rows=rows,
        )

    def page(self, after: Sequence[str] | None = None) -> str:
        """Return the SQL of the first page. With `after` (SQL literals), return the SQL of the page
        that begins with the row whose keys have these values."""
        conditions = [f"({self.where})"] if self.where else []
        if after is not None:
            conditions.append(_from_row([key.compared for key in self.keys], after))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        tail = f" {self.tail}" if self.tail else ""
        order = ", ".join(key.sorted_by for key in self.keys)
        return f"{self.head}{where}{tail} ORDER BY {order} LIMIT {self.rows}"


class PageReader:
    """Checks the rows of all pages, and returns the new rows. Raises PageKeyError if the keys are
    not unique or not in order, PagesChangedError if rows changed between two pages."""

    def __init__(self, query: PagedQuery) -> None:
        self._query = query
        self._names = [key.name for key in query.keys]
        self._columns: list[dict[str, str]] | None = None
        self._places: list[int] = []
        self._last: tuple[Any, ...] | None = None
        self._literals: list[str] | None = None
        self._on_page = 0
        self.pages = 0
        self.row_count = 0

    @property
    def has_new_rows(self) -> bool:
        """Whether the page has had a row that the pages before did not have."""
        return self._on_page > (self.pages > 1)

    @property
    def ended(self) -> bool:
        """Whether the page is the last one: it was read to its end and had no new row."""
        return not self.has_new_rows

    def next_page(self) -> str:
        """Begin the next page and return its SQL."""
        self.pages += 1
        self._on_page = 0
        return self._query.page(self._literals)

    def take_columns(self, columns: list[dict[str, str]]) -> bool:
        """Check the columns of a page. Return True if it is the first page."""
        if self._columns is not None:
            if columns != self._columns:
                raise PagesChangedError(
                    f"Page {self.pages} has different columns than the previous pages. The data "
                    "model changed while the pages were read. Run the query again."
                )
            return False
        self._columns = columns
        self._places = [_place(name, columns) for name in self._names]
        for name, place in zip(self._names, self._places, strict=True):
            _kind(name, columns[place]["type"])
        return True

    def take_rows(self, rows: list[list[Any]]) -> list[list[Any]]:
        """Check some rows of the page, and return the new rows."""
        if not rows:
            return rows
        keys = self._keys(rows)
        if self.pages > 1 and not self._on_page:
            self._check_overlap(keys[0])
            self._on_page, rows, keys = 1, rows[1:], keys[1:]
            if not rows:
                return rows
        before = [*keys[:-1]] if self._last is None else [self._last, *keys[:-1]]
        after = keys[1:] if self._last is None else keys
        if not all(map(lt, before, after)):
            self._refuse_order(before, after)
        self._on_page += len(rows)
        self.row_count += len(rows)
        self._last = keys[-1]
        assert self._columns is not None  # noqa: S101 - rows come after columns
        self._literals = [
            _literal(_kind(name, self._columns[at]["type"]), rows[-1][at])
            for name, at in zip(self._names, self._places, strict=True)
        ]
        return rows

    def finish_page(self) -> None:
        """Check a page that was read to its end."""
        if self.pages > 1 and not self._on_page:
            self._lost()

    def _keys(self, rows: list[list[Any]]) -> list[tuple[Any, ...]]:
        assert self._columns is not None  # noqa: S101 - rows come after columns
        columns = []
        for name, at in zip(self._names, self._places, strict=True):
            values = [row[at] for row in rows]
            if None in values:
                raise PageKeyError(
                    f"page_by {name} is null in row {self._row(values.index(None))}, but a key "
                    f"must have a value in every row. Exclude such rows with WHERE {name} IS NOT "
                    "NULL, or page by other columns."
                )
            columns.append(self._comparable(name, self._columns[at]["type"], values))
        return [*zip(*columns, strict=True)]

    def _comparable(self, name: str, declared: str, values: list[Any]) -> list[Any]:
        """Return the values of a key as types that Python orders as the service must."""
        kind = _kind(name, declared)
        texts = [str(value) for value in values]
        if kind == "text":
            return texts
        read = _BOOLEANS.__getitem__ if kind == "boolean" else _number
        try:
            return [read(text) for text in texts]
        except (KeyError, ValueError):
            wrong = next(at for at, text in enumerate(texts) if not _is_value(kind, text))
            raise PageKeyError(
                f"page_by {name} is of type {declared}, but its value in row {self._row(wrong)} "
                f"is not a {kind}, so the keys cannot be ordered. Page by other columns."
            ) from None

    def _row(self, index: int) -> int:
        """Return the number (from 1) in the whole result of a row that has just arrived."""
        overlap = self.pages > 1 and not self._on_page
        return self.row_count + index + 1 - overlap

    def _check_overlap(self, first: tuple[Any, ...]) -> None:
        if first != self._last:
            self._lost()

    def _lost(self) -> NoReturn:
        raise PagesChangedError(
            f"Page {self.pages} does not begin with row {self.row_count} of the result, so rows "
            "may be missing between the pages. Each page must begin with the last row of the page "
            "before. Either the data changed while the task read the pages, or the service rounds "
            f"the values of {_listed(self._names)}. Run the query again. If that does not help, "
            "page by other columns."
        )

    def _refuse_order(
        self, before: Sequence[tuple[Any, ...]], after: Sequence[tuple[Any, ...]]
    ) -> NoReturn:
        at = next(at for at, (one, two) in enumerate(zip(before, after, strict=True)) if one >= two)
        row = self.row_count + at + (1 if self._last is None else 0)
        names = _listed(self._names)
        if before[at] == after[at]:
            raise PageKeyError(
                f"Rows {row} and {row + 1} have the same values of page_by {names}. The keys must "
                "be unique for each row, or rows would be lost between pages. Add columns to "
                "page_by until the keys are unique."
            )
        raise PageKeyError(
            f"Row {row + 1} comes after row {row}, but its values of page_by {names} are smaller. "
            "The service sorts these values in another order than the task, for example by a "
            "language's collation. Page by numbers, dates, times, or strings without upper case."
        )


@dataclass(frozen=True)
class _Item:
    """A column of the select list, as sqlglot reads it and as its tokens in the text."""

    parsed: exp.Expr
    tokens: list[Token]

    @property
    def is_star(self) -> bool:
        return self.parsed.is_star

    @property
    def value(self) -> exp.Expr:
        return self.parsed.unalias()

    @property
    def name(self) -> str | None:
        """The column's name in the result, None if it has no name of its own."""
        named = isinstance(self.parsed, exp.Alias | exp.Column) and not self.is_star
        return self.parsed.alias_or_name if named else None

    def is_called(self, name: str) -> bool:
        """Return whether this name refers to the column."""
        if self.name is None:
            return False
        parsed = self.parsed.args["alias" if isinstance(self.parsed, exp.Alias) else "this"]
        return self.name == name or (not parsed.quoted and self.name.lower() == name.lower())


class _Text:
    """The tokens of a query that is one SELECT: where its clauses and columns are."""

    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._tokens = [t for t in parse(sql).tokens if t.token_type is not TokenType.SEMICOLON]
        self.end = len(self._tokens)
        depth = 0
        self._outside: list[int] = []
        for at, token in enumerate(self._tokens):
            opens = token.token_type in (TokenType.L_PAREN, TokenType.L_BRACKET)
            depth -= token.token_type in (TokenType.R_PAREN, TokenType.R_BRACKET)
            if depth == 0 and not opens:
                self._outside.append(at)
            depth += opens

    def at(self, *types: TokenType) -> int:
        """Return the index of the first of these tokens that is a clause, else the end."""
        # `t.from` and `AS from` are names, `IS DISTINCT FROM` is an operator.
        before = (TokenType.DOT, TokenType.ALIAS, TokenType.DISTINCT)
        found = (
            at
            for at in self._outside
            if self._tokens[at].token_type in types
            and self._tokens[at - 1].token_type not in before
        )
        return next(found, self.end)

    def between(self, first: int, end: int) -> str:
        """Return the text of the tokens from one index to before another."""
        return self.text(self._tokens[first:end])

    def text(self, tokens: Sequence[Token]) -> str:
        """Return the text of neighbouring tokens."""
        return self._sql[tokens[0].start : tokens[-1].end + 1] if tokens else ""

    def items(self) -> list[list[Token]]:
        """Return the tokens of each column of the select list."""
        begin = 0
        while self._tokens[begin].token_type in _SELECT_WORDS:
            begin += 1
        end = self.at(TokenType.FROM)
        commas = [
            at
            for at in self._outside
            if at < end and self._tokens[at].token_type is TokenType.COMMA
        ]
        starts, ends = [begin, *(at + 1 for at in commas)], [*commas, end]
        return [self._tokens[one:other] for one, other in zip(starts, ends, strict=True)]


def _checked_names(page_by: Any) -> list[str]:
    given = [] if isinstance(page_by, str) or not isinstance(page_by, Sequence) else [*page_by]
    if not given or not all(isinstance(name, str) and name.strip() for name in given):
        _refuse("it must be a list of column names")
    if len({name.lower() for name in given}) < len(given):
        _refuse("it contains the same column twice")
    return given


def _one_select(sql: str) -> exp.Select:
    """Return the query. Raises PlatformInputError if it is not one plain SELECT."""
    statement = parse(sql)
    if statement.problem is not None:
        _refuse(f"the query cannot be parsed as PostgreSQL ({statement.problem})")
    if len(statement.parsed) != 1:
        _refuse(f"the query must be one SELECT, but it has {len(statement.parsed)} statements")
    select = statement.parsed[0]
    if not isinstance(select, exp.Select):
        _refuse(f"the query must be one SELECT, but it is {select.key.upper()}")
    if any(query is not select for query in select.find_all(exp.Query)):
        _refuse(
            "the query has a subquery. The service may apply its row limit inside the subquery, "
            "and then later pages would lack rows"
        )
    if select.find(exp.Window) is not None:
        _refuse("the query has a window function (OVER), which would see one page only")
    if (distinct := select.args.get("distinct")) is not None and distinct.args.get("on"):
        _refuse(
            "the query has DISTINCT ON. Which rows it selects depends on the ORDER BY, "
            "and page_by sets another ORDER BY"
        )
    given = {name.rstrip("_") for name, value in select.args.items() if value}
    for name in sorted(given.difference(_ALLOWED)):
        if name in _SET_BY_PAGES:
            _refuse(
                f"the query has {_SET_BY_PAGES[name]}. Remove it: page_by orders and limits "
                "the pages"
            )
        _refuse(f"the query has {name.upper()}, which paging does not support")
    if "from" not in given:
        _refuse("the query has no FROM")
    return select


def _key_item(name: str, items: list[_Item]) -> _Item:
    found = [item for item in items if item.is_called(name)]
    if len(found) > 1:
        _refuse(f"the result has {len(found)} columns with the name {name}")
    if found:
        if _is_aggregate(found[0].value):
            _refuse(
                f"{name} is an aggregate. page_by selects each page with a condition in WHERE, "
                "and WHERE cannot contain an aggregate"
            )
        return found[0]
    stars = [item for item in items if item.is_star]
    if not stars:
        known = [item.name for item in items if item.name is not None]
        _refuse(
            f"{name} is not a named column of the result (named columns: "
            f"{', '.join(known[:20]) or 'none'}). Select the column, or name it with AS"
        )
    return stars[0] if len(stars) == 1 else _Item(exp.Star(), [])


def _is_aggregate(value: exp.Expr) -> bool:
    return any(
        isinstance(call, exp.AggFunc) or call.name.lower() == "measure"
        for call in value.find_all(exp.Func)
    )


def _page_key(name: str, item: _Item, text: _Text) -> PageKey:
    if item.is_star:  # `*` or `t.*`
        expression = text.text(item.tokens[:-1]) + _quoted(name)
        return PageKey(name, expression, expression)
    if not isinstance(item.parsed, exp.Alias):
        expression = text.text(item.tokens)
        return PageKey(name, expression, expression)
    has_as = item.tokens[-2].token_type is TokenType.ALIAS
    expression = text.text(item.tokens[: -2 if has_as else -1])
    is_column = isinstance(item.value, exp.Column)
    return PageKey(
        name, expression if is_column else f"({expression})", text.text(item.tokens[-1:])
    )


def _check_groups(select: exp.Select, items: list[_Item], keys: list[_Item]) -> None:
    """Check that the keys of a grouped query are all the columns of its GROUP BY. Only then does a
    condition keep or drop whole groups, and only then are the keys unique."""
    group = select.args.get("group")
    if group is None:
        return
    for name in (name for name, value in group.args.items() if value and name != "expressions"):
        _refuse(f"GROUP BY has {name.upper()}, which paging does not support")
    grouped = []
    for by in group.expressions:
        if (item := _group_item(by, items)) is None:
            _refuse(
                f"GROUP BY has {by.sql('postgres')[:60]}, which is not a named column of the "
                "result, so several rows could have the same keys. Add it to the SELECT list, and "
                "name it with AS if it is an expression"
            )
        grouped.append(item)
    for key in keys:
        if key not in grouped:
            _refuse(f"{key.name} is not in GROUP BY")
    if missing := [item.name or "" for item in grouped if item not in keys]:
        _refuse(
            f"the query also groups by {_listed(missing)}, so several rows may have the same "
            f"keys. Add {_listed(missing)} to page_by"
        )


def _group_item(by: exp.Expr, items: list[_Item]) -> _Item | None:
    named = [item for item in items if item.name is not None]
    if isinstance(by, exp.Literal) and by.this.isdecimal():
        at = int(by.this) - 1
        found = items[at : at + 1] if at >= 0 else []
        has_star = any(item.is_star for item in items[: at + 1])
        return found[0] if found and found[0] in named and not has_star else None
    same = [item for item in named if item.value == by]
    if not same and isinstance(by, exp.Column) and not by.table:
        same = [item for item in named if item.is_called(by.name)]
    return same[0] if same else None


def _quoted(name: str) -> str:
    """Return a name as SQL, with quotes only if it needs them."""
    return name if _PLAIN.fullmatch(name) else exp.to_identifier(name, quoted=True).sql("postgres")


def _from_row(keys: Sequence[str], values: Sequence[str]) -> str:
    """Return the condition that selects the rows from this row on, and the rows with a null key."""
    key, value = keys[0], values[0]
    if len(keys) == 1:
        return f"({key} >= {value} OR {key} IS NULL)"
    inner = _from_row(keys[1:], values[1:])
    return f"({key} > {value} OR ({key} = {value} AND {inner}) OR {key} IS NULL)"


def _place(name: str, columns: list[dict[str, str]]) -> int:
    """Return the index of the key's column in the result. Raises PageKeyError."""
    exact = [at for at, column in enumerate(columns) if column["name"] == name]
    alike = [at for at, column in enumerate(columns) if column["name"].lower() == name.lower()]
    found = exact or alike
    if len(found) != 1:
        known = ", ".join(column["name"] for column in columns[:20])
        problem = f"{len(found)} columns" if found else "no column"
        raise PageKeyError(
            f"page_by {name}: the result has {problem} of this name. Its columns are: {known}."
        )
    return found[0]


def _kind(name: str, declared: str) -> str:
    """Return how the values of a key are compared. Raises PageKeyError if the type has no order."""
    word = declared.lower()
    if word.startswith("bool"):
        return "boolean"
    if word.startswith(_NUMBERS) and not word.startswith("interval"):
        return "number"
    if word.startswith(_TEXTS):
        return "text"
    raise PageKeyError(
        f"page_by {name} is of type {declared or 'unknown'}, but keys must be numbers, strings, "
        "dates, times or booleans."
    )


def _number(text: str) -> int | Decimal:
    """Return a number that can be compared. Raises ValueError if the text is not a number in SQL
    too."""
    if not _NUMBER.fullmatch(text):
        raise ValueError
    return int(text) if text.lstrip("-").isdecimal() else Decimal(text)


def _is_value(kind: str, text: str) -> bool:
    return text in _BOOLEANS if kind == "boolean" else bool(_NUMBER.fullmatch(text))


def _literal(kind: str, value: Any) -> str:
    """Return the value as SQL. A number stays as the service wrote it."""
    if kind == "boolean":
        return str(_BOOLEANS[str(value)]).upper()
    if kind == "number":
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)


def _refuse(reason: str, field: str = "page_by") -> NoReturn:
    raise PlatformInputError(f"Nothing was sent: page_by cannot be used: {reason}.", field=field)


async def run_pages(api: Api, query: SqlQuery, pages: PagedQuery) -> None:
    """Run a query page by page. Notifies as `run_sql` does for one result: of the columns once, of
    new rows only, and of SqlOpenEnd if the last page did not mark its end.

    Each page may wait for its first row as long as the first page. If a page breaks off after new
    rows, it is requested again from the last of these rows, at most `max_attempts` times in a row.
    Raises PageKeyError, PagesChangedError, and the errors of `run_sql`.
    """
    patience = query.deadline - api.clock()
    reader = PageReader(pages)
    broken = 0
    while True:
        page = _Page(reader)
        asked = replace(query, sql=reader.next_page(), deadline=api.clock() + patience)
        try:
            await run_sql(api.hearing(partial(page.hear, api)), asked)
        except PlatformError as error:
            broken += 1
            goes_on = reader.has_new_rows and may_repeat(error, repeatable=True)
            if not goes_on or broken >= api.config.max_attempts:
                raise
            await api.sleep(pause_after(error, broken))
            continue
        broken = 0
        reader.finish_page()
        if reader.ended:
            if page.open_ended:
                await api.notify(SqlOpenEnd())
            return


class _Page:
    """Turns the events of one page into the events that the page adds to the result."""

    def __init__(self, reader: PageReader) -> None:
        self._reader = reader
        self.open_ended = False

    async def hear(self, api: Api, event: object) -> None:
        if isinstance(event, SqlColumns) and not self._reader.take_columns(event.columns):
            return
        if isinstance(event, SqlOpenEnd):
            # If rows are missing at the end of this page, the next page requests them again.
            self.open_ended = True
            return
        if isinstance(event, SqlChunk):
            rows = self._reader.take_rows(event.rows)
            if not rows:
                return
            event = SqlChunk(rows)
        await api.notify(event)
