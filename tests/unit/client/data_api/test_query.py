"""Answers of the data API: every line is checked, and where a query goes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.data_api.query import (
    SqlAnswer,
    SqlChunk,
    SqlColumns,
    SqlQuery,
    find_address,
    run_sql,
    sql_address,
)
from airflow_provider_platform.client.errors import (
    DataQueryError,
    PlatformAddressError,
    PlatformConfigError,
    PlatformError,
    PlatformInputError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.http.responses import check_data_start
from airflow_provider_platform.client.operations.program import Call

if TYPE_CHECKING:
    from airflow_provider_platform.client.operations.operation import Operation

QUERY = SqlQuery.build("SELECT 1", deployment_id=7, deadline=0.0)
SCHEMA = {"schema": [{"name": "city", "column_type": "String"}, {"name": "n"}]}


def lines(*values: Any) -> bytes:
    return b"".join(json.dumps(value).encode() + b"\n" for value in values)


def test_columns_then_rows() -> None:
    answer = SqlAnswer(QUERY)
    data = lines({**SCHEMA, "lastRefreshTime": None}, {"data": [["Berlin", "1"], ["Bonn", None]]})
    events = [*answer.feed(data[:30]), *answer.feed(data[30:]), *answer.finish()]
    columns = [{"name": "city", "type": "String"}, {"name": "n", "type": ""}]
    assert events == [SqlColumns(columns), SqlChunk([["Berlin", "1"], ["Bonn", None]])]


def test_an_empty_result_has_columns() -> None:
    answer = SqlAnswer(QUERY)
    assert len(answer.feed(lines(SCHEMA, {"data": []}))) == 2
    assert answer.finish() == []


def test_a_last_line_without_its_end_counts_if_it_is_whole() -> None:
    answer = SqlAnswer(QUERY)
    answer.feed(lines(SCHEMA))
    answer.feed(b'{"data": [["Berlin", "1"]]}')
    assert answer.finish() == [SqlChunk([["Berlin", "1"]])]


@pytest.mark.parametrize("cut", [b"", b'{"data": [["Ber'])
def test_an_answer_that_is_cut_is_no_result(cut: bytes) -> None:
    answer = SqlAnswer(QUERY)
    if cut:
        answer.feed(lines(SCHEMA))
    answer.feed(cut)
    with pytest.raises(PlatformTransportError):
        answer.finish()


def test_an_error_line_ends_the_query_even_after_rows() -> None:
    answer = SqlAnswer(QUERY)
    answer.feed(lines(SCHEMA, {"data": [["Berlin", "1"]]}))
    with pytest.raises(DataQueryError, match="warehouse is gone"):
        answer.feed(lines({"error": "the warehouse is gone", "requestId": "r"}))


def test_a_query_that_still_runs_says_so() -> None:
    answer = SqlAnswer(QUERY)
    assert answer.feed(lines({"error": "Continue wait"})) == []
    assert answer.still_runs
    assert answer.finish() == []


def test_continue_wait_after_rows_is_an_error() -> None:
    answer = SqlAnswer(QUERY)
    answer.feed(lines(SCHEMA))
    with pytest.raises(DataQueryError):
        answer.feed(lines({"error": "Continue wait"}))


@pytest.mark.parametrize(
    "line",
    [{"data": [["Berlin"]]}, {"data": ["Berlin"]}, {"rows": []}, [], 5, {"data": {"city": "B"}}],
)
def test_a_line_of_another_shape_is_refused(line: Any) -> None:
    answer = SqlAnswer(QUERY)
    answer.feed(lines(SCHEMA))
    with pytest.raises(PlatformProtocolError, match="line 2"):
        answer.feed(lines(line))


def test_rows_before_columns_are_refused() -> None:
    with pytest.raises(PlatformProtocolError, match="line 1"):
        SqlAnswer(QUERY).feed(lines({"data": [["Berlin", "1"]]}))


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": "Bad branch: x"}', DataQueryError),
        (500, b'{"error": "unknown member"}', DataQueryError),
        (403, b'{"error": "Invalid token"}', PlatformPermissionError),
        (502, b"<html>bad gateway</html>", PlatformServerError),
        (503, b"", PlatformServerError),
        (200, b"<html></html>", PlatformAddressError),
        (302, b"", PlatformAddressError),
    ],
)
def test_error_answers(status: int, body: bytes, error: type[PlatformError]) -> None:
    headers = {"content-type": "text/html"} if body.startswith(b"<") else {}
    with pytest.raises(error):
        check_data_start("data query", status, headers, body, now=0.0)


@pytest.mark.parametrize(
    "given",
    [
        "https://acme.example.com",
        "https://acme.example.com/cubejs-api",
        "https://acme.example.com/cubejs-api/v1",
    ],
)
def test_the_address_may_be_given_in_each_usual_form(given: str) -> None:
    assert sql_address(given) == "https://acme.example.com/cubejs-api/v1/cubesql"


def config(**fields: Any) -> PlatformConfig:
    return PlatformConfig.build(host="https://acme.example.com", management_token="t", **fields)


def found_address(deployment_url: str | None, query: SqlQuery = QUERY, **fields: Any) -> str:
    program = find_address(query, config(**fields))
    effect = next(program)
    assert isinstance(effect, Call)
    operation: Operation[Any] = effect.operation
    try:
        program.send(operation.read({"id": 7, "deploymentUrl": deployment_url}))
    except StopIteration as end:
        return str(end.value)
    raise AssertionError("one call finds the address")


def test_the_address_is_found_through_the_deployment() -> None:
    url = "https://data.example.com/deployments/7/"
    found = "https://data.example.com/deployments/7"
    assert found_address(url) == f"{found}/cubejs-api/v1/cubesql"
    branch = SqlQuery.build("SELECT 1", deployment_id=7, deadline=0.0, branch_name="dbt-sync/main")
    assert found_address(url, branch) == f"{found}/dev-mode/dbt-sync%2Fmain/cubejs-api/v1/cubesql"


def test_the_rules_for_addresses_hold_for_those_in_answers() -> None:
    with pytest.raises(PlatformConfigError, match="deploymentUrl must be https"):
        found_address("http://data.example.com")
    with pytest.raises(PlatformProtocolError, match="data_api_url"):
        found_address(None)


def test_a_branch_needs_the_deployments_own_address() -> None:
    query = SqlQuery.build("SELECT 1", deployment_id=7, deadline=0.0, branch_name="b")
    with pytest.raises(PlatformInputError, match="branch_name"):
        next(find_address(query, config(data_api_url="https://data.example.com")))


@pytest.mark.parametrize(
    ("seconds", "life"), [(600.0, 4200), (7200.5, 10801), (3 * 86400.0, 86400), (-1.0, 3600)]
)
def test_the_token_outlives_the_wait_for_the_first_row(seconds: float, life: int) -> None:
    query = SqlQuery.build("SELECT 1", deployment_id=7, deadline=1000.0 + seconds)
    known = config(data_api_url="https://data.example.com")
    mint = next(run_sql(query, known, lambda: 1000.0))
    assert isinstance(mint, Call)
    assert mint.operation.body == {"expiresIn": life}


@pytest.mark.parametrize("bad", [{"sql": ""}, {"sql": "SELECT 1", "cache": "sometimes"}])
def test_bad_arguments_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        SqlQuery.build(deployment_id=7, deadline=0.0, **bad)
