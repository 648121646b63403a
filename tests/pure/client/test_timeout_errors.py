"""Which errors of the data API are time-outs: words of common databases, and look-alikes."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.failed_calls import LONGEST, says_time_out


@pytest.mark.parametrize(
    "said",
    [
        "Error: Query execution timeout after 10 min of waiting",
        "TimeoutError: ResourceRequest timed out",
        "Error: canceling statement due to statement timeout",
        "Statement reached its statement or warehouse timeout of 600 second(s) and was canceled.",
        "Operation timed out after 6.0 hours. Consider reducing the amount of work.",
        "Query execution was interrupted, maximum statement execution time exceeded",
        "Lock wait timeout exceeded; try restarting transaction",
        "Timeout: Request failed to complete in 15000ms",
        "Error: Timeout: Request failed to complete in 15000ms",
        "Lock request time out period exceeded.",
        "Code: 159. DB::Exception: Timeout exceeded: elapsed 30.1 seconds, maximum: 30",
        "(TIMEOUT_EXCEEDED) (version 24.3)",
        "Query exceeded the maximum execution time limit of 5.00m",
        "Query exceeded maximum time limit of 10.00m",
        "Query was canceled with reason 'Query timeout expired (1000 ms)'",
        "connect ETIMEDOUT 10.0.0.1:5432",
        "timeout exceeded when trying to connect",
        "Connection terminated due to connection timeout",
        "DPI-1067: call timeout of 1000 ms exceeded with ORA-3156",
        "4 DEADLINE_EXCEEDED: Deadline exceeded",
        "Execution time exceeded run time cap of 00:00:10",
        {"message": "Query read timeout"},
        "x" * (LONGEST - 20) + " timed out",
    ],
)
def test_time_limit_is_recognized_in_database_messages(said: object) -> None:
    assert says_time_out(said)


@pytest.mark.parametrize(
    "said",
    [
        'column "timeout" does not exist',
        "column statement_timeout does not exist",
        "Unknown column 'timed_out' in 'field list'",
        "No field named timeout. Valid fields are timeouts, orders.timed_out_at.",
        "function timeout(integer) does not exist",
        'Invalid identifier "TIMEOUT_EXCEEDED"',
        "Can't find cube 'timeouts'",
        "value exceeds the range of time",
        "syntax error at or near timeout",
        "out of memory",
        "the runtime limit of rows was reached",
        "",
        None,
        {"error": {"message": "out of time zones"}},
    ],
)
def test_errors_that_only_mention_a_timeout_are_not_time_outs(said: object) -> None:
    assert not says_time_out(said)
