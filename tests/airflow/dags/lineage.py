"""DAGs whose queries are reported to whoever reads Airflow's lineage collector."""

from __future__ import annotations

from airflow.sdk import DAG, Asset, task

from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.query import PlatformQueryOperator

CONNECTION = "{{ dag_run.conf['platform_conn_id'] }}"
SQL = "SELECT o.id FROM orders AS o JOIN customers AS c ON c.id = o.customer_id"
AGAIN = "SELECT count(*) FROM orders"

with DAG("lineage", schedule=None) as dag:
    for mode, deferrable in (("worker", False), ("deferred", True)):
        given = {"platform_conn_id": CONNECTION, "deferrable": deferrable, "poll_interval": 0.2}
        PlatformChatOperator(
            task_id=f"chat_{mode}",
            prompt="revenue by country",
            outlets=[Asset("file://reports/answer.json")],
            **given,
        )
        del given["poll_interval"]
        PlatformQueryOperator(task_id=f"query_{mode}", sql=SQL, **given)
        PlatformQueryOperator(task_id=f"failing_{mode}", sql="SELECT x FROM orders", **given)

    @task
    def run_sql(platform_conn_id: str) -> None:
        with PlatformHook(platform_conn_id) as hook:
            secret = hook.get_connection(platform_conn_id).password
            for sql in (AGAIN, AGAIN, f"SELECT id FROM orders WHERE status = '{secret}'"):
                list(hook.run_sql(sql))

    run_sql(CONNECTION)

    @task
    def sql_hook(platform_conn_id: str) -> None:
        from airflow.sdk import BaseHook

        BaseHook.get_connection(platform_conn_id).get_hook().get_records(AGAIN)

    sql_hook(CONNECTION)

try:
    from airflow.providers.openlineage.utils.selective_enable import enable_lineage
except ImportError:  # the tests of lineage are skipped
    pass
else:
    enable_lineage(dag)
