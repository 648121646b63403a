"""What the demo prints at its end."""

from __future__ import annotations

from dataclasses import replace

from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun, FinishedTask
from airflow_provider_platform.sandbox.demo.report import report

QUERY = {
    "title": "Revenue by region",
    "description": "Revenue of last month",
    "sql": "SELECT region, SUM(revenue) FROM orders GROUP BY 1",
    "columns": [{"name": "region", "type": "string"}, {"name": "revenue", "type": "number"}],
    "rows": [["North", 1200.5], ["South", 80], [None, 7]],
    "total_rows": 12,
    "truncated": True,
    "uuid": None,
    "chart": None,
    "error": None,
}
ASK = FinishedTask(
    task_id="ask",
    map_index=-1,
    state="success",
    seconds=1.25,
    error=None,
    xcoms={
        "answer": "North leads.\nSouth follows.",
        "queries": [QUERY],
        "return_value": {"answer": "North leads.", "queries": []},
    },
)
RUN = FinishedRun(dag_id="nightly", run_id="manual__1", state="success", tasks=[ASK])


def test_report_shows_states_answer_table_and_result_keys():
    assert report(RUN) == (
        "Tasks (the run: success)\n"
        "------------------------\n"
        "  task  state    time\n"
        "  ask   success  1.2 s\n"
        "\n"
        "Where to find the results in XCom\n"
        "---------------------------------\n"
        "  dag id  nightly\n"
        "  run id  manual__1\n"
        "\n"
        "  task id  key           value\n"
        "  ask      answer        'North leads.\\nSouth follows.'\n"
        "  ask      queries       a list of 1\n"
        "  ask      return_value  {answer, queries}\n"
        "\n"
        "The answer of the agent (ask)\n"
        "-----------------------------\n"
        "  North leads.\n"
        "  South follows.\n"
        "\n"
        "Query: Revenue by region (3 of 12 rows)\n"
        "---------------------------------------\n"
        "  SELECT region, SUM(revenue) FROM orders GROUP BY 1\n"
        "\n"
        "  region  revenue\n"
        "  North    1200.5\n"
        "  South        80\n"
        "                7"
    )


def test_a_failed_task_is_shown_with_its_error():
    failed = replace(ASK, state="failed", error="ValueError: Bad branch\nTry main.", xcoms={})

    text = report(replace(RUN, state="failed", tasks=[failed]))

    assert "Tasks (the run: failed)" in text
    assert "Why ask is failed\n-----------------\n  ValueError: Bad branch\n  Try main." in text
    assert "XCom" not in text


def test_a_failed_query_shows_its_error_and_long_cells_are_cut():
    failed = QUERY | {"rows": [], "columns": [], "error": "no such table", "total_rows": 0}
    wide = QUERY | {"rows": [["x" * 100, 1]]}
    task = replace(ASK, xcoms={"answer": "", "queries": [failed, wide]})

    text = report(replace(RUN, tasks=[task]))

    assert "failed: no such table" in text
    assert f"{'x' * 37}..." in text
    assert "x" * 38 not in text


def test_a_chart_is_drawn_and_its_files_are_named():
    encoding = {"x": {"field": "region"}, "y": {"field": "revenue", "type": "quantitative"}}
    whole = QUERY | {
        "rows": [["North", 1200], ["South", 600]],
        "total_rows": 2,
        "truncated": False,
        "chart": {"mark": "bar", "encoding": encoding},
        "path": "/lake/revenue.parquet",
        "chart_paths": ["/lake/revenue.png"],
    }
    text = report(replace(RUN, tasks=[replace(ASK, xcoms={"answer": "", "queries": [whole]})]))
    north, south, _, rows, picture = text.splitlines()[-5:]
    assert north.startswith("  North  ███")
    assert north.endswith(" 1,200")
    assert south.count("█") == north.count("█") // 2
    assert (rows, picture) == ("  rows   /lake/revenue.parquet", "  chart  /lake/revenue.png")


def test_report_shows_no_conversation_for_a_comparison():
    """Its queries have no rows; the demo of such a DAG ended with a traceback."""
    compared = {"verdict": "same", "queries": [{"name": "orders", "columns": ["count"]}]}
    task = replace(ASK, task_id="compare", xcoms=compared)
    printed = report(replace(RUN, tasks=[task]))
    assert "The answer of the agent" not in printed
