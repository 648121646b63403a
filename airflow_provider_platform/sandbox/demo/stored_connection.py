"""The demo's connection in the metadata database, as a person would have entered it.

``python -m airflow_provider_platform.sandbox.demo.stored_connection FILE`` makes the database of
AIRFLOW_HOME, if need be, and stores the connection that FILE holds as JSON.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from airflow_provider_platform.sandbox.demo import dag_runs

CONN_ID = "platform_default"
DESCRIPTION = "The sandbox of make demo and make ui"
_EXTRA = ("chat_url", "chat_api_key", "web_links")
"""What follows from where the sandbox is; all else is a person's to change."""


def store_connection(file: Path) -> None:
    """Store the connection where there is none, and lead the one stored earlier to where the
    sandbox is now. One with another description is a person's own and stays as it is."""
    from airflow.models import Connection
    from airflow.utils.session import create_session

    wanted = json.loads(file.read_text())
    extra = wanted.pop("extra")
    with create_session() as session:
        stored = session.query(Connection).filter_by(conn_id=CONN_ID).one_or_none()
        if stored is None:
            # Airflow's Test button needs a port; this one means the address's own.
            new = Connection(conn_id=CONN_ID, description=DESCRIPTION, port=443, **wanted)
            new.set_extra(json.dumps(extra))
            session.add(new)
        elif stored.description == DESCRIPTION:
            stored.host = wanted["host"]
            stored.set_password(wanted["password"])
            stored.set_extra(json.dumps(renewed(stored.extra_dejson, extra)))


def renewed(stored: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """The stored extra fields, with the addresses and the key of the sandbox of now."""
    return stored | {name: wanted[name] for name in _EXTRA if name in wanted}


def main(file: str) -> int:
    """Prepare the database."""
    dag_runs.initialise_database()
    store_connection(Path(file))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
