"""Rotate a key: test the new credentials before they replace the old ones.

1. Create the new key in the platform. The old key still works.
2. Store the new key in the connection `platform_next`, and run this DAG. It tests the connection,
   reads a list with it, and asks a question with it.
3. If the DAG run succeeds, put the new key into `platform_default`.
4. Revoke the old key.

If your connection has no fields of the management API, delete the task `read_reports`. If it has no
fields of the chat API, delete the task `ask`.

Tasks that run during the change continue. If the service refuses the old key, they read their
connection again, and use the new key.
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
        """Test the connection as the form's Test button does. This asks the agent nothing."""
        works, message = PlatformHook(params["connection"]).test_connection()
        if not works:
            raise AirflowFailException(message)
        return message

    @task
    def read_reports(params: dict[str, str]) -> int:
        """Make a call that your DAGs make: a valid token can lack a permission."""
        with PlatformHook(params["connection"]) as hook:
            return len(list(hook.list_reports()))

    ask = PlatformChatOperator(
        task_id="ask_agent",
        platform_conn_id="{{ params.connection }}",
        prompt="total revenue",
        max_rows=1,
    )

    try_connection() >> [read_reports(), ask]
