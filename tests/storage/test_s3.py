"""Files in an object store: completed at the end or not there, and no upload left behind."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import PlatformError, ResultWriteError
from airflow_provider_platform.operators._files.paths import storage_path
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.results.atomic_files import PART_BYTES, whole_file
from tests.storage.conftest import BUCKET
from tests.unit.operators.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.storage.breaking_proxy import BreakingProxy

MB = 1 << 20
PART = PART_BYTES


def query(sql: str, path: str, **arguments: Any) -> dict[str, Any]:
    task = PlatformQueryOperator(
        task_id="query", sql=sql, output_path=path, deferrable=False, **arguments
    )
    return task.execute(TaskTries().context())


def keys(s3: Any) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def uploads(s3: Any) -> list[Any]:
    return list(s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []))


def test_rows_in_the_store(s3: Any, platform_sandbox: Sandbox) -> None:
    result = query("SELECT * FROM payments", f"s3://s3@{BUCKET}/sales/payments.parquet")
    assert keys(s3) == ["sales/payments.parquet"]
    body = s3.get_object(Bucket=BUCKET, Key="sales/payments.parquet")["Body"].read()
    assert len(body) == result["bytes"]
    assert pq.read_table(io.BytesIO(body)).num_rows == 480


def test_an_answer_in_the_store(s3: Any, platform_sandbox: Sandbox) -> None:
    task = PlatformChatOperator(
        task_id="ask",
        prompt="revenue by country",
        output_path=f"s3://s3@{BUCKET}/answers",
        output_format="csv",
        deferrable=False,
    )
    for _ in range(2):
        result = task.execute(TaskTries().context())
        assert keys(s3) == [
            f"answers/dag/run/task/{name}" for name in ("answer.md", "manifest.json", "query-1.csv")
        ]
    manifest = s3.get_object(Bucket=BUCKET, Key="answers/dag/run/task/manifest.json")
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


def test_what_was_there_stays_when_the_rows_break_off(s3: Any, platform_sandbox: Sandbox) -> None:
    s3.put_object(Bucket=BUCKET, Key="rows.csv", Body=b"as it was")
    platform_sandbox.control.set(data_chunk_rows=10)
    platform_sandbox.control.fault("error_line", api="data", after=20)
    with pytest.raises(AirflowFailException):
        query("SELECT * FROM orders", f"s3://s3@{BUCKET}/rows.csv", output_format="csv")
    assert s3.get_object(Bucket=BUCKET, Key="rows.csv")["Body"].read() == b"as it was"


def test_a_missing_bucket_is_told_before_anything_is_sent(
    s3: Any, platform_sandbox: Sandbox
) -> None:
    with pytest.raises(AirflowFailException, match="there is no bucket 'nowhere'"):
        query("SELECT 1", "s3://s3@nowhere/rows.parquet")
    assert platform_sandbox.control.state().requests == []


def test_a_denied_write(s3: Any, platform_sandbox: Sandbox) -> None:
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:PutObject", "Resource": "*"}
    s3.put_bucket_policy(
        Bucket=BUCKET, Policy=json.dumps({"Version": "2012-10-17", "Statement": [deny]})
    )
    with pytest.raises(ResultWriteError, match=f"{BUCKET}/rows.parquet could not be written"):
        query("SELECT 1", f"s3://s3@{BUCKET}/rows.parquet")
    assert keys(s3) == []


@pytest.mark.parametrize("size", [1, 3], ids=["one request", "several parts"])
def test_a_connection_that_ends_half_way(size: int, s3: Any, breaking: BreakingProxy) -> None:
    path = storage_path("output_path", f"s3://s3_broken@{BUCKET}/large")

    def write() -> None:
        with whole_file(path) as file:
            breaking.breaks_after = MB
            for _ in range(size):
                file.write(bytes(PART // 2))

    with pytest.raises(ResultWriteError, match="large could not be written"):
        write()
    assert breaking.broken > 0
    assert keys(s3) == []
    breaking.breaks_after = None
    with whole_file(path) as file:
        file.write(b"rows")
    assert s3.get_object(Bucket=BUCKET, Key="large")["Body"].read() == b"rows"


def test_a_server_that_is_away_is_one_error(platform_sandbox: Sandbox, monkeypatch: Any) -> None:
    from tests.storage.conftest import connection

    monkeypatch.setenv("AIRFLOW_CONN_S3_AWAY", connection("http://127.0.0.1:9"))
    with pytest.raises(PlatformError, match="could not be written") as caught:
        query("SELECT 1", f"s3://s3_away@{BUCKET}/rows.parquet")
    assert "secret" not in str(caught.value)
