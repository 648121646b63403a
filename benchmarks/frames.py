"""A million rows of a query as an Arrow table, a pandas and a Polars frame, beside a plain reader.

The server sends the same bytes to everybody, as a deployment that streams does: lines of a thousand
rows, six columns. The plain reader is httpx, `json.loads` of each line and pyarrow, with the same
types: what anybody would write who needs none of the promises. Each round runs in a process of its
own. `peak` is the most memory that the process has had, Airflow and the library included; processor
time hardly depends on what else the machine does, as the seconds do. pyarrow imports pandas for its
first array, so that all of them pay for that import. ROWS sets another number of rows.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = int(os.environ.get("ROWS", "1000000"))
ROUNDS = int(os.environ.get("ROUNDS", "2"))
LINE_ROWS = 1000
SQL = f"SELECT * FROM events LIMIT {ROWS}"
SCHEMA = {
    "id": "Int64",
    "price": "Decimal",
    "ratio": "Double",
    "paid": "Boolean",
    "at": "Timestamp",
    "note": "String",
}
KINDS = {"plain": "pyarrow", "to_arrow": "pyarrow", "to_pandas": "pandas", "to_polars": "polars"}
"""What is measured, and the library that it imports first."""


def main() -> None:
    """Print seconds, processor time and memory of each."""
    with tempfile.TemporaryDirectory() as home:
        server = subprocess.Popen(
            [sys.executable, __file__, "serve"], stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{int(server.stdout.readline())}"
            found = {kind: [run(kind, url, home) for _ in range(ROUNDS)] for kind in KINDS}
        finally:
            server.kill()
            server.wait()
    print(f"{ROWS} rows of {len(SCHEMA)} columns, best of {ROUNDS}:")
    for kind, told in found.items():
        best = {name: min(one[name] for one in told) for name in told[0]}
        print(
            f"  {kind:<10} {best['seconds']:5.1f} s   processor {best['cpu']:4.1f} s   "
            f"peak {max(one['peak'] for one in told):4.0f} MB "
            f"(after the imports {best['idle']:.0f} MB)   frame {best['bytes'] / 1e6:.0f} MB"
        )


def run(kind: str, url: str, home: str) -> dict[str, float]:
    """One round in a process of its own."""
    connection = {
        "conn_type": "platform",
        "host": f"{url}/api",
        "password": "secret",
        "extra": {"deployment_id": 1, "data_api_url": f"{url}/cubejs-api", "allow_http": True},
    }
    environment = {
        **os.environ,
        "AIRFLOW_HOME": home,
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__LOGGING__LOGGING_LEVEL": "ERROR",
        "AIRFLOW_CONN_PLATFORM_DEFAULT": json.dumps(connection),
    }
    done = subprocess.run(
        [sys.executable, __file__, kind, url],
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


def measure(kind: str, url: str) -> None:
    """Make one frame and print what it took."""
    import_module(KINDS[kind])
    if kind == "plain":
        import_module("httpx")
        make: Callable[[], Any] = lambda: plain(url)  # noqa: E731
    else:
        from airflow_provider_platform.hooks.platform import PlatformHook

        hook = PlatformHook()
        hook.open_client()
        make = getattr(hook.run_sql(SQL), kind)
    idle = peak()
    began, used = time.perf_counter(), time.process_time()
    frame = make()
    seconds, cpu = time.perf_counter() - began, time.process_time() - used
    told = {"seconds": seconds, "cpu": cpu, "peak": peak(), "idle": idle, "bytes": size(frame)}
    assert len(frame) == ROWS, len(frame)
    print(json.dumps(told))


def plain(url: str) -> Any:
    """pyarrow, fed line by line."""
    import httpx
    import pyarrow as pa

    known = {
        "Int64": pa.int64(),
        "Double": pa.float64(),
        "Decimal": pa.decimal128(38, 18),
        "Boolean": pa.bool_(),
        "Timestamp": pa.timestamp("us"),
    }
    with httpx.stream("POST", f"{url}/v1/cubesql", json={"query": SQL}, timeout=60) as answer:
        lines = answer.iter_lines()
        head = json.loads(next(lines))["schema"]
        types = [known.get(one["column_type"], pa.string()) for one in head]
        names = [one["name"] for one in head]
        tables = []
        for line in lines:
            columns = zip(*json.loads(line)["data"], strict=True)
            arrays = [
                pa.array(values, pa.string()).cast(kind)
                for values, kind in zip(columns, types, strict=True)
            ]
            tables.append(pa.Table.from_arrays(arrays, names))
    return pa.concat_tables(tables)


def size(frame: Any) -> float:
    """Bytes of a frame."""
    if hasattr(frame, "nbytes"):
        return float(frame.nbytes)
    if hasattr(frame, "estimated_size"):
        return float(frame.estimated_size())
    return float(frame.memory_usage(deep=True).sum())


def peak() -> float:
    """Megabytes that this process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def lines() -> list[bytes]:
    """The answer of the data API."""
    schema = [{"name": name, "column_type": kind} for name, kind in SCHEMA.items()]
    documents: list[dict[str, Any]] = [{"schema": schema}]
    documents += [
        {"data": [row(at) for at in range(first, min(first + LINE_ROWS, ROWS))]}
        for first in range(0, ROWS, LINE_ROWS)
    ]
    return [json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in documents]


def row(number: int) -> list[str | None]:
    """Every tenth note is missing."""
    return [
        str(number),
        f"{number // 7}.{number % 100:02}",
        repr(number / 7),
        "true" if number % 3 else "false",
        f"2026-07-{number % 28 + 1:02}T{number % 24:02}:30:00.000",
        f"order number {number % 5000}" if number % 10 else None,
    ]


def serve() -> None:
    """Send a token to who asks for one, the rows to everybody else."""
    body = b"".join(b"%x\r\n%s\r\n" % (len(line), line) for line in lines()) + b"0\r\n\r\n"
    token = b'{"cubeApiToken":"x.y.z"}'

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            is_token = self.path.endswith("/token")
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            length = ("Content-Length", str(len(token)))
            self.send_header(*(length if is_token else ("Transfer-Encoding", "chunked")))
            self.end_headers()
            with suppress(ConnectionError):
                self.wfile.write(token if is_token else body)

        def log_message(self, *arguments: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()


if __name__ == "__main__":
    serve() if sys.argv[1] == "serve" else measure(sys.argv[1], sys.argv[2])
