"""Runs one try of a task under Airflow's own supervisor, against an execution API that is played.

`python -m tests.support.airflow.supervised_task FOLDER TRY MAX_TRIES DAG CONF`: the task is `ask`
of that DAG among those of the system tests. What Airflow would say and store lies in the folder:
`state` holds the state of the task (else the API reports none), `gone` is there where the
try is no longer the task's current one, `store` holds what the task has stored,
`states` becomes the states that the task reports, `log` what it logs, `pid` the task's process.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.support.releases import airflow_httpx

httpx = airflow_httpx()


class ExecutionApi:
    """The part of Airflow's execution API that a chat uses."""

    def __init__(self, folder: Path, max_tries: int, conf: dict[str, Any]) -> None:
        self._folder = folder
        self._max_tries = max_tries
        self._conf = conf

    def __call__(self, request: Any) -> Any:
        path = request.url.path
        body = json.loads(request.content or b"null")
        store = self._folder / "store"
        match request.method, path.strip("/").split("/"):
            case "PATCH", ["task-instances", _, "run"]:
                (self._folder / "pid").write_text(str(body["pid"]))
                return httpx.Response(200, json=self._context())
            case "PATCH", ["task-instances", _, "state"]:
                with (self._folder / "states").open("a") as states_file:
                    states_file.write(f"{body['state']}\n")
                return httpx.Response(204)
            case "PUT", ["task-instances", _, "heartbeat"] if (self._folder / "gone").exists():
                return httpx.Response(410, json={"detail": {"reason": "not_found"}})
            case "GET", ["task-instances", "states"]:
                state = self._folder / "state"
                if not state.exists():
                    return httpx.Response(404, json={"detail": "unknown state"})
                states = {"run": {"ask": state.read_text()}}
                return httpx.Response(200, json={"task_states": states})
            case "GET", ["store", *_]:
                if not store.exists():
                    return httpx.Response(404, json={"detail": {"reason": "not_found"}})
                return httpx.Response(200, json={"value": json.loads(store.read_text())})
            case "GET", ["xcoms", *_]:
                return httpx.Response(404, json={"detail": "none"})
            case "PUT", ["store", *_]:
                written = self._folder / "store.new"
                written.write_text(json.dumps(body["value"]))
                written.replace(store)  # the test reads it meanwhile
        return httpx.Response(200, json={})

    def _context(self) -> dict[str, Any]:
        when = "2026-01-01T00:00:00Z"
        return {
            "dag_run": {
                "dag_id": "ask",
                "run_id": "run",
                "logical_date": when,
                "data_interval_start": None,
                "data_interval_end": None,
                "start_date": when,
                "end_date": None,
                "partition_key": None,
                "run_type": "manual",
                "run_after": when,
                "state": "running",
                "consumed_asset_events": [],
                "conf": self._conf,
            },
            "max_tries": self._max_tries,
            "should_retry": True,
        }


def main(folder: str, try_number: str, max_tries: str, dag_id: str, conf: str) -> int:
    from airflow.sdk.api.client import Client
    from airflow.sdk.api.datamodels._generated import BundleInfo, TaskInstance
    from airflow.sdk.execution_time.supervisor import supervise_task

    api = ExecutionApi(Path(folder), int(max_tries), json.loads(conf))
    ti = TaskInstance(
        id=uuid4(),
        task_id="ask",
        dag_id=dag_id,
        run_id="run",
        try_number=int(try_number),
        dag_version_id=uuid4(),
    )
    return supervise_task(
        ti=ti,
        bundle_info=BundleInfo(name="dags-folder"),
        dag_rel_path="chat.py",
        token="",
        log_path=f"{folder}/log",
        client=Client(base_url=None, dry_run=True, token="", transport=httpx.MockTransport(api)),
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
