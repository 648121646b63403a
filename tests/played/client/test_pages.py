"""Walking lists with a played service: cursors, counts, arrays, and services that lose track."""

from __future__ import annotations

from itertools import count, cycle
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import PlatformInputError, PlatformProtocolError
from airflow_provider_platform.client.pages import Page, PageWalk, collect, listing
from airflow_provider_platform.resources.deployments import list_deployments
from airflow_provider_platform.resources.sensor_conditions import list_user_oauth_tokens
from tests.support.fakes.effects import API, Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform.client.operation import Operation
    from airflow_provider_platform.client.pages import Collected
    from tests.support.fakes.effects import Program

    Service = Callable[[dict[str, Any]], Any]

MANY_REQUESTS = 200


def play(program: Program[Collected[Any]], service: Service) -> tuple[Any, list[dict[str, Any]]]:
    """The program's result, and the queries that the service got."""
    queries: list[dict[str, Any]] = []
    effect = program.send(None)
    try:
        while True:
            assert isinstance(effect, Call)
            operation: Operation[Any] = effect.operation
            queries.append(dict(operation.query))
            assert len(queries) < MANY_REQUESTS, "the walk does not end"
            effect = program.send(operation.read(service(dict(operation.query))))
    except StopIteration as end:
        return end.value, queries


def reports(ids: range | list[int]) -> list[dict[str, Any]]:
    return [{"id": number} for number in ids]


def cursor_service(total: int, default: int = 2, **extra: Any) -> Service:
    def answer(query: dict[str, Any]) -> Any:
        size = query.get("first", default)
        start = int(query.get("after", "0"))
        end = min(start + size, total)
        info = {"hasNextPage": end < total, "hasPreviousPage": start > 0, "endCursor": str(end)}
        return {"items": reports(range(start, end)), "pageInfo": info, **extra}

    return answer


def report_listing(**query: Any) -> Operation[Page[Any]]:
    return listing("getReports", deployment_id=7, query=query)


def ids(collected: Any) -> list[int]:
    return [item["id"] if isinstance(item, dict) else item.id for item in collected.items]


@given(total=st.integers(0, 30), size=st.integers(1, 9))
def test_every_item_comes_once_whatever_the_page_size(total: int, size: int) -> None:
    found, queries = play(collect(API.call, report_listing(first=size)), cursor_service(total))

    assert ids(found) == list(range(total))
    assert not found.truncated
    assert len(queries) == max(1, -(-total // size))


@given(total=st.integers(0, 12), wanted=st.integers(1, 12))
def test_max_items_reads_no_further_than_needed(total: int, wanted: int) -> None:
    found, queries = play(
        collect(API.call, report_listing(), max_items=wanted), cursor_service(total)
    )

    assert ids(found) == list(range(min(total, wanted)))
    assert found.truncated == (total > wanted)
    assert len(queries) <= -(-wanted // 2)


@pytest.mark.parametrize("info", [None, {"hasNextPage": False}])
def test_a_list_without_a_next_page_ends(info: Any) -> None:
    found, queries = play(
        collect(API.call, report_listing()), lambda _: {"items": reports([1, 2]), "pageInfo": info}
    )

    assert ids(found) == [1, 2]
    assert len(queries) == 1


def test_a_bare_array_is_a_list() -> None:
    token = {
        "id": 1,
        "userId": 2,
        "integrationId": 3,
        "status": "active",
        "createdAt": "2026-07-20",
        "updatedAt": "2026-07-20T10:00:00Z",
    }

    found, queries = play(collect(API.call, list_user_oauth_tokens()), lambda _: [token, token])

    assert [item.status for item in found.items] == ["active", "active"]
    assert queries == [{}]


def test_response_that_is_not_a_list_is_an_error() -> None:
    with pytest.raises(PlatformProtocolError, match="neither items nor data"):
        play(collect(API.call, report_listing()), lambda _: {"reports": []})


@pytest.mark.parametrize("repeated", [["a", "a"], ["a", "b", "a"]])
def test_a_cursor_that_repeats_is_an_error(repeated: list[str]) -> None:
    cursors = iter(repeated)

    def service(_: dict[str, Any]) -> Any:
        return {
            "items": reports([1]),
            "pageInfo": {"hasNextPage": True, "endCursor": next(cursors)},
        }

    with pytest.raises(PlatformProtocolError, match="same cursor twice"):
        play(collect(API.call, report_listing()), service)


@pytest.mark.parametrize("pages", [[[]], [[1, 2]], [[1], [2]]], ids=["empty", "equal", "in turn"])
def test_endless_pages_without_new_items_are_an_error(pages: list[list[int]]) -> None:
    cursors, items = count(), cycle(pages)

    def service(_: dict[str, Any]) -> Any:
        info = {"hasNextPage": True, "endCursor": str(next(cursors))}
        return {"items": reports(next(items)), "pageInfo": info}

    with pytest.raises(PlatformProtocolError, match="100 pages in a row without a new item"):
        play(collect(API.call, report_listing()), service)


@pytest.mark.parametrize("by_cursor", [True, False])
def test_list_that_never_ends_is_an_error(by_cursor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("airflow_provider_platform.client.pages.MAX_PAGES", 5)
    numbers = count()

    def service(_: dict[str, Any]) -> Any:
        number = next(numbers)
        if not by_cursor:
            return {"data": reports([number]), "count": 10**9}
        info = {"hasNextPage": True, "endCursor": str(number)}
        return {"items": reports([number]), "pageInfo": info}

    with pytest.raises(PlatformProtocolError, match="sent 5 pages and announces another"):
        play(collect(API.call, report_listing()), service)
    assert next(numbers) == 5


@pytest.mark.parametrize("cursor", [None, ""])
def test_a_next_page_without_a_cursor_is_an_error_after_the_rows_that_came(cursor: Any) -> None:
    walk = PageWalk(report_listing())
    operation = walk.operation
    assert operation is not None
    page = {"items": reports([1]), "pageInfo": {"hasNextPage": True, "endCursor": cursor}}

    assert [row["id"] for row in walk.add_page(operation.read(page))] == [1]
    with pytest.raises(PlatformProtocolError, match="sent no cursor"):
        walk.operation  # noqa: B018


def test_warning_if_a_log_has_more_lines_than_the_service_returns(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """No other request could bring them, so that those that came are not lost for them."""
    lines = listing("getDbtSyncLogs", deployment_id=7, sync_job_id="j")

    def service(_: dict[str, Any]) -> Any:
        line = {"message": "same", "timestamp": "2026-07-20T10:00:00Z"}
        return {"items": [line, line], "pageInfo": {"hasNextPage": True, "endCursor": "c"}}

    found, queries = play(collect(API.call, lines), service)
    assert len(found.items) == 2
    assert found.truncated
    assert queries == [{}]
    assert "more items than the 2 that it sent, but this operation cannot request" in caplog.text


def legacy_service(total: int, default: int, base: int = 0, numbered: bool = False) -> Service:
    """A tenant that answers `data` and `count` only; pages count from `base`."""

    def answer(query: dict[str, Any]) -> Any:
        assert "limit" not in query or not {"first", "after"} & set(query), "ways are mixed"
        size = query.get("limit", default)
        start = (query.get("page", base) - base) * size if numbered else query.get("offset", 0)
        return {"data": reports(range(start, min(start + size, total))), "count": total}

    return answer


@given(total=st.integers(0, 25), default=st.integers(1, 8))
def test_list_with_data_and_count_is_paged_by_offset(total: int, default: int) -> None:
    found, queries = play(collect(API.call, list_deployments()), legacy_service(total, default))

    assert ids(found) == list(range(total))
    assert queries[0] == {}
    assert all(set(query) == {"offset", "limit"} for query in queries[1:])


@given(total=st.integers(0, 25), default=st.integers(1, 8), base=st.integers(0, 1))
def test_numbered_pages_work_whether_they_count_from_0_or_1(
    total: int, default: int, base: int
) -> None:
    found, _ = play(
        collect(API.call, report_listing(sort_by="lastViewedAt")),
        legacy_service(total, default, base, numbered=True),
    )

    assert ids(found) == list(range(total))


def test_total_in_the_older_form_ends_the_list() -> None:
    def service(query: dict[str, Any]) -> Any:
        start = query.get("offset", 0)
        page = reports(range(start, min(start + 2, 3)))
        return {"data": page, "pagination": {"total": 3, "offset": start, "limit": 2}}

    found, _ = play(collect(API.call, list_deployments()), service)

    assert ids(found) == [0, 1, 2]


def test_a_tenant_that_repeats_its_pages_is_an_error() -> None:
    def service(_: dict[str, Any]) -> Any:
        return {"data": reports([1, 2]), "count": 9}

    for pages in (list_deployments(), report_listing()):
        with pytest.raises(PlatformProtocolError, match="sent the same page twice"):
            play(collect(API.call, pages), service)


def test_count_above_the_items_without_paging_is_an_error() -> None:
    with pytest.raises(PlatformProtocolError, match="cannot request the others"):
        play(
            collect(API.call, listing("getFolders", deployment_id=7)),
            lambda _: {"data": reports([1]), "count": 2},
        )


def test_a_count_without_items_is_an_error() -> None:
    with pytest.raises(PlatformProtocolError, match="reports 2 items but sent none"):
        play(collect(API.call, list_deployments()), lambda _: {"data": [], "count": 2})


def test_a_list_that_shrinks_while_it_is_read_ends() -> None:
    pages = iter([{"data": reports([1, 2]), "count": 3}, {"data": [], "count": 3}])

    found, _ = play(collect(API.call, list_deployments()), lambda _: next(pages))

    assert ids(found) == [1, 2]


def test_no_cursor_is_used_with_last_viewed_at() -> None:
    def service(query: dict[str, Any]) -> Any:
        assert "after" not in query
        assert "first" not in query
        return {
            "items": reports([1, 2]),
            "pageInfo": {"hasNextPage": True, "endCursor": "c"},
            "count": 2,
        }

    found, queries = play(collect(API.call, report_listing(sort_by="lastViewedAt")), service)

    assert ids(found) == [1, 2]
    assert queries == [{"sortBy": "lastViewedAt"}]


@pytest.mark.parametrize(
    "query",
    [
        {"sort_by": "lastViewedAt", "first": 5},
        {"sort_by": "lastViewedAt", "after": "c"},
        {"first": 5, "page": 1},
        {"first": 0},
        {"sort_by": "popularity"},
    ],
)
def test_list_queries_that_the_service_would_refuse_are_not_sent(query: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        report_listing(**query)


def test_any_list_can_be_paged_by_its_path() -> None:
    found, queries = play(
        collect(API.call, listing("GET /v1/deployments/7/scheduled-tasks", query={"first": 2})),
        cursor_service(3),
    )

    assert found.items == [{"id": 0}, {"id": 1}, {"id": 2}]
    assert queries == [{"first": 2}, {"first": 2, "after": "2"}]


def test_unreadable_item_is_left_out_and_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    odd = {"name": "no id"}

    def answer(query: dict[str, Any]) -> Any:
        offset = query.get("offset", 0)
        rows = [{"id": 1}, odd, {"id": 2}, {"id": 3}][offset : offset + 2]
        return {"items": rows, "count": 4, "pageInfo": None}

    found, queries = play(collect(API.call, list_deployments()), answer)

    assert [row.id for row in found.items] == [1, 2, 3]
    assert found.left_out == 1
    assert [query.get("offset") for query in queries] == [None, 2]
    (warning,) = [record.getMessage() for record in caplog.records]
    assert "1 items of the list" in warning
    assert "items.1.id: Field required" in warning


@pytest.mark.parametrize("by_cursor", [True, False])
def test_later_page_without_readable_items_does_not_fail_the_list(by_cursor: bool) -> None:
    odd = {"name": "no id"}
    pages = [[{"id": 1}, {"id": 2}], [odd, odd], [{"id": 3}, odd], [odd]]

    def answer(query: dict[str, Any]) -> Any:
        at = int(query.get("after", query.get("offset", 0))) // (1 if by_cursor else 2)
        if not by_cursor:
            return {"data": pages[at], "count": 7}
        info = {"hasNextPage": at < len(pages) - 1, "endCursor": str(at + 1)}
        return {"items": pages[at], "pageInfo": info}

    found, queries = play(collect(API.call, list_deployments()), answer)

    assert [row.id for row in found.items] == [1, 2, 3]
    assert found.left_out == 4
    assert len(queries) == len(pages)


@pytest.mark.parametrize(
    "page",
    [
        {"items": [{"name": "a"}, {"name": "b"}]},
        {"items": {"id": 1}},
        {"items": [{"id": 1}], "pageInfo": "more"},
        {"items": [{"id": 1}], "pageInfo": {"hasNextPage": "perhaps"}},
        {"items": [{"id": 1}], "count": "many"},
    ],
    ids=str,
)
def test_list_without_readable_items_is_an_error(page: Any) -> None:
    with pytest.raises(PlatformProtocolError, match="documented shape"):
        play(collect(API.call, list_deployments()), lambda _query: page)


def test_query_with_offset_or_page_is_paged_by_number_although_the_tenant_sends_cursors() -> None:
    def service(query: dict[str, Any]) -> Any:
        assert not {"first", "after"} & set(query), "ways are mixed"
        start = query.get("offset", 0)
        info = {"hasNextPage": start + 2 < 5, "endCursor": "c"}
        return {"items": reports(range(start, min(start + 2, 5))), "pageInfo": info}

    for asked, expected in (({"limit": 2}, [0, 1, 2, 3, 4]), ({"offset": 1}, [1, 2, 3, 4])):
        found, queries = play(collect(API.call, listing("getDeployments", query=asked)), service)
        assert ids(found) == expected
        assert queries[0] == asked
        assert all(set(query) == {"offset", "limit"} for query in queries[1:])


@given(
    total=st.integers(0, 25),
    size=st.integers(1, 8),
    base=st.integers(0, 1),
    page=st.integers(0, 5),
    counted=st.booleans(),
)
def test_list_continues_from_the_given_page(
    total: int, size: int, base: int, page: int, counted: bool
) -> None:
    """`count`, or `pageInfo` with a cursor that must not be used."""

    def service(query: dict[str, Any]) -> Any:
        assert not {"first", "after"} & set(query), "ways are mixed"
        start = max(query["page"] - base, 0) * query["limit"]
        end = min(start + query["limit"], total)
        answer: dict[str, Any] = {"items": reports(range(start, end))}
        info = {"hasNextPage": end < total, "endCursor": "c"}
        return answer | ({"count": total} if counted else {"pageInfo": info})

    found, queries = play(collect(API.call, report_listing(page=page, limit=size)), service)

    assert ids(found) == list(range(max(page - base, 0) * size, total))
    assert [query["page"] for query in queries] == list(range(page, page + len(queries)))


def test_cursor_paging_never_continues_by_number() -> None:
    """A page without `pageInfo` ends the list, or is an error if the count says that rows lack."""

    def service(query: dict[str, Any]) -> Any:
        assert not {"offset", "limit"} & set(query), "ways are mixed"
        if "after" not in query:
            info = {"hasNextPage": True, "endCursor": "c"}
            return {"items": reports([1, 2]), "pageInfo": info, "count": total}
        return {"items": reports([3]), "pageInfo": None, "count": total}

    total = 3
    found, _ = play(collect(API.call, list_deployments()), service)
    assert ids(found) == [1, 2, 3]

    total = 9
    with pytest.raises(PlatformProtocolError, match="reports 9 items, sent 3, and sent no cursor"):
        play(collect(API.call, list_deployments()), service)
    after_c, _ = play(collect(API.call, list_deployments(query={"after": "c"})), service)
    assert ids(after_c) == [3]


def test_raw_list_is_paged_by_the_given_offset_or_page() -> None:
    numbered = listing("GET /v1/x", query={"offset": "1", "limit": " 2", "a": None})
    found, queries = play(collect(API.call, numbered), legacy_service(6, 3))
    assert [item["id"] for item in found.items] == [1, 2, 3, 4, 5]
    assert queries == [{"limit": 2, "offset": number} for number in (1, 3, 5)]

    numbered = listing("GET /v1/x", query={"page": 2, "limit": 2})
    found, queries = play(collect(API.call, numbered), legacy_service(6, 3, base=1, numbered=True))
    assert [item["id"] for item in found.items] == [2, 3, 4, 5]
    assert [query["page"] for query in queries] == [2, 3]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({"first": 2, "offset": 0}, "cannot be combined"),
        ({"after": "c", "page": 1}, "cannot be combined"),
        ({"after": "c", "limit": 1}, "cannot be combined"),
        ({"limit": 5}, "limit needs offset"),
        ({"page": "one", "limit": 5}, "page must be a whole number"),
        ({"offset": True}, "offset must be a whole number"),
        ({"first": -1}, "first must be a whole number"),
        ({"first": 0}, "first must be at least 1"),
        ({"offset": 0, "limit": 0}, "limit must be at least 1"),
    ],
)
def test_raw_list_with_a_query_that_cannot_be_paged_is_refused(
    query: dict[str, Any], words: str
) -> None:
    with pytest.raises(PlatformInputError, match=f"Nothing was sent: .*{words}"):
        listing("GET /v1/x", query=query)


@pytest.mark.parametrize(
    ("operation", "words"),
    [
        ("getReport", r'getReport does not return a list. Write call\("getReport"'),
        ("POST /v1/reports", "a list is read with GET, not with POST"),
        ("getRepotrs", "no operation getRepotrs .did you mean getReports"),
    ],
)
def test_operation_that_is_not_a_list_is_refused_before_the_first_page(
    operation: str, words: str
) -> None:
    ids = {"report_id": 1} if operation == "getReport" else {}
    with pytest.raises(PlatformInputError, match=f"Nothing was sent: .*{words}"):
        listing(operation, **ids)
