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


def test_each_part_is_reported_once_when_it_starts():
    parts = AirflowParts(".demo")

    assert parts.news({"metadatabase": UP, "scheduler": SILENT, "sandbox": UP}) == [
        "API server is up"
    ]
    assert parts.missing() == "scheduler, DAG processor, triggerer"
    assert parts.news(ALL_UP) == ["scheduler is up", "DAG processor is up", "triggerer is up"]
    assert parts.news(ALL_UP) == []
    assert parts.missing() == ""


def test_lost_scheduler_is_reported_with_its_effect_and_a_remedy():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({**ALL_UP, "scheduler": SILENT})

    assert line.startswith("scheduler gives no sign of life: no task starts.")
    assert "press Ctrl-C and start the UI again" in line
    assert line.endswith("The logs are in .demo")
    assert parts.news({**ALL_UP, "scheduler": SILENT}) == []
    assert parts.news(ALL_UP) == ["scheduler is up again"]


def test_missing_health_response_reports_only_the_api_server():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({})

    assert line.startswith("API server gives no sign of life")
    assert parts.news(ALL_UP) == ["API server is up again"]


def test_part_that_has_started_once_is_not_reported_as_missing():
    parts = AirflowParts(".demo")
    parts.news({"scheduler": UP, "sandbox": UP})

    parts.news({"scheduler": SILENT, "sandbox": UP})

    assert parts.missing() == "API server, DAG processor, triggerer"


def test_ended_sandbox_is_reported():
    parts = AirflowParts(".demo")
    parts.news(ALL_UP)

    [line] = parts.news({**ALL_UP, "sandbox": {"status": "silent"}})

    assert line.startswith("sandbox gives no sign of life: tasks cannot connect to it.")
