"""Lists: one page of a list (`Page`), and reading the whole list (`PageWalk`).

`PageWalk` is a state machine without I/O: run its `operation`, pass the page to `add_page`, and
repeat this while there is a next operation. Lists are read by cursor (`first`, `after`), or by
number (`offset`/`limit` or `page`/`limit`): if the caller begins by number, if the order of the
list forbids a cursor, and if a tenant answers the first page without `pageInfo` but with a `count`
above the number of rows. The two are never mixed: no request has parameters of both, and after a
cursor was sent, no page is requested by number.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Generic, NoReturn, Self, TypeVar, cast

from pydantic import (
    ModelWrapValidatorHandler,
    PrivateAttr,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from airflow_provider_platform.client.argument_rules import read_digits, refuse
from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.models import JsonObject, ResponseModel
from airflow_provider_platform.client.operation import PAGING, Json, Operation, described, prepared
from airflow_provider_platform.client.redaction import quote_service

T = TypeVar("T")

BY_CURSOR = frozenset({"first", "after"})
BY_NUMBER = PAGING - BY_CURSOR

log = logging.getLogger(__name__)

_ROWS = frozenset({"items", "data"})

UNPAGED_ORDER = "lastViewedAt"
"""The order of reports in which the service has no cursors."""

PAGES_WITHOUT_NEWS = 100
"""After so many pages in a row without a new item, a list counts as endless."""
MAX_PAGES = 10_000
"""After so many pages a list counts as endless, whatever is on them."""


class PageInfo(ResponseModel):
    """The position of a page in its list."""

    deciding = frozenset({"has_next_page"})

    has_next_page: bool = False
    end_cursor: str | None = None


class Pagination(ResponseModel):
    """The position of a page in its list, in the form of older tenants."""

    total: int | None = None


class Page(ResponseModel, Generic[T]):
    """One page of a list: `items` and `pageInfo`, the older `data` and `count`, or a bare array.

    `rows` is the page's content whichever way the tenant sends it. An item that does not have the
    described shape is left out with a warning; a page on which no item has it is refused, unless an
    earlier page of the list could be read.
    """

    deciding = frozenset({"items", "data", "page_info"})
    _left_out: int = PrivateAttr(default=0)

    items: list[T] | None = None
    page_info: PageInfo | None = None
    data: list[T] | None = None
    count: int | None = None
    total_count: int | None = None
    pagination: Pagination | None = None

    @model_validator(mode="wrap")
    @classmethod
    def _leave_odd_items_out(
        cls, value: Any, handler: ModelWrapValidatorHandler[Self], info: ValidationInfo
    ) -> Self:
        if isinstance(value, list):
            value = {"items": value}
        try:
            return handler(value)
        except ValidationError as error:
            problems = error.errors(include_input=False, include_url=False, include_context=False)
            odd = {item["loc"][:2]: item for item in problems if _is_in_item(item["loc"])}
            if not odd:
                raise
            read = {
                name: [item for at, item in enumerate(rows) if (name, at) not in odd]
                for name, rows in value.items()
                if name in _ROWS and isinstance(rows, list)
            }
            later_page = bool(info.context and info.context.get("later_page"))
            if not later_page and not all(rows for name, rows in read.items() if value[name]):
                raise
        page = handler({**value, **read})
        left_out = max(len(value[name]) - len(rows) for name, rows in read.items())
        page._left_out = left_out  # noqa: SLF001 - an instance of this class
        first = next(iter(odd.values()))
        log.warning(
            "%s: the result leaves out %s items of the list, because they do not have the "
            "documented form. The first problem is in %s: %s. The tenant may run a release that "
            "this provider does not know.",
            cls.__name__,
            left_out,
            quote_service(".".join(map(str, first["loc"]))),
            quote_service(first["msg"]),
        )
        return page

    @model_validator(mode="after")
    def _is_a_list(self) -> Self:
        if not self.model_fields_set & _ROWS:
            raise ValueError("has neither items nor data")
        if self.page_info is None and self.total is None:
            # A length that cannot be parsed must not make one page the whole list.
            odd = {"count", "totalCount", "pagination"} & set(self.model_extra or {})
            if odd:
                raise ValueError(f"has a {min(odd)} that cannot be read")
        return self

    @property
    def left_out(self) -> int:
        """How many items of this page do not have the described shape."""
        return self._left_out

    @property
    def rows(self) -> list[T]:
        """The items of this page."""
        return self.items if self.items is not None else self.data or []

    @property
    def total(self) -> int | None:
        """How many items the whole list has; None if the service does not say."""
        older = self.pagination.total if self.pagination else None
        said = (self.count, self.total_count, older)
        return next((number for number in said if number is not None), None)


def listing(
    operation: str, /, *, query: Mapping[str, Any] | None = None, rendered: bool = False, **ids: Any
) -> Operation[Page[Any]]:
    """Return the call that reads a list: an operation of the table by its id, or a method and a
    path, such as `GET /v1/x`. The list is read by cursor, or by number if the query has `offset` or
    `page`.

    Raises PlatformInputError as `prepared`, for an operation that is no list, for `first` or
    `after` beside `offset`, `page` or `limit`, for a `limit` alone, and for a number that is none.
    """
    called = prepared(operation, query=query, rendered=rendered, **ids)
    if called.described and not described(called.operation_id).is_list:
        _refuse(
            f'{called.operation_id} does not return a list. Write call("{called.operation_id}", '
            "…) instead of iterate",
            field="operation",
        )
    if called.method != "GET":
        _refuse(f"a list is read with GET, not with {called.method}", field="operation")
    parameters = dict(called.query)
    numbered = BY_NUMBER & set(parameters)
    if numbered and BY_CURSOR & set(parameters):
        _refuse("the arguments first and after cannot be combined with offset, page and limit")
    paging = called.paging
    if not called.described:
        if numbered == {"limit"}:
            _refuse("limit needs offset (0 for the first page), or write first instead of limit")
        for name in (numbered | {"first"}) & set(parameters):
            try:
                parameters[name] = read_digits(parameters[name])
            except ValueError as error:
                raise refuse(name, str(error)) from None
            if parameters[name] == 0 and name in ("first", "limit"):
                raise refuse(name, "must be at least 1")
        paging = frozenset(numbered | {"limit"} if numbered else BY_CURSOR)
    elif parameters.get("sortBy") == UNPAGED_ORDER:
        if BY_CURSOR & set(parameters):
            _refuse(f"the arguments first and after are not available with sortBy={UNPAGED_ORDER}")
        paging -= BY_CURSOR
    rows = Page[JsonObject] if called.described else Page[Json]
    read = replace(called, answer=rows, query=parameters, paging=paging)
    return cast("Operation[Page[Any]]", read)


def _refuse(problem: str, *, field: str = "query") -> NoReturn:
    raise PlatformInputError(f"Nothing was sent: {problem}.", field=field)


class PageWalk(Generic[T]):
    """Read a list page by page: run `operation` and pass its page to `add_page`, until `operation`
    is None.

    If the next page cannot be read, `operation` raises PlatformProtocolError after the rows so far:
    a cursor repeats or is missing, pages repeat, a hundred pages in a row have no new rows, more
    than `MAX_PAGES` pages come, or `count` is larger than the number of rows on all pages. If the
    operation has no pages, the rows of the only response are the list. The list is then
    `truncated`, and the log says so.
    """

    truncated = False

    def __init__(self, operation: Operation[Page[T]]) -> None:
        query = operation.query
        self._start = operation
        self._next: Operation[Page[T]] | None = operation
        self._problem: PlatformProtocolError | None = None
        self._parameters = operation.paging
        self._by_cursor = "after" in operation.paging and not BY_NUMBER & set(query)
        self._cursors = {str(query["after"])} if "after" in query else set()
        self._began_at_cursor = "after" in query
        self._seen: set[str] = set()
        self._hashes: set[int] = set()
        """Of the rows of a list read by cursor. Its rows themselves could fill the memory."""
        self._readable = False
        self._received = int(query.get("offset", 0))
        self._first_page = int(query["page"]) if "page" in query else None
        self._page_number = 0
        self._page_size = 0
        self._pages_without_news = 0

    @property
    def operation(self) -> Operation[Page[T]] | None:
        """The next request, None at the end of the list."""
        if self._problem is not None:
            raise self._problem
        return self._next

    def add_page(self, page: Page[T]) -> list[T]:
        """Return the new rows of the page that `operation` returned, and go to the next page."""
        self._readable = self._readable or bool(page.rows)
        if self._by_cursor and (page.page_info is not None or self._cursors):
            self._received += len(page.rows) + page.left_out
            self._next = self._after(page)
            self._page_number += 1
            if self._next is not None:
                self._count_without_news(page.rows)
            return page.rows
        self._by_cursor = False
        rows = self._unseen(page.rows)
        self._received += len(rows) + page.left_out
        self._next = self._numbered(page) if self._goes_on(page) else None
        self._page_number += 1
        self._count_pages()
        return rows

    def _after(self, page: Page[T]) -> Operation[Page[T]] | None:
        info = page.page_info
        if info is None:
            if not self._began_at_cursor and (page.total or 0) > self._received:
                return self._stopped(
                    f"reports {page.total} items, sent {self._received}, and sent no cursor for "
                    "the rest"
                )
            return None
        if not info.has_next_page:
            return None
        cursor = info.end_cursor
        if not cursor:
            return self._stopped("announces a next page but sent no cursor for it")
        if cursor in self._cursors:
            return self._stopped("sent the same cursor twice, so the list would never end")
        self._cursors.add(cursor)
        return self._page_of({**self._start.query, "after": cursor})

    def _count_without_news(self, rows: list[T]) -> None:
        """Count pages without new rows: a filtered list may have some empty pages, but not
        endlessly many."""
        known = len(self._hashes)
        self._hashes.update(hash(_identity(row)) for row in rows)
        news = len(self._hashes) > known
        self._pages_without_news = 0 if news else self._pages_without_news + 1
        if self._pages_without_news >= PAGES_WITHOUT_NEWS:
            self._stopped(f"sent {PAGES_WITHOUT_NEWS} pages in a row without a new item")
        self._count_pages()

    def _count_pages(self) -> None:
        if self._next is not None and self._page_number >= MAX_PAGES:
            self._stopped(f"sent {MAX_PAGES} pages and announces another: the list has no end")

    def _goes_on(self, page: Page[T]) -> bool:
        if page.total is None:
            return page.page_info is not None and page.page_info.has_next_page
        before = 0
        if self._first_page is not None:
            # Whether pages count from 0 or from 1 is not documented: at least so many came before.
            before = max(self._first_page - 1, 0) * self._size(page)
        more = page.total > before + self._received
        came = bool(page.rows) or page.left_out > 0
        return more and (came or (self._page_number == 0 and not self._first_page))

    def _size(self, page: Page[T]) -> int:
        asked = self._start.query.get("limit") or self._start.query.get("first")
        self._page_size = self._page_size or int(asked or len(page.rows))
        return self._page_size

    def _numbered(self, page: Page[T]) -> Operation[Page[T]] | None:
        """The next request by number. Whether pages count from 0 or from 1 is not documented. If
        the caller gave no page, page 1 is requested. If it is the first page again, its rows are
        already known."""
        query = {k: v for k, v in self._start.query.items() if k not in PAGING}
        query["limit"] = self._size(page)
        if not page.rows and not page.left_out:
            return self._stopped(f"reports {page.total} items but sent none")
        if {"offset", "limit"} <= self._parameters:
            query["offset"] = self._received
        elif {"page", "limit"} <= self._parameters:
            query["page"] = (self._first_page or 0) + self._page_number + 1
        elif not self._parameters:
            self.truncated = True
            log.warning(
                "%s: the list is incomplete. The service has more items than the %s that it sent, "
                "but this operation cannot request the others.",
                self._start,
                self._received,
            )
            return None
        else:
            return self._stopped(
                f"has more items than the {self._received} that it sent, but this operation "
                "cannot request the others"
            )
        return self._page_of(query)

    def _page_of(self, query: Mapping[str, Any]) -> Operation[Page[T]]:
        """Return the request for a later page."""
        return replace(self._start, query=query, later_page=self._readable)

    def _unseen(self, rows: list[T]) -> list[T]:
        keys = [_identity(row) for row in rows]
        fresh = [
            row
            for key, row in zip(keys, rows, strict=True)
            if self._page_number == 0 or key not in self._seen
        ]
        self._seen.update(keys)
        base_unknown = "offset" not in self._parameters and not self._first_page
        may_repeat = self._page_number == 0 or (self._page_number == 1 and base_unknown)
        if rows and not fresh and not may_repeat:
            self._stopped("sent the same page twice, so the list would never end")
        return fresh

    def _stopped(self, problem: str) -> Operation[Page[T]] | None:
        self._problem = PlatformProtocolError(
            f"{self._start.description}: the service {problem}.",
            where=self._start.request_name.where,
        )
        return None


def _is_in_item(loc: tuple[int | str, ...]) -> bool:
    """Return whether the location is inside an item of a page."""
    return len(loc) > 1 and loc[0] in _ROWS and isinstance(loc[1], int)


def iterate(
    operation: Operation[Page[T]], run: Callable[[Operation[Page[T]]], Page[T]]
) -> Iterator[T]:
    """The items of a list; `run` gets a page when its first item is wanted.

    Raises PlatformInputError at once for what is not a list operation, and later as `PageWalk`.
    """
    return chain.from_iterable(_pages(PageWalk(operation), run))


def aiterate(
    operation: Operation[Page[T]], run: Callable[[Operation[Page[T]]], Awaitable[Page[T]]]
) -> AsyncIterator[T]:
    """`iterate` for an event loop."""
    return _items(PageWalk(operation), run)


def _pages(walk: PageWalk[T], run: Callable[[Operation[Page[T]]], Page[T]]) -> Iterator[list[T]]:
    while (page := walk.operation) is not None:
        yield walk.add_page(run(page))


async def _items(
    walk: PageWalk[T], run: Callable[[Operation[Page[T]]], Awaitable[Page[T]]]
) -> AsyncIterator[T]:
    while (page := walk.operation) is not None:
        for item in walk.add_page(await run(page)):
            yield item


def _identity(row: object) -> str:
    """Return what distinguishes a row from the other rows of its list: its id, or the whole row."""
    if isinstance(row, dict):
        return str(row.get("id", row))
    return str(getattr(row, "id", row))


@dataclass(frozen=True)
class Collected(Generic[T]):
    """The items of a list; `truncated` says that there are more than requested, `left_out` how many
    do not have the documented shape."""

    items: list[T]
    truncated: bool
    left_out: int = 0


async def collect(
    call: Callable[[Operation[Page[T]]], Awaitable[Page[T]]],
    operation: Operation[Page[T]],
    *,
    max_items: int | None = None,
) -> Collected[T]:
    """Read a list to its end, or until it has `max_items`. `call` gets a page."""
    walk = PageWalk(operation)
    items: list[T] = []
    left_out = 0
    while walk.operation is not None:
        page = await call(walk.operation)
        items += walk.add_page(page)
        left_out += page.left_out
        if max_items is not None and len(items) >= max_items:
            more = len(items) > max_items or walk.operation is not None
            return Collected(items[:max_items], truncated=more, left_out=left_out)
    return Collected(items, truncated=walk.truncated, left_out=left_out)
