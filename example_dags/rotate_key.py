"""Rotating a key: the new credentials are tried before they take the place of the old ones.

Make the new key at the platform while the old one still works, store it as the connection
`platform_next`, and run this DAG. It tries every side of the new connection, then reads and asks
with it. When it is green, give `platform_default` the new key; revoke the old one last.

A connection may have one side only. Delete `read_reports` if yours has no management side, and
`ask` if it has no chat side.

What runs meanwhile goes on: a wait whose key is refused reads its connection again, once, and takes
the new key.
"""

from __future__ import annotations

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator

try:
    from airflow.sdk.exceptions import AirflowFailException
except ImportError:  # before Airflow 3.2
    from airflow.exceptions import AirflowFailException

with DAG(
    dag_id="rotate_key",
    description="Tries the credentials of another connection before they are needed",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "connection": Param(
            "platform_next",
            type="string",
            title="Connection",
            description="The connection with the new key",
        ),
    },
) as dag:

    @task
    def try_connection(params: dict[str, str]) -> str:
        """What the Test button of the form does; starts no run of the agent."""
        works, message = PlatformHook(params["connection"]).test_connection()
        if not works:
            raise AirflowFailException(message)
        return message

    @task
    def read_reports(params: dict[str, str]) -> int:
        """A token can be valid and lack a permission: do what your DAGs do."""
        with PlatformHook(params["connection"]) as hook:
            return len(list(hook.list_reports()))

    ask = PlatformChatOperator(
        task_id="ask_agent",
        platform_conn_id="{{ params.connection }}",
        prompt="total revenue",
        max_rows=1,
    )

    try_connection() >> [read_reports(), ask]
