"""A million rows from the sandbox to Parquet on an S3 server, beside a plain writer of the same.

The plain writer is a generator over the same HTTP answer (httpx, a line at a time), `json.loads`
and pyarrow, with the same types, row groups and target: what anybody would write who needs none of
the promises. Memory is that of the process that reads and writes, at its peak, with Airflow
imported; processor time is that process's too, and hardly depends on what else the machine does,
as the seconds do. Without moto and s3fs (`make test-storage` installs them) the target is a local
file. ROWS sets another number of rows.
"""

from __future__ import annotations

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
GROUP = 100_000
BUCKET = "lake"
ROUNDS = int(os.environ.get("ROUNDS", "2"))


def main() -> None:
    """Print seconds and memory of both, and what they wrote."""
    with tempfile.TemporaryDirectory() as home:
        server = Server(home)
        try:
            found: dict[str, list[dict[str, float]]] = {"plain": [], "operator": []}
            for _ in range(ROUNDS):
                for how, told in found.items():
                    told.append(server.run(how))
        finally:
            server.close()
    best = {
        how: {name: min(one[name] for one in told) for name in told[0]}
        for how, told in found.items()
    }
    print(f"{ROWS} rows to {'S3' if server.s3 else 'a local file'}, best of {ROUNDS}:")
    for how, one in best.items():
        print(
            f"  {how:<9} {one['seconds']:6.1f} s   processor {one['cpu']:4.1f} s   "
            f"peak {max(each['peak'] for each in found[how]):4.0f} MB   "
            f"(after the imports {one['idle']:.0f} MB)   file {one['bytes'] / 1e6:.1f} MB"
        )
    seconds, cpu = (best["operator"][name] / best["plain"][name] for name in ("seconds", "cpu"))
    print(f"  ratio     {seconds:6.2f}     processor {cpu:4.2f}")


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

    def run(self, how: str) -> dict[str, float]:
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
            "TARGET": f"s3://s3@{BUCKET}/{how}.parquet"
            if self.s3
            else f"{self.home}/{how}.parquet",
            "TOLD": json.dumps({**self._told, "s3": self._address}),
        }
        done = subprocess.run(
            [sys.executable, __file__, how],
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
        sandbox.control.set(data_streaming=True, data_chunk_rows=1000)
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
    """pyarrow, fed by a generator over the answer."""
    import httpx
    import pyarrow as pa
    import pyarrow.parquet as pq

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

    def work() -> None:
        types = {"Int64": pa.int64(), "Double": pa.float64(), "Timestamp": pa.timestamp("us")}
        told = lines()
        head = next(told)["schema"]
        schema = pa.schema(
            [(one["name"], types.get(one["column_type"], pa.string())) for one in head]
        )
        with path.fs.open(path.path, "wb") as file, pq.ParquetWriter(file, schema) as writer:
            waiting: list[Any] = []
            for line in told:
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

    measured(work, path)


def operator() -> None:
    """The operator, in the context of no DAG."""
    from airflow_provider_platform.operators.query import PlatformQueryOperator

    path = target()
    task = PlatformQueryOperator(
        task_id="query", sql=SQL, output_path=path, max_rows=10, deferrable=False
    )

    def work() -> None:
        result = task.execute({})
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
