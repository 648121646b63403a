"""A million rows from the sandbox to Parquet, CSV and JSON Lines, beside plain writers of the same.

The plain writers read the same HTTP answer (httpx, a line at a time, `json.loads`) and write to the
same target: pyarrow with the same types and row groups, `csv.writer`, and `json.dumps` of a dict
for each row. They are what anybody would write who needs none of the promises; CSV and JSON Lines
have the values as they come, unchecked. Memory is that of the process that reads and writes, at its
peak, with Airflow imported; processor time is that process's too, and hardly depends on what else
the machine does, as the seconds do. Without moto and s3fs (`make test-storage` installs them) the
target is a local file. ROWS sets another number of rows, FORMATS other formats, and ONE_LINE=1 has
the sandbox send all rows in one line, as a deployment does that does not stream.
"""

from __future__ import annotations

import csv
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

ROWS = int(os.environ.get("ROWS", "1000000"))
SQL = f"SELECT * FROM events LIMIT {ROWS}"
FORMATS = os.environ.get("FORMATS", "parquet csv jsonl").split()
ONE_LINE = os.environ.get("ONE_LINE") == "1"
GROUP = 100_000
BUCKET = "lake"
ROUNDS = int(os.environ.get("ROUNDS", "2"))


def main() -> None:
    """Print seconds and memory of both for each format, and what they wrote."""
    with tempfile.TemporaryDirectory() as home:
        server = Server(home)
        try:
            print(f"{ROWS} rows to {'S3' if server.s3 else 'a local file'}, best of {ROUNDS}:")
            for name in FORMATS:
                compare(server, name)
        finally:
            server.close()


def compare(server: Server, name: str) -> None:
    """Print what the plain writer and the operator take, and their ratio."""
    found: dict[str, list[dict[str, float]]] = {"plain": [], "operator": []}
    for _ in range(ROUNDS):
        for how, told in found.items():
            told.append(server.run(how, name))
    best = {
        how: {fact: min(one[fact] for one in told) for fact in told[0]}
        for how, told in found.items()
    }
    for how, one in best.items():
        print(
            f"  {name:<8} {how:<9} {one['seconds']:6.1f} s   processor {one['cpu']:4.1f} s   "
            f"peak {max(each['peak'] for each in found[how]):4.0f} MB   "
            f"(after the imports {one['idle']:.0f} MB)   file {one['bytes'] / 1e6:.1f} MB"
        )
    seconds, cpu = (best["operator"][fact] / best["plain"][fact] for fact in ("seconds", "cpu"))
    print(f"  {name:<8} ratio     {seconds:6.2f}     processor {cpu:4.2f}")


class Server:
    """The sandbox, and an S3 server where there can be one, in processes of their own."""

    def __init__(self, home: str) -> None:
        self.home = Path(home)
        self.s3 = bool(find_spec("moto") and find_spec("s3fs"))
        ready = self.home / "ready.json"
        self._processes = [
            subprocess.Popen([sys.executable, __file__, "serve", str(ready)]),
        ]
        self._address = ""
        if self.s3:
            command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"]
            moto = subprocess.Popen(
                command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
            )
            self._processes.append(moto)
            assert moto.stdout is not None
            line = next(line for line in moto.stdout if "Running on http" in line)
            self._address = line.split("Running on ")[1].split()[0]
        until = time.monotonic() + 60
        while not ready.exists():
            if time.monotonic() > until:
                raise SystemExit("the sandbox did not start")
            time.sleep(0.05)
        self._told = json.loads(ready.read_text())

    def run(self, how: str, name: str) -> dict[str, float]:
        """One round in a process of its own."""
        s3 = {
            "conn_type": "aws",
            "login": "someone",
            "password": "secret",
            "extra": {"endpoint_url": self._address, "region_name": "us-east-1"},
        }
        environment = {
            **os.environ,
            "AIRFLOW_HOME": str(self.home),
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
            "AIRFLOW_CONN_PLATFORM_DEFAULT": json.dumps(self._told["connection"]),
            "AIRFLOW_CONN_S3": json.dumps(s3),
            "TARGET": f"{f's3://s3@{BUCKET}' if self.s3 else self.home}/{how}.{name}",
            "TOLD": json.dumps({**self._told, "s3": self._address}),
        }
        done = subprocess.run(
            [sys.executable, __file__, how, name],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr[-3000:])
        found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return found

    def close(self) -> None:
        for process in self._processes:
            process.kill()
            process.wait()


def serve(ready: str) -> None:
    """The sandbox of a deployment that streams."""
    from airflow_provider_platform.sandbox import Sandbox

    with Sandbox() as sandbox:
        sandbox.control.set(data_max_rows=None, data_chunk_rows=ROWS if ONE_LINE else 1000)
        told = {
            "connection": sandbox.connection(),
            "url": sandbox.url,
            "management_token": sandbox.management_token,
        }
        Path(ready + ".new").write_text(json.dumps(told))
        Path(ready + ".new").replace(ready)
        time.sleep(3600)


def measured(work: Any, path: Any) -> None:
    """Do the work and print what it took."""
    idle = peak()
    began, used = time.perf_counter(), time.process_time()
    work()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    size = path.stat().st_size
    told = {"seconds": seconds, "cpu": cpu, "peak": peak(), "idle": idle, "bytes": size}
    print(json.dumps(told))


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def plain() -> None:
    """The plain writer of the format, fed by a generator over the answer."""
    import httpx

    path = target()
    told = json.loads(os.environ["TOLD"])
    http = httpx.Client(timeout=60)
    token = http.post(
        f"{told['url']}/api/v1/deployments/1/token",
        json={"expiresIn": 3600},
        headers={"Authorization": f"Bearer {told['management_token']}"},
    ).json()["cubeApiToken"]

    def lines() -> Iterator[Any]:
        url = f"{told['url']}/deployments/1/cubejs-api/v1/cubesql"
        headers = {"Authorization": token}
        with http.stream("POST", url, json={"query": SQL}, headers=headers) as answer:
            for line in answer.iter_lines():
                yield json.loads(line)

    write = {"parquet": plain_parquet, "csv": plain_csv, "jsonl": plain_json_lines}[sys.argv[2]]
    measured(lambda: write(lines(), path), path)


def plain_parquet(lines: Iterator[Any], path: Any) -> None:
    """Row groups of typed columns, by pyarrow."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"Int64": pa.int64(), "Double": pa.float64(), "Timestamp": pa.timestamp("us")}
    head = next(lines)["schema"]
    schema = pa.schema([(one["name"], types.get(one["column_type"], pa.string())) for one in head])
    with path.fs.open(path.path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
        waiting: list[Any] = []
        for line in lines:
            columns = zip(*line["data"], strict=True)
            arrays = [
                pa.array(values, pa.string()).cast(field.type)
                for values, field in zip(columns, schema, strict=True)
            ]
            waiting.append(pa.Table.from_arrays(arrays, schema=schema))
            if sum(table.num_rows for table in waiting) >= GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = []
        if waiting:
            writer.write_table(pa.concat_tables(waiting))


def plain_csv(lines: Iterator[Any], path: Any) -> None:
    """The values as they come, by `csv.writer`."""
    with path.fs.open(path.path, "wb") as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        writer = csv.writer(text)
        writer.writerow([one["name"] for one in next(lines)["schema"]])
        for line in lines:
            writer.writerows(line["data"])


def plain_json_lines(lines: Iterator[Any], path: Any) -> None:
    """The values as they come, by `json.dumps`."""
    with path.fs.open(path.path, "wb") as file, io.TextIOWrapper(file, "utf-8", newline="") as text:
        names = [one["name"] for one in next(lines)["schema"]]
        for line in lines:
            for row in line["data"]:
                text.write(json.dumps(dict(zip(names, row, strict=True))) + "\n")


class NoTaskInstance:
    """Stands for the task instance that the operator names as the writer of its file."""

    dag_id, run_id, task_id, map_index = "benchmark", "run", "query", -1

    def xcom_push(self, key: str, value: Any) -> None:
        """There is no XCom."""


def operator() -> None:
    """The operator, in the context of no DAG."""
    from airflow_provider_platform.operators.query import PlatformQueryOperator

    path = target()
    task = PlatformQueryOperator(
        task_id="query",
        sql=SQL,
        output_path=path,
        output_format=sys.argv[2],
        max_rows=10,
        deferrable=False,
    )

    def work() -> None:
        result = task.execute({"ti": NoTaskInstance()})
        assert result["row_count"] == ROWS, result["row_count"]

    measured(work, path)


def target() -> Any:
    """Where to write; the bucket is there."""
    from airflow.sdk import ObjectStoragePath

    path = ObjectStoragePath(os.environ["TARGET"])
    if path.protocol == "s3" and not path.fs.exists(BUCKET):
        path.fs.mkdir(BUCKET)
    return path


if __name__ == "__main__":
    steps = {"plain": plain, "operator": operator}
    serve(sys.argv[2]) if sys.argv[1] == "serve" else steps[sys.argv[1]]()
