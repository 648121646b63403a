"""The record that prevents a second submission: what a try does at each phase."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.operators._run_record import (
    STORE_KEY,
    RecordKeeper,
    Step,
    SubmissionRecord,
    TryCounters,
    decide,
    read_record,
)

PHASES = ["intent", "running", "done", "failed", "lost"]


def record(phase: str, key: str = "k") -> SubmissionRecord:
    return SubmissionRecord(key, phase, TryCounters(2, 1), {"message_id": "1"})  # type: ignore[arg-type]


RETRY = TryCounters(2, 2)
CLEARED = TryCounters(5, 2)


@pytest.mark.parametrize(
    ("phase", "step"),
    [
        ("intent", Step.FIND_OUT),
        ("running", Step.REATTACH),
        ("done", Step.RELOAD),
        ("failed", Step.START),
        ("lost", Step.START),
    ],
)
def test_a_retry_continues_from_the_recorded_phase(phase: str, step: Step) -> None:
    assert decide(record(phase), "k", RETRY) == (step, False)


def test_first_try_starts_a_run() -> None:
    assert decide(None, "k", TryCounters()) == (Step.START, False)


@given(phase=st.sampled_from(PHASES), changed=st.booleans())
def test_cleared_task_starts_a_new_run_and_stops_only_a_running_one(
    phase: str, changed: bool
) -> None:
    found = decide(record(phase), "other" if changed else "k", CLEARED)
    assert found == (Step.START, phase == "running")


@given(phase=st.sampled_from(PHASES))
def test_a_retry_with_other_input_reports_a_lost_submission_and_stops_a_running_one(
    phase: str,
) -> None:
    step = Step.REPORT if phase == "intent" else Step.START
    assert decide(record(phase), "other", RETRY) == (step, phase == "running")


@pytest.mark.parametrize(
    ("recorded", "now", "step"),
    [
        # (max_tries, try_number) of the record and of this try
        pytest.param((2, 1), (2, 2), Step.REATTACH, id="a retry"),
        pytest.param((2, 1), (2, 3), Step.REATTACH, id="a retry after one that wrote nothing"),
        pytest.param((2, 1), (3, 2), Step.START, id="a clear"),
        pytest.param((2, 3), (5, 4), Step.START, id="a clear of the last try"),
        pytest.param((5, 4), (5, 5), Step.REATTACH, id="a retry after a clear"),
        pytest.param((0, 1), (0, 2), Step.START, id="a lost clear, without retries"),
        pytest.param((2, 3), (2, 4), Step.START, id="a lost clear of the last try"),
        pytest.param((2, 1), (2, 2), Step.REATTACH, id="a lost clear that nothing shows"),
        pytest.param((2, 2), (4, 2), Step.REATTACH, id="the same try, going on"),
        # (max_tries, try_number, retries, clear_number)
        pytest.param((3, 1, 3, 0), (3, 2, 2, 1), Step.START, id="a clear after fewer retries"),
        pytest.param((3, 1, 3, 0), (3, 2, 2, 0), Step.REATTACH, id="fewer retries, no clear"),
        pytest.param((3, 1, 3, 0), (3, 2, 3, 1), Step.REATTACH, id="a clear of another task"),
        pytest.param((3, 1), (3, 2, 3, 1), Step.START, id="a record without these counters"),
    ],
)
def test_counters_distinguish_a_retry_from_a_clear(
    recorded: tuple[int, ...], now: tuple[int, ...], step: Step
) -> None:
    left = SubmissionRecord("k", "running", TryCounters(*recorded))
    assert decide(left, "k", TryCounters(*now)) == (step, step is Step.START)


def test_the_counters_of_a_try_come_from_its_context() -> None:
    task = SimpleNamespace(retries=3)
    ti = SimpleNamespace(max_tries=4, try_number=2, task=task)
    found: Any = {"ti": ti, "dag_run": SimpleNamespace(clear_number=1)}
    assert TryCounters.of(found) == TryCounters(4, 2, 3, 1)


class Store(dict[str, Any]):
    """Stands for the task state store: a mapping of keys to plain JSON."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


def context(store: Store | None, max_tries: int = 2) -> Any:
    found = {"ti": SimpleNamespace(max_tries=max_tries)}
    return found if store is None else {**found, "task_state_store": store}


def test_written_record_is_read_back() -> None:
    where = context(Store())
    RecordKeeper(where, "k").write("running", {"chat_id": "c"})
    assert read_record(where) == SubmissionRecord("k", "running", TryCounters(2), {"chat_id": "c"})


def test_record_of_another_shape_is_ignored() -> None:
    assert read_record(context(Store({STORE_KEY: {"unknown": 1}}))) is None
    assert read_record(context(Store({STORE_KEY: "text"}))) is None


def test_missing_store_starts_a_new_run_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecordKeeper, "_warned_no_store", False)
    with caplog.at_level("INFO"):
        for _ in range(2):
            RecordKeeper(context(None), "k").write("running", {})
    assert read_record(context(None)) is None
    assert caplog.text.count("no task state store") == 1


class RefusingStore(Store):
    def set(self, key: str, value: Any) -> None:
        raise RuntimeError("the task has ended")


def test_unwritable_record_stops_the_submission() -> None:
    with pytest.raises(RuntimeError):
        RecordKeeper(context(RefusingStore()), "k").write("intent", {})


def test_unwritten_outcome_is_only_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    submission = RecordKeeper(context(RefusingStore()), "k")
    submission.note("done", {})
    assert "could not be written" in caplog.text


def test_a_record_with_unknown_or_missing_counters_is_read() -> None:
    least = {"key": "k", "phase": "running", "ids": {"chat_id": "c"}, "max_tries": 2}
    expected = SubmissionRecord("k", "running", TryCounters(2), {"chat_id": "c"})
    assert read_record(context(Store({STORE_KEY: least}))) == expected
    more = {**least, "try_number": 3, "new": {"a": 1}}
    expected = SubmissionRecord("k", "running", TryCounters(2, 3), {"chat_id": "c"})
    assert read_record(context(Store({STORE_KEY: more}))) == expected


class StoreThatIsAway(Store):
    """Cannot be reached until `back` is set."""

    back = False

    def set(self, key: str, value: Any) -> None:
        if not self.back:
            raise ConnectionError("Airflow's API server does not answer")
        super().set(key, value)


def test_unwritten_record_is_written_at_the_end_of_the_try() -> None:
    """The newest of it."""
    store = StoreThatIsAway()
    submission = RecordKeeper(context(store), "k")
    submission.note("intent", {"chat_id": "c"})
    submission.note("running", {"chat_id": "c"})
    submission.flush_pending()
    assert STORE_KEY not in store
    assert not submission.finds({"chat_id": "c"})
    store.back = True
    submission.flush_pending()
    assert store[STORE_KEY]["phase"] == "running"
    assert submission.finds({"chat_id": "c"})
