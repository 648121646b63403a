"""Store all rows of a query as a Parquet file, on a disk or in object storage.

`page_by` reads the rows in pages, so the service's row limit does not remove rows. The file appears
when it is complete. A retry replaces it.

`folder` is a path, or a URL of a storage that Airflow supports, such as
`s3://my_conn@bucket/orders`. Install that storage's provider. Files need the `files` extra.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir
from typing import Any

from airflow.sdk import DAG, Param, task

from airflow_provider_platform.operators.query import PlatformQueryOperator

ORDERS = """
SELECT id, ordered_at, amount FROM orders
WHERE month = '{{ params.month }}'
"""

with DAG(
    dag_id="rows_to_object_storage",
    description="All rows of a query as a Parquet file, and a CSV file for each country",
    doc_md=__doc__,
    schedule=None,
    catchup=False,
    tags=["analytics platform", "recipe"],
    params={
        "month": Param(
            "2025-03",
            type="string",
            pattern=r"^\d{4}-\d{2}$",
            title="Month",
            description="The month to store",
        ),
        "folder": Param(
            str(Path(gettempdir()) / "orders"),
            type="string",
            title="Folder",
            description="Where to write",
        ),
    },
    default_args={"retries": 2},
) as dag:
    # Each page begins with the last id of the page before. The query has no LIMIT of its own.
    orders = PlatformQueryOperator(
        task_id="store_orders",
        sql=ORDERS,
        page_by=["id"],
        output_path="{{ params.folder }}/{{ params.month }}.parquet",
        max_rows=5,
        on_truncated="fail",
        deferrable=True,
    )

    # The function returns the SQL; one file for each country.
    @task.platform_sql(output_path="{{ params.folder }}/customers-{{ ti.map_index }}.csv")
    def customers_of(country: str) -> str:
        return f"SELECT id, name, city FROM customers WHERE country = '{country}'"  # noqa: S608

    @task
    def total(stored: dict[str, Any], others: list[dict[str, Any]]) -> int:
        """Use the number of rows and the path of each file, without reading the files."""
        return int(stored["row_count"]) + sum(other["row_count"] for other in others)

    total(orders.output, customers_of.expand(country=["Germany", "France"]))
