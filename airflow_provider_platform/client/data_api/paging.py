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

`PagedQuery` writes the SQL of a page, `PageReader` judges its rows, and `run_pages` runs one page
after another.

The order of the rows is checked while they are read: keys must rise from row to row, by value for
numbers, and by code points for strings, dates and times.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from operator import lt
from typing import Any, NoReturn, Self

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.data_api.query import SqlQuery, run_sql
from airflow_provider_platform.client.data_api.response import SqlChunk, SqlColumns, SqlOpenEnd
from airflow_provider_platform.client.data_api.row_limits import MAXIMUM_LIMIT
from airflow_provider_platform.client.data_api.sql_tokens import Token, read_tokens
from airflow_provider_platform.client.errors import (
    PageKeyError,
    PagesChangedError,
    PlatformError,
    PlatformInputError,
)
from airflow_provider_platform.client.http.retry import may_repeat, pause_after
from airflow_provider_platform.client.operations.program import (
    Clock,
    Notify,
    Program,
    Sleep,
    with_events,
)

LEAST_PAGE = 2
"""The least rows of a page: the last row of the page before, and a new row."""

_CLAUSES = ("select", "from", "where", "group", "having")
_ORDERED = {"order": "ORDER BY", "limit": "LIMIT", "offset": "OFFSET", "fetch": "FETCH"}
_NOT_ONE_SELECT = ("union", "intersect", "except")
_AGGREGATES = frozenset({"avg", "count", "max", "measure", "min", "sum"})
_NO_NAMES = frozenset({"case", "cast", "date", "false", "interval", "not", "null", "true"})
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_BOOLEANS = {"true": True, "True": True, "false": False, "False": False}
_NUMBERS = ("int", "uint", "float", "double", "decimal", "numeric", "real", "bigint", "smallint")
_TEXTS = ("string", "text", "varchar", "utf8", "date", "time")


@dataclass(frozen=True)
class Column:
    """A column of the select list: its name in the result (None if it has no name of its own) and
    its expression. `alias` is the alias as the query writes it. `star` is True for `*` and
    `t.*`."""

    name: str | None
    expression: str
    tokens: tuple[str, ...]
    quoted: bool = False
    alias: str | None = None
    star: bool = False

    def is_called(self, name: str) -> bool:
        """Return whether this name refers to the column."""
        if self.name is None:
            return False
        return self.name == name or (not self.quoted and self.name.lower() == name.lower())


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
    `tail` is GROUP BY and HAVING. `rows` is the LIMIT of a page."""

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
        parts = _Parts.of(sql)
        columns = parts.columns()
        keys = [_key_column(name, columns) for name in names]
        _check_groups(parts, columns, keys)
        return cls(
            head=parts.text("select", "from"),
            where=parts.text("where", "where"),
            tail=parts.text("group", "having"),
            keys=tuple(_page_key(name, key) for name, key in zip(names, keys, strict=True)),
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
class _Parts:
    """The clauses of a query that is one SELECT: for each clause's keyword, the tokens up to the
    next clause."""

    sql: str
    clauses: dict[str, list[Token]]

    @classmethod
    def of(cls, sql: str) -> Self:
        tokens = [token for token in read_tokens(sql) if token.is_code]
        while tokens and tokens[-1].code == ";":
            tokens.pop()
        _refuse_shape([token.code for token in tokens])
        clauses: dict[str, list[Token]] = {"select": []}
        clause, depth = "select", 0
        for at, token in enumerate(tokens[1:], start=1):
            word = token.code
            depth += (word == "(") - (word == ")")
            if depth == 0 and _begins_clause(tokens, at):
                _refuse_clause(word)
                if _CLAUSES.index(word) <= _CLAUSES.index(clause):
                    _refuse(f"the query has {word.upper()} after {clause.upper()}")
                clause, clauses[word] = word, []
            else:
                clauses[clause].append(token)
        if "from" not in clauses:
            _refuse("the query has no FROM")
        for name, found in clauses.items():
            if not found:
                _refuse(f"the query has nothing after {name.upper()}")
        return cls(sql, clauses)

    def text(self, first: str, last: str) -> str:
        """Return the SQL from one clause to another, `""` if the query has none of them. The
        keyword WHERE is left out."""
        wanted = _CLAUSES[_CLAUSES.index(first) : _CLAUSES.index(last) + 1]
        found = [name for name in wanted if name in self.clauses]
        if not found:
            return ""
        tokens = [token for name in found for token in self.clauses[name]]
        body = self.sql[tokens[0].start : tokens[-1].end]
        return body if first == "where" else f"{found[0].upper()} {body}"

    def columns(self) -> list[Column]:
        """Return the columns of the select list."""
        tokens = self.clauses["select"]
        if tokens and tokens[0].code in ("distinct", "all"):
            tokens = tokens[1:]
            if tokens and tokens[0].code == "on":
                _refuse(
                    "the query has DISTINCT ON. Which rows it selects depends on the ORDER BY, "
                    "and page_by sets another ORDER BY"
                )
        return [self._column(item) for item in _by_commas(tokens)]

    def groups(self) -> list[list[Token]] | None:
        """Return the items of GROUP BY; None if the query has no GROUP BY."""
        group = self.clauses.get("group")
        return None if group is None else [*_by_commas(group[1:])]

    def source(self, tokens: Sequence[Token]) -> str:
        """Return the SQL of these tokens as the query writes it."""
        return self.sql[tokens[0].start : tokens[-1].end]

    def _column(self, tokens: list[Token]) -> Column:
        if not tokens:
            _refuse("the select list has an empty column")
        words = [token.code for token in tokens]
        if words == ["*"] or (words[-2:] == [".", "*"] and _is_chain(words[:-2])):
            return Column(None, self.source(tokens), tuple(words), star=True)
        name = _is_name(words[-1])
        if name and _is_chain(words):
            return self._named(tokens[-1], tokens)
        if name and len(tokens) > 2 and words[-2] == "as":
            return self._named(tokens[-1], tokens[:-2], alias=self.source(tokens[-1:]))
        if name and len(tokens) > 1 and (words[-2] in (")", "end") or _is_chain(words[:-1])):
            return self._named(tokens[-1], tokens[:-1], alias=self.source(tokens[-1:]))
        return Column(None, self.source(tokens), tuple(words))

    def _named(self, name: Token, tokens: Sequence[Token], *, alias: str | None = None) -> Column:
        return Column(
            name=_name_in(name),
            expression=self.source(tokens),
            tokens=_normal(tokens),
            quoted=name.code == '"',
            alias=alias,
        )


def _checked_names(page_by: Any) -> list[str]:
    given = [] if isinstance(page_by, str) or not isinstance(page_by, Sequence) else [*page_by]
    if not given or not all(isinstance(name, str) and name.strip() for name in given):
        _refuse("it must be a list of column names")
    if len({name.lower() for name in given}) < len(given):
        _refuse("it contains the same column twice")
    return given


def _refuse_shape(words: list[str]) -> None:
    """Raise PlatformInputError if the query is not one plain SELECT."""
    if words[:1] != ["select"]:
        begins = words[0].upper()[:20] if words else "nothing"
        _refuse(f"the query must be one SELECT, but it begins with {begins}")
    if words.count("select") > 1:
        _refuse(
            "the query has a subquery. The service may apply its row limit inside the subquery, "
            "and then later pages would lack rows"
        )
    for word, after in pairwise(words):
        if word == "over" and (after == "(" or _is_name(after)):
            _refuse("the query has a window function (OVER), which would see one page only")
    if ";" in words:
        _refuse("the query contains several statements")


def _begins_clause(tokens: Sequence[Token], at: int) -> bool:
    """Return whether the token is a keyword that begins a clause, not a name."""
    word = tokens[at].code
    before = tokens[at - 1].code
    after = tokens[at + 1].code if at + 1 < len(tokens) else ""
    if before in (".", "as"):
        return False
    if word == "from":
        return before != "distinct"
    if word in ("group", "order"):
        return after == "by"
    if word == "fetch":
        return after in ("first", "next")
    if word in ("limit", "offset"):
        return after not in ("", ",", ")", "=", "<", ">", ".")
    if word in ("for", "window", "qualify"):
        return _is_name(after) or after == '"'
    return word in ("where", "having", "into", *_NOT_ONE_SELECT)


def _refuse_clause(word: str) -> None:
    if word in _ORDERED:
        _refuse(f"the query has {_ORDERED[word]}. Remove it: page_by orders and limits the pages")
    if word in _NOT_ONE_SELECT:
        _refuse(f"the query must be one SELECT, but it has {word.upper()}")
    if word not in _CLAUSES:
        _refuse(f"the query has {word.upper()}, which paging does not support")


def _key_column(name: str, columns: list[Column]) -> Column:
    found = [column for column in columns if column.is_called(name)]
    if len(found) > 1:
        _refuse(f"the result has {len(found)} columns with the name {name}")
    if found:
        calls = {word for word, after in pairwise(found[0].tokens) if after == "("}
        if calls & _AGGREGATES:
            _refuse(
                f"{name} is an aggregate. page_by selects each page with a condition in WHERE, "
                "and WHERE cannot contain an aggregate"
            )
        return found[0]
    stars = [column for column in columns if column.star]
    if not stars:
        known = [column.name for column in columns if column.name is not None]
        _refuse(
            f"{name} is not a named column of the result (named columns: "
            f"{', '.join(known[:20]) or 'none'}). Select the column, or name it with AS"
        )
    table = stars[0].expression.removesuffix("*") if len(stars) == 1 else ""
    expression = table + _quoted(name)
    return Column(name, expression, (name.lower(),))


def _page_key(name: str, column: Column) -> PageKey:
    compared = column.expression if _is_chain(column.tokens) else f"({column.expression})"
    return PageKey(name, compared, column.alias or column.expression)


def _check_groups(parts: _Parts, columns: list[Column], keys: list[Column]) -> None:
    """Check that the keys of a grouped query are all the columns of its GROUP BY. Only then does a
    condition keep or drop whole groups, and only then are the keys unique."""
    groups = parts.groups()
    if groups is None:
        return
    grouped = []
    for item in groups:
        column = _group_column(item, columns)
        if column is None:
            _refuse(
                f"GROUP BY has {parts.source(item)[:60]}, which is not a named column of the "
                "result, so several rows could have the same keys. Add it to the SELECT list, and "
                "name it with AS if it is an expression"
            )
        grouped.append(column)
    for key in keys:
        if key not in grouped:
            _refuse(f"{key.name} is not in GROUP BY")
    missing = [column.name or column.expression for column in grouped if column not in keys]
    if missing:
        _refuse(
            f"the query also groups by {_listed(missing)}, so several rows may have the same "
            f"keys. Add {_listed(missing)} to page_by"
        )


def _group_column(item: list[Token], columns: list[Column]) -> Column | None:
    if not item:
        return None
    if len(item) == 1 and item[0].code.isdecimal():
        at = int(item[0].code) - 1
        has_star = any(column.star for column in columns[: at + 1])
        found = columns[at] if 0 <= at < len(columns) and not has_star else None
        return found if found is not None and found.name is not None else None
    normal = _normal(item)
    for column in columns:
        if column.name is not None and column.tokens == normal:
            return column
    if len(item) == 1 and _is_name(item[0].code):
        name = _name_in(item[0])
        for column in columns:
            if column.is_called(name):
                return column
    return None


def _by_commas(tokens: Sequence[Token]) -> Iterator[list[Token]]:
    item: list[Token] = []
    depth = 0
    for token in tokens:
        depth += (token.code in "([") - (token.code in ")]")
        if token.code == "," and depth == 0:
            yield item
            item = []
        else:
            item.append(token)
    yield item


def _is_name(word: str) -> bool:
    return word == '"' or ((word[:1].isalpha() or word[:1] == "_") and word not in _NO_NAMES)


def _is_chain(words: Sequence[str]) -> bool:
    """Return whether the tokens are a name, or names with dots between them."""
    names, dots = words[::2], words[1::2]
    return len(words) % 2 == 1 and all(map(_is_name, names)) and {*dots} <= {"."}


def _name_in(token: Token) -> str:
    """Return the name in a token, without quotes."""
    if token.kind != "name":
        return token.text
    return token.text[1:-1].replace(token.text[0] * 2, token.text[0])


def _normal(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the tokens in one spelling, so that equal expressions compare equal: words in lower
    case, other tokens as the query writes them."""
    return tuple(token.text if token.kind in ("string", "name") else token.code for token in tokens)


def _quoted(name: str) -> str:
    """Return a name as SQL, with quotes only if it needs them."""
    return name if _PLAIN.fullmatch(name) else f'"{_double(name)}"'


def _double(name: str) -> str:
    return name.replace('"', '""')


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


def run_pages(
    query: SqlQuery, pages: PagedQuery, config: PlatformConfig, clock: Clock
) -> Program[None]:
    """Run a query page by page. Notifies as `run_sql` does for one result: of the columns once, of
    new rows only, and of SqlOpenEnd if the last page did not mark its end.

    Each page may wait for its first row as long as the first page. If a page breaks off after new
    rows, it is requested again from the last of these rows, at most `max_attempts` times in a row.
    Raises PageKeyError, PagesChangedError, and the errors of `run_sql`.
    """
    patience = query.deadline - clock()
    reader = PageReader(pages)
    broken = 0
    while True:
        page = _Page(reader)
        body = query.body.model_copy(update={"query": reader.next_page()})
        asked = replace(query, body=body, deadline=clock() + patience)
        try:
            yield from with_events(run_sql(asked, config, clock), page.take)
        except PlatformError as error:
            broken += 1
            goes_on = reader.has_new_rows and may_repeat(error, repeatable=True)
            if not goes_on or broken >= config.max_attempts:
                raise
            yield Sleep(pause_after(error, broken))
            continue
        broken = 0
        reader.finish_page()
        if reader.ended:
            if page.open_ended:
                yield Notify(SqlOpenEnd())
            return


class _Page:
    """Turns the events of one page into the events that the page adds to the result."""

    def __init__(self, reader: PageReader) -> None:
        self._reader = reader
        self.open_ended = False

    def take(self, event: object) -> Iterable[object]:
        if isinstance(event, SqlColumns):
            return [event] if self._reader.take_columns(event.columns) else []
        if isinstance(event, SqlOpenEnd):
            # If rows are missing at the end of this page, the next page requests them again.
            self.open_ended = True
            return []
        if isinstance(event, SqlChunk):
            rows = self._reader.take_rows(event.rows)
            return [SqlChunk(rows)] if rows else []
        return [event]
