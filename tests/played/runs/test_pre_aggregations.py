"""Builds of pre-aggregations: requests, final statuses, and lost responses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    NoPreAggregationError,
    PlatformAddressError,
    PlatformBadRequestError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformPermissionError,
    PlatformRateLimitError,
    PlatformTransportError,
    PreAggregationBuildFailedError,
    PreAggregationJobsLostError,
    RequestName,
    ResultEmptyError,
)
from airflow_provider_platform.client.polling import PollInterval, Wait
from airflow_provider_platform.client.responses import DataRefusal, read_data_document
from airflow_provider_platform.resources.pre_aggregations import (
    BuildOutcome,
    BuildProgress,
    JobReport,
    JobsAccess,
    PreAggregationsRunKind,
    TableFailed,
    rows_are_there,
    start_builds,
    status_kind,
    wait_for_builds,
    wait_for_rows,
)
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.fakes.effects import (
    Call,
    CallData,
    OpenDataStream,
    Program,
    ReadStream,
    Sleep,
    api_with,
    play,
)

T = TypeVar("T")
NAME = RequestName("The start", "POST /v1/pre-aggregations/jobs")
SELECTOR = {"contexts": [{"securityContext": {}}], "timezones": ["UTC"]}
CONFIG = PlatformConfig.build(
    host="https://acme.example.com", management_token="t", data_api_url="https://d.example.com"
)
NOON = 1_800_000_000.0
LOST = PlatformTransportError("the connection was lost")


def access() -> JobsAccess:
    return JobsAccess(1, "https://d.example.com/cubejs-api/v1/jobs", SecretStr("token"))


@dataclass
class PlayedDeployment:
    """Answers the requests of a program one after the other, the last one for ever; its clock
    moves when the program sleeps."""

    answers: list[Any]
    now: float = NOON
    sent: list[Any] = field(default_factory=list)
    events: list[object] = field(default_factory=list)

    def clock(self) -> float:
        return self.now

    def run(self, program: Program[T]) -> T:
        return play(program, self._perform, self.events)

    def _perform(self, effect: Any) -> Any:
        if isinstance(effect, Sleep):
            self.now += effect.seconds
        if not isinstance(effect, CallData | Call | OpenDataStream | ReadStream):
            return None
        self.sent.append(effect)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, PlatformError):
            raise answer
        return answer


def start(*answers: Any, repeat_lost: bool = False, seconds: float = 600.0) -> PlayedDeployment:
    played = PlayedDeployment(list(answers))
    program = start_builds(
        api_with(played.clock, CONFIG),
        access(),
        SELECTOR,
        deadline=NOON + seconds,
        repeat_lost=repeat_lost,
    )
    played.events.append(played.run(program))
    return played


def jobs(**statuses: str) -> list[dict[str, str]]:
    return [{"token": t, "table": f"t_{t}", "status": status} for t, status in statuses.items()]


def wait(*answers: Any, grace: float = 60.0, seconds: float = 600.0) -> Any:
    played = PlayedDeployment(list(answers))
    progress = BuildProgress(("a", "b"), NOON, grace)
    return played.run(
        wait_for_builds(
            api_with(played.clock, CONFIG),
            access(),
            progress,
            Wait(NOON + seconds, PollInterval(10)),
        )
    )


# The start


def test_a_start_that_is_being_prepared_is_sent_again() -> None:
    played = start(DataRefusal(200, "Continue wait"), DataRefusal(200, "Continue wait"), ["a"])
    assert played.events == [["a"]]
    assert len({str(one.body) for one in played.sent}) == 1
    assert len(played.sent) == 3


def test_a_start_that_is_never_prepared_ends_at_the_deadline_with_nothing_queued() -> None:
    with pytest.raises(PreAggregationBuildFailedError, match="has not started any of them"):
        start(DataRefusal(200, "Continue wait"), seconds=30)


@pytest.mark.parametrize(
    "refusal",
    [
        PlatformRateLimitError("429", status=429),
        PlatformTransportError("no connection", processed=False),
    ],
)
def test_a_start_that_was_not_processed_is_sent_again(refusal: PlatformError) -> None:
    assert start(refusal, ["a"]).events == [["a"]]


def test_a_start_whose_answer_is_lost_is_not_sent_again() -> None:
    played = PlayedDeployment([LOST, ["a"]])
    program = start_builds(api_with(played.clock, CONFIG), access(), SELECTOR, deadline=NOON + 600)
    with pytest.raises(
        PlatformOutcomeUnknownError, match="Clear the task to start the builds again"
    ):
        played.run(program)
    assert len(played.sent) == 1
    with pytest.raises(PlatformTransportError, match="A retry starts them again"):
        start(LOST, ["a"], repeat_lost=True)


@pytest.mark.parametrize("answer", [{"tokens": ["a"]}, [1], "a"])
def test_an_answer_without_tokens_is_a_lost_start(answer: Any) -> None:
    with pytest.raises(PlatformOutcomeUnknownError, match="not a list of identifiers"):
        start(answer)


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ([], NoPreAggregationError),
        (
            DataRefusal(400, "The selector doesn't match any of the pre-aggregations"),
            NoPreAggregationError,
        ),
        (DataRefusal(400, "Invalid Job query format: x"), PlatformBadRequestError),
        (DataRefusal(400, "Query execution timeout after 10 min"), PreAggregationBuildFailedError),
        (DataRefusal(500, "Error: no such table"), PreAggregationBuildFailedError),
        (DataRefusal(200, "Error: no such table"), PreAggregationBuildFailedError),
    ],
)
def test_refused_start_of_a_build_quotes_the_reason(
    answer: Any, error: type[PlatformError]
) -> None:
    with pytest.raises(error) as caught:
        start(answer)
    assert getattr(answer, "reason", "No pre-aggregation matches") in str(caught.value)


def test_missing_scope_names_the_setting_that_grants_it() -> None:
    body = b'{"error": "API scope is missing: jobs"}'
    with pytest.raises(PlatformPermissionError) as caught:
        read_data_document(NAME, 403, {}, body, now=0.0)
    assert "CUBEJS_DEFAULT_API_SCOPES=meta,data,graphql,sql,jobs" in str(caught.value)
    assert not caught.value.retryable


@pytest.mark.parametrize(
    ("status", "body"),
    [(200, b'{"error": "Continue wait"}'), (400, b'{"error": "no"}'), (500, b'{"error": "no"}')],
)
def test_errors_of_the_deployment_are_distinguished_from_errors_of_a_proxy(
    status: int, body: bytes
) -> None:
    assert isinstance(read_data_document(NAME, status, {}, body, now=0.0), DataRefusal)
    with pytest.raises(PlatformError):
        read_data_document(NAME, max(status, 502), {}, b"<html></html>", now=0.0)


def test_a_web_page_in_place_of_the_data_api_names_the_setting_of_its_address() -> None:
    html = {"content-type": "text/html"}
    with pytest.raises(PlatformAddressError, match="Check Data API address"):
        read_data_document(NAME, 200, html, b"<html></html>", now=0.0)


# The wait


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("done", "done"),
        ("failure: Error: x", "failed"),
        ("Failure", "failed"),
        ("failed", "failed"),
        ("missing_partition", "missing"),
        ("not_found", "missing"),
        ("pre_agg_not_found", "missing"),
        ("scheduled", "moving"),
        ("processing", "moving"),
        ("n/a", "moving"),
        ("stalled", "moving"),
        ("", "moving"),
        ("new word of a later release", "moving"),
    ],
)
def test_kind_of_a_status_follows_from_its_words(status: str, kind: str) -> None:
    assert status_kind(status) == kind


def test_builds_that_are_done_end_the_wait() -> None:
    outcome = wait(
        jobs(a="scheduled", b="processing"), jobs(a="done", b="processing"), jobs(b="done")
    )
    assert outcome == BuildOutcome(2, ["t_a", "t_b"])


def test_finished_builds_are_not_polled_again() -> None:
    played = PlayedDeployment([jobs(a="done", b="processing"), jobs(b="done")])
    progress = BuildProgress(("a", "b"), NOON)
    played.run(
        wait_for_builds(
            api_with(played.clock, CONFIG), access(), progress, Wait(NOON + 60, PollInterval(1))
        )
    )
    assert [one.body["tokens"] for one in played.sent] == [["a", "b"], ["b"]]


def test_many_tokens_are_polled_in_several_requests() -> None:
    tokens = tuple(f"{number:032x}" for number in range(1100))
    answers = [
        [{"token": token, "status": "done"} for token in tokens[at : at + 500]]
        for at in (0, 500, 1000)
    ]
    played = PlayedDeployment(answers)
    progress = BuildProgress(tokens, NOON)
    outcome = played.run(
        wait_for_builds(
            api_with(played.clock, CONFIG), access(), progress, Wait(NOON + 60, PollInterval(1))
        )
    )
    assert (outcome.table_count, len(outcome.tables)) == (1100, 100)


def test_a_token_that_the_answer_leaves_out_is_not_found() -> None:
    with pytest.raises(PreAggregationJobsLostError, match=r"1 build\."):
        wait(jobs(a="done"))


def test_statuses_in_an_object_by_token_are_read() -> None:
    answer = {"a": {"table": "t_a", "status": "done"}, "b": {"table": "t_b", "status": "done"}}
    assert wait(answer) == BuildOutcome(2, ["t_a", "t_b"])


def test_one_failed_build_fails_the_task_after_the_others_have_ended() -> None:
    failed = jobs(a="failure: Error: timeout", b="processing")
    with pytest.raises(PreAggregationBuildFailedError) as caught:
        wait(failed, failed, jobs(a="missing_partition", b="done"))
    assert "1 table failed: t_a (failure: Error: timeout)" in str(caught.value)
    assert "1 of 2 tables are done" in str(caught.value)


def test_a_missing_table_fails_after_the_grace_time_and_is_named() -> None:
    with pytest.raises(PreAggregationBuildFailedError) as caught:
        wait(jobs(a="missing_partition", b="done"), grace=60)
    assert "1 table is still missing: t_a (missing_partition)" in str(caught.value)
    assert "No build has made progress for 60 seconds" in str(caught.value)


def test_grace_time_restarts_when_a_status_changes() -> None:
    progress = BuildProgress(("a", "b"), NOON, 60.0)
    going_on = [JobReport("a", "missing_partition"), JobReport("b", "processing")]
    for now in (NOON, NOON + 30, NOON + 90):
        list(progress.take(going_on, now))
    list(progress.take([JobReport("a", "missing_partition"), JobReport("b", "done")], NOON + 100))
    list(progress.take([JobReport("a", "missing_partition")], NOON + 110))
    assert progress.outcome(NOON + 110, "") is None
    list(progress.take([JobReport("a", "missing_partition")], NOON + 180))
    with pytest.raises(PreAggregationBuildFailedError):
        progress.outcome(NOON + 180, "")


def test_a_failure_that_was_seen_is_kept_although_the_service_forgets_it() -> None:
    progress = BuildProgress(("a",), NOON, 60.0)
    list(progress.take([JobReport("a", "failure: Error: x", "t_a")], NOON))
    list(progress.take([JobReport("a", "missing_partition")], NOON + 1))
    with pytest.raises(PreAggregationBuildFailedError, match=r"t_a .failure: Error: x"):
        progress.outcome(NOON + 1, "")


def test_jobs_that_are_older_than_a_day_and_unknown_are_lost_at_once() -> None:
    progress = BuildProgress(("a",), NOON - 90_000)
    list(progress.take([JobReport("a", "not_found")], NOON))
    with pytest.raises(PreAggregationJobsLostError):
        progress.outcome(NOON, "")


def test_a_deadline_names_the_tables_that_are_not_over() -> None:
    with pytest.raises(PlatformDeadlineError) as caught:
        wait(jobs(a="done", b="processing"), seconds=30)
    assert "t_b (processing)" in str(caught.value)
    assert "t_a" not in str(caught.value)


def test_five_failed_polls_in_a_row_are_tolerated() -> None:
    failing = [
        LOST,
        DataRefusal(500, "Error: cache"),
        LOST,
        LOST,
        DataRefusal(200, "Continue wait"),
    ]
    assert wait(*failing, jobs(a="done", b="done"), seconds=6000).table_count == 2
    with pytest.raises(PlatformTransportError):
        wait(LOST, seconds=6000)


def test_a_refused_token_is_replaced_once() -> None:
    refused = PlatformPermissionError("Invalid token", status=403)
    token = type("Answer", (), {"cube_api_token": SecretStr("fresh")})()
    assert wait(refused, token, jobs(a="done", b="done")).table_count == 2
    with pytest.raises(PlatformPermissionError):
        wait(refused, token, refused)


STATUSES = st.sampled_from(
    ["done", "failure: x", "missing_partition", "not_found", "scheduled", "processing", "n/a"]
)
POLLS = st.lists(st.tuples(STATUSES, STATUSES, st.integers(1, 400)), min_size=1, max_size=30)


@given(polls=POLLS)
def test_one_poll_with_missing_tables_does_not_fail_the_builds(
    polls: list[tuple[str, str, int]],
) -> None:
    progress = BuildProgress(("a", "b"), NOON, 300.0)
    now, ended, still, failures = NOON, {}, 0, 0  # type: ignore[var-annotated]
    for first, second, seconds in polls:
        now += seconds
        seen = {"a": first, "b": second}
        asked = progress.open_tokens
        assert {"a", "b"} - set(asked) == set(ended)
        events = progress.take([JobReport(token, seen[token]) for token in asked], now)
        failures += sum(isinstance(event, TableFailed) for event in events)
        for token in asked:
            if status_kind(seen[token]) in ("done", "failed"):
                ended[token] = seen[token]
        moves = any(status_kind(seen[token]) == "moving" for token in asked)
        still = 0 if moves or progress.still_since == now else still + 1
        try:
            outcome = progress.outcome(now, "")
        except (PreAggregationBuildFailedError, PreAggregationJobsLostError):
            assert not moves
            assert len(ended) == 2 or still >= 1
            if len(ended) == 2:
                assert "failure: x" in ended.values()
            break
        if outcome is not None:
            assert list(ended.values()) == ["done", "done"]
            break
        assert len(ended) < 2
    assert failures == sum(status == "failure: x" for status in ended.values())


# The rows


def data(*rows: list[Any]) -> list[bytes]:
    head = json.dumps({"schema": [{"name": "n", "column_type": "Int64"}]})
    return [f"{head}\n{json.dumps({'data': list(rows)})}\n".encode(), b""]


def says_rows(*rows: list[Any]) -> bool:
    played = PlayedDeployment([False, *data(*rows)])
    return played.run(
        rows_are_there(api_with(played.clock, CONFIG), "SELECT 1", access(), until=NOON)
    )


@pytest.mark.parametrize("value", [None, "0", "0.00", False, "false", ""])
def test_rows_of_only_null_and_zero_count_as_no_rows(value: Any) -> None:
    assert says_rows([value]) is False


@pytest.mark.parametrize("value", ["1", "-0.5", "Berlin", True])
def test_any_other_value_counts_as_rows(value: Any) -> None:
    assert says_rows([None], [value]) is True


def test_rows_are_waited_for_until_the_end_of_the_grace_time() -> None:
    def verify(*answers: Any) -> None:
        played = PlayedDeployment(list(answers))
        played.run(
            wait_for_rows(
                api_with(played.clock, CONFIG),
                "SELECT 1",
                access(),
                until=NOON + 60,
                poll_interval=10,
            )
        )

    none, some = [False, *data(["0"])], [False, *data(["7"])]
    verify(*none, *none, *some)
    with pytest.raises(ResultEmptyError, match="starts no build"):
        verify(*none * 20)


def test_rows_are_waited_for_no_longer_than_the_grace_time() -> None:
    token = type("Answer", (), {"cube_api_token": SecretStr("fresh")})()

    def followed(*values: str) -> tuple[BuildOutcome, float]:
        answers = [piece for value in values for piece in (False, *data([value]))]
        played = PlayedDeployment([token, jobs(a="done"), *answers])
        env = RunEnvironment(NOON + 600, poll_interval=1.0)
        kind = PreAggregationsRunKind(verify_sql="SELECT 1", missing_grace=5.0)
        ids = {"deployment_id": 1, "submitted_at": NOON, "tokens": ["a"], "waits": True}
        return played.run(kind.follow(api_with(played.clock, CONFIG), env, ids)), played.now

    outcome, now = followed(*["0"] * 3, "7")
    assert (outcome.verified, now <= NOON + 5) == (True, True)
    with pytest.raises(ResultEmptyError):
        followed(*["0"] * 10)
