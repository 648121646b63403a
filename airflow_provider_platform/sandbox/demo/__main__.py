"""``python -m airflow_provider_platform.sandbox.demo [NAME]``: an example DAG from end to end.

Sandbox and Airflow both run in this one process: `DAG.test` runs the tasks, deferred ones too, and
writes the DAG run to a metadata database. The folder ``.demo`` keeps the database and the logs.
`airflow_ui` shows them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

from airflow_provider_platform.sandbox.demo import dag_runs
from airflow_provider_platform.sandbox.demo.home import (
    CONN_IDS,
    DAG_ID,
    DEMO_COMMAND,
    EXAMPLES,
    FOLDER,
    HOME,
    UI_COMMAND,
    DemoError,
    examples,
    prepared,
    shown,
)
from airflow_provider_platform.sandbox.demo.report import report

if TYPE_CHECKING:
    from collections.abc import Iterator

_LOG = FOLDER / "airflow.log"


def main() -> int:
    """Run the demo. The exit code is 0 if the DAG run has succeeded."""
    dag_id = _options().dag
    errors = os.dup(2)  # while the DAG runs, the output of this process goes to its log
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: _stop(errors))
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(line_buffering=True, errors="replace")  # type: ignore[union-attr]
    gc.disable()  # the process ends with the run; looking for garbage took an eighth of its time
    began = time.monotonic()
    file = EXAMPLES / f"{dag_id}.py"
    try:
        with prepared() as (sandbox, new):
            print(f"Sandbox   {sandbox.url}, a platform in this process with sample data")
            print(f"Airflow   home {shown(HOME)}, connection platform_default")
            print(f"DAG       {shown(file)}")
            print(f"\nStarting Airflow{', and making its database' if new else ''} ...")
            for conn_id in CONN_IDS:  # trigger code in this process cannot read the database
                os.environ[f"AIRFLOW_CONN_{conn_id.upper()}"] = sandbox.connection_json()
            run = _run(file)
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    print(f"\n{report(run)}\n")
    print(f"Next: {UI_COMMAND} starts Airflow's UI with this run, and a new sandbox. For links to")
    print("pages of the sandbox, run the DAG there again.")
    outcome = "worked" if run.state == "success" else f"ended as {run.state}"
    seconds = time.monotonic() - began
    print(f"The pipeline {outcome} ({seconds:.0f} s). Airflow's log: {shown(_LOG)}")
    return 0 if run.state == "success" else 1


def _options() -> argparse.Namespace:
    dags = examples()
    width = max(map(len, dags))
    parser = argparse.ArgumentParser(
        prog=DEMO_COMMAND,
        description=__doc__,
        epilog="\n".join(["The DAGs:", *(f"  {name:<{width}}  {dags[name]}" for name in dags)]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dag", nargs="?", choices=dags, default=DAG_ID, metavar="NAME")
    return parser.parse_args()


def _stop(errors: int) -> NoReturn:
    # Airflow would take an exception here for the failure of a task, and start the next one.
    os.write(errors, b"\nStopped; nothing is left running.\n")
    os._exit(130)


def _run(file: Path) -> dag_runs.FinishedRun:
    """Run the DAG of the file in this process. Raises `DemoError` if Airflow cannot run it."""
    os.environ["AIRFLOW__LOGGING__JSON_LOGS"] = "True"  # `_Progress` reads them
    try:
        with _captured_output():
            dag_runs.ensure_database()
            dag = dag_runs.load_dag(file, file.stem)
            return dag_runs.run_dag(dag, starting=_announce)
    except Exception as error:
        with _LOG.open("a") as log:
            traceback.print_exc(file=log)
        raise DemoError(
            f"Airflow could not run the DAG: {type(error).__name__}: {error}\n"
            f"Its log is {shown(_LOG)}. To start with an empty home, delete {shown(HOME)}."
        ) from error


def _announce(task_instance: Any) -> None:
    """Write the task's name, and the file in which Airflow's UI looks for its log, to the log."""
    from airflow.configuration import conf
    from airflow.utils.helpers import log_filename_template_renderer

    path = Path(conf.get("logging", "base_log_folder"))
    path /= log_filename_template_renderer()(ti=task_instance)
    print(json.dumps({"task": task_instance.task_id, "file": str(path)}), flush=True)


@contextmanager
def _captured_output() -> Iterator[None]:
    """Send the output of this process to `_Progress`, which prints a part of it."""
    terminal, errors = os.dup(1), os.dup(2)
    reading, writing = os.pipe()

    def follow() -> None:
        with (
            os.fdopen(reading, errors="replace") as lines,
            os.fdopen(terminal, "w", buffering=1, errors="replace", closefd=False) as screen,
            _LOG.open("w") as log,
        ):
            progress = _Progress(screen)
            for line in lines:
                log.write(line)
                progress.take(line.rstrip("\n"))

    reader = threading.Thread(target=follow, name="demo-log", daemon=True)
    reader.start()
    for number in (1, 2):
        os.dup2(writing, number)
    os.close(writing)
    try:
        yield
    finally:
        sys.stdout.flush()
        for saved, number in ((terminal, 1), (errors, 2)):
            os.dup2(saved, number)
        reader.join()
        os.close(terminal)
        os.close(errors)


class _Progress:
    """Prints what the package's tasks log, and writes each task's lines to the task's log file.

    `DAG.test` itself writes no such files. The lines are in the form that Airflow's workers write.
    """

    def __init__(self, screen: TextIO) -> None:
        self._screen = screen
        self._file: Path | None = None
        self._folded = False

    def take(self, line: str) -> None:
        """Take the next line of the process's output: JSON, or what a task prints."""
        try:
            record = json.loads(line)
        except ValueError:
            record = None
        if not isinstance(record, dict):
            record = {}
        if record.keys() == {"task", "file"}:
            self._file = Path(record["file"])
            self._file.parent.mkdir(parents=True, exist_ok=True)
            print(f"\n{record['task']}", file=self._screen)
            return
        event, logger = str(record.get("event", "")), str(record.get("logger", ""))
        if event.startswith("[DAG TEST] end task"):
            self._file = None
        # Airflow's API server is in this process too. On a worker it is not.
        elif self._file is not None and not logger.startswith(("airflow.api_fastapi", "httpx")):
            self._write(line, record)
        self._show(event, logger, record)

    def _write(self, line: str, record: dict[str, Any]) -> None:
        if self._file is None:
            return
        if "exception" in record:
            record = {**record, "error_detail": record["exception"]}
            line = json.dumps(record, ensure_ascii=False)
        with self._file.open("a") as file:
            file.write(f"{line}\n")

    def _show(self, event: str, logger: str, record: dict[str, Any]) -> None:
        if event.startswith("::group::") or event == "::endgroup::":
            self._folded = event.startswith("::group::")  # the report shows what groups contain
        elif event == "Task failed with exception":
            error = (record.get("exception") or [{}])[0]
            print(f"  failed: {error.get('exc_type')}: {error.get('exc_value')}", file=self._screen)
        elif self._folded or record.get("level") == "debug":
            return
        elif "airflow_provider_platform" in logger:
            print(f"  {event}", file=self._screen)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # a usual exit lets Airflow 3.4 complain about its open connections
