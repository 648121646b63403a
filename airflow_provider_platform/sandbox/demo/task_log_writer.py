"""Task logs of a run in one process: `DAG.test` prints what its tasks log, and keeps no files.

The Airflow process says on its standard output which file a task's lines belong in, and whoever
reads that output writes them there, in the form in which Airflow's workers write theirs.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from airflow_provider_platform.sandbox.demo.airflow_log import read_record

if TYPE_CHECKING:
    from collections.abc import Iterator

_BEGIN = "task_log_file"
_END = "[DAG TEST] end task"
_NOT_OF_TASKS = ("airflow.api_fastapi", "airflow.sdk.definitions.dag", "httpx", "py.warnings")
"""Loggers of what a worker does not do in the task's process: the API server's, and the run's."""


@contextmanager
def announced_task_logs() -> Iterator[None]:
    """Meanwhile every task that starts in this process prints where its log belongs."""
    import pluggy

    from airflow_provider_platform.sandbox.demo.dag_runs import listener_manager

    class Listener:
        @pluggy.HookimplMarker("airflow")
        def on_task_instance_running(self, task_instance: Any) -> None:
            print(json.dumps({_BEGIN: str(_log_file(task_instance))}), flush=True)

    plugins = listener_manager().pm
    listener = Listener()
    plugins.register(listener)
    try:
        yield
    finally:
        plugins.unregister(listener)


def _log_file(ti: Any) -> Path:
    from airflow.configuration import conf
    from airflow.utils.helpers import log_filename_template_renderer

    folder: str = conf.get("logging", "base_log_folder")
    return Path(folder) / log_filename_template_renderer()(ti=ti)


class TaskLogWriter:
    """Takes every line of the process's output in turn."""

    def __init__(self) -> None:
        self._file: TextIO | None = None
        self._in_group = False

    def take(self, raw: str) -> bool:
        """Write the line where it belongs; True for one that only says where the next belong."""
        record = read_record(raw)
        if _BEGIN in record:
            self.close()
            path = Path(record[_BEGIN])
            path.parent.mkdir(parents=True, exist_ok=True)
            # A task that was deferred goes on in the file it has begun.
            self._file = path.open("a")
            self._in_group = False
            return True
        event = str(record.get("event", ""))
        if event.startswith(_END):
            self.close()
        elif self._file is not None and not str(record.get("logger", "")).startswith(_NOT_OF_TASKS):
            # The task is announced inside of Airflow's first group of lines.
            if event != "::endgroup::" or self._in_group:
                self._file.write(f"{_as_worker_writes(record, raw)}\n")
            self._in_group = event.startswith("::group::") or (
                self._in_group and event != "::endgroup::"
            )
        return False

    def close(self) -> None:
        """Close the file that is written."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _as_worker_writes(record: dict[str, Any], raw: str) -> str:
    if "exception" not in record:
        return raw
    record["error_detail"] = record.pop("exception")
    return json.dumps(record, ensure_ascii=False)
