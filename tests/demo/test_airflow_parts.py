"""What the terminal of the demo's UI says about the parts of Airflow."""

from __future__ import annotations

from airflow_provider_platform.sandbox.demo.airflow_parts import AirflowParts

UP = {"status": "healthy"}
SILENT = {"status": "unhealthy"}
ALL_UP = {
    "metadatabase": UP,
    "scheduler": UP,
    "dag_processor": UP,
    "triggerer": UP,
    "sandbox": UP,
}


def test_each_part_is_told_once_when_it_comes_up():
    parts = AirflowParts(".demo")

    assert parts.news({"metadatabase": UP, "scheduler": SILENT, "sandbox": UP}) == [
        "API server is up"
    ]
    assert parts.missing() == "scheduler, DAG processor, triggerer"
    assert parts.news(ALL_UP) == ["scheduler is up", "DAG processor is up", "triggerer is up"]
    assert parts.news(ALL_UP) == []
    assert parts.missing() == ""


def test_a_lost_scheduler_is_told_with_what_stands_still_and_what_to_do():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({**ALL_UP, "scheduler": SILENT})

    assert line.startswith("scheduler gives no sign of life: no task starts.")
    assert "press Ctrl-C and start the UI again" in line
    assert line.endswith("The logs are in .demo")
    assert parts.news({**ALL_UP, "scheduler": SILENT}) == []
    assert parts.news(ALL_UP) == ["scheduler is up again"]


def test_without_an_answer_only_the_api_server_is_lost():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({})

    assert line.startswith("API server gives no sign of life")
    assert parts.news(ALL_UP) == ["API server is up again"]


def test_a_part_that_was_up_once_is_not_waited_for_again():
    parts = AirflowParts(".demo")
    parts.news({"scheduler": UP, "sandbox": UP})

    parts.news({"scheduler": SILENT, "sandbox": UP})

    assert parts.missing() == "API server, DAG processor, triggerer"


def test_a_sandbox_that_has_ended_is_told():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({**ALL_UP, "sandbox": {"status": "silent"}})

    assert line.startswith("sandbox gives no sign of life: tasks cannot connect to it.")
