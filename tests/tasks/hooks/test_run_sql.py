"""SQL over the data API, over HTTP: every row, in pieces, through failures."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import (
    DataQueryError,
    PlatformClosedError,
    PlatformDeadlineError,
    PlatformInputError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SQL = "SELECT id, status FROM orders ORDER BY id"


@pytest.fixture
def hook(platform_sandbox: Sandbox) -> PlatformHook:
    platform_sandbox.control.set(data_chunk_rows=100)
    return PlatformHook()


def queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


def test_run_sql_returns_more_rows_than_a_chat(hook: PlatformHook) -> None:
    rows = hook.run_sql(SQL)
    assert [column["name"] for column in rows.columns] == ["id", "status"]
    found = list(rows)
    assert len(found) > 100
    assert [int(row[0]) for row in found] == sorted(int(row[0]) for row in found)


def test_a_result_of_one_long_line_is_read(platform_sandbox: Sandbox) -> None:
    wide = ", ".join(f"'{at} ]' || id || '],[' AS c{at}" for at in range(12))
    sql = f"SELECT id, {wide} FROM events ORDER BY id LIMIT 12000"
    platform_sandbox.control.set(data_chunk_rows=None)
    rows = PlatformHook().run_sql(sql)
    pieces = list(rows.pieces())
    assert len(pieces) > 1
    assert [int(row[0]) for piece in pieces for row in piece] == [*range(1, 12_001)]
    assert pieces[-1][-1][12] == "11 ]12000],["
    assert rows.truncated is False


def test_nothing_is_sent_before_a_row_is_wanted(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    rows = hook.run_sql(SQL)
    assert platform_sandbox.control.state().requests == []
    assert next(rows)[0] == "1"
    rows.close()
    assert queries(platform_sandbox) == 1


def test_parameters_are_checked_before_anything_is_sent(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    sql = "SELECT id FROM orders WHERE id = %s"
    assert list(hook.run_sql(sql, parameters=[7])) == [["7"]]
    sent = queries(platform_sandbox)
    with pytest.raises(PlatformInputError, match="more placeholders than 0 parameters"):
        hook.run_sql(sql, parameters=[])
    assert queries(platform_sandbox) == sent


@pytest.mark.parametrize("given", [{}, {"max_row_limit": 250}])
def test_hook_and_its_connection_know_the_row_limits(
    given: dict[str, int], platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(data_max_rows=250)
    if not given:
        stored = platform_sandbox.connection_json(max_row_limit=250)
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", stored)

    with PlatformHook() as hook:
        for limit, is_cut in ((300, True), (200, False)):
            rows = hook.run_sql(f"{SQL} LIMIT {limit}", **given)
            assert (len([*rows]), rows.truncated) == (min(limit, 250), is_cut)


def test_run_sql_reads_rows_in_pages(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_max_rows=200)
    sql = "SELECT id, status FROM orders"

    rows = hook.run_sql(sql, page_by=["id"])
    assert [column["name"] for column in rows.columns] == ["id", "status"]
    found = list(rows)
    assert [int(row[0]) for row in found] == [*range(1, 481)]
    assert rows.truncated is False
    with pytest.raises(PlatformInputError, match="page_by cannot be used: the query has ORDER BY"):
        hook.run_sql(SQL, page_by=["id"])


@pytest.mark.parametrize("name", ["default_row_limit", "max_row_limit", "page_rows"])
@pytest.mark.parametrize("value", [0, -1, True, "20000", 2.5])
def test_row_limit_that_is_not_a_positive_integer_is_refused(
    name: str, value: Any, hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(PlatformInputError, match=f"{name} must be a whole number, 1 or more"):
        hook.run_sql(SQL, **{name: value})
    assert platform_sandbox.control.state().requests == []


def test_a_query_that_still_runs_is_asked_for_again(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("continue_wait", api="data", count=2)
    assert next(hook.run_sql(SQL))
    assert queries(platform_sandbox) == 3


@pytest.mark.parametrize("kind", ["cut", "drop", "lost_response"])
def test_a_failure_before_the_first_line_is_repeated(
    kind: str, hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault(kind, api="data")
    assert len(list(hook.run_sql(SQL))) > 100


def test_a_result_that_breaks_off_raises_after_its_rows(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("cut", api="data", after=2)
    rows = hook.run_sql(SQL)
    assert [next(rows) for _ in range(100)]
    with pytest.raises(PlatformTransportError):
        next(rows)
    assert queries(platform_sandbox) == 1


def test_error_of_an_unknown_branch_says_what_to_check(hook: PlatformHook) -> None:
    said = r"Bad branch\. No branch has this name. Check the spelling.*branch nowhere\)$"
    with pytest.raises(DataQueryError, match=said) as caught:
        next(hook.run_sql(SQL, branch_name="nowhere"))
    assert "Check the query" not in str(caught.value)


def test_error_of_a_closed_branch_names_the_operator_that_opens_it(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.add_branch("nightly")
    said = r"not active\. The branch is not open. .*PlatformOpenBranchOperator.*branch nightly\)$"
    with pytest.raises(DataQueryError, match=said) as caught:
        next(hook.run_sql(SQL, branch_name="nightly"))
    assert "Check the query" not in str(caught.value)


def test_query_waits_until_its_branch_is_built(
    hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    control = platform_sandbox.control
    control.open_branch("nightly")
    control.fault("continue_wait", path="nightly/cubejs-api/v1/cubesql", count=2)
    assert next(hook.run_sql(SQL, branch_name="nightly", timeout=600))
    assert queries(platform_sandbox) == 3


def test_query_wakes_a_sleeping_branch(hook: PlatformHook, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch("nightly")
    platform_sandbox.control.advance(601)
    assert next(hook.run_sql(SQL, branch_name="nightly"))
    assert queries(platform_sandbox) == 2


def ids(rows: Any) -> list[int]:
    return [int(row[0]) for row in rows]


@pytest.fixture
def expected_ids(hook: PlatformHook) -> list[int]:
    """The result as it should be."""
    return ids(hook.run_sql(SQL))


def test_two_results_of_one_hook_are_independent(
    hook: PlatformHook, expected_ids: list[int]
) -> None:
    one, two = hook.run_sql(SQL), hook.run_sql(SQL)
    first = ids([next(one), next(two)])
    assert first == expected_ids[:1] * 2
    assert ids(one) == expected_ids[1:]
    assert ids(two) == expected_ids[1:]


def test_closed_result_does_not_affect_another_result(
    hook: PlatformHook, expected_ids: list[int]
) -> None:
    one, two = hook.run_sql(SQL), hook.run_sql(SQL)
    next(one), next(two)
    one.close()
    one.close()
    with pytest.raises(PlatformClosedError, match="closed before its last row"):
        next(one)
    assert ids(two) == expected_ids[1:]


def test_exhausted_result_stays_exhausted(hook: PlatformHook) -> None:
    rows = hook.run_sql(SQL)
    assert len(list(rows)) > 100
    assert list(rows) == []
    rows.close()
    hook.close()
    assert list(rows) == []
    assert len(rows.columns) == 2


def test_result_of_a_closed_hook_raises_an_error(hook: PlatformHook) -> None:
    rows = hook.run_sql(SQL)
    next(rows)
    hook.close()
    for _ in range(2):
        with pytest.raises(PlatformClosedError, match="closed before the run was complete"):
            list(rows)


@pytest.mark.exhaustive
@pytest.mark.parametrize("path", ["/deployments/1", "/token", "cubesql"])
@pytest.mark.parametrize("kind", ["silence", "status"])
def test_timeout_applies_to_every_request(
    path: str, kind: str, hook: PlatformHook, platform_sandbox: Sandbox
) -> None:
    more = {"status": 503, "retry_after": 1, "body": "html"} if kind == "status" else {}
    platform_sandbox.control.fault(kind, path=path, count=None, **more)
    began = time.monotonic()
    with pytest.raises((PlatformDeadlineError, PlatformServerError)) as caught:
        next(hook.run_sql(SQL, timeout=1.5))
    assert time.monotonic() - began < 20  # the connection's own time-out is 60 s
    if kind == "silence":
        assert isinstance(caught.value, PlatformDeadlineError)
