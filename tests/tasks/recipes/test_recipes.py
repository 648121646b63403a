"""Every recipe runs as it is printed, and fails when it should."""

from __future__ import annotations

import base64
import json
import re
import warnings
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from airflow.sdk import BaseSensorOperator

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.sandbox.demo import dag_runs
from tests.support.smtp_server import MailServer

if TYPE_CHECKING:
    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

EXAMPLES = Path(__file__).parents[3] / "example_dags"
WAITS = {"dashboard_id": 501, "integration_id": 3, "consent_status": "active"}
MAIL = {"dashboard_id": 501, "email": "analyst@acme.example.com"}

IDS = ("dashboard_id", "workbook_id", "report_id", "notification_id", "integration_id")
IDS += ("deployment_id", "widget_id", "external_workbook_id", "chat_id")
OF_THE_DEMO = {"external_workbook_id"}
"""The demo's DAG names a spreadsheet of its own."""
READ_ONLY = {"weekly_report": {"dashboard_id"}}
"""An export changes nothing."""


def without_retries(name: str) -> DAG:
    """An example DAG as it is printed, whose tasks fail at once: a retry waits for minutes."""
    dag = dag_runs.load_dag(EXAMPLES / f"{name}.py", name)
    for task in dag.tasks:
        task.retries = 0
    return dag


def test_a_branch_is_compared_with_production_and_closed(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    run = run_dag(EXAMPLES / "branches.py")
    assert set(run.states.values()) == {"success"}
    counts = run.xcom("compare")
    assert counts["branch"] == counts["production"] > 0
    assert run.xcom("close_branch")["closed"] is True
    assert run.states["delete_branch"] == "success"


def test_a_branch_with_fewer_orders_than_production_fails_and_is_kept(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    dag = without_retries("branches")
    few = "SELECT COUNT(*) AS orders FROM orders WHERE month = '2025-03'"
    dag.get_task("count_on_branch").sql = few  # type: ignore[attr-defined]
    run = run_dag(dag)
    assert "fewer orders than production" in str(run.task("compare").error)
    assert run.states["close_branch"] == "success"
    assert run.states["delete_branch"] == "upstream_failed"


@pytest.mark.parametrize(
    ("month", "last"), [("2025-03", "31"), ("2025-02", "28"), ("2024-02", "29")]
)
def test_builds_of_a_month_reach_its_last_day(month: str, last: str) -> None:
    dag = without_retries("pre_aggregations")
    build = dag.get_task("build")
    build.render_template_fields({"params": {"pre_aggregation": "a.b", "month": month}, "dag": dag})
    assert build.date_range == [f"{month}-01", f"{month}-{last}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, None),
        ({"jobs_outcome": "no_rows"}, "the result of verify_sql is empty"),
    ],
)
def test_builds_are_reported_only_if_they_have_rows(
    platform_sandbox: Sandbox, run_dag: RunDag, settings: dict[str, Any], words: str | None
) -> None:
    scopes = {"default_api_scopes": ["meta", "data", "graphql", "jobs"]}
    platform_sandbox.control.set(**{**scopes, **settings})
    dag = without_retries("pre_aggregations")
    dag.get_task("build").missing_grace = 0.5  # type: ignore[attr-defined]
    dag.get_task("build").poll_interval = 0.1  # type: ignore[attr-defined]
    run = run_dag(dag)
    if words is None:
        assert set(run.states.values()) == {"success"}
        assert run.xcom("report").startswith("2 tables are built: prod_pre_aggregations.orders_")
        return
    assert run.states == {"build": "failed", "report": "upstream_failed"}
    assert words in str(run.task("build").error)


@pytest.mark.parametrize("outcome", ["succeeded", "failed"])
def test_delivery_runs_with_its_schedule_paused_which_is_resumed_in_any_case(
    platform_sandbox: Sandbox, run_dag: RunDag, outcome: str
) -> None:
    platform_sandbox.control.set(delivery_outcome=outcome)
    conf = {"delivery_id": 502}
    run = run_dag(without_retries("deliveries"), conf=conf)
    state = platform_sandbox.control.state()
    assert len(state.changed("report-delivery-runs")) == 1
    assert run.xcom("resume")["status"] == "active"
    assert run.xcom("pause")["status"] in ("paused", "running")
    if outcome == "succeeded":
        assert set(run.states.values()) == {"success"}
        return
    assert run.states["deliver"] == "failed"


def test_each_customer_gets_one_answer_by_mail(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    with MailServer() as server:
        extra = {"disable_ssl": True, "disable_tls": True, "from_email": "bi@example.com"}
        mail = {"conn_type": "smtp", "host": "127.0.0.1", "port": server.port, "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(mail))
        run = run_dag(without_retries("prompt_per_customer"), conf={"smtp_conn_id": "smtp_default"})
    assert set(run.states.values()) == {"success"}, [task.error for task in run.tasks]
    asked = {message.text for message in platform_sandbox.control.state().messages}
    customers = {"Dubois 01": "dubois", "Huber 02": "huber", "García 03": "garcia"}
    assert asked == {f"orders per month for {customer}" for customer in customers}
    assert {task.map_index for task in run.tasks if task.task_id == "ask"} == {0, 1, 2}
    mails = {str(mail["to"]): mail for mail in server.mails}
    assert set(mails) == {f"{name}@example.com" for name in customers.values()}
    answers = [run.xcom("ask", "answer", map_index=index) for index in range(3)]
    assert len(set(answers)) == 3
    for (customer, name), answer in zip(customers.items(), answers, strict=True):
        sent = mails[f"{name}@example.com"]
        assert sent["subject"] == f"Your orders, {customer}"
        body = unescape(sent.get_body().get_content())  # type: ignore[union-attr]
        assert answer in body
        assert not any(other in body for other in answers if other != answer)


def test_mail_leaves_out_failed_queries_and_says_that_rows_are_missing(
    platform_sandbox: Sandbox,
) -> None:
    dag = without_retries("prompt_per_customer")
    text_of = dag.get_task("mail").python_callable.__globals__["text_of"]  # type: ignore[attr-defined]
    good = {"title": "Orders", "columns": [{"name": "n"}], "total_rows": 3, "error": None}
    bad = {"title": "Wrong", "columns": [], "rows": [], "total_rows": 0, "error": ""}
    cut = text_of({"answer": "Three.", "queries": [bad, good | {"rows": [[1], [2]]}]})
    assert cut == "Three.\n\nOrders\nn\n1\n2\nThe first 2 of 3 rows."
    whole = text_of({"answer": "Three.", "queries": [good | {"rows": [[1], [2], [3]]}]})
    assert whole == "Three.\n\nOrders\nn\n1\n2\n3"


def test_run_continues_only_at_or_above_the_threshold(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    [[total]] = PlatformHook().run_sql("SELECT ROUND(SUM(amount), 2) FROM orders")
    above = run_dag(without_retries("stop_below_threshold"), conf={"least": float(total)})
    assert above.states == {"ask_agent": "success", "enough": "success", "go_on": "success"}
    below = run_dag(without_retries("stop_below_threshold"), conf={"least": float(total) + 0.01})
    assert below.state == "success"
    assert below.states == {"ask_agent": "success", "enough": "success", "go_on": "skipped"}
    failed = run_dag(
        without_retries("stop_below_threshold"),
        conf={"least": float(total) + 0.01, "below": "fail"},
    )
    assert failed.state == failed.states["enough"] == "failed"
    assert f"{total} is below the threshold" in str(failed.task("enough").error)


@pytest.mark.parametrize(
    ("question", "came"),
    [
        ("revenue by country", "queries: 1, values: 10 (Spain, "),
        ("sql: SELECT name FROM customers LIMIT 1", "queries: 1, values: 1 (Dubois 01)"),
        ("sql: SELECT id FROM customers WHERE id < 0", "queries: 1, values: 0 (nothing)"),
        (
            "total revenue, then sql: SELECT id FROM customers WHERE id < 0",
            "queries: 2, values: 1 (",
        ),
    ],
)
def test_answer_that_is_not_one_number_stops_the_run(
    platform_sandbox: Sandbox, run_dag: RunDag, question: str, came: str
) -> None:
    run = run_dag(without_retries("stop_below_threshold"), conf={"question": question, "least": 0})
    assert run.state == run.states["enough"] == "failed"
    assert f"The answer is not one number. It has {came}" in str(run.task("enough").error)
    assert run.states["go_on"] == "upstream_failed"


def test_broken_quality_rule_fails_the_run_and_is_named(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    assert run_dag(EXAMPLES / "quality_check.py").state == "success"
    run = run_dag(EXAMPLES / "quality_check.py", conf={"limit": 1})
    assert run.state == "failed"
    assert "no order above 1: 480 rows break it" in str(run.task("check").error)
    assert run.states["count"] == "success"


def test_too_many_rows_fail_the_run(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    run = run_dag(EXAMPLES / "quality_check.py", conf={"most_orders": 480})
    assert set(run.states.values()) == {"success"}
    for most in (479, 10):
        run = run_dag(EXAMPLES / "quality_check.py", conf={"most_orders": most})
        assert run.states == {"check": "success", "orders": "success", "count": "failed"}
        assert f"More than {most} orders" in str(run.task("count").error)
        assert run.xcom("orders")["row_count"] == most + 1


def test_example_tests_new_credentials(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.rotate_chat_key()
    new = platform_sandbox.control.connection()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_NEXT", json.dumps(new))
    assert run_dag(EXAMPLES / "rotate_key.py").state == "success"

    # The connection that still has the old key.
    run = run_dag(EXAMPLES / "rotate_key.py", conf={"connection": "platform_default"})
    assert run.states["try_connection"] == "failed"
    assert "chat" in str(run.task("try_connection").error)
    assert len(platform_sandbox.control.state().messages) == 1


def test_waits_and_export_example_succeeds(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    file = tmp_path / "dashboard.pdf"
    run = run_dag(EXAMPLES / "waits_and_exports.py", conf=WAITS | {"output_path": str(file)})
    assert set(run.states.values()) == {"success"}
    assert file.read_bytes().startswith(b"%PDF")
    seen = platform_sandbox.control.state()
    assert len(seen.changed("notifications", "deleted")) == 1
    assert seen.changed("branches") == []


def test_schedule_of_a_colleague_is_neither_changed_nor_deleted(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    with PlatformHook() as hook:
        theirs = hook.create_notification(dashboard_id=501, schedule_type="DAILY", hour=6, minute=0)
    conf = WAITS | {"output_path": str(tmp_path / "dashboard.pdf")}
    run = run_dag(EXAMPLES / "waits_and_exports.py", conf=conf)
    states = [run.states[name] for name in ("create_daily_mail", "send_later", "delete_daily_mail")]
    assert states[0] == "failed"
    assert "success" not in states
    assert str(theirs["id"]) in str(run.task("create_daily_mail").error)
    seen = platform_sandbox.control.state()
    assert seen.changed("notifications", "updated") == []
    assert seen.changed("notifications", "deleted") == []


def test_schedule_is_deleted_though_the_task_before_fails(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    platform_sandbox.control.fault(
        "status", api="management", method="PUT", path="notifications/", status=400
    )
    conf = WAITS | {"output_path": str(tmp_path / "dashboard.pdf")}
    run = run_dag(EXAMPLES / "waits_and_exports.py", conf=conf)
    assert run.states["send_later"] == "failed"
    assert run.states["delete_daily_mail"] == "success"
    assert len(platform_sandbox.control.state().changed("notifications", "deleted")) == 1


def test_nobody_is_added_to_the_schedule_of_a_colleague(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    first = run_dag(EXAMPLES / "notifications.py", conf=MAIL)
    second = run_dag(EXAMPLES / "notifications.py", conf=MAIL | {"email": "somebody@example.com"})
    assert set(first.states.values()) == {"success"}
    assert second.states["create_weekly_mail"] == "failed"
    assert "success" not in second.states.values()
    with PlatformHook() as hook:
        schedule = first.xcom("create_weekly_mail")["id"]
        assert len(list(hook.iterate("getRecipients", id=schedule))) == 1


def test_example_stores_all_rows(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra parquet")
    run = run_dag(EXAMPLES / "rows_to_object_storage.py", conf={"folder": str(tmp_path)})
    assert set(run.states.values()) == {"success"}
    stored = run.xcom("store_orders")
    rows = parquet.read_table(tmp_path / "2025-03.parquet")
    assert rows.num_rows == stored["row_count"] > 5 == len(stored["rows"])
    assert (tmp_path / "customers-1.csv").read_text().startswith('"id","name","city"\n')
    assert run.xcom("total") > rows.num_rows


def test_sql_check_operators_of_the_example_succeed(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    run = run_dag(EXAMPLES / "sql_checks.py", conf={"month": "2025-06"})
    assert run.state == "success", [one.error for one in run.tasks]
    sql = "SELECT COUNT(*) FROM orders WHERE month = '2025-06' AND status = 'returned'"
    [[returned]] = PlatformHook().run_sql(sql)
    assert run.xcom("total")["returned"] == int(returned) > 0


def test_the_weekly_report_ends_with_its_files_and_the_message(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    run = run_dag(EXAMPLES / "weekly_report.py", conf={"folder": str(tmp_path)})
    assert run.state == "success"
    (query,) = run.xcom("ask_agent", "queries")
    assert pq.read_table(query["path"]).num_rows == query["row_count"] > 0
    (picture,) = query["chart_paths"]
    assert Path(picture).read_bytes().startswith(b"\x89PNG")
    folder = Path(run.xcom("ask_agent", "manifest")).parent
    assert {path.name for path in folder.iterdir()} == {
        "answer.md", "dashboard.pdf", "manifest.json", "message.html", "query-1.parquet",
        "query-1.png",
    }  # fmt: skip
    assert {path.parent for path in tmp_path.rglob("*") if path.is_file()} == {folder}
    assert (folder / "dashboard.pdf").read_bytes().startswith(b"%PDF")
    message = (folder / "message.html").read_text()
    assert "<title>The week, 20" in message
    assert str(query["rows"][0][0]) in message
    drawn = base64.b64encode(Path(picture).read_bytes()).decode()
    assert f'<img src="data:image/png;base64,{drawn}"' in message


def test_next_weekly_report_has_a_folder_of_its_own(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    for _ in range(2):
        run_dag(EXAMPLES / "weekly_report.py", conf={"folder": str(tmp_path)})
    assert len(list(tmp_path.rglob("dashboard.pdf"))) == 2
    assert len({path.parent for path in tmp_path.rglob("*") if path.is_file()}) == 2


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_every_example_has_a_deadline_and_no_sandbox_ids(file: Path) -> None:
    """On a tenant such an id is somebody else's. So what a DAG changes has no default either."""
    dag = dag_runs.load_dag(file, file.stem)
    allowed = OF_THE_DEMO if file.stem == "nightly_pipeline" else set()
    for task in dag.tasks:
        if isinstance(task, BaseSensorOperator):
            assert task.timeout <= 24 * 3600, task.task_id
        for name in IDS:
            value = getattr(task, name, None)
            fixed = isinstance(value, int) or (isinstance(value, str) and "{{" not in value)
            assert not fixed or name in allowed, f"{task.task_id}: {name}={value}"
        assert not re.search(r"/deployments/\d", str(getattr(task, "path", ""))), task.task_id
    with_default = {
        name for name in IDS if name in dag.params and dag.params.get_param(name).has_value
    }
    assert with_default <= allowed | READ_ONLY.get(file.stem, set())


def test_no_two_examples_write_the_same_branch() -> None:
    """Two DAGs with one schedule would write, close and delete each other's branch."""
    dags = [dag_runs.load_dag(file, file.stem) for file in sorted(EXAMPLES.glob("*.py"))]
    names = [
        task.branch_name
        for dag in dags
        for task in dag.tasks
        if isinstance(task, PlatformDbtSyncOperator) and task.branch_name
    ]
    assert len(names) >= 3
    assert len(set(names)) == len(names), names
    assert all("| ts_nodash" in name for name in names), names


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.py")), ids=lambda file: file.stem)
def test_no_example_uses_deprecated_imports(file: Path) -> None:
    with warnings.catch_warnings():
        for kind in (DeprecationWarning, FutureWarning):
            warnings.simplefilter("error", kind)
        exec(compile(file.read_text(), file, "exec"), {"__name__": file.stem, "__doc__": "a DAG"})
