"""Files of a chat task: rows, charts, the answer, and a manifest that names them all."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from airflow.sdk import Asset

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.charts import ChartLimits, renderer
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.files.answer_files import AnswerFiles, write_answer
from airflow_provider_platform.files.options import Output
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.resources.chat import tool_calls
from airflow_provider_platform.sandbox.control.client import SandboxControl
from tests.support.remote_tasks import deferral_while_stopped
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

pytest.importorskip("pyarrow")
PROMPT = "sql: SELECT id, order_id, fee, paid_at, settled FROM payments"
MODES = {"on the worker": False, "deferred": True}


def ask(tries: TaskTries | None = None, **arguments: Any) -> dict[str, Any]:
    """Ask, on the worker or deferred; returns the result."""
    context = (tries or TaskTries()).context()
    given = {"prompt": PROMPT, "deferrable": False, "poll_interval": 0.05, **arguments}
    task = PlatformChatOperator(task_id="ask", **given)
    if not given["deferrable"]:
        return dict(task.execute(context))
    sandbox = urlsplit(PlatformHook().config.require_chat_url())
    control = SandboxControl(f"{sandbox.scheme}://{sandbox.netloc}")
    deferred = deferral_while_stopped(control, task.execute, context)

    async def only_event() -> Any:
        [event] = [event async for event in deferred.trigger.run()]
        return event.payload

    event = asyncio.run(only_event())
    again = PlatformChatOperator(task_id="ask", **given)
    return dict(again.execute_complete(context, event, **deferred.kwargs))


def as_service(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Have the connection use a service token, which the deployment accepts."""
    sandbox.control.set(service_tokens=True)
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT",
        sandbox.connection_json(
            chat_api_key=None,
            session_settings=None,
            chat_service_token=sandbox.service_token(externalId="nightly-pipeline"),
            **fields,
        ),
    )


def manifest_of(result: dict[str, Any]) -> dict[str, Any]:
    """The manifest, held against the files that it names."""
    path = Path(result["manifest"])
    assert path.parent == Path(result["folder"])
    found: dict[str, Any] = json.loads(path.read_text())
    files = [found["answer_file"]]
    for query in found["queries"]:
        files += [file for file in (query["file"], *query["charts"]) if file]
    for file in files:
        data = (path.parent / file["name"]).read_bytes()
        assert Path(file["path"]) == path.parent / file["name"]
        assert (len(data), hashlib.sha256(data).hexdigest()) == (file["bytes"], file["sha256"])
    names = {file["name"] for file in files} | {"manifest.json"}
    assert {one.name for one in path.parent.iterdir()} == names
    return found


def data_requests(sandbox: Sandbox) -> list[Any]:
    return [one for one in sandbox.control.state().requests if "cubesql" in one.path]


@pytest.mark.parametrize("deferrable", MODES.values(), ids=MODES.keys())
def test_rows_of_a_chat_are_written_in_every_format(
    deferrable: bool, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    result = ask(output_path=str(tmp_path), output_format="csv", deferrable=deferrable)
    [query] = result["queries"]
    assert (query["row_count"], query["total_rows"], len(query["rows"])) == (100, 480, 100)
    assert query["path"] == str(Path(result["folder"]) / "query-1.csv")
    assert Path(query["path"]).read_text().splitlines()[1].endswith("2025-01-26 01:30:00.000,true")
    assert len(Path(query["path"]).read_text().splitlines()) == 101
    manifest = manifest_of(result)
    assert manifest["question"] == PROMPT
    assert (manifest["chat_id"], manifest["message_id"]) == (
        result["chat_id"],
        result["message_id"],
    )
    assert manifest["answer"] == result["answer"]
    [entry] = manifest["queries"]
    assert (entry["row_count"], entry["total_rows"], entry["difference"]) == (100, 480, -380)
    assert (entry["rows_from"], entry["sql"]) == ("chat", query["sql"])
    assert query["truncated"] is entry["truncated"] is True, "the chat did not send the others"
    assert data_requests(platform_sandbox) == []


def test_every_row_that_the_chat_sends_is_in_the_file(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    """100 rows are a default of the service, and `max_rows` bounds XCom only."""
    platform_sandbox.control.set(chat_row_limit=150)
    result = ask(output_path=str(tmp_path), output_format="csv", deferrable=False)
    [query] = result["queries"]
    assert (query["row_count"], query["total_rows"], len(query["rows"])) == (150, 480, 100)
    assert len(Path(query["path"]).read_text().splitlines()) == 151
    for given, kept in ((120, 120), (150, 150), (999, 150)):
        [query] = ask(max_rows=given)["queries"]
        assert (len(query["rows"]), query["truncated"]) == (kept, True)


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("limits", "truncated"),
    [({}, True), ({"default_row_limit": 200}, True), ({"default_row_limit": 300}, False)],
)
def test_row_limits_of_the_connection_decide_whether_rows_are_truncated(
    limits: dict[str, int],
    truncated: bool,
    platform_sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The deployment gives 2,000 rows, or 200, for a query without a LIMIT."""
    rows = limits.get("default_row_limit") or 2000
    platform_sandbox.control.set(data_default_rows=200 if rows == 300 else rows)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", platform_sandbox.connection_json(**limits))
    result = ask(
        prompt="sql: SELECT id FROM events",
        output_path=str(tmp_path),
        output_format="csv",
        all_rows=True,
        all_rows_as="connection",
    )
    [entry] = manifest_of(result)["queries"]
    assert (entry["row_count"], entry["truncated"]) == (2000 if not limits else 200, truncated)


@pytest.mark.usefixtures("platform_sandbox")
@pytest.mark.parametrize("in_file", [False, True], ids=["XCom only", "files"])
def test_rows_of_queries_in_xcom_are_bounded_in_bytes(in_file: bool, tmp_path: Path) -> None:
    folder = {"output_path": str(tmp_path), "output_format": "csv"} if in_file else {}
    [query] = ask(**folder)["queries"]
    rows = query["rows"]
    assert len(rows) == 100
    [query] = ask(max_xcom_bytes=1000, **folder)["queries"]
    assert (query["total_rows"], query["truncated"]) == (480, True)
    kept = len(query["rows"])
    assert query["rows"] == rows[:kept]
    assert len(json.dumps(rows[:kept])) <= 1000 < len(json.dumps(rows[: kept + 1]))
    if in_file:
        assert query["row_count"] == 100


def test_all_rows_are_read_with_the_token_of_the_user(
    platform_sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    as_service(platform_sandbox, monkeypatch)
    result = ask(output_path=str(tmp_path), all_rows=True, max_rows=5, deferrable=False)
    [query] = result["queries"]
    assert (query["row_count"], len(query["rows"]), query["truncated"]) == (480, 5, False)
    assert query["rows"][0] == [1, 1, "11.21", "2025-01-26T01:30:00.000", True]
    table = pq.read_table(query["path"])
    assert (table.num_rows, str(table.schema.field("fee").type)) == (480, "decimal128(19, 2)")
    [entry] = manifest_of(result)["queries"]
    assert (entry["difference"], entry["rows_from"]) == (0, "data API")
    [request] = data_requests(platform_sandbox)
    assert request.identity == "nightly-pipeline"


def test_api_key_refuses_all_rows_before_the_question_is_sent(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with pytest.raises(AirflowFailException, match='all_rows_as="connection"'):
        ask(output_path=str(tmp_path), all_rows=True)
    assert platform_sandbox.control.state().messages == []
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("lacking", "said"),
    [
        ({"deployment_id": None}, "deployment_id is missing"),
        ({"host": None, "password": None}, r"Management API address \(host\)"),
    ],
)
def test_all_rows_need_an_address_before_the_question_is_sent(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    lacking: dict[str, Any],
    said: str,
) -> None:
    connection = platform_sandbox.connection_json(**lacking)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", connection)
    with pytest.raises(AirflowFailException, match=said):
        ask(output_path=str(tmp_path), all_rows=True, all_rows_as="connection")
    assert platform_sandbox.control.state().messages == []


@pytest.mark.parametrize(
    ("fields", "branch_name", "said"),
    [
        ({"host": None, "password": None}, None, r"Management API address \(host\)"),
        ({"deployment_id": None, "data_api_url": "{data}"}, "a", "deployment_id is missing"),
        (
            {"host": None, "password": None, "data_api_url": "{data}/own"},
            "a",
            "the address of branch 'a' is unknown",
        ),
    ],
)
def test_all_rows_as_the_user_need_an_address_too(
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    fields: dict[str, Any],
    branch_name: str | None,
    said: str,
) -> None:
    address = platform_sandbox.connection()["host"].removesuffix("/api")
    fields = {k: v.replace("{data}", address) if v else v for k, v in fields.items()}
    as_service(platform_sandbox, monkeypatch, **fields)
    with pytest.raises(AirflowFailException, match=said):
        ask(output_path=str(tmp_path), all_rows=True, active_branch_name=branch_name)
    assert platform_sandbox.control.state().messages == []


def test_all_rows_as_connection_reads_without_the_users_identity(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    result = ask(output_path=str(tmp_path), all_rows=True, all_rows_as="connection")
    assert result["queries"][0]["row_count"] == 480
    [request] = data_requests(platform_sandbox)
    assert request.identity is None


def test_all_rows_come_from_the_same_branch(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    platform_sandbox.control.open_branch("feature/a")
    ask(
        output_path=str(tmp_path),
        all_rows=True,
        all_rows_as="connection",
        active_branch_name="feature/a",
    )
    [request] = data_requests(platform_sandbox)
    assert "/dev-mode/feature/a/" in request.path


def test_a_failed_query_has_no_file(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    result = ask(
        prompt="sql: SELECT nonsense FROM orders",
        output_path=str(tmp_path),
        fail_on_tool_error="never",
    )
    [query] = result["queries"]
    assert (query["path"], query["chart_paths"], query["row_count"]) == (None, [], None)
    assert manifest_of(result)["queries"][0]["error"] is not None


@pytest.mark.parametrize("all_rows", [False, True], ids=["rows of the chat", "all rows"])
def test_file_xcom_and_manifest_name_colliding_columns_alike(
    all_rows: bool, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    duckdb = pytest.importorskip("duckdb")
    result = ask(
        prompt='sql: SELECT id AS "Total", id AS total, id AS total_2, id AS "" FROM orders',
        output_path=str(tmp_path),
        all_rows=all_rows,
        all_rows_as="connection",
    )
    [query] = result["queries"]
    names = ["Total", "total_3", "total_2", "column_4"]
    assert [column["name"] for column in query["columns"]] == names
    [described] = json.loads(Path(result["manifest"]).read_text())["queries"]
    assert described["columns"] == query["columns"]
    assert duckdb.sql(f"FROM '{query['path']}'").columns == names


def test_files_contain_all_sent_rows_regardless_of_max_rows(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert")
    result = ask(
        prompt="chart revenue by category",
        output_path=str(tmp_path),
        output_format="csv",
        charts=["svg", "png"],
        max_rows=1,
        deferrable=False,
    )
    [query] = result["queries"]
    assert (len(query["rows"]), query["truncated"]) == (1, False)
    assert (query["row_count"], query["total_rows"]) == (4, 4)
    assert [Path(path).name for path in query["chart_paths"]] == ["query-1.svg", "query-1.png"]
    assert Path(query["chart_paths"][1]).read_bytes().startswith(b"\x89PNG")
    assert len(Path(query["path"]).read_text().splitlines()) == 5
    [entry] = manifest_of(result)["queries"]
    assert (entry["difference"], entry["chart_error"]) == (0, None)
    answer = (Path(result["folder"]) / "answer.md").read_text()
    assert sum(line.startswith("|") for line in answer.splitlines()) == 6
    # The document shows the picture beside it, and where the files are, to be copied.
    assert f"![{query['title']}](query-1.png)" in answer
    assert f"`{query['path']}`" in answer
    assert "\\" not in answer


def test_long_chart_specification_is_left_out_of_xcom_and_reported(
    platform_sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
    capfd: Any,
) -> None:
    monkeypatch.setattr(tool_calls, "MAX_CHART_CHARACTERS", 100)
    given: dict[str, Any] = {"prompt": "chart revenue by category", "deferrable": False}
    [query] = ask(**given)["queries"]
    assert (query["chart"], len(query["rows"])) == (None, 4)
    assert "characters, and the limit is 100" in query["chart_error"]
    logged = capfd.readouterr().out + caplog.text
    assert f"Query {query['title']!r} has no chart. {query['chart_error']}" in logged
    [query] = ask(prompt="total revenue")["queries"]
    assert "chart_error" not in query
    files = {"output_path": str(tmp_path), "output_format": "csv"}
    written = ask(**given, **files)
    assert "the limit is 100" in manifest_of(written)["queries"][0]["chart_error"]


@pytest.mark.parametrize("rule", ["warn", "fail"])
def test_chart_that_takes_too_long_is_left_out_or_fails_the_task(
    rule: str, platform_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("vl_convert")
    monkeypatch.setattr(renderer, "ChartLimits", lambda: ChartLimits(seconds=0.001))
    arguments: dict[str, Any] = {
        "prompt": "chart revenue by category",
        "output_path": str(tmp_path),
        "output_format": "csv",
        "charts": ["png"],
        "on_chart_error": rule,
    }
    reason = r"The chart was not drawn within the limit of 0\.001 seconds"
    if rule == "fail":
        with pytest.raises(AirflowFailException, match=reason):
            ask(**arguments)
        return
    result = ask(**arguments)
    [query] = result["queries"]
    assert (query["chart_paths"], query["row_count"]) == ([], 4)
    [stored] = manifest_of(result)["queries"]
    assert re.match(reason, stored["chart_error"])
    assert [path.name for path in Path(result["manifest"]).parent.glob("*.png*")] == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("rule", ["warn", "fail"])
def test_a_chart_of_some_of_its_rows_is_not_drawn(
    rule: str, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert")
    platform_sandbox.control.set(chat_row_limit=2)  # of the four that there are
    arguments: dict[str, Any] = {
        "prompt": "chart revenue by category",
        "output_path": str(tmp_path),
        "output_format": "csv",
        "charts": "png",
        "on_chart_error": rule,
    }
    if rule == "fail":
        with pytest.raises(AirflowFailException, match="The chart needs all 4 rows"):
            ask(**arguments)
        return
    result = ask(**arguments)
    assert result["queries"][0]["chart_paths"] == []
    assert "Use all_rows" in manifest_of(result)["queries"][0]["chart_error"]
    result = ask(**arguments, all_rows=True, all_rows_as="connection")
    assert len(result["queries"][0]["chart_paths"]) == 1


def answer_with(chart: dict[str, Any], rows: list[list[Any]]) -> dict[str, Any]:
    query = {
        "title": "Revenue", "description": None, "sql": "SELECT 1", "uuid": None, "error": None,
        "columns": [{"name": "country", "type": "String"}, {"name": "revenue", "type": "Double"}],
        "rows": rows, "total_rows": len(rows), "truncated": False, "chart": chart,
    }  # fmt: skip
    return {"chat_id": "c", "message_id": "m", "answer": "a", "usage": None, "queries": [query]}


def test_rows_that_may_be_missing_may_be_missing_in_the_file_too(tmp_path: Path) -> None:
    result = answer_with({}, [["Spain", "12.5"]] * 100)
    result["queries"][0]["truncated"] = True  # the service did not say how many there are
    written, manifest = write_answer(result, AnswerFiles(tmp_path, Output("csv")), {"question": ""})
    assert written["queries"][0]["truncated"] is manifest["queries"][0]["truncated"] is True


@pytest.mark.exhaustive
def test_chart_whose_field_the_result_lacks_is_left_out_with_the_reason(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    encoding = {"x": {"field": "Country"}, "y": {"field": "revenue", "type": "quantitative"}}
    said: list[str] = []
    wanted = AnswerFiles(tmp_path, Output("csv"), charts=("png",), warn=said.append)
    result = answer_with({"mark": "bar", "encoding": encoding}, [["Spain", "12.5"]])
    written, manifest = write_answer(result, wanted, {"question": "q"})
    assert written["queries"][0]["chart_paths"] == []
    [query] = manifest["queries"]
    assert query["chart_error"].startswith("The chart would be empty or wrong")
    assert "'country', 'revenue'" in query["chart_error"]
    assert len(said) == 1
    assert query["chart_error"] in said[0]


def test_folder_of_fonts_is_checked_before_a_request(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    pytest.importorskip("vl_convert")
    missing = str(tmp_path / "fonts")
    with pytest.raises(
        AirflowFailException, match=r"chart_fonts .* is not a folder on this worker"
    ):
        ask(prompt=PROMPT, output_path=str(tmp_path), charts="png", chart_fonts=missing)
    assert platform_sandbox.control.state().requests == []


@pytest.mark.exhaustive
@pytest.mark.parametrize(("charts", "name"), [(["svg"], "query-1.svg"), ([], "query-1.csv")])
def test_file_link_opens_the_chart_or_the_rows(
    charts: list[str],
    name: str,
    platform_sandbox: Sandbox,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if charts:
        pytest.importorskip("vl_convert")
    links = {"file": "https://files.example.com/{path}"}
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT", platform_sandbox.connection_json(web_links=links)
    )
    tries = TaskTries()
    context = tries.context()
    task = PlatformChatOperator(
        task_id="ask",
        prompt="chart revenue by category",
        output_path=str(tmp_path),
        output_format="csv",
        charts=charts,
        deferrable=False,
    )
    task.execute(context)
    link = context["ti"].xcoms["platform_file_link"]
    assert link.startswith("https://files.example.com/")
    assert link.endswith(name)
    PlatformChatOperator(task_id="ask", prompt="total revenue").execute(bare := tries.context())
    assert "platform_file_link" not in bare["ti"].xcoms


def test_asset_event_lists_the_files(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    asset = Asset(name="answers", uri=tmp_path.as_uri())

    class Event:
        extra: dict[str, Any] = {"team": "sales"}  # noqa: RUF012

    class Events:
        def __getitem__(self, one: Any) -> Event:
            assert one == asset
            return Event()

    context = {**TaskTries().context(), "outlet_events": Events()}
    task = PlatformChatOperator(
        task_id="ask",
        prompt=PROMPT,
        output_path=str(tmp_path),
        output_format="csv",
        outlets=[asset],
        deferrable=False,
    )
    result = task.execute(context)
    assert Event.extra["team"] == "sales"
    assert (Event.extra["question"], Event.extra["manifest"]) == (PROMPT, result["manifest"])
    [query] = Event.extra["queries"]
    assert (query["row_count"], query["path"]) == (100, result["queries"][0]["path"])
    assert len(query["sha256"]) == 64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"all_rows": True}, "all_rows needs output_path"),
        ({"charts": ["png"]}, "charts needs output_path"),
        ({"charts": ["gif"], "output_path": "/data"}, "charts must be one of png, svg, html"),
        ({"output_format": "xlsx"}, "output_format must be one of"),
        ({"output_options": {"csv_safe": True}}, "output_options needs output_path, a folder"),
        (
            {"output_path": "/data", "output_options": {"csv_safe": True}},
            "csv_safe is an option of csv, but the file is parquet",
        ),
        (
            {"output_path": "/data", "output_options": {"on_existing": "skip"}},
            "use PlatformQueryOperator",
        ),
        (
            {"output_path": "/data", "output_options": {"partition_by": ["a"]}},
            "use PlatformQueryOperator",
        ),
        ({"all_rows_as": "admin"}, "all_rows_as must be one of user, connection"),
        ({"on_chart_error": "ignore"}, "on_chart_error must be one of warn, fail"),
    ],
)
def test_invalid_output_arguments_are_refused(arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(PlatformInputError, match=said):
        PlatformChatOperator(task_id="ask", prompt="x", **arguments)


def test_output_options_apply_to_the_files_of_queries(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    for compression, name in (("gzip", "query-1.csv.gz"), ("none", "query-1.csv")):
        result = ask(
            output_path=str(tmp_path),
            output_format="csv",
            output_options={"compression": compression, "delimiter": ";", "csv_safe": True},
            deferrable=False,
        )
        manifest_of(result)
        [query] = result["queries"]
        assert Path(query["path"]).name == name
        data = Path(query["path"]).read_bytes()
        text = gzip.decompress(data) if compression == "gzip" else data
        assert text.decode().splitlines()[0].count('";"') == len(query["columns"]) - 1


@pytest.mark.parametrize(("rows", "folder"), [("values", True), ("texts", False)])
def test_rows_of_a_chat_have_the_types_of_their_columns(
    folder: bool, rows: Any, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    platform_sandbox.control.set(chat_rows=rows)
    path = {"output_path": str(tmp_path), "output_format": "csv"} if folder else {}
    types = {"fee": "double", "paid_at": "date", "order_id": "string"}
    [query] = ask(types=types, deferrable=False, **path)["queries"]
    kinds = {column["name"]: column["type"] for column in query["columns"]}
    assert kinds == {
        "id": "Int64",
        "order_id": "String",
        "fee": "Double",
        "paid_at": "String",
        "settled": "Boolean",
    }
    assert query["columns"][3]["note"].startswith("types= asks for Date, but row 1 has")
    assert query["rows"][0] == [1, "1", 11.21, "2025-01-26T01:30:00.000", True]
    if folder:
        lines = Path(query["path"]).read_text().splitlines()
        assert lines[1] == '1,"1",11.21,"2025-01-26T01:30:00.000",true'


def test_types_apply_to_all_rows_of_a_chat(
    platform_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    as_service(platform_sandbox, monkeypatch)
    files = {"output_path": str(tmp_path), "all_rows": True, "types": {"paid_at": "timestamp"}}
    result = ask(**files)
    [query] = result["queries"]
    assert str(pq.read_table(query["path"]).schema.field("paid_at").type) == "timestamp[us]"
    assert [column["type"] for column in query["columns"]] == [
        *("Int64", "Int64", "Decimal", "Timestamp", "Boolean")
    ]
    assert manifest_of(result)["queries"][0]["columns"] == query["columns"]


@pytest.mark.usefixtures("platform_sandbox")
def test_type_of_a_column_that_no_query_has_is_a_warning(
    tmp_path: Path, caplog: Any, capfd: Any
) -> None:
    for path in ({}, {"output_path": str(tmp_path)}):
        ask(types={"paid": "timestamp"}, **path)
        said = capfd.readouterr().out + caplog.text
        assert "types contains the column 'paid', which no query of the answer has." in said
        caplog.clear()
