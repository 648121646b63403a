"""Files in an object store: each is complete or absent, and no upload is left behind."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_platform._airflow import AirflowFailException, AirflowSkipException
from airflow_provider_platform.client.errors import ResultWriteError
from airflow_provider_platform.files import formats
from airflow_provider_platform.files.whole_files import PART_BYTES, whole_file, write_whole
from airflow_provider_platform.operators._output_arguments import storage_path
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from tests.storage.conftest import BUCKET
from tests.support.storage.refusing_proxy import Refusal
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.support.storage.breaking_proxy import BreakingProxy
    from tests.support.storage.refusing_proxy import RefusingProxy

MB = 1 << 20
PART = PART_BYTES


def query(sql: str, path: str, **arguments: Any) -> dict[str, Any]:
    task = PlatformQueryOperator(
        task_id="query", sql=sql, output_path=path, deferrable=False, **arguments
    )
    return task.execute(TaskTries().context())


def answer(folder: str, **arguments: Any) -> dict[str, Any]:
    task = PlatformChatOperator(
        task_id="ask",
        prompt="revenue by country",
        output_path=folder,
        output_format="csv",
        deferrable=False,
        **arguments,
    )
    return task.execute(TaskTries().context())


def export(path: str) -> dict[str, Any]:
    task = PlatformExportDashboardOperator(
        task_id="export", dashboard_id=501, output_path=path, deferrable=False
    )
    return task.execute(TaskTries().context())


def write_in_parts(path: Any, parts: int) -> None:
    with whole_file(path) as file:
        for _ in range(parts):
            file.write(bytes(PART))


def keys(s3: Any) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def uploads(s3: Any) -> list[Any]:
    return list(s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))


def test_query_writes_rows_to_the_store(s3: Any, platform_sandbox: Sandbox) -> None:
    result = query("SELECT * FROM payments", f"s3://s3@{BUCKET}/sales/payments.parquet")
    assert keys(s3) == ["sales/payments.parquet"]
    body = s3.get_object(Bucket=BUCKET, Key="sales/payments.parquet")["Body"].read()
    assert len(body) == result["bytes"]
    assert pq.read_table(io.BytesIO(body)).num_rows == 480


def test_chat_writes_its_answer_to_the_store(s3: Any, platform_sandbox: Sandbox) -> None:
    task = PlatformChatOperator(
        task_id="ask",
        prompt="revenue by country",
        output_path=f"s3://s3@{BUCKET}/answers",
        output_format="csv",
        deferrable=False,
    )
    for _ in range(2):
        result = task.execute(TaskTries().context())
        folder = result["folder"].partition(f"{BUCKET}/")[2].rstrip("/")
        assert keys(s3) == [
            f"{folder}/{name}" for name in ("answer.md", "manifest.json", "query-1.csv")
        ]
    manifest = s3.get_object(Bucket=BUCKET, Key=f"{folder}/manifest.json")
    assert json.loads(manifest["Body"].read())["message_id"] == result["message_id"]


def test_a_multipart_upload_is_completed(s3: Any) -> None:
    path = storage_path("output_path", f"s3://s3@{BUCKET}/large")
    with whole_file(path) as file:
        for number in range(3):
            file.write(bytes([number]) * (PART // 2))
            assert keys(s3) == []
    assert s3.head_object(Bucket=BUCKET, Key="large")["ContentLength"] == file.bytes
    assert uploads(s3) == []


def test_a_multipart_upload_is_aborted(s3: Any) -> None:
    path = storage_path("output_path", f"s3://s3@{BUCKET}/large")

    def ended_half_way() -> None:
        with whole_file(path) as file:
            for _ in range(3):
                file.write(bytes(PART // 2))
            assert len(uploads(s3)) == 1
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        ended_half_way()
    assert (keys(s3), uploads(s3)) == ([], [])


def test_broken_query_keeps_the_old_object(s3: Any, platform_sandbox: Sandbox) -> None:
    s3.put_object(Bucket=BUCKET, Key="rows.csv", Body=b"as it was")
    platform_sandbox.control.set(data_chunk_rows=10)
    platform_sandbox.control.fault("error_line", api="data", after=20)
    with pytest.raises(AirflowFailException):
        query("SELECT * FROM orders", f"s3://s3@{BUCKET}/rows.csv", output_format="csv")
    assert s3.get_object(Bucket=BUCKET, Key="rows.csv")["Body"].read() == b"as it was"


def test_missing_bucket_is_reported_before_anything_is_sent(
    s3: Any, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException, match="the bucket 'nowhere' does not exist"):
        query("SELECT 1", "s3://s3@nowhere/rows.parquet")
    assert platform_sandbox.control.state().requests == []


@pytest.mark.parametrize("deferrable", [False, True], ids=["on the worker", "deferred"])
def test_unknown_connection_in_an_address_is_refused_before_the_query_runs(
    deferrable: bool,
    s3: Any,
    s3_server: str,
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The worker itself may write to the bucket here, so that nothing else would stop the task."""
    for name, value in (
        ("AWS_ACCESS_KEY_ID", "worker"),
        ("AWS_SECRET_ACCESS_KEY", "own"),
        ("AWS_DEFAULT_REGION", "us-east-1"),
        ("AWS_ENDPOINT_URL", s3_server),
    ):
        monkeypatch.setenv(name, value)
    task = PlatformQueryOperator(
        task_id="query",
        sql="SELECT 1",
        output_path=f"s3://s3_typo@{BUCKET}/rows.csv",
        output_format="csv",
        deferrable=deferrable,
    )
    with pytest.raises(AirflowFailException, match="Airflow has no connection 's3_typo'"):
        task.execute(TaskTries().context())
    for write_other in (answer, export):
        with pytest.raises(AirflowFailException, match="Airflow has no connection 's3_typo'"):
            write_other(f"s3://s3_typo@{BUCKET}/answers")
    assert platform_sandbox.control.state().requests == []
    assert keys(s3) == []


def test_key_and_secret_before_the_bucket_are_refused_and_not_shown(
    platform_sandbox: Sandbox,
) -> None:
    with pytest.raises(AirflowFailException, match="not the id of an Airflow connection") as caught:
        query("SELECT 1", f"s3://AKIAEXAMPLE:wJalrXUtnFEMI@{BUCKET}/rows.csv", output_format="csv")
    assert "wJalrXUtnFEMI" not in str(caught.value)
    assert "AKIAEXAMPLE" not in str(caught.value)


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("new\nline.csv", r"contains the control character '\\n' at position"),
        ("rows.csv\n", r"contains the control character '\\n'"),
        ("tab\t.csv", r"contains the control character '\\t'"),
        ("rows.csv ", "begins or ends with a space"),
        ("ä" * 511 + ".csv", "the object key has more than 1024 bytes"),
    ],
    ids=["line end", "line end at the end", "tab", "space at the end", "too long"],
)
def test_name_that_the_store_would_change_or_refuse_is_refused_before_the_query_runs(
    key: str, said: str, s3: Any, platform_sandbox: Sandbox
) -> None:
    template, rendered = "{{ params.path }}", f"s3://s3@{BUCKET}/{key}"
    task = PlatformQueryOperator(
        task_id="query",
        sql="SELECT 1",
        output_path=template,
        output_format="csv",
        deferrable=False,
    )
    task.output_path = rendered
    with pytest.raises(AirflowFailException, match=said):
        task.execute(TaskTries().context())
    assert platform_sandbox.control.state().requests == []
    assert keys(s3) == []


def test_folder_with_too_long_file_names_is_refused_before_the_question(
    s3: Any, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException, match="the object key has more than 1024 bytes"):
        answer(f"s3://s3@{BUCKET}/{'n' * 1001}")
    assert platform_sandbox.control.state().requests == []


def test_longest_name_is_written(s3: Any, platform_sandbox: Sandbox) -> None:
    key = "ä" * 510 + ".csv"
    query("SELECT 1", f"s3://s3@{BUCKET}/{key}", output_format="csv")
    assert keys(s3) == [key]


def test_bucket_without_a_name_in_it_is_refused_before_the_query_runs(
    s3: Any, platform_sandbox: Sandbox
) -> None:
    for path in (f"s3://s3@{BUCKET}", "s3://s3@/rows.csv"):
        with pytest.raises(AirflowFailException, match="this is a bucket, not a file in a bucket"):
            query("SELECT 1", path, output_format="csv")
    assert platform_sandbox.control.state().requests == []


def test_connection_without_read_permission_can_write(
    s3: Any, proxy_with_refusals: RefusingProxy, platform_sandbox: Sandbox
) -> None:
    proxy_with_refusals.refusals = [
        Refusal("HEAD", "", 403, "AccessDenied"),
        Refusal("GET", "list-type", 403, "AccessDenied"),
    ]
    query("SELECT 1", f"s3://s3_refusing@{BUCKET}/rows.csv", output_format="csv")
    assert proxy_with_refusals.refused
    assert keys(s3) == ["rows.csv"]


@pytest.mark.parametrize("size", [1, 3], ids=["one request", "several parts"])
def test_connection_to_the_store_that_breaks_leaves_no_object(
    size: int, s3: Any, breaking_proxy: BreakingProxy
) -> None:
    path = storage_path("output_path", f"s3://s3_broken@{BUCKET}/large")

    def write() -> None:
        with whole_file(path) as file:
            breaking_proxy.breaks_after = MB
            for _ in range(size):
                file.write(bytes(PART // 2))

    with pytest.raises(ResultWriteError, match=r"could not be written.*large"):
        write()
    assert breaking_proxy.broken > 0
    assert keys(s3) == []
    breaking_proxy.breaks_after = None
    with whole_file(path) as file:
        file.write(b"rows")
    assert s3.get_object(Bucket=BUCKET, Key="large")["Body"].read() == b"rows"


@pytest.mark.parametrize("deferrable", [False, True], ids=["on the worker", "deferred"])
def test_unreachable_store_is_reported_before_the_query_runs(
    deferrable: bool, platform_sandbox: Sandbox, monkeypatch: Any
) -> None:
    from tests.storage.conftest import connection

    monkeypatch.setenv("AIRFLOW_CONN_S3_AWAY", connection("http://127.0.0.1:9"))
    task = PlatformQueryOperator(
        task_id="query",
        sql="SELECT 1",
        output_path=f"s3://s3_away@{BUCKET}/rows.parquet",
        deferrable=deferrable,
    )
    with pytest.raises(ResultWriteError, match="Could not connect to the endpoint") as caught:
        task.execute(TaskTries().context())
    for write_other in (answer, export):
        with pytest.raises(ResultWriteError, match="Could not connect to the endpoint"):
            write_other(f"s3://s3_away@{BUCKET}/answers")
    assert platform_sandbox.control.state().requests == []
    assert "secret" not in str(caught.value)


ORDERS_AT = f"s3://s3@{BUCKET}/orders/"


def by_country(run_id: str, countries: str, path: str = ORDERS_AT, **options: Any) -> Any:
    """Write customers by country, as a task of this run."""
    task = PlatformQueryOperator(
        task_id="query",
        sql=f"SELECT id, country FROM customers WHERE country IN ({countries}) ORDER BY id",
        output_path=path,
        output_format="csv",
        output_options={"partition_by": ["country"], **options},
        deferrable=False,
    )
    context = TaskTries().context()
    context["ti"].run_id = run_id
    return task.execute(context)


@pytest.mark.parametrize("options", [{}, {"partition_by": ["a"]}], ids=["file", "folder"])
def test_existing_objects_are_kept(
    options: dict[str, Any], s3: Any, platform_sandbox: Sandbox
) -> None:
    name = "rows" if options else "rows.csv"
    s3.put_object(Bucket=BUCKET, Key=f"{name}/x.csv" if options else name, Body=b"as it was")
    before = keys(s3)
    for on_existing, error in (("fail", AirflowFailException), ("skip", AirflowSkipException)):
        with pytest.raises(error, match="already"):
            query(
                "SELECT 1 AS a, 2 AS b",
                f"s3://s3@{BUCKET}/{name}",
                output_format="csv",
                output_options={**options, "on_existing": on_existing},
            )
    assert keys(s3) == before
    assert not any("cubesql" in one.path for one in platform_sandbox.control.state().requests)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "AccessDenied"), (404, "NoSuchBucket"), (507, "XMinioStorageFull"), (503, "SlowDown")],
)
@pytest.mark.parametrize("size", [0, 2], ids=["one request", "several parts"])
def test_refused_write_names_path_operation_and_code(
    size: int, status: int, code: str, s3: Any, proxy_with_refusals: RefusingProxy
) -> None:
    path = storage_path("output_path", f"s3://s3_refusing@{BUCKET}/sales/rows.csv")
    query = "partNumber" if size else ""
    proxy_with_refusals.refusals = [Refusal("PUT", query, status, code, "It does not work.")]
    with pytest.raises(ResultWriteError) as caught:
        write_whole(path, bytes(PART * size + 1))
    said = str(caught.value)
    assert said.startswith("The file could not be written: ")
    assert said.endswith(f" (s3://s3_refusing@{BUCKET}/sales/rows.csv)")
    assert code in said
    assert "It does not work" in said
    assert caught.value.retryable
    assert (keys(s3), uploads(s3)) == ([], [])


def test_run_replaces_its_partitions_in_the_store(s3: Any, platform_sandbox: Sandbox) -> None:
    def names(result: Any, country: str = "") -> set[str]:
        paths = [file["path"].partition(f"{BUCKET}/")[2] for file in result["files"]]
        return {path for path in paths if country in path}

    first = by_country("first", "'France', 'Germany'", max_rows_per_file=1)
    assert set(keys(s3)) == names(first, "=France/") | names(first, "=Germany/")
    second = by_country("second", "'France'")
    assert set(keys(s3)) == names(second) | names(first, "=Germany/")


def test_partitions_that_fail_half_way_leave_no_half_object(
    s3: Any,
    breaking_proxy: BreakingProxy,
    platform_sandbox: Sandbox,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    by_country("first", "'France'")
    before = set(keys(s3))
    real = formats.write_file

    def second_file_breaks(path: Any, *arguments: Any) -> Any:
        if "Germany" in str(path):
            breaking_proxy.breaks_after = 0
        return real(path, *arguments)

    monkeypatch.setattr(formats, "write_file", second_file_breaks)
    with pytest.raises(ResultWriteError, match="country=Germany"):
        by_country("second", "'France', 'Germany'", path=f"s3://s3_broken@{BUCKET}/orders/")
    assert breaking_proxy.broken > 0
    breaking_proxy.breaks_after = None
    assert before < set(keys(s3)), "the old file stays until all are written"
    assert not [key for key in keys(s3) if "Germany" in key]
