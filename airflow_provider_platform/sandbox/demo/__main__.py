"""``python -m airflow_provider_platform.sandbox.demo``: an example DAG from end to end.

The sandbox and Airflow each run in a process of their own and are stopped at the end, on Ctrl-C
too. What is kept lies in ``.demo`` of the checkout, or of the folder that it is run in: Airflow's
home with its metadata database and logs, and what the sandbox remembers. The next demo goes on from
it, unless ``--fresh`` is given. `airflow_ui` starts the UI with what is kept there.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from importlib.util import find_spec
from typing import Any

from airflow_provider_platform.sandbox.demo.airflow_home import kept
from airflow_provider_platform.sandbox.demo.airflow_log import Unfolded, read_line
from airflow_provider_platform.sandbox.demo.checkout import (
    DAG_ID,
    DEMO_COMMAND,
    DEMO_DAGS,
    FOLDER,
    FRESH_COMMAND,
    HOME,
    PARAMETERS,
    UI_COMMAND,
    dag_file,
    menu,
    shown,
)
from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun, FinishedTask
from airflow_provider_platform.sandbox.demo.processes import (
    DemoError,
    only_one,
    running,
    running_sandbox,
    stop_on_signals,
    write_connection,
)
from airflow_provider_platform.sandbox.demo.run_report import report
from airflow_provider_platform.sandbox.demo.task_log_writer import TaskLogWriter

_LOG = FOLDER / "airflow.log"


def main() -> int:
    """Run the demo; the exit code is 0 when the DAG run has succeeded."""
    options = _options()
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    stop_on_signals()
    started = time.monotonic()
    try:
        with only_one(FOLDER):
            if options.fresh:
                _forget()
            with running_sandbox(FOLDER) as sandbox:
                print(f"Sandbox   {sandbox['url']}, a platform in one process with sample data,")
                print("          until the demo ends")
                run = _run_dag(options.dag, sandbox["connection"])
    except DemoError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nStopped; nothing is left running.", file=sys.stderr)
        return 130
    print(f"\n{report(run)}\n\n{_next_steps(options.dag, sandbox['url'])}\n")
    outcome = "worked" if run.state == "success" else f"ended as {run.state}"
    print(
        f"The pipeline {outcome} ({time.monotonic() - started:.0f} s). Airflow's log: {shown(_LOG)}"
    )
    return 0 if run.state == "success" else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=DEMO_COMMAND,
        description=__doc__,
        epilog=menu(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "dag",
        nargs="?",
        choices=DEMO_DAGS,
        default=DAG_ID,
        help=f"the DAG to run (default: {DAG_ID})",
    )
    parser.add_argument(
        "--fresh", action="store_true", help="forget the runs and changes of earlier demos first"
    )
    return parser.parse_args()


def _forget() -> None:
    for folder in (HOME, FOLDER / "files", FOLDER / "sandbox"):
        shutil.rmtree(folder, ignore_errors=True)


def _run_dag(dag_id: str, connection: dict[str, Any]) -> FinishedRun:
    """Run a DAG in an Airflow of its own, showing what its tasks say. Raises `DemoError`."""
    again = (HOME / "airflow.db").exists()
    result = HOME / "result.json"
    result.unlink(missing_ok=True)
    file = dag_file(dag_id)
    env = kept(os.environ, HOME, file.parent)
    env["AIRFLOW__LOGGING__JSON_LOGS"] = "True"
    env["PYTHONUNBUFFERED"] = "1"
    command = [sys.executable, "-m", "airflow_provider_platform.sandbox.demo.run_one_dag"]
    command += [str(file), dag_id, json.dumps(_conf(dag_id))]
    command += [str(write_connection(HOME, connection)), str(result)]
    earlier = ", with the runs of earlier demos" if again else ""
    print(f"Airflow   home {shown(HOME)}{earlier}; connection platform_default")
    print(f"DAG       {shown(file)}")
    print("\nStarting Airflow ...", flush=True)
    # Airflow puts SIGTERM off until its task has ended.
    stop = signal.SIGINT
    with running(command, env=env, stdout=subprocess.PIPE, stop_signal=stop) as process:
        _show_progress(process)
        code = process.wait()
    if code or not result.exists():
        tail = "".join(_LOG.read_text().splitlines(keepends=True)[-20:])
        remedy = (
            f"\nThe folder {shown(HOME)} is from an earlier demo. To delete it and run the demo "
            f"again: {FRESH_COMMAND}" * again
        )
        raise DemoError(
            f"Airflow ended with code {code}; its log ({shown(_LOG)}) ends:\n\n{tail}{remedy}"
        )
    run = json.loads(result.read_text())
    result.unlink()
    return FinishedRun(**run | {"tasks": [FinishedTask(**task) for task in run["tasks"]]})


def _conf(dag_id: str) -> dict[str, Any]:
    """The parameters of the run; files go to the demo's folder."""
    files = FOLDER / "files"
    conf = PARAMETERS[dag_id]
    if dag_id != DAG_ID:
        return {**conf, "output_path": str(files / f"{dag_id}.pdf")}
    charts = ["png"] if _draws_charts() else []
    return {**conf, "output_folder": str(files), "charts": charts}


def _draws_charts() -> bool:
    """Whether the extra `charts` is installed; the demo does without."""
    return find_spec("vl_convert") is not None


def _show_progress(process: subprocess.Popen[str]) -> None:
    if process.stdout is None:
        raise ValueError("the process was started without a pipe")
    unfolded = Unfolded()
    with _LOG.open("w") as log, closing(TaskLogWriter()) as task_logs:
        for raw in process.stdout:
            if task_logs.take(raw.rstrip("\n")):
                continue
            line = read_line(raw.rstrip("\n"))
            log.write(f"{line.text}\n")
            if line.task_starting:
                unfolded = Unfolded()
                print(f"\n{line.task_starting}", flush=True)
            elif line.message and unfolded.shown(line.message):
                print(f"  {line.message}", flush=True)


def _next_steps(dag_id: str, sandbox_url: str) -> str:
    return (
        "What to do next\n"
        "---------------\n"
        f"  Look at the pipeline          {shown(dag_file(dag_id))}\n"
        f"  See the run in Airflow's UI   {UI_COMMAND}\n"
        f"  Open the links of the tasks   {UI_COMMAND}: while it runs, it serves\n"
        f"                                {sandbox_url} again\n"
        "  Use your own platform         in your Airflow: Admin, Connections, a connection of\n"
        "                                the type Analytics Platform"
    )


if __name__ == "__main__":
    sys.exit(main())
