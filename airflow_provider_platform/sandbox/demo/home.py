"""The demo's folder: an Airflow home and the files that runs write.

In a clone of the project the folder is ``.demo`` of the clone. The installed package contains the
example DAGs and keeps the folder where it is run. Every Airflow process of the demo imports this
module (`dag_policy`, `CONNECT_ARGS`), so it imports neither Airflow nor the sandbox at its top.
"""

from __future__ import annotations

import ast
import base64
import fcntl
import json
import os
import socket
import sys
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.sandbox.demo import dag_runs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow.sdk import DAG

    from airflow_provider_platform.sandbox.server import Sandbox

_PACKAGE = Path(__file__).resolve().parents[2]
IN_CLONE = (_PACKAGE.parent / "example_dags").is_dir()
EXAMPLES = (_PACKAGE.parent if IN_CLONE else _PACKAGE) / "example_dags"
_TOP = _PACKAGE.parent if IN_CLONE else Path.cwd()
FOLDER = Path(os.environ.get("PLATFORM_DEMO_FOLDER") or _TOP / ".demo")
# A metadata database works with one release of Airflow only.
HOME = FOLDER / f"airflow-{'.'.join(version('apache-airflow').split('.')[:2])}"
_MODULE = "python -m airflow_provider_platform.sandbox.demo"
DEMO_COMMAND = "make demo" if IN_CLONE else _MODULE
UI_COMMAND = "make ui" if IN_CLONE else f"{_MODULE}.airflow_ui"

DAG_ID = "nightly_pipeline"
"""The DAG that the demo runs by default."""
PARAMETERS: dict[str, dict[str, Any]] = {
    DAG_ID: {"report_id": 101},
    "deliveries": {"delivery_id": 502},
    "model_to_production": {"delivery_id": 501, "workbook_id": 301, "dashboard_id": 501},
    "notifications": {"dashboard_id": 501, "email": "analyst@acme.example.com"},
    "reports_and_workbooks": {
        "report": "Revenue by country",
        "external_workbook_id": "monthly-sheet",
        "workbook_id": 301,
        "widget_id": "ai-1",
    },
    "sync_gate_publish": {"workbook_id": 301},
    "waits_and_exports": {"dashboard_id": 501, "integration_id": 3, "consent_status": "active"},
}
"""The sandbox's values for parameters without a default. The example DAGs have no defaults there,
because these parameters name resources of the author's own account."""
FILE_PARAMETERS: dict[str, dict[str, Any]] = {
    DAG_ID: {
        "output_folder": str(FOLDER / "files") if find_spec("pyarrow") else "",
        "charts": ["png"] if find_spec("vl_convert") else [],
    },
    "model_to_production": {"output_path": str(FOLDER / "files" / "model_to_production.pdf")},
    "waits_and_exports": {"output_path": str(FOLDER / "files" / "dashboard.pdf")},
    "weekly_report": {"folder": str(FOLDER / "files")},
    "rows_to_object_storage": {"folder": str(FOLDER / "files" / "orders")},
}
"""Where the demo's runs write their files."""

_PORT = 8471
"""The sandbox's port, if it is free: links of an earlier run then lead to a page that says why the
sandbox does not know them."""
CONN_IDS = ("platform_default", "platform_next")
"""`platform_next` is the connection that the example `rotate_key` tries."""
POOL = "platform_chats"
"""The pool of the example `prompt_per_customer`."""
DESCRIPTION = "The sandbox of the demo"

# If a part of Airflow cannot write to SQLite in time, the part ends. So all parts wait long for
# the lock. The API server waits 5 s: while it waits, it answers nothing else.
CONNECT_ARGS = {"timeout": 5.0 if "api-server" in sys.argv else 120.0}
_CONNECT_ARGS = f"{__name__}.CONNECT_ARGS"


class DemoError(Exception):
    """The demo cannot continue. The message says why and what to do."""


def dag_policy(dag: DAG) -> None:
    """Airflow calls this for every DAG of the demo: fill in the form of an example DAG, so that the
    DAG runs against the sandbox as it is. The example itself names no id of anybody's account."""
    values = PARAMETERS.get(dag.dag_id, {}) | FILE_PARAMETERS.get(dag.dag_id, {})
    for owner in (dag, *dag.tasks):  # each task has a copy of the DAG's parameters
        for name in values.keys() & owner.params.keys():
            owner.params[name] = values[name]


def free_port(wanted: int = 0) -> int:
    """``wanted`` if it is free, else a port that is."""
    with socket.socket() as probe:
        # As servers do. Without it, the port of the last UI counts as taken for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", wanted))
        except OSError:
            probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def prepared() -> Iterator[tuple[Sandbox, bool]]:
    """Serve the sandbox, and make the demo's Airflow the Airflow of this process.

    Yields the sandbox, and whether the Airflow home has to be made first. Raises `DemoError` if
    another demo uses the folder.
    """
    from airflow_provider_platform.sandbox.server import Sandbox

    os.umask(0o077)  # Airflow's keys, database and logs are for this user only
    FOLDER.mkdir(parents=True, exist_ok=True)
    with (FOLDER / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DemoError(
                f"Another demo or its UI runs in {shown(FOLDER)}. Wait for its end or stop it."
            ) from None
        new = not (HOME / "airflow.db").exists()
        environment = _environment()
        os.environ.clear()
        os.environ.update(environment)
        scopes = ("meta", "data", "graphql", "jobs")
        port = free_port(_PORT)
        with Sandbox(port=port, dbt_pace=0.2, default_api_scopes=scopes) as sandbox:
            yield sandbox, new


def _environment() -> dict[str, str]:
    settings = HOME / "config" / "airflow_local_settings.py"
    if not settings.exists():
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text(f"from {__name__} import dag_policy\n\n__all__ = ('dag_policy',)\n")
    return dag_runs.isolated(os.environ, HOME, EXAMPLES) | {
        "AIRFLOW__CORE__DAGS_ARE_PAUSED_AT_CREATION": "False",
        # A newcomer should not wait five minutes for a second try.
        "AIRFLOW__CORE__DEFAULT_TASK_RETRY_DELAY": "3",
        "AIRFLOW__CORE__FERNET_KEY": _fernet_key(),
        "AIRFLOW__CORE__TEST_CONNECTION": "Enabled",
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS": _CONNECT_ARGS,
        "AIRFLOW__DATABASE__SQL_ALCHEMY_CONNECT_ARGS_ASYNC": _CONNECT_ARGS,
    }


def _fernet_key() -> str:
    """The key that encrypts the connections stored in the home."""
    file = HOME / "fernet.key"
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(base64.urlsafe_b64encode(os.urandom(32)).decode())
    return file.read_text()


def store_connections(sandbox: Sandbox) -> None:
    """Store in Airflow's database what the examples need: connections and a pool.

    A connection with another description belongs to a user and is kept.
    """
    from airflow.models import Connection
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    fields = sandbox.connection()
    extra = json.dumps(fields.pop("extra"))
    with create_session() as session:
        for conn_id in CONN_IDS:
            stored = session.query(Connection).filter_by(conn_id=conn_id).one_or_none()
            if stored is not None and stored.description != DESCRIPTION:
                continue
            if stored is not None:
                session.delete(stored)
                session.flush()
            # Airflow's Test button needs a port. Port 443 leaves the address as it is.
            wanted = Connection(conn_id=conn_id, description=DESCRIPTION, port=443, **fields)
            wanted.set_extra(extra)
            session.add(wanted)
    Pool.create_or_update_pool(POOL, 4, "Questions at once", include_deferred=True)


def examples() -> dict[str, str]:
    """The example DAGs by id, each with the first line of its file."""
    texts = {file.stem: file.read_text() for file in sorted(EXAMPLES.glob("*.py"))}
    return {
        dag_id: (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        for dag_id, text in texts.items()
    }


def shown(path: Path) -> str:
    """The path as a user in the demo's folder would type it."""
    return str(path.relative_to(_TOP)) if path.is_relative_to(_TOP) else str(path)
