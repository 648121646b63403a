"""Queries over the data API: both modes give the same results, errors and files."""

from __future__ import annotations

import asyncio
import csv
import json
import threading
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG, Asset

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import (
    PlatformDeadlineError,
    PlatformInputError,
    PlatformInterruptedError,
    PlatformTransportError,
    ResultEmptyError,
)
from airflow_provider_platform.decorators.query import PlatformSqlDecoratedOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.sandbox.state.warehouse import Warehouse
from tests.support.modes import MODES, in_both_modes, is_deferred
from tests.support.task_context import TaskTries, deferral
from tests.support.wire.http_server import answer, serving

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.server import Sandbox

PAYMENTS = "SELECT id, paid_on, paid_at, fee, settled, note FROM payments ORDER BY id"
FORMATS = ("parquet", "csv", "jsonl")
KINDS = ["Int64", "Date", "Timestamp", "Decimal", "Boolean", "String"]


@pytest.fixture
def query(request: pytest.FixtureRequest, platform_sandbox: Sandbox) -> Any:
    """Run a query, on the worker unless the test asks for both modes; returns the result."""
    deferrable = is_deferred(request)

    def run(sql: str, **arguments: Any) -> Any:
        return ended(PlatformQueryOperator, sql=sql, deferrable=deferrable, **arguments)

    return run


def ended(operator: type[Any], *, outlet_events: Any = None, **arguments: Any) -> Any:
    """Run an operator to its end, as a worker and a triggerer would."""
    context = {**TaskTries().context(), "outlet_events": outlet_events}
    task = operator(task_id="query", **arguments)
    if not arguments["deferrable"]:
        return task.execute(context)
    deferred = deferral(task.execute, context)
    path, stored = deferred.trigger.serialize()
    assert path == "airflow_provider_platform.triggers.PlatformQueryTrigger"
    trigger = type(deferred.trigger)(**json.loads(json.dumps(stored)))

    async def only_event() -> Any:
        [event] = [event async for event in trigger.run()]
        return json.loads(json.dumps(event.payload))

    event = asyncio.run(only_event())
    return operator(task_id="query", **arguments).execute_complete(
        context, event, **(deferred.kwargs or {})
    )


def queries(sandbox: Sandbox) -> int:
    return sum("cubesql" in request.path for request in sandbox.control.state().requests)


@pytest.mark.parametrize("shape", ["core", "words"])
def test_rows_go_to_xcom_with_their_types(
    shape: str, query: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.set(column_types=shape)
    types = {"paid_at": "timestamp"} if shape == "core" else "service"
    result = query(PAYMENTS, max_rows=2, types=types)
    assert [column["type"] for column in result["columns"]] == KINDS
    assert result["rows"][0] == [
        *(1, "2025-01-26", "2025-01-26T01:30:00.000", "11.21", True, '3 pieces, "as ordered"')
    ]
    assert len(result["rows"]) == 2
    assert (result["row_count"], result["truncated"]) == (480, False)
    assert (result["path"], result["format"], result["bytes"]) == (None, None, None)


def test_query_writes_a_parquet_file_with_types(query: Any, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "new" / "payments.parquet"
    result = query(PAYMENTS, output_path=str(path), types={"paid_at": "timestamp"})
    table = pq.read_table(path)
    assert table.num_rows == result["row_count"] == 480
    assert result["path"] == str(path)
    assert result["bytes"] == path.stat().st_size
    assert table.slice(0, 1).to_pylist() == [
        {
            "id": 1,
            "paid_on": date(2025, 1, 26),
            "paid_at": datetime(2025, 1, 26, 1, 30),  # noqa: DTZ001 - as the service gives it
            "fee": Decimal("11.21"),
            "settled": True,
            "note": '3 pieces, "as ordered"',
        }
    ]
    assert table["fee"].null_count == 9
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def test_file_xcom_and_asset_event_name_colliding_columns_alike(
    query: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    duckdb = pytest.importorskip("duckdb")
    pytest.importorskip("pyarrow")
    sql = 'SELECT id AS "Total", amount AS total, id AS total, id AS total_2, id AS "" FROM orders'
    asset = Asset(name="rows", uri=tmp_path.as_uri())
    event = SimpleNamespace(extra={})

    class Events:
        def __getitem__(self, outlet: Any) -> Any:
            assert outlet == asset
            return event

    path = tmp_path / "rows.parquet"
    result = query(
        f"{sql} ORDER BY id LIMIT 3",
        output_path=str(path),
        outlets=[asset],
        outlet_events=Events(),
    )
    names = ["Total", "total_3", "total_4", "total_2", "column_5"]
    assert [column["name"] for column in result["columns"]] == names
    assert event.extra["columns"] == result["columns"]
    assert duckdb.sql(f"FROM '{path}'").columns == names
    assert "column 2 'total' is now 'total_3'" in capfd.readouterr().out + caplog.text
    without_file = query(sql, max_rows=1)
    assert [column["name"] for column in without_file["columns"]] == names


MIXED = """
SELECT id, CASE WHEN id = 301 THEN 'n/a' ELSE amount END AS amount,
       CASE WHEN id = 480 THEN 1.5 ELSE quantity END AS quantity
FROM orders ORDER BY id
"""


def test_late_value_that_does_not_fit_makes_its_column_text(
    query: Any, tmp_path: Path, caplog: Any, capfd: Any
) -> None:
    path = tmp_path / "orders.csv"
    result = query(MIXED, output_path=str(path), max_rows=480)
    assert [column["type"] for column in result["columns"]] == ["Int64", "String", "Decimal"]
    note = result["columns"][1]["note"]
    assert note == "the service declares Double, but row 301 has 'n/a'"
    assert f"Column 'amount' is written as strings: {note}." in capfd.readouterr().out + caplog.text
    assert {type(row[1]) for row in result["rows"]} == {str}
    assert (result["rows"][300][1], result["rows"][479][2]) == ("n/a", "1.5")
    rows = [[int(row[0]), row[1]] for row in list(csv.reader(path.open(newline="")))[1:]]
    assert rows == [row[:2] for row in result["rows"]]


def test_warning_that_quotes_a_value_hides_a_secret_in_it(
    query: Any, platform_sandbox: Sandbox, capfd: Any, caplog: pytest.LogCaptureFixture
) -> None:
    key = platform_sandbox.chat_api_key
    result = query(MIXED.replace("n/a", key))
    logged = capfd.readouterr().out + caplog.text
    assert "is written as strings" in logged
    assert key not in logged + str(result)


def test_types_may_be_a_rendered_json_text(query: Any) -> None:
    result = query(PAYMENTS, types='{"paid_at": "timestamp", "*": "text"}', max_rows=1)
    kinds = [column["type"] for column in result["columns"]]
    assert kinds == ["Int64", "Date", "Timestamp", "Int32", "Boolean", "String"]
    assert result["rows"][0][0] == "1"


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("connection", "arguments", "sql", "truncated"),
    [
        ({"max_row_limit": 5000}, {}, "LIMIT 6000", False),
        ({"max_row_limit": 5000}, {"max_row_limit": "3000"}, "LIMIT 6000", True),
        ({"default_row_limit": 2500}, {}, "", False),
        ({"default_row_limit": 2500}, {"default_row_limit": 2000}, "", True),
    ],
)
def test_cut_at_a_deployments_own_limits_is_reported(
    connection: dict[str, Any],
    arguments: dict[str, Any],
    sql: str,
    truncated: bool,
    query: Any,
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The deployment gives 2,000 rows without a LIMIT and 3,000 with one."""
    platform_sandbox.control.set(data_default_rows=2000, data_max_rows=3000)
    stored = platform_sandbox.connection_json(**connection)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", stored)
    result = query(f"SELECT id FROM events {sql}", max_rows=0, **arguments)
    assert (result["row_count"], result["truncated"]) == (3000 if sql else 2000, truncated)


ORDERS = "SELECT id, customer_id, status FROM orders"


@pytest.fixture
def sent_queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The SQL of each query that the warehouse has run, from now on."""
    sent: list[str] = []
    read = Warehouse.read

    def noted(self: Warehouse, sql: str, *, limit: int | None) -> Any:
        sent.append(sql)
        return read(self, sql, limit=limit)

    monkeypatch.setattr(Warehouse, "read", noted)
    return sent


@in_both_modes("query")
def test_result_in_pages_is_the_whole_result(
    query: Any, platform_sandbox: Sandbox, sent_queries: list[str], tmp_path: Path
) -> None:
    """The deployment cuts pages at 70 rows, which nobody knows."""
    whole, paged = (tmp_path / name for name in ("whole.csv", "paged.csv"))
    query(f"{ORDERS} ORDER BY id", output_path=str(whole))
    platform_sandbox.control.set(data_max_rows=70, data_default_rows=50)
    sent_queries.clear()
    result = query(ORDERS, page_by=["id"], page_rows=100, output_path=str(paged))
    assert (result["row_count"], result["truncated"], len(result["rows"])) == (480, False, 100)
    assert paged.read_bytes() == whole.read_bytes()
    pages = [*dict.fromkeys(sent_queries)]
    assert pages[0] == f"{ORDERS} ORDER BY id LIMIT 100"
    assert "(id >= 70 OR id IS NULL)" in pages[1]
    assert len(pages) == 8  # 70 rows, 69 new ones on each of the others, none on the last one


def test_row_limit_that_is_known_is_the_size_of_a_page(
    query: Any,
    platform_sandbox: Sandbox,
    sent_queries: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    platform_sandbox.control.set(data_max_rows=300)
    stored = platform_sandbox.connection_json(max_row_limit=300)
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", stored)
    assert query(ORDERS, page_by=["id"])["row_count"] == 480
    assert query(ORDERS, page_by=["id"], page_rows=900)["row_count"] == 480
    assert {sql.split()[-1] for sql in sent_queries} == {"300"}


@in_both_modes("query")
@pytest.mark.parametrize(
    ("sql", "reason"),
    [
        (
            "SELECT customer_id, status FROM orders WHERE id < 99",
            "The keys must be unique for each row",
        ),
        ("SELECT * FROM products", "no such column: customer_id"),
    ],
)
def test_keys_that_do_not_name_each_row_fail_without_a_file(
    sql: str, reason: str, query: Any, tmp_path: Path
) -> None:
    paged = {"page_by": ["customer_id"], "page_rows": 90}
    with pytest.raises(AirflowFailException, match=reason):
        query(sql, output_path=str(tmp_path / "rows.csv"), **paged)
    assert list(tmp_path.iterdir()) == []


def test_decorated_function_gives_sql_that_is_read_in_pages(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(data_max_rows=70)

    def in_pages(function: Any) -> Any:
        return PlatformSqlDecoratedOperator(
            task_id="rows", python_callable=function, page_by=["id"], op_args=[], op_kwargs={}
        ).execute(TaskTries().context())

    assert in_pages(lambda: ORDERS)["row_count"] == 480
    with pytest.raises(AirflowFailException, match="the query has LIMIT"):
        in_pages(lambda: f"{ORDERS} LIMIT 5")


@contextmanager
def served(monkeypatch: pytest.MonkeyPatch, *responses: Any, **extra: Any) -> Iterator[None]:
    """Answer each query with one of these responses, after a token."""
    token = answer(body=b'{"cubeApiToken": "data-token"}')
    with serving(*(one for response in responses for one in (token, response))) as server:
        extra = {"deployment_id": 7, "data_api_url": server.url, **extra}
        connection = {"conn_type": "platform", "host": server.url, "password": "t", "extra": extra}
        monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(connection))
        yield


def page(*numbers: int, end: str | None = None) -> Any:
    """An answer with these rows, that says where it ends; with `end`, this header in its place."""
    columns = b'{"schema":[{"name":"n","column_type":"Int64"}]}\n'
    body = columns + json.dumps({"data": [[str(number)] for number in numbers]}).encode() + b"\n"
    if end is None:
        return answer(body=body)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n{end}\r\n\r\n".encode()
    return lambda exchange: exchange.send(head + body)


OPEN_ENDED = "Connection: close"
"""Neither a length nor a last chunk shows that these were all rows."""


@pytest.mark.parametrize("end", [None, OPEN_ENDED])
def test_rows_that_a_page_loses_at_its_end_come_with_the_next_page(
    end: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = [page(1, 2, end=OPEN_ENDED), page(2, 3), page(3, end=end)]
    with served(monkeypatch, *pages):
        task = PlatformQueryOperator(task_id="query", sql="SELECT n FROM t", page_by=["n"])
        result = task.execute(TaskTries().context())
    assert (result["rows"], result["truncated"]) == ([[1], [2], [3]], end is not None)


def broken_page(*numbers: int) -> Any:
    """An answer with these rows that promises more bytes than come."""
    return page(*numbers, end="Content-Length: 9999")


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("pages", "rows"),
    [
        ([broken_page(1, 2), page(2, 3), broken_page(3, 4), page(4)], [1, 2, 3, 4]),
        ([page(1, 2), broken_page(2)], None),
        ([broken_page(1, 2), broken_page(2, 3), broken_page(3, 4)], None),
    ],
)
def test_broken_page_continues_from_its_last_row(
    pages: list[Any], rows: list[int] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it brought no new row, or three pages in a row break off."""
    path = tmp_path / "rows.csv"
    with served(monkeypatch, *pages, max_attempts=3):
        task = PlatformQueryOperator(
            task_id="query", sql="SELECT n FROM t", page_by=["n"], output_path=str(path)
        )
        if rows is None:
            with pytest.raises(PlatformTransportError):
                task.execute(TaskTries().context())
            assert not path.exists()
        else:
            assert task.execute(TaskTries().context())["rows"] == [[number] for number in rows]


WIDE = "SELECT id, hex(zeroblob(1000)) AS wide FROM orders ORDER BY id"


@pytest.mark.parametrize(
    ("in_file", "arguments", "rows"),
    [
        (False, {}, 100),
        (False, {"max_rows": 480}, 130),
        (True, {}, 8),
        (True, {"max_xcom_bytes": 100_000}, 49),
        (True, {"max_xcom_bytes": "10000", "max_rows": 3}, 3),
        (False, {"max_xcom_bytes": 0}, 0),
    ],
)
def test_rows_in_xcom_are_bounded_in_bytes(
    in_file: bool,
    arguments: dict[str, Any],
    rows: int,
    query: Any,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A row takes about 2,010 bytes."""
    path = tmp_path / "rows.csv"
    result = query(WIDE, **({"output_path": str(path)} if in_file else {}), **arguments)
    assert (len(result["rows"]), result["row_count"], result["truncated"]) == (rows, 480, False)
    most = int(arguments.get("max_xcom_bytes", 16_384 if in_file else 262_144))
    assert len(json.dumps(result["rows"])) <= max(most, 2)
    said = f"XCom has only the first {rows} of 480 rows" in capfd.readouterr().out + caplog.text
    assert said == (rows < int(arguments.get("max_rows", 100)))
    if in_file:
        assert len(path.read_text().splitlines()) == 481


@pytest.mark.parametrize("on_truncated", ["warn", "fail"])
def test_rows_that_end_with_the_connection_count_as_truncated(
    on_truncated: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "n.csv"
    with served(monkeypatch, page(1, 2, end=OPEN_ENDED)):
        task = PlatformQueryOperator(
            task_id="query",
            sql="SELECT n FROM t",
            output_path=str(path),
            on_truncated=on_truncated,
        )
        if on_truncated == "fail":
            with pytest.raises(AirflowFailException, match="closed after 2 rows"):
                task.execute(TaskTries().context())
            assert not path.exists()
        else:
            result = task.execute(TaskTries().context())
            assert (result["row_count"], result["truncated"]) == (2, True)
            assert path.exists()


@in_both_modes("query")
def test_deadline_of_a_query_that_the_service_puts_off_says_what_the_service_said(
    query: Any, platform_sandbox: Sandbox
) -> None:
    fault = {"path": "/cubesql$", "status": 429, "retry_after": 3600, "count": 9}
    platform_sandbox.control.fault("status", **fault)
    with pytest.raises(PlatformDeadlineError, match=r"429.*wait 3600 seconds") as caught:
        query("SELECT 1", timeout=60)
    assert "raise timeout" not in str(caught.value)


@in_both_modes("query")
@pytest.mark.exhaustive
def test_query_limited_by_its_execution_timeout_is_advised_to_raise_that(
    query: Any, platform_sandbox: Sandbox
) -> None:
    platform_sandbox.control.fault("continue_wait", api="data", count=None)
    with pytest.raises(PlatformDeadlineError, match="or the task's execution_timeout if that is"):
        query("SELECT 1", timeout=600, execution_timeout=timedelta(seconds=2))


def test_template_that_renders_a_contradiction_fails_before_anything_is_sent(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    task = PlatformQueryOperator(
        task_id="query",
        sql="SELECT 1",
        output_path=f"{tmp_path}/{{{{ ending }}}}",
        output_format="csv",
        output_options={"delimiter": "{{ delimiter }}"},
        deferrable=False,
    )
    assert {"output_path", "output_options"} <= set(task.template_fields)
    context = TaskTries().context()
    task.render_template_fields(context | {"ending": "rows.parquet", "delimiter": ";"})
    assert task.output_options == {"delimiter": ";"}
    with pytest.raises(AirflowFailException, match="but output_format is csv"):
        task.execute(context)
    assert queries(platform_sandbox) == 0


@pytest.fixture
def orders(platform_sandbox: Sandbox, tmp_path: Path) -> Any:
    """Run a query in a task run; returns the result. The path is a file, or with `folder` one."""

    def run(run_id: str = "first", *, sql: str = "SELECT 1 AS a, 2 AS b", **arguments: Any) -> Any:
        options = arguments.pop("options", {})
        task = PlatformQueryOperator(
            task_id="query",
            sql=sql,
            output_path=arguments.pop("path", str(tmp_path / "orders.csv")),
            output_options=options,
            deferrable=False,
            **arguments,
        )
        context = TaskTries().context()
        context["ti"].run_id = run_id
        return task.execute(context)

    return run


FOLDER = {"partition_by": ["a"]}


@pytest.mark.parametrize("layout", [{}, FOLDER], ids=["file", "folder"])
@pytest.mark.parametrize("on_existing", ["fail", "skip"])
def test_existing_files_are_kept_without_running_the_query(
    on_existing: str, layout: dict[str, Any], orders: Any, platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / ("orders" if layout else "orders.csv")
    given = {"path": str(path), "output_format": "csv"}
    options = {**layout, "on_existing": on_existing}
    orders(options=options, **given)
    before = {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}
    asked = queries(platform_sandbox)
    error = AirflowFailException if on_existing == "fail" else AirflowSkipException
    with pytest.raises(error, match=f"already (exists|contains files).*{path}"):
        orders("second", sql="SELECT 5 AS a, 6 AS b", options=options, **given)
    assert queries(platform_sandbox) == asked
    assert {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()} == before


@pytest.mark.parametrize("on_existing", ["fail", "skip"])
def test_retry_overwrites_its_own_files_of_a_folder_whatever_on_existing_says(
    on_existing: str, orders: Any, tmp_path: Path
) -> None:
    options = {**FOLDER, "on_existing": on_existing}
    for _ in range(2):
        result = orders(path=str(tmp_path / "orders"), output_format="csv", options=options)
        assert (result["row_count"], result["file_count"]) == (1, 1)


def test_any_file_in_a_folder_counts_as_existing(orders: Any, tmp_path: Path) -> None:
    options = {**FOLDER, "on_existing": "skip"}
    (tmp_path / "orders").mkdir()
    (tmp_path / "orders" / "_SUCCESS").touch()
    orders(path=str(tmp_path / "orders"), options=options)
    (tmp_path / "orders" / "by_hand.parquet").touch()
    with pytest.raises(AirflowSkipException):
        orders(path=str(tmp_path / "orders"), options=options)


def test_file_that_appears_while_the_query_runs_is_kept(
    orders: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from airflow_provider_platform.resources.sql.response import SqlRows

    real = SqlRows.pieces

    def pieces(rows: SqlRows) -> Any:
        yield from real(rows)
        (tmp_path / "orders.csv").write_text("another task's")

    monkeypatch.setattr(SqlRows, "pieces", pieces)
    with pytest.raises(AirflowFailException, match="already exists"):
        orders(options={"on_existing": "fail"})
    assert (tmp_path / "orders.csv").read_text() == "another task's"


@pytest.mark.parametrize("layout", [{}, FOLDER], ids=["file", "folder"])
@pytest.mark.parametrize("on_empty", ["write", "skip", "fail"])
def test_query_without_rows_is_written_or_skipped(
    on_empty: str, layout: dict[str, Any], query: Any, tmp_path: Path
) -> None:
    path = tmp_path / ("orders" if layout else "orders.csv")
    given: dict[str, Any] = {
        "sql": "SELECT id AS a, id AS b FROM orders WHERE id < 0",
        "output_path": str(path),
        "output_format": "csv",
        "output_options": {**layout, "on_empty": on_empty},
    }
    if on_empty == "write":
        result = query(**given)
        assert (result["row_count"], result["path"]) == (0, str(path))
        return
    error = ResultEmptyError if on_empty == "fail" else AirflowSkipException
    with pytest.raises(error, match="the result has no rows"):
        query(**given)
    assert list(tmp_path.iterdir()) == []


def test_empty_result_that_may_have_been_cut_is_not_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with served(monkeypatch, page(end=OPEN_ENDED)):
        task = PlatformQueryOperator(
            task_id="query",
            sql="SELECT n FROM t",
            output_path=str(tmp_path / "n.csv"),
            output_options={"on_empty": "skip"},
            on_truncated="fail",
            deferrable=False,
        )
        with pytest.raises(AirflowFailException, match="closed after 0 rows"):
            task.execute(TaskTries().context())
    assert list(tmp_path.iterdir()) == []


def test_several_files_are_listed_in_the_result(query: Any, tmp_path: Path) -> None:
    result = query(
        "SELECT id, country, name FROM customers",
        output_path=f"{tmp_path}/customers/",
        output_format="jsonl",
        output_options={"partition_by": ["country"], "compression": "gzip"},
        max_rows=2,
    )
    assert (result["path"], result["format"]) == (f"{tmp_path}/customers", "jsonl")
    assert [column["name"] for column in result["columns"]] == ["id", "country", "name"]
    assert len(result["rows"]) == 2
    assert len(result["files"]) == result["file_count"] > 3
    assert sum(file["rows"] for file in result["files"]) == result["row_count"]
    assert sum(file["bytes"] for file in result["files"]) == result["bytes"]
    for file in result["files"]:
        assert "/country=" in file["path"]
        assert Path(file["path"]).stat().st_size == file["bytes"]
    assert json.loads(json.dumps(result)) == result


def test_folder_without_partitions_has_an_empty_list_of_files(orders: Any, tmp_path: Path) -> None:
    result = orders(
        sql="SELECT id AS a, month AS b FROM orders WHERE id < 0",
        path=f"{tmp_path}/orders",
        output_format="csv",
        options=FOLDER,
    )
    assert (result["files"], result["file_count"], result["bytes"]) == ([], 0, 0)


def test_result_lists_the_first_hundred_files(orders: Any, tmp_path: Path) -> None:
    result = orders(
        sql="SELECT id FROM orders LIMIT 120",
        path=f"{tmp_path}/customers",
        output_format="csv",
        options={"max_rows_per_file": 1},
    )
    assert (len(result["files"]), result["file_count"]) == (100, 120)


def test_decorator_takes_the_options_of_the_operator(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    path = tmp_path / "one.csv"
    for deferrable in MODES.values():
        ended(
            PlatformSqlDecoratedOperator,
            python_callable=lambda: "SELECT 1 AS a, 2 AS b",
            output_path=str(path),
            output_options={"delimiter": ";", "encoding": "utf-8-sig"},
            deferrable=deferrable,
        )
        assert path.read_bytes() == b'\xef\xbb\xbf"a";"b"\n1;2\n'


def test_relative_path_is_below_the_working_folder(
    query: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = query("SELECT 1 AS one", output_path="out/one.csv", output_format="csv")
    assert (tmp_path / "out" / "one.csv").exists()
    assert result["path"].endswith("out/one.csv")


@in_both_modes("query")
def test_query_sends_branch_time_zone_and_cache(query: Any, platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.open_branch("feature/a")
    given = {"branch_name": "feature/a", "timezone": "Europe/Paris", "cache": "no-cache"}
    assert query("SELECT 1", **given)["row_count"] == 1
    before = queries(platform_sandbox)
    with pytest.raises(AirflowFailException, match="Bad branch"):
        query("SELECT 1", branch_name="nowhere")
    assert queries(platform_sandbox) == before + 1, "the worker asks again what the trigger asked"


@in_both_modes("query")
def test_parameters_become_literals(query: Any) -> None:
    sql = (
        "SELECT id FROM orders WHERE status = %(status)s AND id IN %(ids)s AND month LIKE '2025%%'"
    )
    given = {"status": "delivered", "ids": [1, 2, 3], "not used": None}
    for parameters in (given, json.dumps(given)):
        assert query(sql, parameters=parameters)["rows"] == [[1], [2], [3]]


def test_rendered_parameters_that_do_not_fit_are_refused_before_anything_is_sent(
    query: Any, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException, match=r"parameters have no 'b'.*\(task 'query', "):
        query("SELECT %(b)s {{ none }}", parameters={"a": 1})
    assert queries(platform_sandbox) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"output_path": "{folder}"}, "this is a folder, not a file"),
        ({"output_path": "~/rows.csv"}, "which is not expanded"),
        ({"output_path": "nowhere://rows.csv"}, "output_path cannot be written to"),
        ({"output_path": "s3://bucket/rows.csv"}, "install apache-airflow-providers-amazon[s3fs]"),
    ],
)
def test_unwritable_path_is_reported_before_anything_is_sent(
    arguments: dict[str, str],
    said: str,
    query: Any,
    platform_sandbox: Sandbox,
    tmp_path: Path,
) -> None:
    given = {name: value.format(folder=tmp_path) for name, value in arguments.items()}
    with pytest.raises(AirflowFailException, match="Nothing was sent: output_path") as caught:
        query("SELECT 1", output_format="csv", **given)
    assert said in str(caught.value)
    assert queries(platform_sandbox) == 0


def test_both_modes_give_equal_results_and_files(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    found = {}
    for name, deferrable in MODES.items():
        platform_sandbox.control.set(data_chunk_rows=7 if deferrable else 500)
        results, files = [], []
        for kind in FORMATS:
            path = tmp_path / f"rows.{kind}"
            arguments = {"output_path": str(path), "output_format": kind}
            results.append(
                ended(PlatformQueryOperator, sql=PAYMENTS, deferrable=deferrable, **arguments)
            )
            files.append(path.read_bytes())
        found[name] = (results, files)
    assert found["on the worker"] == found["deferred"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sql": ""}, "sql must be a non-empty string"),
        ({"output_path": "s3://bucket/folder/"}, "must be a file, not a folder"),
        ({"output_format": "xlsx"}, "must be one of parquet, csv, jsonl"),
        ({"output_options": {"csv_safe": True}}, "output_options needs output_path"),
        ({"types": "mine"}, "must be one of service, strict, text"),
        ({"on_truncated": "ignore"}, "must be one of warn, fail"),
        ({"max_row_limit": 0}, "max_row_limit must be at least 1"),
        ({"page_by": [5]}, "page_by must be a list of names"),
        ({"page_by": ["id"], "page_rows": 1}, "page_rows must be at least 2"),
        ({"page_rows": 100}, "page_rows needs page_by"),
        ({"default_row_limit": "many"}, "default_row_limit must be a number"),
        ({"cache": "always"}, "must be one of stale-if-slow"),
        ({"max_rows": -1}, "must be at least 0"),
        ({"max_xcom_bytes": -1}, "max_xcom_bytes must be at least 0"),
        ({"sql": "SELECT %s", "parameters": []}, "the SQL has more placeholders than 0 parameters"),
        ({"parameters": 7}, "parameters must be a list (for %s) or a mapping"),
    ],
)
def test_bad_arguments_are_reported_when_the_dag_is_parsed(
    arguments: dict[str, Any], said: str
) -> None:
    with pytest.raises(
        PlatformInputError, match=r"\(task 'query', PlatformQueryOperator\)$"
    ) as error:
        PlatformQueryOperator(task_id="query", **{"sql": "SELECT 1", **arguments})
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sql": "DELETE FROM orders"}, "sql must be one query; it begins with DELETE"),
        ({"sql": f"{ORDERS} ORDER BY id", "page_by": ["id"]}, "the query has ORDER BY. Remove it"),
    ],
)
def test_sql_that_is_not_one_query_or_has_no_pages_is_refused_before_anything_is_sent(
    arguments: dict[str, Any], said: str, platform_sandbox: Sandbox
) -> None:
    task = PlatformQueryOperator(task_id="query", **arguments)
    with pytest.raises(AirflowFailException, match=said):
        task.execute(TaskTries().context())
    assert platform_sandbox.control.state().requests == []


def test_query_that_cannot_be_parsed_is_sent_as_it_is(platform_sandbox: Sandbox) -> None:
    """SQLite reads names in backticks, PostgreSQL does not."""
    task = PlatformQueryOperator(task_id="query", sql="SELECT `id` FROM orders LIMIT 3")
    result = task.execute(TaskTries().context())
    assert (result["row_count"], result["truncated"]) == (3, False)


def test_a_file_of_sql_is_read_when_the_dag_is_parsed(tmp_path: Path) -> None:
    (tmp_path / "orders.sql").write_text("SELECT id FROM orders WHERE id = %(id)s")
    with DAG(dag_id="files", template_searchpath=str(tmp_path)):
        task = PlatformQueryOperator(task_id="query", sql="orders.sql", parameters={"id": 1})
    task.resolve_template_files()
    assert task.sql == "SELECT id FROM orders WHERE id = %(id)s"


@pytest.mark.parametrize("deferrable", MODES.values(), ids=MODES.keys())
def test_the_decorated_function_is_called_once_for_a_try(
    deferrable: bool, platform_sandbox: Sandbox
) -> None:
    called = []

    def orders() -> str:
        called.append(1)
        return f"SELECT {len(called)} AS calls"

    result = ended(
        PlatformSqlDecoratedOperator, python_callable=orders, op_args=(), deferrable=deferrable
    )
    assert (result["rows"], called) == ([[1]], [1])


def test_decorated_function_must_return_a_query(platform_sandbox: Sandbox) -> None:
    for returned, said in (("DROP TABLE a", "it begins with DROP"), (None, "must return the SQL")):
        given = {"python_callable": lambda returned=returned: returned, "op_args": ()}
        with pytest.raises(AirflowFailException, match=said):
            ended(PlatformSqlDecoratedOperator, deferrable=False, **given)
    assert queries(platform_sandbox) == 0


def test_an_event_of_another_wait_is_ignored(platform_sandbox: Sandbox) -> None:
    context = TaskTries().context()
    task = PlatformQueryOperator(task_id="query", sql="SELECT 1", deferrable=True)
    first = deferral(task.execute, context)
    other = {"status": "success", "run": {**first.kwargs["run"], "wait_id": "other"}}
    again = deferral(task.execute_complete, context, other, **first.kwargs)
    assert again.trigger.serialize()[0] == first.trigger.serialize()[0]


@in_both_modes("query")
def test_no_secret_that_a_row_quotes_is_in_the_result(
    query: Any, platform_sandbox: Sandbox
) -> None:
    token = platform_sandbox.management_token
    result = query(f"SELECT '{token}' AS said")
    assert result["rows"] == [["***"]]
    assert token not in json.dumps(result)


def test_a_task_that_is_ended_leaves_no_file(platform_sandbox: Sandbox, tmp_path: Path) -> None:
    platform_sandbox.control.fault("silence", api="data", after=2)
    path = tmp_path / "rows.csv"
    task = PlatformQueryOperator(
        task_id="query", sql=PAYMENTS, output_path=str(path), output_format="csv", deferrable=False
    )
    platform_sandbox.control.set(data_chunk_rows=10)

    def end() -> None:
        platform_sandbox.control.wait_until(lambda state: "silence" in str(state.requests))
        task.on_kill()

    thread = threading.Thread(target=end)
    thread.start()
    with pytest.raises(PlatformInterruptedError):
        task.execute(TaskTries().context())
    thread.join()
    assert list(tmp_path.iterdir()) == []


def test_the_log_shows_the_first_rows_and_the_file(
    platform_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "orders.csv"
    task = PlatformQueryOperator(
        task_id="query",
        sql="SELECT id, '::group::forged' AS note FROM orders",
        output_path=str(path),
        output_format="csv",
        deferrable=False,
    )
    lines: list[str] = []

    class Log:
        def warning(self, message: str, *args: object) -> None:
            pass

        def info(self, message: str, *args: object) -> None:
            lines.append(message % args)

    monkeypatch.setattr(type(task), "log", Log())
    task.execute(TaskTries().context())
    assert lines[0].startswith("Wrote 480 rows (")
    assert (lines[1], lines[-1]) == ("::group::Rows", "::endgroup::")
    assert f"Rows: {path}" in lines
    assert "::group::forged" not in "".join(lines)
