"""What the examples need in the metadata database: connections to the sandbox, and a pool.

``python -m airflow_provider_platform.sandbox.demo.stored_settings FILE`` makes the database of
AIRFLOW_HOME, if need be, and stores the connection that FILE holds as JSON, and the rest.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from airflow_provider_platform.sandbox.demo import dag_runs

CONN_ID = "platform_default"
NEXT_CONN_ID = "platform_next"
"""The connection that the example `rotate_key` tries."""
POOL = "platform_chats"
"""The pool of the example `prompt_per_customer`."""
DESCRIPTION = "The sandbox of the demo"
_EXTRA = ("chat_url", "chat_api_key", "web_links")
"""What follows from where the sandbox is; all else is a person's to change."""


def store_settings(file: Path) -> None:
    """Store what is not there yet, and lead the connections stored earlier to where the sandbox is
    now. A connection with another description, and a pool that is there, are a person's own and
    stay as they are."""
    connection = json.loads(file.read_text())
    for conn_id in (CONN_ID, NEXT_CONN_ID):
        _store_connection(conn_id, connection)
    _store_pool()


def export_connection() -> None:
    """Give this process the stored connection as a variable too: triggers that Airflow runs inside
    of a process do not see its database."""
    from airflow.models import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        stored = session.query(Connection).filter_by(conn_id=CONN_ID).one()
        os.environ[f"AIRFLOW_CONN_{CONN_ID.upper()}"] = stored.as_json()


def _store_connection(conn_id: str, wanted: dict[str, Any]) -> None:
    from airflow.models import Connection
    from airflow.utils.session import create_session

    standard = {name: value for name, value in wanted.items() if name != "extra"}
    extra = wanted["extra"]
    with create_session() as session:
        stored = session.query(Connection).filter_by(conn_id=conn_id).one_or_none()
        if stored is None:
            # Airflow's Test button needs a port; this one means the address's own.
            new = Connection(conn_id=conn_id, description=DESCRIPTION, port=443, **standard)
            new.set_extra(json.dumps(extra))
            session.add(new)
        elif stored.description == DESCRIPTION:
            stored.host = standard["host"]
            stored.set_password(standard["password"])
            stored.set_extra(json.dumps(renewed(stored.extra_dejson, extra)))


def _store_pool() -> None:
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    with create_session() as session:
        if session.query(Pool).filter_by(pool=POOL).one_or_none() is None:
            session.add(
                Pool(
                    pool=POOL,
                    slots=4,
                    description="Questions that the agent works on at once",
                    include_deferred=True,
                )
            )


def renewed(stored: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The stored extra fields, with the addresses and the key of the sandbox of now."""
    return stored | {name: wanted[name] for name in _EXTRA if name in wanted}


def main(file: str) -> int:
    """Prepare the database."""
    dag_runs.initialise_database()
    store_settings(Path(file))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
