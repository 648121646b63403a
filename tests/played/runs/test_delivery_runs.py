"""Deliveries are run now: a start is never repeated blindly, and its outcome is reported."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.client.errors import (
    AlreadyRunningError,
    PlatformConflictError,
    PlatformDeadlineError,
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformRateLimitError,
    PlatformTransportError,
    ReportDeliveryFailedError,
)
from airflow_provider_platform.resources.deliveries import (
    MAX_ATTEMPTS,
    SUCCESS_GRACE,
    Delivery,
    DeliveryOutcome,
    DeliveryRunKind,
    FoundRun,
    RunsBefore,
    already_running,
    as_result,
    start_once,
)
from airflow_provider_platform.resources.deliveries import DeliveryRun as Run
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.fakes.effects import API, Program, Sleep, api_with, play

if TYPE_CHECKING:
    from airflow_provider_platform.client.choices import IfRunning
    from airflow_provider_platform.client.operation import Operation

T = TypeVar("T")
NOON = 1_800_000_000.0
LOST = PlatformTransportError("the connection was lost")
BUSY = PlatformConflictError("already running", status=409)


def run(**fields: Any) -> Run:
    return Run.model_validate(fields)


@dataclass
class PlayedService:
    """The service of one delivery. `starts` says what becomes of each start: `accepted`,
    `done and lost`, `lost`, `busy` (another run is going on, and then over) or `busy unseen`."""

    starts: list[str] = field(default_factory=lambda: ["accepted"])
    rows: list[dict[str, Any]] = field(default_factory=list)
    own: int = 0
    now: float = NOON
    posts: int = 0
    scheduled_run_begins: bool = False
    answers: list[Any] = field(default_factory=list)
    """What the operations answer that read a run and its delivery, the last one for ever."""

    def clock(self) -> float:
        return self.now

    def play(self, program: Program[T]) -> T:
        return play(program, self._perform)

    def _perform(self, effect: Any) -> Any:
        if isinstance(effect, Sleep):
            self.now += effect.seconds
            return None
        return self._answer(effect.operation)

    def _answer(self, operation: Operation[Any]) -> Any:
        if operation.method == "POST":
            return self._start(operation)
        if operation.path.endswith("/runs"):
            if self.rows and self.rows[0].get("passing"):
                shown = list(self.rows)
                self.rows[0] = {**self.rows[0], "status": "succeeded", "passing": False}
                return operation.read({"items": shown})
            return operation.read({"items": self.rows})
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, PlatformError):
            raise answer
        return operation.read(answer)

    def _start(self, operation: Operation[Any]) -> Any:
        self.posts += 1
        what = self.starts.pop(0) if len(self.starts) > 1 else self.starts[0]
        if self.scheduled_run_begins:
            self.rows.insert(0, {"id": "by schedule", "status": "succeeded", "trigger": "schedule"})
            self.scheduled_run_begins = False
        if what == "busy":
            self.rows.insert(0, {"id": f"other {self.posts}", "status": "running", "passing": True})
            raise BUSY
        if what == "busy unseen":
            raise BUSY
        if what == "accepted unseen":
            return operation.read(None)
        if what != "lost":
            self.own += 1
            name = f"own {self.own}"
            self.rows.insert(0, {"id": name, "status": "running", "trigger": "manual"})
            if what == "accepted":
                return operation.read({"runId": name})
            if what == "accepted without an id":
                return operation.read(None)
        raise LOST


def delivery() -> Delivery:
    return Delivery(1, "501")


def start(service: PlayedService, if_running: IfRunning = "follow", **before: Any) -> FoundRun:
    known = [row["id"] for row in service.rows]
    return service.play(start_once(API, delivery(), RunsBefore(known, **before), if_running))


@given(
    starts=st.lists(
        st.sampled_from(["accepted", "done and lost", "lost", "busy", "busy unseen"]),
        min_size=1,
        max_size=5,
    ),
    old=st.integers(0, 3),
    scheduled=st.booleans(),
    if_running=st.sampled_from(["follow", "fail", "skip"]),
)
def test_start_begins_at_most_one_run_and_returns_its_id(
    starts: list[str], old: int, scheduled: bool, if_running: IfRunning
) -> None:
    service = PlayedService(
        list(starts),
        rows=[{"id": f"old {n}", "status": "succeeded"} for n in range(old)],
        scheduled_run_begins=scheduled,
    )
    try:
        found = start(service, if_running)
    except AlreadyRunningError:
        assert service.own == 0
    except PlatformTransportError:
        assert service.own == 0
    else:
        assert service.own <= 1
        if found.own:
            assert (found.run_id, service.own) == ("own 1", 1)
        else:
            assert if_running == "follow"
            assert (found.run_id or "").startswith("other")
            assert service.own == 0


def test_scheduled_run_is_not_mistaken_for_the_lost_run() -> None:
    service = PlayedService(["lost"], scheduled_run_begins=True)
    with pytest.raises(PlatformTransportError, match="no new run"):
        start(service)


def test_two_new_runs_leave_the_outcome_unknown() -> None:
    service = PlayedService(["done and lost"])
    known: list[str] = []
    service.rows = [{"id": "of a colleague", "status": "succeeded"}]
    with pytest.raises(PlatformOutcomeUnknownError, match="several new runs"):
        service.play(start_once(API, delivery(), RunsBefore(known), "follow"))
    assert service.posts == 1


@pytest.mark.parametrize(
    ("known", "row"), [(None, {"id": "of a colleague"}), ([], {"status": "succeeded"})]
)
def test_runs_without_ids_leave_a_lost_start_unknown(
    known: list[str] | None, row: dict[str, str]
) -> None:
    service = PlayedService(["lost"], rows=[row])
    with pytest.raises(PlatformOutcomeUnknownError, match="no ids"):
        service.play(start_once(API, delivery(), RunsBefore(known), "follow"))


def test_start_refused_for_an_invisible_run_is_sent_three_times() -> None:
    service = PlayedService(["busy unseen"])
    with pytest.raises(AlreadyRunningError, match="shows no active run"):
        start(service)
    assert service.posts == MAX_ATTEMPTS


def test_a_start_without_an_id_is_found_by_the_list() -> None:
    service = PlayedService()
    assert start(service).run_id == "own 1"
    silent = PlayedService(["accepted without an id"], rows=[{"id": "old"}])
    assert start(silent) == FoundRun("own 1", own=True)
    unseen = PlayedService(["accepted unseen"], rows=[{"id": "old"}])
    assert start(unseen) == FoundRun(None, own=True)


def test_a_run_without_an_id_cannot_be_followed() -> None:
    with pytest.raises(AlreadyRunningError, match="no id of that run"):
        already_running(delivery(), run(status="running"), "follow")


SUCCESS = "2026-11-23T06:00:30.000Z"
EARLIER = "2026-11-23T05:00:00Z"


def wait_for(*answers: Any, before: str | None = EARLIER, seconds: float = 600.0) -> Any:
    service = PlayedService(answers=list(answers))
    return service.play(following(service, before, seconds))


def following(service: PlayedService, success_before: str | None, seconds: float) -> Any:
    ids = {
        "deployment_id": 1,
        "delivery_id": "501",
        "run_id": "r1",
        "success_before": success_before,
        "waits": True,
    }
    env = RunEnvironment(NOON + seconds)
    return DeliveryRunKind().follow(api_with(service.clock), env, ids)


@given(word=st.text(min_size=1).filter(lambda text: text.strip()), failed=st.booleans())
def test_unknown_status_is_going_on_and_only_a_success_ends_it(word: str, failed: bool) -> None:
    if run(status=word).has_ended or run(status=word).is_active:
        return
    unknown = {
        "runId": "r1",
        "status": word,
        "startedAt": "2026-11-23T06:00:00Z",
        "error": "one attempt failed" if failed else None,
    }
    outcome = wait_for(unknown, {"lastSuccessAt": EARLIER}, unknown, {"lastSuccessAt": SUCCESS})
    assert (outcome.status, outcome.last_success_at) == (word, SUCCESS)
    with pytest.raises(PlatformDeadlineError):
        wait_for({**unknown, "lastSuccessAt": EARLIER})


@pytest.mark.parametrize("word", ["succeeded", "Completed", "ended", "finished"])
@pytest.mark.parametrize("failed", [False, True])
def test_error_decides_whether_a_run_that_ended_has_failed(word: str, failed: bool) -> None:
    ended = {"runId": "r1", "status": word, "error": "no such tab" if failed else None}
    waiting = {"runId": "r1", "status": "queued"}
    if failed:
        with pytest.raises(ReportDeliveryFailedError, match="no such tab"):
            wait_for(waiting, ended)
        return
    outcome = wait_for(waiting, ended, {"lastSuccessAt": SUCCESS})
    assert isinstance(outcome, DeliveryOutcome)
    assert (outcome.status, outcome.last_success_at) == (word, SUCCESS)


def test_deadline_after_a_refused_poll_says_what_the_service_said() -> None:
    busy = PlatformRateLimitError("429 Too Many Requests", status=429, retry_after=7200.0)
    with pytest.raises(PlatformDeadlineError, match=r"429 Too Many.*wait 7200 seconds"):
        wait_for({"runId": "r1", "status": "running"}, busy)


@pytest.mark.parametrize("word", ["failed", "Error", "SKIPPED", "cancelled"])
def test_status_that_names_a_failure_fails_the_task(word: str) -> None:
    with pytest.raises(ReportDeliveryFailedError, match="without a reason"):
        wait_for({"runId": "r1", "status": word}, {"lastSuccessAt": SUCCESS})


@pytest.mark.parametrize(
    ("success", "before", "began", "is_success"),
    [
        (SUCCESS, None, None, True),
        (SUCCESS, EARLIER, None, True),
        (SUCCESS, SUCCESS, None, False),
        (EARLIER, SUCCESS, None, False),
        (None, None, None, False),
        ("2026-11-23T06:00:30Z", EARLIER, "2026-11-23T06:00:30.900Z", True),
        ("2026-11-23T06:00:30Z", EARLIER, "2026-11-23T06:00:31.000Z", False),
        ("2026-11-23T06:00:30Z", "2026-11-23T08:00:29+02:00", None, True),
    ],
)
def test_success_must_be_newer_than_the_previous_one_and_the_start(
    success: str | None, before: str | None, began: str | None, is_success: bool
) -> None:
    ended = {"runId": "r1", "status": "ended", "startedAt": began}
    answers = (ended, *[{"lastSuccessAt": success, "runId": "r1", "status": "ended"}])
    if is_success:
        assert wait_for(*answers, before=before).last_success_at == success
        return
    both = {**ended, "lastSuccessAt": success}
    with pytest.raises(ReportDeliveryFailedError, match="no success since it started"):
        wait_for(both, before=before)


def test_a_success_may_be_reported_later_than_the_end() -> None:
    service = PlayedService(
        answers=[
            {"status": "ended"},
            {"lastSuccessAt": EARLIER},
            {"status": "ended"},
            {"lastSuccessAt": SUCCESS},
        ]
    )
    assert service.play(following(service, EARLIER, 600.0)).last_success_at == SUCCESS
    assert service.now < NOON + SUCCESS_GRACE


@pytest.mark.parametrize(
    ("said", "step"),
    [
        ("Please reconnect Google", "connect Google again"),
        ("The owner has no access to the sheet", "access to the sheet in Google"),
        ("Block would overwrite filled cells", "Nothing was written"),
        ("Column 'x' vanished", "delivery's columns"),
    ],
)
def test_delivery_failure_names_the_remedy(said: str, step: str) -> None:
    with pytest.raises(ReportDeliveryFailedError, match=step):
        wait_for({"status": "failed", "error": said})


def test_run_that_is_too_large_is_left_out_of_the_result() -> None:
    assert as_result(run(id="r1", threadId="t1")) == {"id": "r1", "threadId": "t1"}
    assert as_result(run(id="r1", text="x" * 20_000)) is None
