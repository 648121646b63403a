"""The record that keeps a task from doing the same thing twice: what each phase makes a try do."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_platform.operators._submission import (
    STORE_KEY,
    Step,
    Submission,
    SubmissionRecord,
    decide,
    read_record,
)

PHASES = ["intent", "running", "done", "failed", "lost"]


def record(phase: str, key: str = "k", max_tries: int = 2) -> SubmissionRecord:
    return SubmissionRecord(key, max_tries, phase, {"message_id": "1"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("phase", "step"),
    [
        ("intent", Step.RECOVER),
        ("running", Step.REATTACH),
        ("done", Step.TAKE),
        ("failed", Step.START),
        ("lost", Step.START),
    ],
)
def test_a_retry_goes_on_from_the_phase(phase: str, step: Step) -> None:
    assert decide(record(phase), "k", 2) == (step, False)


def test_a_first_try_starts() -> None:
    assert decide(None, "k", 0) == (Step.START, False)


@given(phase=st.sampled_from(PHASES), cleared=st.booleans(), changed=st.booleans())
def test_a_clear_or_another_input_starts_anew_and_stops_only_what_runs(
    phase: str, cleared: bool, changed: bool
) -> None:
    found = decide(record(phase), "other" if changed else "k", 5 if cleared else 2)
    if cleared or changed:
        assert found == (Step.START, phase == "running")
    else:
        assert found[1] is False


class Store(dict[str, Any]):
    """Stands for the task state store: a mapping of keys to plain JSON."""

    def set(self, key: str, value: Any) -> None:
        self[key] = value


def context(store: Store | None, max_tries: int = 2) -> Any:
    found = {"ti": SimpleNamespace(max_tries=max_tries)}
    return found if store is None else {**found, "task_state_store": store}


def test_what_is_written_is_read_again() -> None:
    where = context(Store())
    Submission(where, "k").write("running", {"chat_id": "c"})
    assert read_record(where) == SubmissionRecord("k", 2, "running", {"chat_id": "c"})


def test_a_record_of_another_shape_counts_as_none() -> None:
    assert read_record(context(Store({STORE_KEY: {"unknown": 1}}))) is None
    assert read_record(context(Store({STORE_KEY: "text"}))) is None


def test_without_a_store_everything_starts_anew_and_the_log_says_so_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Submission, "_told_no_store", False)
    with caplog.at_level("INFO"):
        for _ in range(2):
            Submission(context(None), "k").write("running", {})
    assert read_record(context(None)) is None
    assert caplog.text.count("no task state store") == 1


class RefusingStore(Store):
    def set(self, key: str, value: Any) -> None:
        raise RuntimeError("the task has ended")


def test_an_intent_that_cannot_be_written_stops_the_submission() -> None:
    with pytest.raises(RuntimeError):
        Submission(context(RefusingStore()), "k").write("intent", {})


def test_what_came_of_it_is_logged_only_where_it_cannot_be_written(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Submission(context(RefusingStore()), "k").note("done", {})
    assert "could not be written" in caplog.text
