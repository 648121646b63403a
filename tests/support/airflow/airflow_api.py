"""Airflow's REST API, as far as the tests act through it."""

from __future__ import annotations

import json
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from uuid import uuid4

import httpx

if TYPE_CHECKING:
    from collections.abc import Callable

_TRIES = 120
_PAUSE = 0.25


class AirflowApi:
    """A client of a running Airflow; answers 5xx (SQLite under a burst) are asked for again."""

    def __init__(self, url: str) -> None:
        self._http = httpx.Client(base_url=f"{url}/api/v2", timeout=30, trust_env=False)
        self.clears: Counter[tuple[str, str, str, int]] = Counter()
        """How often each task instance was cleared: DAG, run, task, map index."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._http.close()

    def start_run(self, dag_id: str, conf: dict[str, Any]) -> str:
        """Trigger the DAG, once; returns the run's id."""
        run_id = f"test__{uuid4()}"
        body = {"logical_date": None, "conf": conf, "dag_run_id": run_id}
        path = f"dags/{dag_id}/dagRuns"
        self._ask("POST", path, body, unless=lambda: self._exists(f"{path}/{run_id}"))
        return run_id

    def unpause(self, dag_id: str) -> None:
        self._ask("PATCH", f"dags/{dag_id}?update_mask=is_paused", {"is_paused": False})

    def asset_event(self, uri: str) -> None:
        """Report that the asset changed, once."""
        [asset] = self._ask("GET", f"assets?uri_pattern={quote(uri)}")["assets"]
        self._ask("POST", "assets/events", {"asset_id": asset["id"]})

    def runs(self, dag_id: str) -> list[str]:
        """The ids of the DAG's runs."""
        return [run["dag_run_id"] for run in self._ask("GET", f"dags/{dag_id}/dagRuns")["dag_runs"]]

    def approve(self, dag_id: str, run_id: str, task_id: str, option: str) -> None:
        """Answer for a person."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/-1/hitlDetails"
        self._ask("PATCH", path, {"chosen_options": [option], "params_input": {}})

    def dags(self) -> list[str]:
        """The DAGs that the DAG processor has found."""
        return [dag["dag_id"] for dag in self._ask("GET", "dags?limit=100")["dags"]]

    def run(self, dag_id: str, run_id: str) -> dict[str, Any]:
        return self._dict("GET", f"dags/{dag_id}/dagRuns/{run_id}")

    def set_run_state(self, dag_id: str, run_id: str, state: str) -> None:
        self._ask("PATCH", f"dags/{dag_id}/dagRuns/{run_id}", {"state": state})

    def task(self, path: str) -> dict[str, Any]:
        """A task instance; `path` as in `dags/D/dagRuns/R/taskInstances/T/0`."""
        return self._dict("GET", path)

    def task_instances(self, dag_id: str, run_id: str, task_id: str) -> list[dict[str, Any]]:
        """The instances of a task, the first hundred of a mapped one."""
        path = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances?task_id={task_id}&limit=100"
        return list(self._ask("GET", path)["task_instances"])

    def set_task_state(self, path: str, state: str) -> None:
        self._ask("PATCH", path, {"new_state": state})

    def clear(
        self,
        dag_id: str,
        run_id: str,
        task_id: str,
        map_index: int,
        *,
        with_downstream: bool = False,
        with_upstream: bool = False,
    ) -> None:
        """Clear one task instance, whatever its state, once: a second clear is another try. With
        `with_downstream` the tasks after it too, as the UI does, with `with_upstream` those before
        it."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}"
        path = base if map_index < 0 else f"{base}/{map_index}"
        before = self.task(path)["id"]
        self.clears[dag_id, run_id, task_id, map_index] += 1

        def is_cleared() -> bool:
            now = self.task(path)
            return now["id"] != before or now["state"] == "restarting"

        task: Any = task_id if map_index < 0 else [task_id, map_index]
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [task],
            "only_failed": False,
            "reset_dag_runs": True,
            "include_downstream": with_downstream,
            "include_upstream": with_upstream,
        }
        self._ask("POST", f"dags/{dag_id}/clearTaskInstances", body, unless=is_cleared)

    def clear_mapped(self, dag_id: str, run_id: str, task_id: str, map_indexes: list[int]) -> None:
        """Clear mapped task instances that have not ended, all by one request."""
        self.clears.update((dag_id, run_id, task_id, map_index) for map_index in map_indexes)
        body = {
            "dry_run": False,
            "dag_run_id": run_id,
            "task_ids": [[task_id, map_index] for map_index in map_indexes],
            "only_failed": False,
            "reset_dag_runs": True,
        }
        self._ask("POST", f"dags/{dag_id}/clearTaskInstances", body)

    def xcoms(self, dag_id: str, run_id: str, task_id: str, map_index: int) -> dict[str, Any]:
        """The XComs of a task instance by key."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries"
        entries = self._ask("GET", f"{base}?map_index={map_index}")["xcom_entries"]
        return {
            key: self.xcom(dag_id, run_id, task_id, map_index, key)
            for key in (entry["key"] for entry in entries)
        }

    def xcom(self, dag_id: str, run_id: str, task_id: str, map_index: int, key: str) -> Any:
        """One XCom of a task instance."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/xcomEntries"
        query = f"map_index={map_index}&deserialize=false"
        return self._dict("GET", f"{base}/{quote(key, safe='')}?{query}")["value"]

    def stored(
        self, dag_id: str, run_id: str, task_id: str, map_index: int, key: str
    ) -> dict[str, Any] | None:
        """A value of the task instance's state store, None where there is none."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/state-store"
        entries = self._ask("GET", f"{base}?map_index={map_index}")["task_state_store"]
        return next((entry["value"] for entry in entries if entry["key"] == key), None)

    def replace_stored(
        self, dag_id: str, run_id: str, task_id: str, map_index: int, key: str, value: Any
    ) -> None:
        """Put another value in the place of one that the task instance has stored."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/state-store"
        self._ask("PATCH", f"{base}/{key}?map_index={map_index}", {"value": value})

    def log(self, dag_id: str, run_id: str, task_id: str, map_index: int, try_number: int) -> str:
        """What one try has logged, a line for each event, the triggerer's lines included."""
        base = f"dags/{dag_id}/dagRuns/{run_id}/taskInstances/{task_id}/logs/{try_number}"
        content = self._ask("GET", f"{base}?map_index={map_index}&full_content=true")["content"]
        return "\n".join(
            line if isinstance(line, str) else json.dumps(line, ensure_ascii=False)
            for line in content
        )

    def put_connection(self, connection_id: str, connection: dict[str, Any]) -> None:
        """Create or replace a connection (in its JSON form) in the metadata database."""
        extra = connection.get("extra", {})
        body = {**connection, "connection_id": connection_id, "extra": json.dumps(extra)}
        known = self._http.get(f"connections/{connection_id}").status_code == 200
        path = f"connections/{connection_id}" if known else "connections"
        self._ask(
            "PATCH" if known else "POST",
            path,
            body,
            unless=lambda: not known and self._exists(f"connections/{connection_id}"),
        )

    def put_variable(self, key: str, value: str) -> None:
        known = self._http.get(f"variables/{key}").status_code == 200
        path = f"variables/{key}" if known else "variables"
        self._ask("PATCH" if known else "POST", path, {"key": key, "value": value})

    def _dict(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        return dict(self._ask(method, path, body))

    def _exists(self, path: str) -> bool:
        return self._http.get(path).status_code == 200

    def _ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        unless: Callable[[], bool] = lambda: False,
    ) -> Any:
        """Ask again after 5xx, and where a server that has just started is too slow, unless what
        was asked for has been done all the same."""
        for left in reversed(range(_TRIES)):
            try:
                answer = self._http.request(method, path, json=body)
            except httpx.TimeoutException:
                if not left:
                    raise
            else:
                if answer.status_code < 500 or not left:
                    break
            time.sleep(_PAUSE)
            if unless():
                return None
        if answer.status_code >= 400:
            raise RuntimeError(f"{method} {path}: {answer.status_code} {answer.text[:1000]}")
        return answer.json() if answer.content else None
