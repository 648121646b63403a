"""Every piece of Python in README and docs runs as it is printed, in an empty folder.

Those of `docs/reference` are made from the example DAGs and from what they returned. A piece is
named by its page and its number there. It imports what it uses; only values that its page speaks of
(the result of a task, an operator of the DAG before it) are given, and places of theirs become
ours. The commands that are printed are followed by `make dist`, in an environment of their own.
"""

from __future__ import annotations

import ast
import asyncio
import builtins
import csv
import inspect
import re
import sys
from decimal import Decimal
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.models import DagBag
from airflow.providers.common.sql.operators.sql import SQLCheckOperator
from airflow.sdk import DAG, Asset, Param, task_group

from airflow_provider_platform._airflow import BaseNotifier
from airflow_provider_platform.client.errors import (
    ChatToolError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.branches import branch_gate
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.sandbox.demo import dag_runs

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

PROJECT = Path(__file__).parents[3]
DOCS = PROJECT / "docs"
MODULES = {"s3": "amazon", "gs": "google", "abfs": "microsoft"}
PAGES = [
    PROJECT / "README.md",
    *sorted(DOCS.glob("*.md")),
    *sorted(DOCS.glob("recipes/*.md")),
    DOCS / "reference" / "operations.md",
]
PIECES = {
    f"{page.name} {number}": code
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.DOTALL | re.MULTILINE), start=1
    )
}


def run(piece: str, places: dict[str, str] | None = None, **known: Any) -> dict[str, Any]:
    """Run a piece; returns what it defines. `places` are texts of it and what becomes of them."""
    code = PIECES[piece]
    for original, ours in (places or {}).items():
        assert original in code, f"{piece} does not speak of {original}"
        code = code.replace(original, ours)
    names: dict[str, Any] = {"__name__": piece, **known}
    compiled = compile(code, piece, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
    waiting = eval(compiled, names)
    if inspect.iscoroutine(waiting):
        asyncio.run(waiting)
    return names


GIVEN = {
    "charts.md 1": {"result"},
    "evaluations.md 2": {"sync"},
    "branch_after_dbt_sync.md 1": {"open_branch", "close_branch", "delete_branch"},
}
"""Names that a piece takes from the text around it."""


def unbound(code: str) -> set[str]:
    """The names that a piece reads, and neither imports, defines nor assigns."""
    nodes = list(ast.walk(ast.parse(code)))
    bound = {one.id for one in nodes if isinstance(one, ast.Name) and type(one.ctx) is ast.Store}
    bound |= {one.arg for one in nodes if isinstance(one, ast.arg)}
    defined = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    bound |= {one.name for one in nodes if isinstance(one, defined)}
    for one in nodes:
        if isinstance(one, (ast.Import, ast.ImportFrom)):
            bound |= {alias.asname or alias.name.partition(".")[0] for alias in one.names}
    read = {one.id for one in nodes if isinstance(one, ast.Name) and type(one.ctx) is ast.Load}
    return read - bound - set(dir(builtins))


@pytest.fixture(autouse=True)
def empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("piece", PIECES)
def test_code_of_a_page_imports_every_name_that_it_uses(piece: str) -> None:
    assert unbound(PIECES[piece]) == GIVEN.get(piece, set())


def test_first_dag_and_its_test_pass(
    platform_sandbox: Sandbox, airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(airflow_home)
    file = airflow_home / "dags" / "report.py"
    file.write_text(PIECES["start.md 1"].replace("first_question", "report"))
    try:
        run("sandbox.md 1")["test_a_cut_connection_does_not_ask_twice"](platform_sandbox)
    finally:
        file.unlink()


@pytest.mark.parametrize(
    ("piece", "name"), [("README.md 1", "question"), ("README.md 2", "nightly")]
)
def test_readme_dag_asks_once(
    piece: str, name: str, platform_sandbox: Sandbox, airflow_home: Path
) -> None:
    file = airflow_home / "dags" / f"{name}.py"
    file.write_text(PIECES[piece])
    try:
        run_of_dag = DagBag(str(file)).get_dag(name).test()
    finally:
        file.unlink()
    assert run_of_dag.state == "success"
    assert [m.text for m in platform_sandbox.control.state().messages] == ["revenue by country"]


def test_code_of_the_hook_page_runs(platform_sandbox: Sandbox) -> None:
    assert len(run("hook.md 1")["biggest_customers"].function()) == 5
    platform_sandbox.control.open_branch("nightly")
    queries = [{"sql": "SELECT id FROM orders"}]
    asked = PlatformHook().chat("revenue by country")
    assert "Revenue by country" in asyncio.run(run("hook.md 2")["names"]())
    assert run("hook.md 3")["answers"].function(asked.chat_id) == [asked.answer]
    assert run("hook.md 4")["row_count"].function(queries, "nightly") == 480
    revenue = run("hook.md 5")["revenue_by_status"].function()
    assert {"delivered", "returned"} <= revenue.keys()
    assert all(amount > 0 for amount in revenue.values())
    assert run("hook.md 6")["workbook"]["id"] == 301


def test_code_of_the_management_api_page_runs(platform_sandbox: Sandbox) -> None:
    moved = run("management_api.md 1")["file_reports"].function(13)
    reports = PlatformHook().iterate("getReports")
    assert moved == [one["name"] for one in reports if one["folderId"] == 13]
    assert len(moved) == 4
    with pytest.raises(PlatformError, match="tenant-settings"):  # the sandbox has none
        run("management_api.md 2")
    with DAG("operations", schedule=None):
        assert run("operations.md 1")["folder"]["name"] == "March"


def test_code_of_the_page_about_charts_runs(platform_sandbox: Sandbox) -> None:
    result = PlatformHook().chat("chart revenue by category").to_json()
    assert set(run("charts.md 1", result=result)["pictures"]) == {"png", "html"}


def test_code_about_file_options_runs(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    with DAG("files", schedule=None) as files:
        run("files.md 1", {"/shared": str(tmp_path)})
    done = run_dag(files)
    assert done.state == "success", [one.error for one in done.tasks]
    assert (tmp_path / "orders.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    assert [*ast.literal_eval(PIECES["types.md 1"])] == ["name", "type", "note"]
    for piece in ("files.md 2", "files.md 3"):
        with DAG("parsed", schedule=None) as parsed:
            run(piece)
        assert parsed.task_ids == ["orders"]


def test_code_about_large_datasets_runs(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    """Of the sandbox's million events as many as make two pages."""
    some = {"FROM events": "FROM events WHERE id <= 60001"}
    platform_sandbox.control.set(data_max_rows=None)
    with DAG("many_rows", schedule=None) as many:
        run("millions_of_rows.md 1", {"s3://lake@my-bucket": str(tmp_path), **some})
        ours = {"s3://lake@my-bucket": str(tmp_path), "range(1, 13)": "range(1, 3)"}
        run("millions_of_rows.md 2", ours)
        run("millions_of_rows.md 3", {"/data": str(tmp_path), **some})
    done = run_dag(many)
    assert done.state == "success", (done.states, [one.error for one in done.tasks])
    assert done.xcom("events")["row_count"] == done.xcom("everything")["row_count"] == 60_001
    assert len({file["path"] for file in done.xcom("events")["files"]}) == 4
    months = [done.xcom("orders", map_index=index) for index in range(2)]
    assert all(month["row_count"] > 0 for month in months)
    assert [Path(month["path"]).name for month in months] == ["2025-01.parquet", "2025-02.parquet"]


def test_deployment_that_does_not_stream_fails_the_query_of_all_rows(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    with DAG("not_streaming", schedule=None) as dag:
        run("millions_of_rows.md 3", {"/data": str(tmp_path)})
    error = run_dag(dag).task("everything").error
    assert "50,000" in str(error) or "50000" in str(error)
    assert not list(tmp_path.iterdir())


def test_storage_providers_of_the_page_are_those_that_errors_name(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    """The table says what to install, as the error of a missing storage does."""
    page = (DOCS / "recipes" / "millions_of_rows.md").read_text()
    rows = re.findall(r'`pip install "(apache-[^"]+)"` \| `(\w+)://', page)
    assert len(rows) == 3
    missing = [row for row in rows if find_spec(f"airflow.providers.{MODULES[row[1]]}") is None]
    with DAG("stores", schedule=None) as stores:
        for _, scheme in missing:
            path = f"{scheme}://bucket/orders.csv"
            PlatformQueryOperator(task_id=scheme, sql="SELECT 1", output_path=path)
    done = run_dag(stores)
    for provider, scheme in missing:
        assert provider in str(done.task(scheme).error)


def test_gate_of_the_page_on_branches_merges_the_branch_that_its_tasks_checked(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    dag = run("branches.md 1")["totals"].dag
    for task in dag.tasks:
        task.retries = 0
    assert set(run_dag(dag).states.values()) == {"success"}
    state = platform_sandbox.control.state()
    assert len(state.changed("branches", "merged")) == 1


def test_gate_merges_nothing_if_its_check_finds_too_few_orders(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    dag = run("branches.md 1", {"< 100": "< 10_000_000"})["totals"].dag
    for task in dag.tasks:
        task.retries = 0
    done = run_dag(dag)
    assert "has only" in str(done.task("branch_gate.enough_orders").error)
    assert done.states["branch_gate.close"] == "success"
    assert not platform_sandbox.control.state().changed("branches", "merged")


def test_airflows_sql_check_reads_the_branch_of_a_gate(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    with DAG("checked", schedule=None) as dag:
        sync = PlatformDbtSyncOperator(task_id="sync")
        with branch_gate(sync.output["branch_name"], merge="never", delete="never") as gate:
            SQLCheckOperator(
                task_id="check",
                conn_id="platform_default",
                sql="SELECT COUNT(*) FROM orders",
                hook_params={"branch_name": gate.branch_name},
            )
    done = run_dag(dag)
    assert set(done.states.values()) == {"success"}
    branch = done.xcom("sync", "branch_name")
    requests = platform_sandbox.control.state().requests
    asked = [entry.path for entry in requests if entry.api == "data"]
    assert asked
    assert all(f"dev-mode/{branch}" in path for path in asked), asked


@pytest.mark.parametrize("asked", ["revenue by country", "sql: SELECT nothing FROM nowhere"])
def test_question_about_a_branch_keeps_the_branch_if_it_fails(
    platform_sandbox: Sandbox, run_dag: RunDag, asked: str
) -> None:
    platform_sandbox.control.set(build_seconds=0.1)
    dag = dag_runs.load_dag(PROJECT / "example_dags" / "branches.py", "branches")
    names = ("open_branch", "close_branch", "delete_branch")
    with dag:
        run(
            "branch_after_dbt_sync.md 1",
            {"revenue by country": asked},
            **{name: dag.get_task(name) for name in names},
        )
    for task in dag.tasks:
        task.retries = 0
    done = run_dag(dag)
    answered = asked == "revenue by country"
    assert done.states["ask_agent"] == ("success" if answered else "failed")
    assert done.states["close_branch"] == done.states["compare"] == "success"
    assert done.states["delete_branch"] == ("success" if answered else "upstream_failed")
    deleted = platform_sandbox.control.state().changed("branches", "deleted")
    assert len(deleted) == answered


@pytest.mark.parametrize("answers_right", [True, False])
def test_gate_merges_a_branch_only_if_the_golden_questions_of_the_page_pass(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path, answers_right: bool
) -> None:
    control = platform_sandbox.control
    control.set(build_seconds=0.1)
    revenue, quantity = (f"SELECT SUM({one}) FROM orders" for one in ("amount", "quantity"))
    monthly = "SELECT month, COUNT(*) FROM orders GROUP BY month"
    control.answer("the total revenue", sql=revenue if answers_right else quantity, times=None)
    control.answer("the total revenue", sql=revenue, branch="main", times=None)
    control.answer("in each month", sql=monthly, times=None)
    [suite] = re.findall(
        r"^```yaml\n(.*?)^```$", (DOCS / "evaluations.md").read_text(), re.DOTALL | re.MULTILINE
    )
    file = tmp_path / "eval_questions.yml"
    file.write_text(suite)
    with DAG("golden", schedule=None) as dag:
        run("evaluations.md 1")
        sync = PlatformDbtSyncOperator(task_id="sync")
        run("evaluations.md 2", {"/opt/airflow/dags/eval_questions.yml": str(file)}, sync=sync)
    for task in dag.tasks:
        task.retries = 0
    done = run_dag(dag)
    assert done.xcom("gate.suite")["counts"]["regressions"] == (not answers_right)
    assert bool(control.state().changed("branches", "merged")) == answers_right


def test_customers_of_a_query_are_each_asked_about_as_a_user_of_their_own(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    # The sandbox's customers have no address: their cities stand for it.
    query = "SELECT name, email FROM customers WHERE email IS NOT NULL"
    ours = "SELECT name, city FROM customers WHERE id <= 2"
    customers = run("question_per_customer.md 1", {query: ours})["customers"]
    ask = run("question_per_customer.md 2", {'    pool="platform_chats",\n': ""})["ask"]
    with DAG("as_customers", schedule=None) as dag:

        @task_group(prefix_group_id=False)
        def each_customer(customer: dict[str, str]) -> None:
            ask(customer=customer)

        each_customer.expand(customer=customers())
    done = run_dag(dag)
    assert done.state == "success", [one.error for one in done.tasks]
    expected = {
        (f"orders per month for {name}", city.lower())
        for name, city in PlatformHook().run_sql(ours)
    }
    asked = platform_sandbox.control.state().messages
    assert {(one.text, one.session_settings["externalId"]) for one in asked} == expected
    assert len(expected) == 2


def test_answers_of_one_file_keep_their_customers_if_a_question_fails(
    platform_sandbox: Sandbox, airflow_home: Path
) -> None:
    file = airflow_home / "dags" / "answers_to_one_file.py"
    file.write_text(PIECES["question_per_customer.md 3"].replace("retries=2, ", ""))
    platform_sandbox.control.fault("error", api="chat", has_input=True, nth=2)
    try:
        done = DagBag(str(file)).get_dag("answers_to_one_file").test()
    finally:
        file.unlink()
    assert done.state == "failed"
    runs = platform_sandbox.control.state().runs
    answered = {run.identity for run in runs if run.status == "finished"}
    customers = ["dubois@example.com", "huber@example.com", "garcia@example.com"]
    assert len(runs) == len(answered) + 1 == len(customers)
    rows = list(csv.reader(Path("answers.csv").read_text().splitlines()))
    expected = [[user, "orders per month"] for user in customers if f"external:{user}" in answered]
    assert [row[:2] for row in rows] == expected


def test_files_of_the_ci_page_pass(
    platform_sandbox: Sandbox, airflow_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(airflow_home)
    file = airflow_home / "dags" / "first_question.py"
    file.write_text(PIECES["start.md 1"])
    try:
        run("ci.md 1")["test_question_is_asked_once"](platform_sandbox)
    finally:
        file.unlink()


def test_code_of_the_sql_page_runs(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    status = Param("delivered", type="string")
    with DAG("sql", schedule=None, params={"status": status}) as sql:
        run("sql.md 1")
    done = run_dag(sql)
    assert done.state == "success", [one.error for one in done.tasks]
    assert done.xcom("big_orders")["row_count"] > 0
    with DAG("operators", schedule=None) as operators:
        run("sql.md 2")
    assert run_dag(operators).state == "success"
    printed = run("sql.md 3")
    assert [type(value) for value in printed["rows"][0]] == [int, Decimal, bool]
    assert (printed["names"], len(printed["some"])) == (["id", "amount"], 10)
    assert printed["first"] == (480,)
    assert {one["type"] for one in run("sql.md 4")["sql_apis"]} == {"sql"}


class Recorder(BaseNotifier):
    """Stands for a notifier of another provider."""

    sent: list[Any] = []  # noqa: RUF012

    def __init__(self, **given: Any) -> None:
        super().__init__()
        self.given = given

    def notify(self, context: Any) -> None:
        self.sent.append((self.given, context["platform_answer"]["text"]))


def test_code_about_messages_runs(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    Recorder.sent.clear()
    for path, name in (
        ("airflow.providers.slack.notifications.slack", "SlackNotifier"),
        ("airflow.providers.slack.notifications.slack_webhook", "SlackWebhookNotifier"),
        ("airflow.providers.smtp.notifications.smtp", "SmtpNotifier"),
    ):
        parts = path.split(".")
        for end in range(3, len(parts) + 1):
            package = ".".join(parts[:end])
            stand_in: Any = ModuleType(package)
            stand_in.__path__ = []
            monkeypatch.setitem(sys.modules, package, stand_in)
        setattr(sys.modules[path], name, Recorder)
    with DAG("messages", schedule=None) as messages:
        run("messages.md 1")
    done = run_dag(messages)
    assert [given.get("to") for given, _ in Recorder.sent] == [None, "bi@example.com"]
    assert done.xcom("ask", "answer") in Recorder.sent[0][1]
    assert set(run("messages.md 2")["send"].send_with.given) == {"slack_webhook_conn_id", "text"}


def test_code_about_deadlines_runs() -> None:
    reason = "before Airflow 3.1 there are no deadline alerts"
    pytest.importorskip("airflow.sdk.definitions.deadline", reason=reason)
    alert = run("messages.md 3")["deadline"]
    PlatformAnswerNotifier(**alert.callback.kwargs)


def test_code_about_approvals_runs() -> None:
    pytest.importorskip("airflow.providers.standard.operators.hitl")
    with DAG("approval", schedule=None):
        assert run("approval.md 1")["approve"].upstream_task_ids == {"ask"}


def test_retry_policy_tells_the_errors_apart() -> None:
    pytest.importorskip("airflow.sdk.definitions.retry_policy", reason="needs Airflow 3.3")
    with DAG("policy", schedule=None):
        policy = run("retry_policies.md 1")["ask"].retry_policy
    for error, action in (
        (PlatformTransportError("reset"), "retry"),
        (ChatToolError("every query failed"), "fail"),
        (PlatformError("another"), "default"),
    ):
        decision = policy.evaluate(exception=error, try_number=1, max_tries=4, context={})
        assert decision.action.value == action


def test_code_about_assets_runs(capsys: pytest.CaptureFixture[str]) -> None:
    downstream = run("files.md 4")["downstream"]()
    event = SimpleNamespace(extra={"path": "/data/orders.parquet", "row_count": 480})

    class Events:
        def __getitem__(self, asset: Asset) -> list[Any]:
            assert asset.name == "orders"
            return [event]

    load = downstream.get_task("load").python_callable
    load(triggering_asset_events=Events())
    assert "/data/orders.parquet 480" in capsys.readouterr().out


def test_every_code_block_of_the_pages_is_run_by_a_test() -> None:
    named = set(re.findall(r'"([\w.]+\.md \d+)"', Path(__file__).read_text()))
    assert named == set(PIECES)
