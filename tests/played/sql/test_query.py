"""SQL over the data API: arguments, the address of a query, and error messages."""

from __future__ import annotations

from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    DataQueryError,
    DataQueryTimeoutError,
    PlatformAddressError,
    PlatformApiError,
    PlatformAuthenticationError,
    PlatformConfigError,
    PlatformDeadlineError,
    PlatformError,
    PlatformInputError,
    PlatformPermissionError,
    PlatformProtocolError,
    PlatformServerError,
)
from airflow_provider_platform.client.failed_calls import DATA_QUERY
from airflow_provider_platform.client.responses import check_data_start
from airflow_provider_platform.resources.sql.query import (
    SqlQuery,
    find_address,
    run_sql,
    sql_address,
)
from airflow_provider_platform.resources.sql.response import SqlColumns
from tests.support.fakes.effects import Call, Notify, OpenDataStream, ReadStream, api_with

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.client.operation import Operation

QUERY = SqlQuery("SELECT 1", deployment_id=7, deadline=0.0)


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (400, b'{"error": "Bad branch: x"}', DataQueryError),
        (500, b'{"error": "unknown member"}', DataQueryError),
        (400, b'{"error": "Query execution timeout after 10 min"}', DataQueryTimeoutError),
        (401, b'{"error": "Invalid token"}', PlatformAuthenticationError),
        (403, b'{"error": "Invalid token"}', PlatformPermissionError),
        (502, b"<html>bad gateway</html>", PlatformServerError),
        (503, b"", PlatformServerError),
        (200, b"<html></html>", PlatformAddressError),
        (302, b"", PlatformAddressError),
    ],
)
def test_error_responses_of_the_data_api_have_their_class(
    status: int, body: bytes, error: type[PlatformError]
) -> None:
    headers = {"content-type": "text/html"} if body.startswith(b"<") else {}
    with pytest.raises(error):
        check_data_start(DATA_QUERY, status, headers, body, now=0.0)


@pytest.mark.parametrize("status", [401, 403])
def test_refused_token_is_not_called_a_bad_query(status: int) -> None:
    with pytest.raises(PlatformApiError, match="refused the token for the data API") as refused:
        check_data_start(DATA_QUERY, status, {}, b'{"error": "Token is expired"}', now=0.0)
    assert "Check the query" not in str(refused.value)
    assert not refused.value.retryable


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
    program = find_address(api_with(lambda: 0.0, config(**fields)), query)
    effect = program.send(None)
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


def test_data_api_address_in_a_response_is_checked_like_a_setting() -> None:
    with pytest.raises(PlatformConfigError, match="deploymentUrl must begin with https"):
        found_address("http://data.example.com")
    with pytest.raises(PlatformProtocolError, match="data_api_url"):
        found_address(None)


@pytest.mark.parametrize(
    ("seconds", "life"), [(600.0, 4200), (7200.5, 10801), (3 * 86400.0, 86400), (-1.0, 3600)]
)
def test_the_token_outlives_the_wait_for_the_first_row(seconds: float, life: int) -> None:
    query = SqlQuery("SELECT 1", deployment_id=7, deadline=1000.0 + seconds)
    known = config(data_api_url="https://data.example.com")
    mint = run_sql(api_with(lambda: 1000.0, known), query).send(None)
    assert isinstance(mint, Call)
    assert mint.operation.body == {"expiresIn": life}


COLUMNS = b'{"schema":[{"name":"n","column_type":"Int64"}]}\n'
ROW = b'{"data":[["1"]]}\n'
EVERY = 10.0
"""Seconds between two pieces of an endless response. The timeout is 600, the idle timeout 120."""


def play_response(pieces: Iterable[bytes], *, pause: float = 0.0) -> tuple[Any, float, int]:
    """Run a query that gets these pieces. Return the error that ends it (None: it succeeds), when,
    and how often it was sent. The caller keeps the columns for `pause` seconds."""
    now, sends, sent = 0.0, 0, iter(pieces)
    query = SqlQuery("SELECT 1", deployment_id=7, deadline=600.0, token=SecretStr("t"))
    known = config(data_api_url="https://data.example.com", stream_idle_timeout=120)
    program, outcome = run_sql(api_with(lambda: now, known), query), None
    try:
        while now < 10_000:
            effect = program.send(outcome)
            outcome = None
            sends += isinstance(effect, OpenDataStream)
            if isinstance(effect, ReadStream):
                now += min(EVERY, effect.timeout)
                outcome = next(sent, b"") if effect.timeout >= EVERY else None
            elif isinstance(effect, Notify) and isinstance(effect.event, SqlColumns):
                now += pause
    except StopIteration:
        return None, now, sends
    except PlatformError as error:
        return error, now, sends
    raise AssertionError("the query has no end")


def end_of_endless(*pieces: bytes) -> tuple[Any, float]:
    """Run a query whose response repeats its last piece endlessly. Return the error that ends the
    query, and when. The caller keeps the columns for 700 seconds."""
    return play_response(chain(pieces, repeat(pieces[-1])), pause=700)[:2]


@pytest.mark.parametrize("first", [[], [COLUMNS]], ids=["no columns", "columns"])
def test_blank_lines_keep_a_query_alive_until_its_first_row(first: list[bytes]) -> None:
    pieces = [*first, *[b"\n"] * 20, *[COLUMNS][len(first) :], ROW]
    error, ended, sends = play_response(pieces)
    assert (error, sends) == (None, 1)
    assert ended > 200  # longer than the idle timeout


@pytest.mark.parametrize("last", [b"\n", b" ", b'{"data":[]}\n'])
def test_response_without_a_first_row_ends_a_query_that_is_late(last: bytes) -> None:
    error, ended = end_of_endless(COLUMNS, last)
    assert isinstance(error, PlatformDeadlineError)
    assert ended == EVERY + 700 + 120  # what kept the caller does not count


def test_blank_lines_after_a_row_are_silence() -> None:
    error, ended = end_of_endless(COLUMNS, ROW, ROW, b"\n")
    assert "sent nothing for 120 seconds" in str(error)
    assert ended == 3 * EVERY + 700 + 120


def test_error_of_a_broken_line_says_whose_query_it_is() -> None:
    error, _ = end_of_endless(COLUMNS, b"nonsense\n")
    assert isinstance(error, PlatformProtocolError)
    assert error.where == "deployment 7"


@pytest.mark.parametrize("bad", [{"sql": ""}, {"sql": "SELECT 1", "cache": "sometimes"}])
def test_bad_arguments_are_refused(bad: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError, match="Nothing was sent"):
        SqlQuery(deployment_id=7, deadline=0.0, **bad)
